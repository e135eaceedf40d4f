/* why.h - one line that says what a waiting job waits for, as true as a moment ago. */
#ifndef BROKER_WHY_H
#define BROKER_WHY_H

#include "broker/context.h"
#include "broker/core/job.h"

/* NULL: the job does not wait in the queue. The queue's until the next turn. */
const char *why_waits(struct context *context, const struct job *job);

#endif
