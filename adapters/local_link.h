/* local_link.h - the connection of the `local` adapter to its supervisor: connects, starts one when none
 * answers, connects again after a loss.
 *
 * Nothing blocks. Starting is `tieline supervise --detach`, which returns once the new one serves, or
 * fails when another one does already. Tries are spaced out from 50 ms to 5 s and are made only while
 * the owner wants the connection. */
#ifndef ADAPTERS_LOCAL_LINK_H
#define ADAPTERS_LOCAL_LINK_H

#include "broker/core/adapter.h"
#include "broker/core/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct link;

struct link_owner { /* called from the loop, except up: also from within link_wake */
    void *arg;
    void (*up)(void *arg);   /* connected: send */
    void (*down)(void *arg); /* lost: what was sent may have been received */
    void (*message)(void *arg, const json_t *json, const char *bytes, size_t length);
    bool (*wants)(void *arg); /* whether a connection is of use now */
};

/* dir: of the member. */
struct link *link_create(const struct adapter_env *env, const char *dir, const char *member,
                         const struct link_owner *owner);
/* Sends farewell (may be NULL) if it can be sent at once, then closes. Its memory is freed by the loop. */
void link_destroy(struct link *link, json_t *farewell);

bool link_is_up(const struct link *link);
/* Connects if need be. */
void link_wake(struct link *link);
/* -1: not connected, too large, or the supervisor does not read: err says which. */
int link_send(struct link *link, json_t *json, struct error *err);

/* Why there is no connection; "" when there is. */
const char *link_trouble(const struct link *link);

#endif
