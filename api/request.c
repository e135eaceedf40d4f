/* request.c - what a handler may do with its request besides answering it. */
#include "api/request.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_GRACE_MS = 60 * 1000 };

/* ----------------------------------------------------------------------------------------- calls */

void *request_call_with(struct request *request, int64_t wait_ms, struct value *value_take)
{
    struct call *call = xcalloc(1, sizeof *call);
    call->request = request;
    call->value = value_take;
    request->call = call;
    request->deadline_ms = clock_mono_ms(request->api->env.clock) + wait_ms + CALL_GRACE_MS;
    return call;
}

void *request_call(struct request *request, int64_t wait_ms)
{
    return request_call_with(request, wait_ms, NULL);
}

struct request *request_back(void *arg)
{
    struct call *call = arg;
    struct request *request = call->request;
    if (request) {
        request->call = NULL;
        request->deadline_ms = 0;
    }
    value_destroy(call->value);
    free(call);
    return request;
}

void request_forget_call(struct request *request)
{
    if (request->call) {
        request->call->request = NULL;
        request->call = NULL;
    }
    request->deadline_ms = 0;
}

int request_claim_wait(struct request *request, struct error *err)
{
    int waiting = 0;
    for (const struct request *r = request->api->requests; r; r = r->next) {
        waiting += r->waits;
    }
    if (waiting >= LIMIT_FOLLOWERS || request->api->stopping) {
        error_set(err, ERROR_UNAVAILABLE, "%d readers wait for news, no more are taken", waiting);
        return error_expect(err, "ask without `wait` and `follow`, or later");
    }
    request->waits = true;
    return 0;
}

void request_sleep(struct request *request)
{
    request->suspended = true;
    MHD_suspend_connection(request->mhd);
}

void request_wake(struct request *request)
{
    if (request->suspended) {
        request->suspended = false;
        MHD_resume_connection(request->mhd);
        listener_kick(request->conn->listener);
    }
}

/* -------------------------------------------------------------------------------------- parameters */

const char *request_path(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->match.path_count; i++) {
        if (strcmp(request->match.path[i].name, name) == 0) {
            return request->match.path[i].value;
        }
    }
    return "";
}

const char *request_query(const struct request *request, const char *name)
{
    return uri_query(&request->uri, name);
}

/* Names the parameter; what is wrong with a query is the request's form: 400. */
static int bad_query(const char *name, struct error *err)
{
    err->code = ERROR_MALFORMED;
    return error_prefix(err, "parameter '%s'", name);
}

int request_query_integer(const struct request *request, const char *name, int64_t low,
                          int64_t high, int64_t *out, struct error *err)
{
    const char *text = request_query(request, name);
    return text && integer_parse(text, low, high, out, err) < 0 ? bad_query(name, err) : 0;
}

int request_query_bool(const struct request *request, const char *name, bool *out,
                       struct error *err)
{
    const char *text = request_query(request, name);
    if (!text) {
        return 0;
    }
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        error_set(err, ERROR_MALFORMED, "parameter '%s': '%.40s' is no truth value", name, text);
        return error_expect(err, "true or false");
    }
    *out = text[0] == 't';
    return 0;
}

int request_query_duration(const struct request *request, const char *name, int64_t max_ms,
                           int64_t *out, struct error *err)
{
    const char *text = request_query(request, name);
    if (text && duration_parse(text, out, err) < 0) {
        return bad_query(name, err);
    }
    *out = *out > max_ms ? max_ms : *out;
    return 0;
}

int request_query_instant(const struct request *request, const char *name, int64_t *out,
                          struct error *err)
{
    const char *text = request_query(request, name);
    int64_t ago;
    if (!text) {
        return 0;
    }
    if (duration_parse(text, &ago, err) == 0) {
        *out = clock_wall_ms(request->api->env.clock) - ago;
        return 0;
    }
    if (instant_parse(text, NULL, out, err) < 0) {
        return bad_query(name, err);
    }
    return 0;
}
