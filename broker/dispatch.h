/* dispatch.h - what is on disk as intended is carried out at the member; what was lost on the way is
 * looked up, never sent again blind; what is to be cancelled is cancelled. */
#ifndef BROKER_DISPATCH_H
#define BROKER_DISPATCH_H

#include "broker/context.h"
#include "broker/journal.h"

struct dispatch;

struct dispatch *dispatch_create(struct context *context);
void dispatch_destroy(struct dispatch *dispatch); /* takes NULL */

/* The job has come to a state in which something is to be done at its member: its attempt is INTENDED
 * (submit), UNSURE (look up), or the job is CANCELLING (end it there). Idempotent. */
void dispatch_job(struct dispatch *dispatch, struct entry *entry);
/* An event of dispatch could not be written: asked again soon. */
void dispatch_again(struct dispatch *dispatch, struct entry *entry);
/* The broker stops: nothing new is sent. */
void dispatch_stop(struct dispatch *dispatch);
/* The attempt has ended, or the job is gone: whatever was planned for it is not. */
void dispatch_forget(struct dispatch *dispatch, struct entry *entry);

#endif
