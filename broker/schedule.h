/* schedule.h - the pass: takes waiting jobs in turn, decides each, and posts PLACE. */
#ifndef BROKER_SCHEDULE_H
#define BROKER_SCHEDULE_H

#include "broker/context.h"
#include "broker/core/event.h"
#include "broker/journal.h"

struct schedule;

struct schedule *schedule_create(struct context *context);
void schedule_destroy(struct schedule *schedule); /* takes NULL */

/* Something changed: run a pass soon. Cheap; many kicks make one pass. */
void schedule_kick(struct schedule *schedule);
/* A job has become QUEUED, or is no longer. */
void schedule_queued(struct schedule *schedule, struct entry *entry);
void schedule_removed(struct schedule *schedule, struct entry *entry);
/* A PLACE event could not be written: what was reserved is given back, the job waits again. */
void schedule_undo(struct schedule *schedule, struct entry *entry);

/* Passes done, decisions made, and the longest slice in ms: for metrics. */
void schedule_stats(const struct schedule *schedule, int64_t *passes, int64_t *decisions,
                    int64_t *slice_ms);

#endif
