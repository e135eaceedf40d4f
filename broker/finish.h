/* finish.h - an attempt has ended: the job is final, or it is placed again. */
#ifndef BROKER_FINISH_H
#define BROKER_FINISH_H

#include "broker/context.h"
#include "broker/journal.h"

/* Called when the current attempt is ENDED and the job is not final. Posts FINISH or REQUEUE. Returns -1
 * when that could not be appended: to be called again. */
int finish_attempt(struct context *context, struct entry *entry);

#endif
