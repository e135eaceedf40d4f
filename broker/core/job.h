/* job.h - a job and its attempts; both state tables; job_apply(), the only writer of a job.
 *
 * A transition is allowed when the tables below say so; anything else is an error that changes
 * nothing. The same events in the same order give the same job (replay). */
#ifndef BROKER_CORE_JOB_H
#define BROKER_CORE_JOB_H

#include "broker/core/error.h"
#include "broker/core/event.h"
#include "broker/core/id.h"
#include "broker/core/spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* X(constant, name, final, means) */
#define JOB_STATE_LIST(X)                                                                          \
    X(NEW, "new", false, "not yet accepted; never seen from outside")                              \
    X(HELD, "held", false, "waits for a time, a dependency, a quota or a cheaper hour")            \
    X(QUEUED, "queued", false, "waits for a placement")                                            \
    X(ACTIVE, "active", false, "has a current attempt")                                            \
    X(CANCELLING, "cancelling", false, "cancel asked; the outcome of the attempt is awaited")      \
    X(SUCCEEDED, "succeeded", true, "ended with exit code 0")                                      \
    X(FAILED, "failed", true, "ended otherwise; the reason says how")                              \
    X(CANCELLED, "cancelled", true, "ended because somebody asked for it")                         \
    X(EXPIRED, "expired", true, "did not start in time")

enum job_state {
#define X(constant, name, final, means) JOB_##constant,
    JOB_STATE_LIST(X)
#undef X
        JOB_STATE_COUNT
};

/* X(constant, name, means, what the API calls an active job with such an attempt) */
#define ATTEMPT_STATE_LIST(X)                                                                      \
    X(NONE, "none", "there is no such attempt", "")                                                \
    X(INTENDED, "intended", "on disk, not yet sent", "placed")                                     \
    X(UNSURE, "unsure", "sent, answer lost; looked up by tag", "placed")                           \
    X(ACCEPTED, "accepted", "the member has it", "dispatched")                                     \
    X(RUNNING, "running", "it runs", "running")                                                    \
    X(UNKNOWN, "unknown", "the member cannot be asked", "unknown")                                 \
    X(ENDED, "ended", "it ended; the outcome says how", "as before it ended")

enum attempt_state {
#define X(constant, name, means, view) ATTEMPT_##constant,
    ATTEMPT_STATE_LIST(X)
#undef X
        ATTEMPT_STATE_COUNT
};

/* X(constant, name, cause of a retry, means) */
#define OUTCOME_LIST(X)                                                                            \
    X(NONE, "none", "", "it has not ended")                                                        \
    X(EXIT, "exit", "exit", "the program ended with an exit code")                                 \
    X(SIGNAL, "signal", "exit", "the program died of a signal")                                    \
    X(TIME_LIMIT, "time-limit", "", "its time limit was reached")                                  \
    X(OUT_OF_MEMORY, "out-of-memory", "out-of-memory", "it used more memory than it asked for")    \
    X(START_FAILED, "start-failed", "start-failed", "the member could not start it")               \
    X(RECLAIMED, "reclaimed", "lost", "the machine was taken away")                                \
    X(REJECTED, "rejected", "start-failed", "the member refused it")                               \
    X(ABSENT, "absent", "lost", "the submit never reached the member")                             \
    X(GONE, "gone", "lost", "the member has lost it")                                              \
    X(CANCELLED, "cancelled", "", "it was cancelled")                                              \
    X(OUTCOME_UNKNOWN, "outcome-unknown", "", "it ended and nobody can say how")

enum outcome {
#define X(constant, name, cause, means) OUTCOME_##constant,
    OUTCOME_LIST(X)
#undef X
        OUTCOME_COUNT
};

/* X(state, event, next state, note): FINISH goes to the final state in the event. */
#define JOB_TRANSITION_LIST(X)                                                                     \
    X(NEW, SUBMIT, QUEUED, "or held, as the event says")                                           \
    X(HELD, RELEASE, QUEUED, "")                                                                   \
    X(HELD, UPSTREAM, FAILED, "")                                                                  \
    X(HELD, CANCEL, CANCELLED, "")                                                                 \
    X(HELD, EXPIRE, EXPIRED, "")                                                                   \
    X(QUEUED, PLACE, ACTIVE, "")                                                                   \
    X(QUEUED, HOLD, HELD, "")                                                                      \
    X(QUEUED, CANCEL, CANCELLED, "")                                                               \
    X(QUEUED, EXPIRE, EXPIRED, "")                                                                 \
    X(QUEUED, FINISH, FAILED, "nothing is left to try")                                            \
    X(ACTIVE, REQUEUE, QUEUED, "its attempt has ended")                                            \
    X(ACTIVE, FINISH, FAILED, "its attempt has ended; or succeeded or cancelled, as it ended")     \
    X(ACTIVE, CANCEL, CANCELLING, "")                                                              \
    X(CANCELLING, FINISH, CANCELLED, "its attempt has ended; or succeeded, if it was done already")

