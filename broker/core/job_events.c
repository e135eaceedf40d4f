/* job_events.c - what each event writes into a job. Each checks all of its data before it writes any.
 *
 * What the data of each event hold; keys are written in this order, "?" may be absent. Times are wall
 * ms, money nano-units, CPUs, GPUs and nodes thousandths.
 *   SUBMIT    owner team? key? held? defaults{} spec{}    held: the reason; defaults: spec_json.c
 *   HOLD RELEASE EXPIRE UPSTREAM                          reason?
 *   CANCEL    by? reason?
 *   PLACE     place decision? terms{name: nano}? rent_expected? booked? price_hour? budgets[]? burst?
 *             nodes? reason?
 *   ACCEPT ADOPT                                          native?
 *   REJECT UNSURE ABSENT LOSE                             reason?
 *   START     at? node?
 *   FOUND     -
 *   GONE      reason? ended? settled?
 *   END       outcome exit_code? signal? reason? started? ended? settled?
 *   REQUEUE   cause reason?                               cause: lost start-failed out-of-memory exit none
 *   FINISH    state outcome? exit_code? signal? reason?
 *   LATE      anything; recorded, never applied
 * Events of an attempt carry its number in event.attempt; PLACE the next number. */
#include "broker/core/job_events.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int bad_data(const struct event *event, struct error *err, const char *key,
                    const char *expected)
{
    (void)error_set(err, ERROR_INVALID, "'%s' of the event '%s' is not what was expected", key,
                    event_name(event->kind));
    return error_expect(err, "%s", expected);
}

/* A text that must come through whole, or is not there. */
static int check_text(const struct event *event, const char *key, size_t size, bool required,
                      struct error *err)
{
    size_t length = strlen(event_str(event, key));
    if (length >= size || (required && length == 0)) {
        return bad_data(event, err, key,
                        required ? "a text that is not empty nor too long"
                                 : "a text that is not too long");
    }
    return 0;
}

static int check_int(const struct event *event, const char *key, struct error *err)
{
    int64_t value = event_int(event, key);
    return value < INT_MIN || value > INT_MAX ? bad_data(event, err, key, "a small number") : 0;
}

static int read_outcome(const struct event *event, bool required, enum outcome *out,
                        struct error *err)
{
    const char *name = event_str(event, "outcome");
    int found = *name ? outcome_find(name) : OUTCOME_NONE;
    if (found < 0 || (required && found == OUTCOME_NONE)) {
        return bad_data(event, err, "outcome", "the name of an outcome");
    }
    if (check_int(event, "exit_code", err) < 0 || check_int(event, "signal", err) < 0) {
        return -1;
    }
    *out = (enum outcome)found;
    return 0;
}

static bool attempt_has_ended(const struct job *job)
{
    return job->attempt_count > 0 && job_attempt(job)->state == ATTEMPT_ENDED;
}

static bool ended_well(enum outcome outcome, int64_t exit_code)
{
    return outcome == OUTCOME_EXIT && exit_code == 0;
}

static void set_reason(struct job *job, const struct event *event)
{
    copy_text(job->reason, sizeof job->reason, event_str(event, "reason"));
}

/* ------------------------------------------------------------------------------- of the job alone */

static int apply_submit(struct job *job, const struct event *event, struct job_step *step,
                        struct error *err)
{
    const json_t *source = json_object_get(event->data, "spec");
    const json_t *defaults = json_object_get(event->data, "defaults");
    const char *key = event_str(event, "key");
    const char *held = event_str(event, "held");
    struct spec *spec;
    if (check_text(event, "owner", PLACE_SIZE, true, err) < 0 ||
        spec_restore(source, defaults, event_str(event, "team"), &spec, err) < 0) {
        return -1;
    }
    job->spec = spec;
    job->owner = xstrdup(event_str(event, "owner"));
    job->key = *key ? xstrdup(key) : NULL;
    job->submit_seq = event->seq;
    job->submitted_ms = event->at_ms;
    job->queued_ms = *held ? 0 : event->at_ms;
    copy_text(job->reason, sizeof job->reason, held);
    step->job = *held ? JOB_HELD : JOB_QUEUED;
    return 0;
}

static int apply_release(struct job *job, const struct event *event, struct job_step *step,
                         struct error *err)
{
    (void)step;
    (void)err;
    job->queued_ms = event->at_ms;
    set_reason(job, event);
    return 0;
}

static int apply_hold(struct job *job, const struct event *event, struct job_step *step,
                      struct error *err)
{
    (void)step;
    (void)err;
    set_reason(job, event);
    return 0;
}

/* EXPIRE and UPSTREAM: final without an attempt that ran. */
static int apply_give_up(struct job *job, const struct event *event, struct job_step *step,
                         struct error *err)
{
    (void)step;
    (void)err;
    job->finished_ms = event->at_ms;
    set_reason(job, event);
    return 0;
}

