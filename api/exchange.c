/* exchange.c - begin (what the header says) -> body -> dispatch -> answer.
 *
 * A request that is refused by its header is not answered before its body was read, when that is short:
 * a connection that is closed with bytes unread would take the answer with it. A long body, or one that
 * the client holds back until it is told to go on, is refused at once.
 *
 * The library calls nothing while a connection sleeps: no time limit, no notice of a client that went.
 * So every sleep has its deadline here, and the server looks at the sockets of sleepers (server.c). */
#include "api/exchange.h"

#include "api/answer.h"
#include "api/auth.h"
#include "api/traffic.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWALLOW_MAX = 1024 * 1024, SPEED_MIN = 16 * 1024 };

static int64_t now_ms(const struct request *request)
{
    return clock_mono_ms(request->api->env.clock);
}

/* ------------------------------------------------------------------------------------- the header */

static int check_access(struct request *request, struct error *err)
{
    const struct endpoint *route = request->match.route;
    if (route->role == ROLE_NONE) {
        return 0;
    }
    const struct head *head = &request->head;
    if (route->open_here && request->conn->is_loopback && !head->authorization &&
        !head->forwarded) {
        return 0;
    }
    if (auth_identify(request->api->auth, request->conn, head->authorization, &request->who, err) <
        0) {
        return -1;
    }
    if (request->who.role < route->role) {
        error_set(err, ERROR_FORBIDDEN, "this takes the role '%s', '%.60s' has '%s'",
                  role_name(route->role), request->who.owner, role_name(request->who.role));
        return error_expect(err, "a token with the role %s", role_name(route->role));
    }
    return 0;
}

static int check_body_header(const struct request *request, struct error *err)
{
    const struct endpoint *route = request->match.route;
    const struct head *head = &request->head;
    if (!route->takes) {
        return 0;
    }
    if (route->body_optional && !head->content_type && head->length <= 0 && !head->encoding) {
        return 0;
    }
    if (head_check_type(head, route->takes, err) < 0) {
        return -1;
    }
    if (head->length > (int64_t)route->body_max) {
        error_set(err, ERROR_TOO_LARGE, "the body has %lld bytes", (long long)head->length);
        return error_expect(err, "at most %zu", route->body_max);
    }
    return 0;
}

static int check_header(struct request *request, const char *method, struct error *err)
{
    const char *target = request->uri.text;
    struct uri *uri = &request->uri;
    request->uri = (struct uri){0};
    int status = uri_parse(target, uri, err);
    free((char *)target);
    if (head_check(&request->head, request->conn, err) < 0 || status < 0 ||
        endpoint_find(method, uri, &request->match, request->allow, err) < 0 ||
        check_access(request, err) < 0 ||
        endpoint_check_query(request->match.route, uri, err) < 0) {
        return -1;
    }
    return check_body_header(request, err);
}

/* The answer is there before the body: whether it must be given at once. */
static bool must_refuse_now(const struct request *request)
{
    const struct head *head = &request->head;
    return request->response &&
           (head->bad_frame || head->expects || head->encoding || head->length > SWALLOW_MAX);
}

static void begin(struct request *request, const char *method)
{
    struct error err;
    struct conn *conn = request->conn;
    int64_t length;
    request->begun = true;
    request->is_head = strcmp(method, "HEAD") == 0;
    head_read(request->mhd, &request->head);
    length = request->head.length > 0 ? request->head.length : 0;
    if (length > LIMIT_BODY_BYTES || request->head.encoding) {
        length = LIMIT_BODY_BYTES;
    }
    conn->phase = CONN_BODY;
    conn->deadline_ms = now_ms(request) + api_idle_ms(request->api) + length * 1000 / SPEED_MIN;
    if (check_header(request, method, &err) < 0) {
        answer_error(request, &err);
        return;
    }
    request->caller = (struct caller){request->who.owner, request->who.team, request->who.role};
    strbuf_init(&request->body,
                request->match.route->takes ? request->match.route->body_max : (size_t)SWALLOW_MAX);
}

/* --------------------------------------------------------------------------------------- the body */

