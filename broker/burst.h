/* burst.h - the controller of the rented tiers: looks at the queue every second, steps each burst of
 * the policy, and writes each change down before it counts. */
#ifndef BROKER_BURST_H
#define BROKER_BURST_H

#include "broker/context.h"

struct burst;

struct burst *burst_create(struct context *context, void (*changed)(void *arg), void *arg);
void burst_start(struct burst *burst);
void burst_stop(struct burst *burst);
void burst_destroy(struct burst *burst);

/* At start: the state of a burst as it was kept. */
void burst_load(struct burst *burst, const json_t *json);

#endif
