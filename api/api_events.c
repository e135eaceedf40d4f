#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/limits.h"

#include <string.h>

static void events(struct request *request, const char *id)
{
    struct error err;
    int64_t cursor = 0, limit = LIMIT_EVENT_ROWS, wait_ms = 0;
    if (request_query_integer(request, "cursor", 0, INT64_MAX, &cursor, &err) < 0 ||
        request_query_integer(request, "limit", 1, LIMIT_EVENT_ROWS, &limit, &err) < 0 ||
        request_query_duration(request, "wait", LIMIT_FOLLOW_MS, &wait_ms, &err) < 0 ||
        (wait_ms && request_claim_wait(request, &err) < 0)) {
        answer_error(request, &err);
        return;
    }
    broker_events(request->api->env.broker, &request->caller, id, cursor, (int)limit, wait_ms,
                  answer_reply, request_call(request, wait_ms));
}

void serve_events_of_job(struct request *request)
{
    events(request, request_path(request, "id"));
}

void serve_events_of_all(struct request *request)
{
    events(request, NULL);
}
