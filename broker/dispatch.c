/* dispatch.c - INTENDED, UNSURE and CANCELLING become calls.
 *
 * submit: OK -> ACCEPT; FAILED -> REJECT, or a later try when nothing was sent, and after some of them
 *         END, so that the job goes elsewhere; UNKNOWN -> UNSURE.
 * find:   found -> ADOPT; proven absent for LIMIT_FIND_GRACE_MS -> ABSENT; else again, ever slower.
 * cancel: never while a submit is under way; asked again until the member reports the end.
 *
 * Nothing here decides what becomes of the job: that is finish.c, on the event. */
#include "broker/dispatch.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/member.h"
#include "broker/picture.h"

#include <stdlib.h>
#include <string.h>

enum {
    TRY_MIN_MS = 1000,
    TRY_MAX_MS = 30000,
    CANCEL_EVERY_MS = 5000, /* a cancel whose end is not reported */
    SEND_TRIES = 5          /* a member that cannot be reached: then the job goes elsewhere */
};

struct dispatch {
    struct context *context;
    bool closing;
};

/* Completions carry ids, never a pointer to a job: it may be gone when they come. */
struct call {
    struct dispatch *dispatch;
    char job_id[ID_SIZE];
    int attempt;
    int64_t started_ms; /* monotonic */
};

static struct call *call_create(struct dispatch *dispatch, const struct entry *entry)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->dispatch = dispatch;
    copy_text(call->job_id, sizeof call->job_id, entry->job->id);
    call->attempt = entry->job->attempt_count;
    call->started_ms = clock_mono_ms(dispatch->context->clock);
    return call;
}

/* The job that the call was for, now free again; NULL when it is gone or at another attempt. */
static struct entry *call_end(struct call *call)
{
    struct entry *entry = journal_find(call->dispatch->context->journal, call->job_id);
    if (entry && entry->op == OP_CALL) {
        entry->op = OP_NONE;
    }
    if (entry && entry->job->attempt_count != call->attempt) {
        entry = NULL;
    }
    free(call);
    return entry;
}

static int64_t backoff(struct entry *entry)
{
    int64_t delay = TRY_MIN_MS;
    for (int i = 0; i < entry->tries && delay < TRY_MAX_MS; i++) {
        delay *= 2;
    }
    entry->tries++;
    return delay < TRY_MAX_MS ? delay : TRY_MAX_MS;
}

/* A fact of the current attempt. A full store is asked again by the timer. */
static void post(struct dispatch *dispatch, struct entry *entry, enum event_kind kind, json_t *data)
{
    struct error err;
    if (journal_post(dispatch->context->journal, entry, kind, entry->job->attempt_count, data, NULL,
                     &err) < 0) {
        context_log(dispatch->context, "warn",
                    "job %s: %s was not written, will be asked again: %s", entry->job->id,
                    event_name(kind), err.text);
        timer_start(entry->timer, TRY_MIN_MS);
    }
}

static bool may_act(const struct dispatch *dispatch, const struct entry *entry)
{
    return !dispatch->closing && entry->op == OP_NONE &&
           !picture_is_recovering(dispatch->context->picture) &&
           !picture_is_looking(dispatch->context->picture);
}

static bool ref_of(const struct dispatch *dispatch, const struct entry *entry,
                   struct attempt_ref *ref)
{
    attempt_ref_init(ref, dispatch->context->federation, entry->job, job_attempt(entry->job));
    return ref->place != NULL;
}

/* ------------------------------------------------------------------------------------------ submit */

/* An attempt of which the member has never heard. */
static void give_up_unsent(struct dispatch *dispatch, struct entry *entry, enum outcome outcome,
                           const char *reason)
{
    post(dispatch, entry, EVENT_END,
         json_pack("{s:s, s:s}", "outcome", outcome_name(outcome), "reason", reason));
}

/* The answer of a submit could not be written down: whether the member has it must be looked up. */
static void was_sent(struct dispatch *dispatch, struct entry *entry)
{
    post(dispatch, entry, EVENT_UNSURE,
         json_pack("{s:s}", "reason", "the answer to the submit could not be stored"));
}

