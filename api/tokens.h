/* tokens.h - static tokens: a file with one line per token, which holds a hash and never the token.
 *
 *     sha256:ID:HEX OWNER TEAM ROLE CREATED        (team "-": none; lines that begin with # are ignored)
 *
 * A token is "tl_ID_SECRET"; HEX is the SHA-256 of the whole of it. ID (the salt) finds the line, so
 * one hash is made for each check. */
#ifndef API_TOKENS_H
#define API_TOKENS_H

#include "broker/broker.h"
#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/hash.h"
#include "broker/core/id.h"
#include "broker/core/units.h"

#include <stdbool.h>
#include <stddef.h>

enum { TOKEN_SIZE = 80, TOKEN_ID_SIZE = 17, TOKEN_OWNER_SIZE = 128 };

struct token { /* one line */
    char id[TOKEN_ID_SIZE];
    char hash[SHA256_TEXT_SIZE];
    char owner[TOKEN_OWNER_SIZE];
    char team[NAME_SIZE]; /* "": none */
    enum role role;
    char created[UNITS_TEXT_SIZE];
};

/* Makes a token, appends its line (the file is made with mode 0600), and writes the token itself to out,
 * the only time that it is seen. team "" or NULL: none. role: a word of ROLE_LIST. */
int token_add(const char *path, struct clock *clock, const char *owner, const char *team,
              const char *role, char out[TOKEN_SIZE], struct error *err);
/* All lines; *out is the caller's to free. A file that is not there is empty. */
int token_list(const char *path, struct token **out, size_t *count, struct error *err);
/* Removes the token with this id. NOT_FOUND. */
int token_revoke(const char *path, const char *id, struct error *err);

/* A random token text of the form above. */
void token_make(struct clock *clock, char out[TOKEN_SIZE]);

/* The same time whatever differs. */
bool token_equal(const char *a, const char *b);

/* The file as the server holds it: read again when it changes. */
struct tokens;
typedef void (*tokens_log_fn)(const char *level, const char *text);
int tokens_open(const char *path, tokens_log_fn log, struct tokens **out, struct error *err);
void tokens_close(struct tokens *tokens); /* takes NULL */
/* The line of this token, or NULL. Valid until the next call. */
const struct token *token_check(struct tokens *tokens, const char *text);

#endif
