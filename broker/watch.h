/* watch.h - what the members say: conditions by probes, the state of our attempts by listings. */
#ifndef BROKER_WATCH_H
#define BROKER_WATCH_H

#include "broker/context.h"
#include "broker/core/adapter.h"
#include "broker/journal.h"

struct watch;

struct watch_hooks {
    void *arg;
    /* The picture has changed: decisions may differ. */
    void (*changed)(void *arg);
    /* A member shows an attempt of ours that no live job accounts for: an old attempt, or a job that is
     * not live. cluster: index. */
    void (*stray)(void *arg, int cluster, const struct report *report);
};

struct watch *watch_create(struct context *context, const struct watch_hooks *hooks);
/* Begins to probe and to list, at once. */
void watch_start(struct watch *watch);
void watch_stop(struct watch *watch); /* no further calls; those under way are ignored */
void watch_destroy(struct watch *watch);

/* An attempt there was accepted or is being cancelled: list soon. */
void watch_soon(struct watch *watch, const char *place);
/* Whether every member that answers has been listed since the start. */
bool watch_has_seen_all(const struct watch *watch);

/* How late listings began, in ms: upper bounds of the buckets and counts; for metrics. */
enum { WATCH_BUCKETS = 6 };
extern const int64_t watch_bucket_ms[WATCH_BUCKETS]; /* the last is INT64_MAX */
void watch_lateness(const struct watch *watch, int64_t counts[WATCH_BUCKETS], int64_t *sum_ms);

#endif