static void drop_body(struct request *request)
{
    request->api->body_bytes -= request->body.length;
    strbuf_fini(&request->body);
}

/* Returns -1 when the client sends more than will be listened to. */
static int take_body(struct request *request, const char *data, size_t length)
{
    struct error err;
    if (request->response) {
        request->swallowed += length;
        return request->swallowed > LIMIT_BODY_BYTES ? -1 : 0;
    }
    if (request->api->body_bytes + length > LIMIT_BODIES_BYTES) {
        drop_body(request);
        error_set(&err, ERROR_UNAVAILABLE, "too many bodies are being received");
        answer_error(request, &err);
        return 0;
    }
    strbuf_add(&request->body, data, length);
    if (request->body.full) {
        size_t most = request->body.max;
        drop_body(request);
        error_set(&err, ERROR_TOO_LARGE, "the body is over its limit");
        (void)error_expect(&err, "at most %zu bytes", most);
        answer_error(request, &err);
        return 0;
    }
    request->api->body_bytes += length;
    return 0;
}

void exchange_give_up(struct request *request, const struct error *err)
{
    request_forget_call(request);
    if (request->queued) {
        request->broken = true;
        request_wake(request);
    } else {
        answer_error(request, err);
    }
}

bool exchange_client_is_gone(const struct request *request)
{
    struct pollfd look = {.fd = request->conn->fd, .events = request->waits ? POLLRDHUP : 0};
    return poll(&look, 1, 0) > 0;
}

/* -------------------------------------------------------------------------------- life of a request */

struct request *exchange_open(struct conn *conn, struct MHD_Connection *mhd, const char *target)
{
    struct request *request = xcalloc(1, sizeof *request);
    request->api = conn->listener->api;
    request->conn = conn;
    request->mhd = mhd;
    request->uri.text = xstrdup(target);
    request->begun_ms = now_ms(request);
    request->next = request->api->requests;
    if (request->next) {
        request->next->prev = request;
    }
    request->api->requests = request;
    return request;
}

static int queue_answer(struct request *request)
{
    struct conn *conn = request->conn;
    struct MHD_Response *response = request->response;
    request->response = NULL;
    request->queued = true;
    conn->phase = CONN_ANSWERS;
    conn->deadline_ms = request->answer_length == 0
                            ? 0 /* a stream: as long as its reader takes something */
                            : now_ms(request) + api_idle_ms(request->api) +
                                  (int64_t)request->answer_length * 1000 / SPEED_MIN;
    enum MHD_Result result = MHD_queue_response(request->mhd, (unsigned)request->status, response);
    MHD_destroy_response(response);
    return result == MHD_YES ? 0 : -1;
}

int exchange_access(struct request *request, const char *method, const char *data, size_t *length)
{
    if (!request->begun) {
        begin(request, method);
        return must_refuse_now(request) ? queue_answer(request) : 0;
    }
    if (*length > 0) {
        int status = take_body(request, data, *length);
        *length = 0;
        return status;
    }
    if (!request->dispatched) {
        request->dispatched = true;
        request->conn->phase = CONN_WORKS;
        request->conn->deadline_ms = 0;
        if (!request->response) {
            request->match.route->handle(request);
        }
    }
    if (request->response) {
        return queue_answer(request);
    }
    request_sleep(request);
    return 0;
}

void exchange_close(struct request *request)
{
    struct api *api = request->api;
    int64_t took = request->waits ? -1 : now_ms(request) - request->begun_ms;
    traffic_request(api->traffic, request->match.route, request->queued ? request->status : 0,
                    took);
    request_forget_call(request);
    if (request->state_free) {
        request->state_free(request->state);
    }
    if (request->response) {
        MHD_destroy_response(request->response);
    }
    drop_body(request);
    uri_fini(&request->uri);
    *(request->prev ? &request->prev->next : &api->requests) = request->next;
    if (request->next) {
        request->next->prev = request->prev;
    }
    request->conn->phase = CONN_WAITS;
    request->conn->deadline_ms = clock_mono_ms(api->env.clock) + api_idle_ms(api);
    free(request);
}
