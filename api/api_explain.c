#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/limits.h"

void serve_explain_job(struct request *request)
{
    broker_explain(request->api->env.broker, &request->caller, request_path(request, "id"),
                   answer_reply, request_call(request, 0));
}

static int check_room(const struct request *request, struct error *err)
{
    int under_way = 0;
    for (const struct request *r = request->api->requests; r; r = r->next) {
        under_way += r->match.route == request->match.route && r->call;
    }
    return under_way < LIMIT_EXPLAINS
               ? 0
               : error_set(err, ERROR_TOO_MANY, "%d imagined jobs are being explained", under_way);
}

void serve_explain_imagined(struct request *request)
{
    struct value *value = NULL;
    struct error err;
    const char *text = request->body.text ? request->body.text : "";
    if (check_room(request, &err) < 0 ||
        value_from_json(text, request->body.length, &value, &err) < 0) {
        answer_error(request, &err);
        return;
    }
    void *arg = request_call_with(request, 0, value);
    broker_explain_job(request->api->env.broker, &request->caller, value,
                       request_query(request, "render"), answer_reply, arg);
}
