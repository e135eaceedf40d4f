/* watch.h - what the members say: conditions by probes, the state of our attempts by listings. */
#ifndef BROKER_WATCH_H
#define BROKER_WATCH_H

#include "broker/context.h"
#include "broker/core/adapter.h"
#include "broker/journal.h"
#include "broker/lateness.h"

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
/* Whether every member has been listed since the start, or could not be. */
bool watch_has_seen_all(const struct watch *watch);

/* How late listings began. */
const struct lateness *watch_lateness(const struct watch *watch);

#endif