static void submit_failed(struct dispatch *dispatch, struct entry *entry, const struct error *err)
{
    bool not_sent = err->code == ERROR_UNAVAILABLE || err->code == ERROR_UNAUTHORIZED ||
                    err->code == ERROR_TOO_MANY || err->code == ERROR_STORE;
    if (not_sent && entry->inherited && entry->tries >= SEND_TRIES) {
        was_sent(dispatch, entry); /* not now; but perhaps before */
        return;
    }
    entry->sent = false; /* positively not done */
    if (not_sent && entry->tries < SEND_TRIES) {
        timer_start(entry->timer, backoff(entry));
        return;
    }
    if (not_sent) {
        give_up_unsent(dispatch, entry, OUTCOME_ABSENT, err->text);
        return;
    }
    post(dispatch, entry, EVENT_REJECT, json_pack("{s:s}", "reason", err->text));
}

static void submit_done(void *arg, const struct adapter_call *result)
{
    struct dispatch *dispatch = ((struct call *)arg)->dispatch;
    struct entry *entry = call_end(arg);
    if (!entry || job_attempt(entry->job)->state != ATTEMPT_INTENDED) {
        return;
    }
    switch (result->result) {
    case ADAPTER_OK:
        post(dispatch, entry, EVENT_ACCEPT, json_pack("{s:s}", "native", result->native_id));
        break;
    case ADAPTER_FAILED: submit_failed(dispatch, entry, &result->err); break;
    case ADAPTER_UNKNOWN:
        post(dispatch, entry, EVENT_UNSURE, json_pack("{s:s}", "reason", result->err.text));
        break;
    }
}

static void submit(struct dispatch *dispatch, struct entry *entry)
{
    struct attempt_ref ref;
    if (!ref_of(dispatch, entry, &ref)) {
        post(dispatch, entry, EVENT_REJECT,
             json_pack("{s:s}", "reason", "the place is no longer configured"));
        return;
    }
    struct spec *spec = spec_at(entry->job->spec, ref.place);
    struct call *call = call_create(dispatch, entry);
    if (member_submit(dispatch->context->members, &ref, spec, entry->job->owner, submit_done,
                      call) < 0) {
        free(call);
        timer_start(entry->timer, TRY_MIN_MS);
    } else {
        entry->op = OP_CALL;
        entry->sent = true;
    }
    spec_unref(spec);
}

/* -------------------------------------------------------------------------------------------- find */

static void find_done(void *arg, const struct adapter_call *result)
{
    struct dispatch *dispatch = ((struct call *)arg)->dispatch;
    int64_t started = ((struct call *)arg)->started_ms;
    struct entry *entry = call_end(arg);
    if (!entry || job_attempt(entry->job)->state != ATTEMPT_UNSURE) {
        return;
    }
    const struct report *report = result->report_count ? &result->reports[0] : NULL;
    if (result->result == ADAPTER_OK && report && report->state != REPORT_ABSENT) {
        post(dispatch, entry, EVENT_ADOPT, json_pack("{s:s}", "native", report->native_id));
        return;
    }
    /* Absent counts only when it is still so after the member has had time to finish a submit that was
     * on its way; a member that cannot be asked proves nothing. */
    if (result->result == ADAPTER_OK && report &&
        started - entry->since_ms >= LIMIT_FIND_GRACE_MS) {
        post(dispatch, entry, EVENT_ABSENT,
             json_pack("{s:s}", "reason", "the submit never reached the member"));
        return;
    }
    if (result->result != ADAPTER_OK) {
        entry->since_ms = clock_mono_ms(dispatch->context->clock);
    }
    timer_start(entry->timer, backoff(entry));
}

static void find(struct dispatch *dispatch, struct entry *entry)
{
    struct attempt_ref ref;
    struct call *call = call_create(dispatch, entry);
    if (!ref_of(dispatch, entry, &ref) ||
        member_find(dispatch->context->members, &ref, find_done, call) < 0) {
        free(call);
        timer_start(entry->timer, backoff(entry));
        return;
    }
    entry->op = OP_CALL;
}

/* ------------------------------------------------------------------------------------------ cancel */

