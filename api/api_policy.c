#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/units.h"

void serve_policy_show(struct request *request)
{
    broker_policy(request->api->env.broker, answer_reply, request_call(request, 0));
}

void serve_policy_set(struct request *request)
{
    struct error err;
    bool dry_run = false;
    const char *text = request->body.text ? request->body.text : "";
    if (request_query_bool(request, "dry_run", &dry_run, &err) < 0) {
        answer_error(request, &err);
        return;
    }
    if (!utf8_is_valid(text, request->body.length)) {
        error_set(&err, ERROR_MALFORMED, "the policy is not UTF-8, or holds a NUL");
        answer_error(request, &err);
        return;
    }
    broker_policy_set(request->api->env.broker, &request->caller, text, "policy.yaml", dry_run,
                      answer_reply, request_call(request, 0));
}

void serve_policy_bursts(struct request *request)
{
    broker_bursts(request->api->env.broker, answer_reply, request_call(request, 0));
}
