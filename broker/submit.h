/* submit.h - the door: jobs are checked, given an id, and answered once they are on disk. */
#ifndef BROKER_SUBMIT_H
#define BROKER_SUBMIT_H

#include "broker/caller.h"
#include "broker/context.h"

/* Exactly one reply; see struct submission. The items are taken. */
void submit_jobs(struct context *context, const struct caller *caller,
                 struct submission *submission, reply_fn reply, void *arg);

#endif