static int apply_cancel(struct job *job, const struct event *event, struct job_step *step,
                        struct error *err)
{
    (void)err;
    copy_text(job->cancelled_by, sizeof job->cancelled_by, event_str(event, "by"));
    set_reason(job, event);
    if (step->job == JOB_CANCELLED) {
        job->outcome = OUTCOME_CANCELLED;
        job->finished_ms = event->at_ms;
    }
    return 0;
}

static int apply_requeue(struct job *job, const struct event *event, struct job_step *step,
                         struct error *err)
{
    (void)step;
    const struct {
        const char *cause;
        int *count;
    } counters[] = {{"none", NULL},
                    {"lost", &job->lost},
                    {"start-failed", &job->start_failed},
                    {"out-of-memory", &job->out_of_memory},
                    {"exit", &job->exits}};
    if (!attempt_has_ended(job)) {
        return error_set(err, ERROR_CONFLICT,
                         "job %s is active and its attempt has not ended: no 'requeue'", job->id);
    }
    for (size_t i = 0; i < COUNT(counters); i++) {
        if (strcmp(event_str(event, "cause"), counters[i].cause) == 0) {
            if (counters[i].count) {
                (*counters[i].count)++;
            }
            job->queued_ms = event->at_ms;
            set_reason(job, event);
            return 0;
        }
    }
    return bad_data(event, err, "cause", "lost, start-failed, out-of-memory, exit or none");
}

/* Whether a job may become final in this way: what ran must bear it out. */
static bool finish_is_true(const struct job *job, enum job_state to, enum outcome outcome,
                           int64_t exit_code)
{
    const struct attempt *attempt = job_attempt(job);
    bool well = ended_well(outcome, exit_code) && attempt &&
                ended_well(attempt->outcome, attempt->exit_code);
    switch (job->state) {
    case JOB_QUEUED: return to == JOB_FAILED && !ended_well(outcome, exit_code);
    case JOB_ACTIVE:
        return (to == JOB_SUCCEEDED && well) ||
               (to == JOB_FAILED && !ended_well(outcome, exit_code)) ||
               (to == JOB_CANCELLED && outcome == OUTCOME_CANCELLED);
    case JOB_CANCELLING: return to == JOB_CANCELLED || (to == JOB_SUCCEEDED && well);
    default: return false;
    }
}

static int apply_finish(struct job *job, const struct event *event, struct job_step *step,
                        struct error *err)
{
    enum outcome outcome = OUTCOME_NONE;
    const char *name = event_str(event, "state");
    int to = job_state_find(name);
    int64_t exit_code = event_int(event, "exit_code");
    if (read_outcome(event, false, &outcome, err) < 0) {
        return -1;
    }
    if (to < 0 || !job_state_is_final((enum job_state)to)) {
        return bad_data(event, err, "state", "the name of a final state");
    }
    if (job->state != JOB_QUEUED && !attempt_has_ended(job)) {
        return error_set(err, ERROR_CONFLICT,
                         "job %s is %s and its attempt has not ended: no 'finish'", job->id,
                         job_state_name(job->state));
    }
    if (!finish_is_true(job, (enum job_state)to, outcome, exit_code)) {
        return error_set(
            err, ERROR_CONFLICT, "job %s is %s: no 'finish' as %s with the outcome %s %lld",
            job->id, job_state_name(job->state), name, outcome_name(outcome), (long long)exit_code);
    }
    job->outcome = outcome;
    job->exit_code = (int)exit_code;
    job->signal = (int)event_int(event, "signal");
    job->finished_ms = event->at_ms;
    set_reason(job, event);
    step->job = to;
    return 0;
}

/* ------------------------------------------------------------------------------- of its attempts */

static int check_place(const struct event *event, struct error *err)
{
    if (check_text(event, "place", PLACE_SIZE, true, err) < 0 ||
        check_text(event, "decision", ID_SIZE, false, err) < 0 ||
        check_text(event, "burst", NAME_SIZE, false, err) < 0) {
        return -1;
    }
    return 0;
}

static struct attempt *add_attempt(struct job *job)
{
    size_t count = (size_t)job->attempt_count + 1;
    job->attempts = xrealloc(job->attempts, count, sizeof *job->attempts);
    struct attempt *attempt = &job->attempts[job->attempt_count++];
    memset(attempt, 0, sizeof *attempt);
    attempt->number = job->attempt_count;
    return attempt;
}

static int apply_place(struct job *job, const struct event *event, struct job_step *step,
                       struct error *err)
{
    (void)step;
    struct texts budgets;
    if (check_place(event, err) < 0) {
        return -1;
    }
    if (texts_from_json(json_object_get(event->data, "budgets"), &budgets) < 0) {
        return bad_data(event, err, "budgets", "a list of names");
    }
    struct attempt *attempt = add_attempt(job);
    copy_text(attempt->place, sizeof attempt->place, event_str(event, "place"));
    copy_text(attempt->decision, sizeof attempt->decision, event_str(event, "decision"));
    copy_text(attempt->burst, sizeof attempt->burst, event_str(event, "burst"));
    attempt->placed_ms = event->at_ms;
    attempt->rent_expected = event_int(event, "rent_expected");
    attempt->booked = event_int(event, "booked");
    attempt->price_hour = event_int(event, "price_hour");
    attempt->nodes = event_int(event, "nodes");
    attempt->budgets = budgets;
    set_reason(job, event);
    return 0;
}