/* X(state, event, next state, note) */
#define ATTEMPT_TRANSITION_LIST(X)                                                                 \
    X(NONE, PLACE, INTENDED, "")                                                                   \
    X(INTENDED, ACCEPT, ACCEPTED, "")                                                              \
    X(INTENDED, REJECT, ENDED, "")                                                                 \
    X(INTENDED, UNSURE, UNSURE, "also after a restart: it may have been sent")                     \
    X(INTENDED, END, ENDED, "given up before it was sent")                                         \
    X(UNSURE, ADOPT, ACCEPTED, "")                                                                 \
    X(UNSURE, ABSENT, ENDED, "")                                                                   \
    X(ACCEPTED, START, RUNNING, "")                                                                \
    X(ACCEPTED, END, ENDED, "")                                                                    \
    X(ACCEPTED, LOSE, UNKNOWN, "")                                                                 \
    X(RUNNING, END, ENDED, "")                                                                     \
    X(RUNNING, LOSE, UNKNOWN, "")                                                                  \
    X(UNKNOWN, START, RUNNING, "")                                                                 \
    X(UNKNOWN, FOUND, ACCEPTED, "if it runs, START follows")                                       \
    X(UNKNOWN, END, ENDED, "")                                                                     \
    X(UNKNOWN, GONE, ENDED, "")

struct term { /* one cost term of the chosen place, nano-units */
    char name[16];
    int64_t nano;
};
enum { TERMS_MAX = 12, REASON_SIZE = 200, NATIVE_SIZE = 128, PLACE_SIZE = 128 };

struct attempt {
    int number; /* from 1 */
    enum attempt_state state;
    enum outcome outcome;
    char place[PLACE_SIZE];
    char native_id[NATIVE_SIZE];
    char reason[REASON_SIZE];
    char decision[ID_SIZE];
    char burst[NAME_SIZE]; /* that opened its tier; "" */
    char node[NAME_SIZE];  /* where it runs, as far as the member says; "" */
    int exit_code, signal;
    int64_t placed_ms, accepted_ms, started_ms, ended_ms; /* wall; 0: not yet */
    int64_t unknown_ms;                                   /* since when it cannot be asked */
    int64_t rent_expected, booked, settled;               /* nano-units; rent only */
    int64_t price_hour;   /* nano-units of rent per hour of this job */
    int64_t nodes;        /* thousandths of rented machines */
    struct texts budgets; /* that hold the booking */
    bool sent_maybe;      /* a submit may have left this broker */
};

struct job {
    int refs;
    char id[ID_SIZE];
    enum job_state state;
    struct spec *spec;
    char *owner;
    char *key; /* idempotency key, or NULL */
    int64_t submitted_ms, queued_ms, finished_ms;
    int64_t submit_seq;       /* of its SUBMIT event */
    struct attempt *attempts; /* all, in order */
    int attempt_count;
    int lost, start_failed, out_of_memory, exits; /* retries used, by cause */
    enum outcome outcome;                         /* of the job, once final */
    int exit_code, signal;
    char reason[REASON_SIZE]; /* why it is held, queued again or ended so */
    char cancelled_by[PLACE_SIZE];
};

/* A job in state NEW. */
struct job *job_create(const char *id);
struct job *job_ref(struct job *job);
void job_unref(struct job *job); /* takes NULL */
struct job *job_clone(const struct job *job);

/* Applies an event. CONFLICT when the tables do not allow it, INVALID when its data lack something;
 * the job is then unchanged. What data each event carries: job_events.c. */
int job_apply(struct job *job, const struct event *event, struct error *err);

/* The data of SUBMIT: the spec as received, and the defaults that it was given, so that replay needs
 * no policy. team "" or NULL: the spec's; key, held: NULL when there is none. */
json_t *job_submit_data(const struct spec *spec, const char *owner, const char *team,
                        const char *key, const char *held);

/* The row that the store keeps: everything but the spec, compact JSON with fixed key order; and back. */
json_t *job_to_row(const struct job *job);
int job_from_row(const json_t *row, struct spec *spec, struct job **out, struct error *err);

/* The current attempt, or NULL before the first. */
static inline struct attempt *job_attempt(const struct job *job)
{
    return job->attempt_count ? &job->attempts[job->attempt_count - 1] : NULL;
}

bool job_is_final(const struct job *job);
/* What the API calls the pair of states: held queued placed dispatched running unknown cancelling
 * succeeded failed cancelled expired. */
const char *job_view(const struct job *job);

const char *job_state_name(enum job_state state);
const char *attempt_state_name(enum attempt_state state);
const char *outcome_name(enum outcome outcome);
const char *outcome_cause(enum outcome outcome);
int job_state_find(const char *name); /* -1: none; so with the next two */
int attempt_state_find(const char *name);
int outcome_find(const char *name);
bool job_state_is_final(enum job_state state);

/* The remote name of an attempt: <name>.<job id>-<attempt>, at most 63 characters; the name is cut. */
void attempt_remote_name(const struct job *job, int attempt, char out[NAME_SIZE]);

/* Prints both tables as Markdown: docs/job-states.md. */
void job_states_print(FILE *out);

#endif
