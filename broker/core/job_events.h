/* job_events.h - what job_apply.c and job_events.c share; nobody else includes it. */
#ifndef BROKER_CORE_JOB_EVENTS_H
#define BROKER_CORE_JOB_EVENTS_H

#include "broker/core/job.h"

/* Where an event leads; NOT_OURS: it does not change this state. */
struct job_step {
    int job, attempt;
};
enum { NOT_OURS = -1 };

/* Checks the data, then writes everything but the states. Where the event itself says the next state
 * of the job, step->job is set to it. */
typedef int (*job_apply_fn)(struct job *job, const struct event *event, struct job_step *step,
                            struct error *err);
extern const job_apply_fn job_appliers[EVENT_COUNT]; /* NULL: changes nothing, or not of a job */

#endif