static void cancel_done(void *arg, const struct adapter_call *result)
{
    struct dispatch *dispatch = ((struct call *)arg)->dispatch;
    struct entry *entry = call_end(arg);
    if (!entry || entry->job->state != JOB_CANCELLING) {
        return;
    }
    int64_t delay = result->result == ADAPTER_OK ? CANCEL_EVERY_MS : backoff(entry);
    if (job_attempt(entry->job)->state != ATTEMPT_ENDED) {
        timer_start(entry->timer, delay);
    }
    if (result->result == ADAPTER_FAILED) {
        context_log(dispatch->context, "warn", "job %s: the cancel failed and is tried again: %s",
                    entry->job->id, result->err.text);
    }
}

static void cancel(struct dispatch *dispatch, struct entry *entry)
{
    struct attempt_ref ref;
    struct call *call = call_create(dispatch, entry);
    if (!ref_of(dispatch, entry, &ref) ||
        member_cancel(dispatch->context->members, &ref, cancel_done, call) < 0) {
        free(call);
        timer_start(entry->timer, backoff(entry));
        return;
    }
    entry->op = OP_CALL;
}

/* A job that was cancelled before anything left this broker has ended here and now. */
static void cancel_unsent(struct dispatch *dispatch, struct entry *entry)
{
    give_up_unsent(dispatch, entry, OUTCOME_CANCELLED, "cancelled before it was sent");
}

/* -------------------------------------------------------------------------------------------- drive */

static void act(struct dispatch *dispatch, struct entry *entry)
{
    const struct attempt *attempt = job_attempt(entry->job);
    if (!attempt || !may_act(dispatch, entry)) {
        return;
    }
    bool cancelling = entry->job->state == JOB_CANCELLING;
    switch (attempt->state) {
    case ATTEMPT_INTENDED:
        (entry->sent || (cancelling && entry->inherited) ? was_sent
         : cancelling                                    ? cancel_unsent
                                                         : submit)(dispatch, entry);
        break;
    case ATTEMPT_UNSURE: find(dispatch, entry); break;
    case ATTEMPT_ACCEPTED:
    case ATTEMPT_RUNNING:
    case ATTEMPT_UNKNOWN:
        if (cancelling) {
            cancel(dispatch, entry);
        }
        break;
    default: break;
    }
}

static void timer_cb(void *arg)
{
    struct entry *entry = arg;
    struct dispatch *dispatch = entry->dispatch;
    if (!may_act(dispatch, entry)) {
        timer_start(entry->timer, TRY_MIN_MS);
        return;
    }
    act(dispatch, entry);
}

/* A new state: the tries begin anew. */
static void begin(struct dispatch *dispatch, struct entry *entry)
{
    entry->dispatch = dispatch;
    entry->tries = 0;
    entry->since_ms = clock_mono_ms(dispatch->context->clock);
    if (!entry->timer) {
        entry->timer = clock_timer(dispatch->context->clock, timer_cb, entry);
    }
    timer_stop(entry->timer);
    if (may_act(dispatch, entry)) {
        act(dispatch, entry);
    } else {
        timer_start(entry->timer, TRY_MIN_MS);
    }
}

void dispatch_job(struct dispatch *dispatch, struct entry *entry)
{
    begin(dispatch, entry);
}

void dispatch_stop(struct dispatch *dispatch)
{
    dispatch->closing = true;
}

void dispatch_forget(struct dispatch *dispatch, struct entry *entry)
{
    (void)dispatch;
    timer_destroy(entry->timer);
    entry->timer = NULL;
    entry->tries = 0;
    entry->sent = entry->inherited = false;
}

void dispatch_again(struct dispatch *dispatch, struct entry *entry)
{
    if (entry->timer && !dispatch->closing) {
        timer_start(entry->timer, TRY_MIN_MS);
    }
}

struct dispatch *dispatch_create(struct context *context)
{
    struct dispatch *dispatch = xcalloc(1, sizeof *dispatch);
    dispatch->context = context;
    return dispatch;
}

void dispatch_destroy(struct dispatch *dispatch)
{
    free(dispatch);
}
