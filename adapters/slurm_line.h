/* slurm_line.h - the line of requests to one slurmrestd: rate, deadlines, credentials.
 *
 * A request waits until the cluster's `requests` allows it, and is then sent once. When its token was
 * refused, and surely nothing was done, it is sent once more if there is another token by now. */
#ifndef ADAPTERS_SLURM_LINE_H
#define ADAPTERS_SLURM_LINE_H

#include "adapters/slurm_parse.h"
#include "broker/core/adapter.h"

struct slurm_line;

struct slurm_line_config { /* borrowed; outlives the line */
    const struct adapter_env *env;
    struct rate requests; /* count 0: no limit */
    const char *url;      /* http://host:port, or unix:/path */
    const char *user;     /* X-SLURM-USER-NAME, or NULL */
    const struct secret *token;
};

struct slurm_reply {
    struct slurm_answer *answer; /* the receiver's; NULL: no whole answer, err says why */
    struct error err;
    bool sent; /* the request may have reached slurmrestd */
};
typedef void (*slurm_reply_fn)(void *arg, struct slurm_reply *reply);

struct slurm_line *slurm_line_create(const struct slurm_line_config *config);
/* Nothing that is outstanding is completed: its owner does that. Requests that were sent go on there. */
void slurm_line_destroy(struct slurm_line *line);

/* done runs later, once, at the latest a little before deadline_ms (monotonic). body NULL: none. */
void slurm_line_send(struct slurm_line *line, const char *method, const char *path,
                     const char *body, int64_t deadline_ms, slurm_reply_fn done, void *arg);

#endif
