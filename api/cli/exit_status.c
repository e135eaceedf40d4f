#include "api/cli/exit_status.h"

#include "broker/core/alloc.h"
#include "broker/core/job.h"

#include <string.h>

enum { REASON_HEAD_SIZE = 256 };

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static int int_of(const json_t *object, const char *name)
{
    return (int)json_integer_value(json_object_get(object, name));
}

/* By outcome; -1: the program's own code, -2: its signal. */
static const int status_table[OUTCOME_COUNT] = {
    [OUTCOME_NONE] = STATUS_UNABLE, /* a job that failed without an attempt */
    [OUTCOME_EXIT] = -1,
    [OUTCOME_SIGNAL] = -2,
    [OUTCOME_TIME_LIMIT] = STATUS_LIMIT,
    [OUTCOME_OUT_OF_MEMORY] = -2,
    [OUTCOME_START_FAILED] = STATUS_UNABLE,
    [OUTCOME_RECLAIMED] = STATUS_UNABLE,
    [OUTCOME_REJECTED] = STATUS_REFUSED,
    [OUTCOME_ABSENT] = STATUS_UNABLE,
    [OUTCOME_GONE] = STATUS_UNABLE,
    [OUTCOME_CANCELLED] = STATUS_UNABLE, /* by somebody else: our own interrupt says 130 or 143 */
    [OUTCOME_OUTCOME_UNKNOWN] = STATUS_UNABLE,
};

int exit_status_of_job(const json_t *job)
{
    const char *state = text_of(job, "state");
    int outcome = outcome_find(text_of(job, "outcome"));
    if (strcmp(state, job_state_name(JOB_SUCCEEDED)) == 0) {
        return 0;
    }
    if (strcmp(state, job_state_name(JOB_FAILED)) != 0 || outcome < 0) {
        return STATUS_UNABLE;
    }
    int status = status_table[outcome], signal = int_of(job, "signal");
    if (status == -1) {
        return int_of(job, "exit_code");
    }
    if (status == -2) {
        return signal > 0 ? STATUS_SIGNAL + signal : STATUS_KILLED;
    }
    return status;
}

int exit_status_of_error(const struct error *err, long status)
{
    bool refused = status >= 400 && status < 500 && err->code != ERROR_TIMEOUT;
    return refused || (status == 0 && err->code == ERROR_INVALID) ? STATUS_REFUSED : STATUS_UNABLE;
}

void outcome_words(const json_t *job, char *out, size_t size)
{
    const char *outcome = text_of(job, "outcome");
    int number = outcome_find(outcome), signal = int_of(job, "signal");
    if (number == OUTCOME_EXIT) {
        (void)snprintf(out, size, "exit %d", int_of(job, "exit_code"));
    } else if (number == OUTCOME_SIGNAL) {
        const char *name = sigabbrev_np(signal);
        (void)snprintf(out, size, "signal %d%s%s", signal, name ? " SIG" : "", name ? name : "");
    } else if (number == OUTCOME_TIME_LIMIT) {
        copy_text(out, size, "time limit");
    } else {
        copy_text(out, size, number > OUTCOME_NONE ? outcome : text_of(job, "reason"));
        for (char *c = out; number > OUTCOME_NONE && *c; c++) {
            *c = *c == '-' ? ' ' : *c;
        }
    }
}

void end_words(const json_t *job, char *out, size_t size)
{
    outcome_words(job, out, size);
    if (strcmp(out, text_of(job, "state")) == 0) {
        copy_text(out, size, "");
    }
}

/* How the broker begins the reason of an outcome: "time-limit at hpc", "died of signal 11 at hpc". */
static size_t reason_head(const json_t *job, int outcome, const char *reason)
{
    char head[REASON_HEAD_SIZE];
    const char *place = text_of(job, "place");
    if (outcome == OUTCOME_EXIT) {
        (void)snprintf(head, sizeof head, "exit %d at %s", int_of(job, "exit_code"), place);
    } else if (outcome == OUTCOME_SIGNAL) {
        (void)snprintf(head, sizeof head, "died of signal %d at %s", int_of(job, "signal"), place);
    } else {
        (void)snprintf(head, sizeof head, "%s at %s", text_of(job, "outcome"), place);
    }
    size_t length = strlen(head);
    return strncmp(reason, head, length) == 0 ? length : 0;
}

void reason_words(const json_t *job, char *out, size_t size)
{
    const char *reason = text_of(job, "reason");
    int outcome = outcome_find(text_of(job, "outcome"));
    size_t head = outcome > OUTCOME_NONE ? reason_head(job, outcome, reason) : 0;
    bool said = outcome <= OUTCOME_NONE || (head && outcome == OUTCOME_TIME_LIMIT);
    reason += head;
    reason += head ? strspn(reason, ": ") : 0;
    copy_text(out, size, said ? "" : reason);
}

void exit_status_print(FILE *out)
{
    (void)fputs(
        "| exit status of `tieline run` and `tieline wait` | meaning |\n"
        "|---|---|\n"
        "| 0..123, 127 | the program's own (its 124..126 pass too; `--result` tells them apart) |\n"
        "| 124 | time limit |\n"
        "| 125 | Tieline could not: broker away longer than `--patience`, the place lost the job for "
        "good, it expired, its outcome is unknown, or somebody else cancelled it |\n"
        "| 126 | refused: bad job or command line, not allowed, over quota, no place could ever run "
        "it |\n"
        "| 128+n | the program died of signal n; 130, 143: the client was interrupted and the job "
        "cancelled |\n",
        out);
}
