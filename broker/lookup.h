/* lookup.h - from an id, or the unique end of one, to a job: live from memory, finished from the store. */
#ifndef BROKER_LOOKUP_H
#define BROKER_LOOKUP_H

#include "broker/context.h"
#include "broker/core/job.h"

#include <jansson.h>

/* job is borrowed; NULL with NOT_FOUND, CONFLICT (several fit) or STORE in err. Never from within the
 * call. */
typedef void (*lookup_fn)(void *arg, const struct job *job, const struct error *err);
void lookup_job(struct context *context, const char *id, lookup_fn done, void *arg);

/* Builds the job from what store_ops.jobs hands over. job_unref it. */
int lookup_from_row(const json_t *row, struct job **out, struct error *err);

#endif
