/* auth.h - who asks: the user of a Unix socket, the local token, or a static token. */
#ifndef API_AUTH_H
#define API_AUTH_H

#include "api/parts.h"
#include "api/tokens.h"
#include "broker/broker.h"

struct auth;

struct identity {
    char owner[TOKEN_OWNER_SIZE];
    char team[NAME_SIZE];
    enum role role;
};

/* Makes STATE/token when it is not there; reads the file of static tokens. */
int auth_create(const struct api_env *env, struct auth **out, struct error *err);
void auth_destroy(struct auth *auth);

/* authorization: the header's text or NULL. UNAUTHORIZED says what is missing. */
int auth_identify(struct auth *auth, const struct conn *conn, const char *authorization,
                  struct identity *out, struct error *err);

const char *role_name(enum role role);

#endif