/* ACCEPT and ADOPT: the member has it. */
static int apply_accept(struct job *job, const struct event *event, struct job_step *step,
                        struct error *err)
{
    (void)step;
    struct attempt *attempt = job_attempt(job);
    if (check_text(event, "native", NATIVE_SIZE, false, err) < 0) {
        return -1;
    }
    copy_text(attempt->native_id, sizeof attempt->native_id, event_str(event, "native"));
    attempt->accepted_ms = event->at_ms;
    attempt->sent_maybe = true;
    attempt->reason[0] = '\0';
    return 0;
}

static int apply_unsure(struct job *job, const struct event *event, struct job_step *step,
                        struct error *err)
{
    (void)step;
    (void)err;
    struct attempt *attempt = job_attempt(job);
    attempt->sent_maybe = true;
    copy_text(attempt->reason, sizeof attempt->reason, event_str(event, "reason"));
    return 0;
}

static int apply_start(struct job *job, const struct event *event, struct job_step *step,
                       struct error *err)
{
    (void)step;
    (void)err;
    struct attempt *attempt = job_attempt(job);
    int64_t at = event_int(event, "at");
    if (at > 0 || attempt->started_ms == 0) {
        attempt->started_ms = at > 0 ? at : event->at_ms;
    }
    if (*event_str(event, "node")) {
        copy_text(attempt->node, sizeof attempt->node, event_str(event, "node"));
    }
    attempt->unknown_ms = 0;
    attempt->reason[0] = '\0';
    return 0;
}

static int apply_lose(struct job *job, const struct event *event, struct job_step *step,
                      struct error *err)
{
    (void)step;
    (void)err;
    struct attempt *attempt = job_attempt(job);
    attempt->unknown_ms = event->at_ms;
    copy_text(attempt->reason, sizeof attempt->reason, event_str(event, "reason"));
    return 0;
}

static int apply_found(struct job *job, const struct event *event, struct job_step *step,
                       struct error *err)
{
    (void)event;
    (void)step;
    (void)err;
    struct attempt *attempt = job_attempt(job);
    attempt->unknown_ms = 0;
    attempt->reason[0] = '\0';
    return 0;
}

static void end_attempt(struct attempt *attempt, const struct event *event, enum outcome outcome)
{
    int64_t started = event_int(event, "started");
    int64_t ended = event_int(event, "ended");
    attempt->outcome = outcome;
    attempt->exit_code = (int)event_int(event, "exit_code");
    attempt->signal = (int)event_int(event, "signal");
    attempt->started_ms = started > 0 ? started : attempt->started_ms;
    attempt->ended_ms = ended > 0 ? ended : event->at_ms;
    attempt->settled = event_int(event, "settled");
    attempt->unknown_ms = 0;
    copy_text(attempt->reason, sizeof attempt->reason, event_str(event, "reason"));
}

static int apply_end(struct job *job, const struct event *event, struct job_step *step,
                     struct error *err)
{
    (void)step;
    enum outcome outcome = OUTCOME_NONE;
    if (read_outcome(event, true, &outcome, err) < 0) {
        return -1;
    }
    end_attempt(job_attempt(job), event, outcome);
    return 0;
}

/* REJECT, ABSENT and GONE: the event itself is the outcome. */
static int apply_no_more(struct job *job, const struct event *event, struct job_step *step,
                         struct error *err)
{
    (void)step;
    struct attempt *attempt = job_attempt(job);
    if (check_int(event, "exit_code", err) < 0 || check_int(event, "signal", err) < 0) {
        return -1;
    }
    attempt->sent_maybe = attempt->sent_maybe || event->kind == EVENT_REJECT;
    end_attempt(attempt, event,
                event->kind == EVENT_REJECT   ? OUTCOME_REJECTED
                : event->kind == EVENT_ABSENT ? OUTCOME_ABSENT
                                              : OUTCOME_GONE);
    return 0;
}

const job_apply_fn job_appliers[EVENT_COUNT] = {
    [EVENT_SUBMIT] = apply_submit,   [EVENT_RELEASE] = apply_release,
    [EVENT_HOLD] = apply_hold,       [EVENT_PLACE] = apply_place,
    [EVENT_ACCEPT] = apply_accept,   [EVENT_REJECT] = apply_no_more,
    [EVENT_UNSURE] = apply_unsure,   [EVENT_ADOPT] = apply_accept,
    [EVENT_ABSENT] = apply_no_more,  [EVENT_START] = apply_start,
    [EVENT_LOSE] = apply_lose,       [EVENT_FOUND] = apply_found,
    [EVENT_GONE] = apply_no_more,    [EVENT_END] = apply_end,
    [EVENT_REQUEUE] = apply_requeue, [EVENT_FINISH] = apply_finish,
    [EVENT_CANCEL] = apply_cancel,   [EVENT_EXPIRE] = apply_give_up,
    [EVENT_UPSTREAM] = apply_give_up};
