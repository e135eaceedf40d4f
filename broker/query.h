/* query.h - what readers ask: jobs, lists, events, logs. Answers as in broker.h. */
#ifndef BROKER_QUERY_H
#define BROKER_QUERY_H

#include "broker/caller.h"
#include "broker/context.h"
#include "broker/follow.h"

#include <stdint.h>

struct reader { /* what every query is handed */
    struct context *context;
    struct follow *follow;
};

void query_job(const struct reader *reader, const char *id, const char *after_view, int64_t wait_ms,
               reply_fn reply, void *arg);
void query_jobs(const struct reader *reader, const struct store_filter *filter, reply_fn reply,
                void *arg);
void query_events(const struct reader *reader, const char *id, int64_t after_seq, int limit,
                  int64_t wait_ms, reply_fn reply, void *arg);
void query_log(const struct reader *reader, const char *id, int attempt, int64_t offset,
               int64_t wait_ms, reply_fn reply, void *arg);

#endif
