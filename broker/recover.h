/* recover.h - a start: what the store holds becomes jobs again, and their work is taken up. */
#ifndef BROKER_RECOVER_H
#define BROKER_RECOVER_H

#include "broker/context.h"
#include "broker/core/store.h"

/* Loads live jobs into the journal. doc and tombstone hand on what belongs to others. */
struct recover_hooks {
    void *arg;
    void (*doc)(void *arg, enum store_table table, const char *id, const json_t *json);
    int (*tombstone)(void *arg, const struct event *event, struct error *err);
};
int recover_load(struct context *context, const struct recover_hooks *hooks, struct error *err);

/* Books again what live attempts hold. To be called after the load, before anything is decided. */
void recover_bookings(struct context *context);

/* Whether an INTENDED attempt of a broker that died must be looked up: it may have been sent. */
bool recover_is_unsure(struct context *context, const struct job *job);

#endif
