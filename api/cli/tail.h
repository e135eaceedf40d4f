/* tail.h - follows a job to its end: its states, and the output of each attempt, each byte once. */
#ifndef API_CLI_TAIL_H
#define API_CLI_TAIL_H

#include "api/cli/client.h"
#include "broker/core/id.h"

#include <jansson.h>

struct tail {
    struct cli *cli;
    struct client *client;
    char id[ID_SIZE];
    FILE *out;      /* the output of the job; NULL: not wanted */
    int attempt;    /* whose output comes next; from 1 */
    bool only_this; /* no further attempts */
    bool speaks;    /* says on standard error what happens */
    json_t *job;    /* as last seen; NULL: not yet */

    int64_t offset;                         /* of the next byte */
    bool log_done;                          /* nothing more comes of this attempt's output */
    char no_log_of[128];                    /* place whose having no log was told */
    int told_attempt;                       /* of which something was said */
    char seen[32];                          /* the state at the last look */
    char told[32];                          /* the state that was said last */
    int64_t output_ms, idle_ms, failing_ms; /* monotonic: last output, last word about it; 0 */
};

enum tail_result { TAIL_END, TAIL_INTERRUPTED, TAIL_FAILED };

/* Returns when the job is final and its output was written, an interrupt came, or the broker was away
 * for longer than the client's patience (err; client_status() tells of a refusal). */
enum tail_result tail_job(struct tail *tail, struct error *err);
void tail_fini(struct tail *tail);

/* Reads the job again; wait_ms: until its state changes. */
int tail_refresh(struct tail *tail, int64_t wait_ms, struct error *err);

/* Reads one piece of output and writes it. Returns its bytes, or -1. */
int64_t tail_read(struct tail *tail, int64_t wait_ms, struct error *err);

bool tail_is_final(const struct tail *tail);

#endif
