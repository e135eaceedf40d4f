/* slurm_result.c - judging replies.
 *
 * Releases before 24.11 answer 500 to whatever slurmctld refuses, so the number decides, not the status.
 * A submit counts as refused only where that is certain; "the connection to slurmctld broke" is not:
 * slurmctld may have the job. An answer with a job id is a success whatever errors it lists. */
#include "adapters/slurm_result.h"

#include <stdio.h>

enum {
    NUMBER_CONNECT = 1800, /* slurmrestd could not reach slurmctld */
    NUMBER_FIRST_REFUSAL = 2000,
    NUMBER_DENIED = 2002,
    NUMBER_NO_JOB = 2017,
    NUMBER_ALREADY_DONE = 2021,
    NUMBER_LAST_REFUSAL = 2999,
    NUMBER_FIRST_PARSE = 9000,
    NUMBER_LAST_PARSE = 9999
};

bool slurm_reply_is_good(const struct slurm_reply *reply)
{
    const struct slurm_answer *answer = reply->answer;
    return answer && answer->status == 200 && answer->is_json && !answer->has_errors;
}

bool slurm_reply_is_no_job(const struct slurm_reply *reply)
{
    const struct slurm_answer *answer = reply->answer;
    return answer && answer->is_json && answer->fault.number == NUMBER_NO_JOB;
}

int slurm_reply_error(const struct slurm_reply *reply, struct error *err)
{
    const struct slurm_answer *answer = reply->answer;
    if (!answer) {
        *err = reply->err;
        return -1;
    }
    enum error_code code =
        slurm_answer_is_unauthorized(answer) ? ERROR_UNAUTHORIZED : ERROR_UPSTREAM;
    char number[32] = "";
    if (answer->fault.number) {
        (void)snprintf(number, sizeof number, " (%d)", answer->fault.number);
    }
    const char *text = answer->fault.text[0] ? answer->fault.text : "an answer that makes no sense";
    error_set(err, code, "slurmrestd: HTTP %ld: %s%s", answer->status, text, number);
    if (code != ERROR_UNAUTHORIZED && slurm_answer_may_be_unauthorized(answer)) {
        (void)error_expect(err, "a running slurmctld and a valid connect.token: it may be either");
    }
    return -1;
}

static bool is_within(int number, int low, int high)
{
    return number >= low && number <= high;
}

/* Statuses by which slurmrestd itself, before slurmctld is asked, says that it takes no such request. */
static bool is_refusing_status(long status)
{
    static const long list[] = {400, 403, 405, 406, 411, 413, 414, 415, 417, 422, 431};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (status == list[i]) {
            return true;
        }
    }
    return false;
}

enum adapter_result slurm_submit_result(const struct slurm_reply *reply, struct error *err)
{
    const struct slurm_answer *answer = reply->answer;
    if (answer && answer->is_json && answer->job_id > 0) {
        return ADAPTER_OK;
    }
    (void)slurm_reply_error(reply, err);
    if (!answer) {
        if (!reply->sent && err->code != ERROR_UNAUTHORIZED) {
            err->code = ERROR_UNAVAILABLE;
        }
        return reply->sent ? ADAPTER_UNKNOWN : ADAPTER_FAILED;
    }
    int number = answer->fault.number;
    if (answer->is_html) { /* not slurmrestd's: a proxy that may have passed the request on */
        return ADAPTER_UNKNOWN;
    }
    if (slurm_answer_is_unauthorized(answer)) {
        return ADAPTER_FAILED;
    }
    if (number == NUMBER_CONNECT || (answer->status == 404 && !answer->is_json)) {
        err->code = ERROR_UNAVAILABLE;
        return ADAPTER_FAILED;
    }
    if (is_within(number, NUMBER_FIRST_REFUSAL, NUMBER_LAST_REFUSAL) ||
        is_within(number, NUMBER_FIRST_PARSE, NUMBER_LAST_PARSE) ||
        is_refusing_status(answer->status)) {
        err->code = number == NUMBER_DENIED ? ERROR_FORBIDDEN : ERROR_INVALID;
        return ADAPTER_FAILED;
    }
    return ADAPTER_UNKNOWN;
}

enum adapter_result slurm_cancel_result(const struct slurm_reply *reply, struct error *err)
{
    const struct slurm_answer *answer = reply->answer;
    int number = answer ? answer->fault.number : 0;
    if (slurm_reply_is_good(reply) || slurm_reply_is_no_job(reply) ||
        number == NUMBER_ALREADY_DONE) {
        return ADAPTER_OK;
    }
    (void)slurm_reply_error(reply, err);
    if (number == NUMBER_DENIED) {
        err->code = ERROR_FORBIDDEN;
        return ADAPTER_FAILED;
    }
    return ADAPTER_UNKNOWN;
}
