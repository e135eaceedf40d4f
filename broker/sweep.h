/* sweep.h - what must be gone elsewhere, until that is confirmed; and what has aged out here.
 *
 * An attempt of ours that no live job accounts for is written down first (a tombstone), then cancelled
 * until the member says that it is over. A job that the store has never heard of means that the store
 * is older than the world: the broker then only watches, until a person decides. */
#ifndef BROKER_SWEEP_H
#define BROKER_SWEEP_H

#include "broker/context.h"
#include "broker/core/adapter.h"
#include "broker/core/event.h"

#include <stdbool.h>

struct sweep;

struct sweep *sweep_create(struct context *context);
void sweep_start(struct sweep *sweep);
void sweep_stop(struct sweep *sweep);
void sweep_destroy(struct sweep *sweep);

/* A member shows this; see watch_hooks.stray. */
void sweep_stray(struct sweep *sweep, int cluster, const struct report *report);
/* A tombstone of the store, at start. */
int sweep_load(struct sweep *sweep, const struct event *event, struct error *err);
/* A person has decided that the world counts: what the store missed of its jobs becomes theirs, and what
 * it has never heard of is left alone. */
void sweep_accept_world(struct sweep *sweep);

/* Whether the store has answered for every stray that was shown. */
bool sweep_is_settled(const struct sweep *sweep);

int64_t sweep_count(const struct sweep *sweep);
int64_t sweep_oldest_ms(const struct sweep *sweep); /* age of the oldest, 0: none */

#endif
