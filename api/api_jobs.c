/* api_jobs.c - jobs: list, show, cancel. Submitting is api_submit.c. */
#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/alloc.h"
#include "broker/core/job.h"
#include "broker/core/limits.h"

#include <string.h>

enum { LIST_STANDARD = 100 };

static int read_state(const char *text, const char **out, struct error *err)
{
    const char *words[JOB_STATE_COUNT + 2] = {"live", "final"};
    size_t count = 2;
    for (int i = JOB_NEW + 1; i < JOB_STATE_COUNT; i++) {
        words[count++] = job_state_name((enum job_state)i);
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(words[i], text) == 0) {
            *out = words[i];
            return 0;
        }
    }
    const char *near = nearest_word(text, words, count);
    error_set(err, ERROR_MALFORMED, "parameter 'state': no state '%.40s'", text);
    static const char *const parts[] = {"placed", "dispatched", "running", "unknown"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strcmp(parts[i], text) == 0) {
            return error_expect(err, "active: jobs that are %s are among them", text);
        }
    }
    return error_expect(err,
                        near ? "did you mean '%s'?"
                             : "live, final, held, queued, active, cancelling, succeeded, "
                               "failed, cancelled or expired",
                        near);
}

static int read_cursor(const char *text, char out[ID_SIZE], struct error *err)
{
    if (!id_is_valid(text)) {
        error_set(err, ERROR_MALFORMED, "parameter 'cursor': this was never given as a cursor");
        return error_expect(err, "next_cursor of the page before");
    }
    copy_text(out, ID_SIZE, text);
    return 0;
}

static int read_filter(const struct request *request, struct store_filter *out, struct error *err)
{
    const char *state = request_query(request, "state");
    const char *cursor = request_query(request, "cursor");
    int64_t limit = LIST_STANDARD;
    *out = (struct store_filter){
        .owner = request_query(request, "owner"),
        .team = request_query(request, "team"),
        .class_name = request_query(request, "class"),
        .name = request_query(request, "name"),
        .place = request_query(request, "place"),
    };
    if (request_query_integer(request, "limit", 1, LIMIT_LIST_ROWS, &limit, err) < 0 ||
        request_query_instant(request, "since", &out->since_ms, err) < 0 ||
        request_query_instant(request, "until", &out->until_ms, err) < 0 ||
        (state && read_state(state, &out->state, err) < 0) ||
        (cursor && read_cursor(cursor, out->cursor, err) < 0)) {
        return -1;
    }
    out->limit = (int)limit;
    return 0;
}

void serve_jobs_list(struct request *request)
{
    struct store_filter filter;
    struct error err;
    if (read_filter(request, &filter, &err) < 0) {
        answer_error(request, &err);
        return;
    }
    broker_jobs(request->api->env.broker, &request->caller, &filter, answer_reply,
                request_call(request, 0));
}

static int read_wait(struct request *request, int64_t *wait_ms, struct error *err)
{
    if (request_query_duration(request, "wait", LIMIT_FOLLOW_MS, wait_ms, err) < 0) {
        return -1;
    }
    if (*wait_ms && !request_query(request, "state")) {
        error_set(err, ERROR_MALFORMED, "parameter 'wait': nothing says what to wait for");
        return error_expect(err, "state=the state that was seen last");
    }
    return *wait_ms ? request_claim_wait(request, err) : 0;
}

void serve_jobs_show(struct request *request)
{
    struct error err;
    int64_t wait_ms = 0;
    if (read_wait(request, &wait_ms, &err) < 0) {
        answer_error(request, &err);
        return;
    }
    broker_job(request->api->env.broker, &request->caller, request_path(request, "id"),
               wait_ms ? request_query(request, "state") : NULL, wait_ms, answer_reply,
               request_call(request, wait_ms));
}

void serve_jobs_cancel(struct request *request)
{
    broker_cancel(request->api->env.broker, &request->caller, request_path(request, "id"),
                  answer_reply, request_call(request, 0));
}
