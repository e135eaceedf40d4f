/* slurm_token.h - the token for slurmrestd: kept, and read again when its file changes or it failed. */
#ifndef ADAPTERS_SLURM_TOKEN_H
#define ADAPTERS_SLURM_TOKEN_H

#include "broker/core/clock.h"
#include "broker/core/keys.h"

#include <stdint.h>
#include <sys/stat.h>

struct slurm_token {
    const struct secret *secret;
    struct clock *clock;
    char *text;         /* NULL: not read yet */
    int64_t expires_ms; /* wall; 0: the token does not say */
    int64_t renewed_ms; /* monotonic, when the last renewal was over */
    int64_t failed_ms;  /* monotonic, when the command had failed; 0: it has not */
    struct error failure;
    struct timespec changed;
    ino_t inode;
};

void slurm_token_init(struct slurm_token *token, const struct secret *secret, struct clock *clock);
void slurm_token_fini(struct slurm_token *token);

/* The token now; NULL in out: none is configured. UNAUTHORIZED when it cannot be read or has expired,
 * with what to do. Borrowed until the next call. */
int slurm_token_get(struct slurm_token *token, const char **out, struct error *err);

/* The member refused `used`: reads the token again, at most once in a while, as a command may be asked.
 * Returns whether it is another one now. */
bool slurm_token_renew(struct slurm_token *token, const char *used);

#endif
