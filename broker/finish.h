/* finish.h - an attempt has ended: the job is final, or it is placed again. */
#ifndef BROKER_FINISH_H
#define BROKER_FINISH_H

#include "broker/context.h"
#include "broker/journal.h"

/* Called when the current attempt is ENDED and the job is not final. Posts FINISH or REQUEUE. Returns -1
 * when that could not be appended: to be called again. */
int finish_attempt(struct context *context, struct entry *entry);

/* The rent of an attempt that ended now: from start to end at its price; never started: nothing. */
int64_t finish_rent(const struct attempt *attempt, int64_t started_ms, int64_t ended_ms);

#endif
