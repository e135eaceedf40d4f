/* finish.c - what becomes of a job whose attempt has ended. The member never tries again by itself;
 * the broker does, with a new attempt, and only as the job's `retry` says. */
#include "broker/finish.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/picture.h"
#include "broker/subject.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct judgement { /* what becomes of it */
    bool again;
    enum job_state state; /* when not again */
    enum outcome outcome;
    const char *cause; /* when again */
    char reason[REASON_SIZE];
};

static int64_t exit_tries(const struct retry *retry, int exit_code)
{
    char code[16];
    (void)snprintf(code, sizeof code, "%d", exit_code);
    for (size_t i = 0; i < retry->exits.count; i++) {
        const struct retry_exit *exit = &((const struct retry_exit *)retry->exits.items)[i];
        if (strcmp(exit->name, code) == 0) {
            return exit->times;
        }
    }
    return 0;
}

/* How many further attempts the job allows for this cause, and how many it has had. */
static bool may_try_again(const struct job *job, const struct attempt *attempt, const char *cause)
{
    const struct retry *retry = &job->spec->retry;
    if (job->spec->rerun == RERUN_NEVER || job->attempt_count >= LIMIT_ATTEMPTS) {
        return false;
    }
    if (strcmp(cause, "lost") == 0) {
        return job->lost < retry->lost;
    }
    if (strcmp(cause, "start-failed") == 0) {
        return job->start_failed < retry->start_failed;
    }
    if (strcmp(cause, "out-of-memory") == 0) {
        return job->out_of_memory < retry->out_of_memory;
    }
    return strcmp(cause, "exit") == 0 && attempt->outcome == OUTCOME_EXIT &&
           job->exits < exit_tries(retry, attempt->exit_code);
}

/* Nothing left this broker: that is no try, and does not count as one. */
static bool was_never_sent(const struct job *job, const struct attempt *attempt)
{
    return attempt->outcome == OUTCOME_ABSENT && !attempt->sent_maybe &&
           job->attempt_count < LIMIT_ATTEMPTS;
}

/* A refusal is only worth another try where another place might take the job. */
static bool is_refused_everywhere(struct context *context, const struct job *job)
{
    struct subject subject;
    struct error err;
    subject_init(&subject, job, clock_wall_ms(context->clock));
    int result = decide_possible(picture_view(context->picture), &subject, &err);
    subject_fini(&subject);
    return result < 0;
}

/* What may be cut is cut between two characters: a text that is not UTF-8 could not be stored. */
static void put_reason(char out[REASON_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_reason(char out[REASON_SIZE], const char *format, ...)
{
    char text[2 * REASON_SIZE + 2 * PLACE_SIZE];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy_text(out, REASON_SIZE, text);
}

static void describe(const struct attempt *attempt, char out[REASON_SIZE])
{
    switch (attempt->outcome) {
    case OUTCOME_EXIT: put_reason(out, "exit %d at %s", attempt->exit_code, attempt->place); break;
    case OUTCOME_SIGNAL:
        put_reason(out, "died of signal %d at %s", attempt->signal, attempt->place);
        break;
    default:
        put_reason(out, "%s at %s%s%s", outcome_name(attempt->outcome), attempt->place,
                   attempt->reason[0] ? ": " : "", attempt->reason);
        break;
    }
}

static void judge(struct context *context, const struct job *job, struct judgement *out)
{
    const struct attempt *attempt = job_attempt(job);
    const char *cause = outcome_cause(attempt->outcome);
    memset(out, 0, sizeof *out);
    out->outcome = attempt->outcome;
    describe(attempt, out->reason);
    if (attempt->outcome == OUTCOME_EXIT && attempt->exit_code == 0) {
        out->state = JOB_SUCCEEDED;
    } else if (job->state == JOB_CANCELLING || attempt->outcome == OUTCOME_CANCELLED) {
        /* What a person cancelled at the member is CANCELLED too, never run elsewhere. */
        out->state = JOB_CANCELLED;
        if (job->cancelled_by[0]) {
            put_reason(out->reason, "cancelled by %s at %s", job->cancelled_by, attempt->place);
        }
        out->outcome = OUTCOME_CANCELLED;
    } else if (was_never_sent(job, attempt)) {
        out->again = true;
        out->cause = "none";
    } else if (may_try_again(job, attempt, cause) &&
               !(attempt->outcome == OUTCOME_REJECTED && is_refused_everywhere(context, job))) {
        out->again = true;
        out->cause = cause;
    } else {
        out->state = JOB_FAILED;
    }
}

int finish_attempt(struct context *context, struct entry *entry)
{
    const struct attempt *attempt = job_attempt(entry->job);
    struct judgement verdict;
    struct error err;
    int result;
    judge(context, entry->job, &verdict);
    if (verdict.again) {
        result = journal_post(
            context->journal, entry, EVENT_REQUEUE, 0,
            json_pack("{s:s, s:s}", "cause", verdict.cause, "reason", verdict.reason), NULL, &err);
    } else {
        bool exited = verdict.outcome == OUTCOME_EXIT;
        result = journal_post(context->journal, entry, EVENT_FINISH, 0,
                              json_pack("{s:s, s:s, s:i, s:i, s:s}", "state",
                                        job_state_name(verdict.state), "outcome",
                                        outcome_name(verdict.outcome), "exit_code",
                                        exited ? attempt->exit_code : 0, "signal", attempt->signal,
                                        "reason", verdict.reason),
                              NULL, &err);
    }
    if (result < 0) {
        context_log(context, "warn", "job %s: its end was not written, will be tried again: %s",
                    entry->job->id, err.text);
    }
    return result;
}
