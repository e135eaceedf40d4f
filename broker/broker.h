/* broker.h - the broker as the API sees it. All calls are made on the loop thread.
 *
 * Replies come exactly once, never from within the call; body is the reply's for the time of the
 * callback. err->code is ERROR_NONE on success. What changes state is answered when it is on disk. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "broker/caller.h"
#include "broker/core/adapter.h"
#include "broker/core/cluster.h"
#include "broker/core/error.h"
#include "broker/core/rules.h"
#include "broker/core/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct broker;

struct broker_env { /* borrowed; outlives the broker */
    struct clock *clock;
    struct store *store; /* taken: closed by broker_destroy */
    const struct federation *federation;
    struct rules *rules; /* taken */
    struct adapter_env adapter_env;
    /* Parses a policy text: config_policy_parse, handed in by main. */
    int (*rules_parse)(const char *text, const char *file, const struct federation *federation,
                       struct rules **out, struct error *err);
    void (*rules_destroy)(struct rules *rules);
    void (*log)(const char *level, const char *text);
    /* Go on although members show work that the store does not know: a person has decided. */
    bool accept_world;
};

/* Loads the store, opens the adapters, starts to work. */
int broker_create(const struct broker_env *env, struct broker **out, struct error *err);
/* Finishes what is outstanding at the store (bounded), closes adapters and store. Jobs go on. */
void broker_destroy(struct broker *broker);

void broker_submit(struct broker *broker, const struct caller *caller,
                   struct submission *submission, reply_fn reply, void *arg);

/* The job with this id or unique end of an id, that the caller may see. Live or finished. With
 * after_view not NULL: answers when job_view differs from it or the job is final, at the latest after
 * wait_ms (long poll). */
void broker_job(struct broker *broker, const struct caller *caller, const char *id,
                const char *after_view, int64_t wait_ms, reply_fn reply, void *arg);
/* {"jobs": [...], "next_cursor": text or null} */
void broker_jobs(struct broker *broker, const struct caller *caller,
                 const struct store_filter *filter, reply_fn reply, void *arg);
/* {"events": [...], "next_cursor"}; id NULL: of the federation. wait_ms: long poll when there is none. */
void broker_events(struct broker *broker, const struct caller *caller, const char *id,
                   int64_t after_seq, int limit, int64_t wait_ms, reply_fn reply, void *arg);
/* {"text": latin-1-safe text, "offset", "next_offset", "complete", "attempt"}; wait_ms as above. The
 * bytes are in "base64" instead of "text" when they are not UTF-8. */
void broker_log(struct broker *broker, const struct caller *caller, const char *id, int attempt,
                int64_t offset, int64_t wait_ms, reply_fn reply, void *arg);
void broker_cancel(struct broker *broker, const struct caller *caller, const char *id,
                   reply_fn reply, void *arg);
void broker_explain(struct broker *broker, const struct caller *caller, const char *id,
                    reply_fn reply, void *arg);
/* Of an imagined job; value is borrowed. render: name of a place whose rendering is wanted, or NULL. */
void broker_explain_job(struct broker *broker, const struct caller *caller,
                        const struct value *value, const char *render, reply_fn reply, void *arg);
void broker_places(struct broker *broker, reply_fn reply, void *arg);
void broker_drain(struct broker *broker, const struct caller *caller, const char *place, bool drain,
                  const char *note, reply_fn reply, void *arg);
void broker_bursts(struct broker *broker, reply_fn reply, void *arg); /* bursts and budgets */
void broker_policy(struct broker *broker, reply_fn reply,
                   void *arg); /* {"hash","since","by","text"} */
/* Checks and, unless dry_run, takes a new policy. A bad one changes nothing. */
void broker_policy_set(struct broker *broker, const struct caller *caller, const char *text,
                       const char *file, bool dry_run, reply_fn reply, void *arg);

/* 0, or -1 with UNAVAILABLE and the reason: /readyz. */
int broker_ready(struct broker *broker, struct error *err);
/* Prometheus text format, without HTTP's own metrics. */
void broker_metrics(struct broker *broker, FILE *out);

/* How many subscribers wait in long polls: LIMIT_FOLLOWERS is theirs. */
int broker_followers(const struct broker *broker);
/* For shutdown: every long poll answers now, a bulk is cut off, and nobody waits again. */
void broker_wake_all(struct broker *broker);
/* Questions not yet answered. Before broker_destroy the loop must have run until there are none, or only
 * such as wait for a member or a store that hangs. */
int64_t broker_questions(const struct broker *broker);

#endif
