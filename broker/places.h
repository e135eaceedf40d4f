/* places.h - places as users see them, and draining them by hand. */
#ifndef BROKER_PLACES_H
#define BROKER_PLACES_H

#include "broker/caller.h"
#include "broker/context.h"

/* {"places": [...]}; New reference. */
json_t *places_present(struct context *context);

/* Drains or opens a place, or all places of a cluster. Answers when it is on disk. */
void places_drain(struct context *context, const struct caller *caller, const char *name,
                  bool drain, const char *note, reply_fn reply, void *arg);

/* At start: a drain as it was kept. */
void places_load_drain(struct context *context, const json_t *json);

#endif
