/* job_apply.c - job_apply(), the only writer of a job: looks the step up in the tables of job.h, lets the
 * event check its data and write (job_events.c), then sets the states. */
#include "broker/core/job_events.h"

#include "broker/core/limits.h"

#include <assert.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct transition {
    int from;
    enum event_kind kind;
    int to;
};

static const struct transition job_transitions[] = {
#define X(state, event, next, note) {JOB_##state, EVENT_##event, JOB_##next},
    JOB_TRANSITION_LIST(X)
#undef X
};

static const struct transition attempt_transitions[] = {
#define X(state, event, next, note) {ATTEMPT_##state, EVENT_##event, ATTEMPT_##next},
    ATTEMPT_TRANSITION_LIST(X)
#undef X
};

/* Whether some state of this table leaves by the event, and to where from this one. */
static bool knows(const struct transition *table, size_t count, enum event_kind kind, int from,
                  int *to)
{
    bool known = false;
    *to = NOT_OURS;
    for (size_t i = 0; i < count; i++) {
        if (table[i].kind == kind) {
            known = true;
            if (table[i].from == from) {
                *to = table[i].to;
            }
        }
    }
    return known;
}

static int find_job_step(const struct job *job, const struct event *event, struct job_step *step,
                         struct error *err)
{
    if (knows(job_transitions, COUNT(job_transitions), event->kind, (int)job->state, &step->job) &&
        step->job == NOT_OURS) {
        return error_set(err, ERROR_CONFLICT, "job %s is %s: the event '%s' is not allowed then",
                         job->id, job_state_name(job->state), event_name(event->kind));
    }
    return 0;
}

static int check_attempt_number(const struct job *job, const struct event *event, struct error *err)
{
    const char *name = event_name(event->kind);
    if (event->kind == EVENT_PLACE) {
        if (job->attempt_count >= LIMIT_ATTEMPTS) {
            return error_set(err, ERROR_CONFLICT, "job %s has had all its %d attempts", job->id,
                             job->attempt_count);
        }
        if (event->attempt != job->attempt_count + 1) {
            return error_set(err, ERROR_CONFLICT,
                             "job %s is %s with %d attempts: '%s' of attempt %d is not the next",
                             job->id, job_state_name(job->state), job->attempt_count, name,
                             event->attempt);
        }
        return 0;
    }
    if (job->state != JOB_ACTIVE && job->state != JOB_CANCELLING) {
        return error_set(err, ERROR_CONFLICT, "job %s is %s: the event '%s' is not allowed then",
                         job->id, job_state_name(job->state), name);
    }
    if (event->attempt != job->attempt_count) {
        return error_set(err, ERROR_CONFLICT,
                         "job %s is %s at attempt %d: the event '%s' is of attempt %d", job->id,
                         job_state_name(job->state), job->attempt_count, name, event->attempt);
    }
    return 0;
}

static int find_attempt_step(const struct job *job, const struct event *event,
                             struct job_step *step, struct error *err)
{
    enum attempt_state from =
        event->kind == EVENT_PLACE || !job->attempt_count ? ATTEMPT_NONE : job_attempt(job)->state;
    if (!knows(attempt_transitions, COUNT(attempt_transitions), event->kind, (int)from,
               &step->attempt)) {
        return 0;
    }
    if (check_attempt_number(job, event, err) < 0) {
        return -1;
    }
    if (step->attempt == NOT_OURS) {
        return error_set(
            err, ERROR_CONFLICT, "attempt %d of job %s is %s: the event '%s' is not allowed then",
            event->attempt, job->id, attempt_state_name(from), event_name(event->kind));
    }
    return 0;
}

int job_apply(struct job *job, const struct event *event, struct error *err)
{
    struct job_step step = {NOT_OURS, NOT_OURS};
    if (event_stream(event->kind) != STREAM_JOB || strcmp(event->id, job->id) != 0) {
        return error_set(err, ERROR_CONFLICT, "job %s is %s: the event '%s' of '%s' is not its own",
                         job->id, job_state_name(job->state), event_name(event->kind), event->id);
    }
    if (event->kind == EVENT_LATE) {
        return 0;
    }
    if (find_job_step(job, event, &step, err) < 0 ||
        find_attempt_step(job, event, &step, err) < 0) {
        return -1;
    }
    assert(job_appliers[event->kind]); /* every event of the tables has its line there */
    if (job_appliers[event->kind](job, event, &step, err) < 0) {
        return -1;
    }
    if (step.job != NOT_OURS) {
        job->state = (enum job_state)step.job;
    }
    if (step.attempt != NOT_OURS) {
        job_attempt(job)->state = (enum attempt_state)step.attempt;
    }
    return 0;
}
