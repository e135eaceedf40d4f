#include "api/answer.h"

#include "broker/core/alloc.h"
#include "broker/core/problem.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK = 32 * 1024 };

void answer_header(struct request *request, const char *name, const char *value)
{
    if (request->response) {
        (void)MHD_add_response_header(request->response, name, value);
    }
}

/* Takes the response; a sleeping connection wakes. */
static void make(struct request *request, int status, const char *type, size_t length,
                 struct MHD_Response *response)
{
    if (request->response || request->queued) { /* one answer per request */
        MHD_destroy_response(response);
        return;
    }
    request->response = response;
    request->status = status;
    request->answer_length = length;
    answer_header(request, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    answer_header(request, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    answer_header(request, "X-Content-Type-Options", "nosniff");
    if (request->head.bad_frame || request->api->stopping) {
        answer_header(request, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    request_wake(request);
}

void answer_text(struct request *request, int status, const char *type, char *text_take,
                 size_t length)
{
    make(request, status, type, length,
         MHD_create_response_from_buffer(length, text_take, MHD_RESPMEM_MUST_FREE));
}

static void answer_as(struct request *request, int status, const char *type, const json_t *body)
{
    char *compact = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
    char *text = xasprintf("%s\n", compact ? compact : "null");
    free(compact);
    answer_text(request, status, type, text, strlen(text));
}

void answer_json(struct request *request, int status, const json_t *body)
{
    answer_as(request, status, "application/json", body);
}

/* What goes with some statuses. */
static void add_hints(struct request *request, const struct error *err)
{
    switch (err->code) {
    case ERROR_UNAUTHORIZED:
        answer_header(request, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"tieline\"");
        break;
    case ERROR_METHOD: answer_header(request, MHD_HTTP_HEADER_ALLOW, request->allow); break;
    case ERROR_TOO_MANY: answer_header(request, MHD_HTTP_HEADER_RETRY_AFTER, "5"); break;
    case ERROR_UNAVAILABLE:
    case ERROR_STORE: answer_header(request, MHD_HTTP_HEADER_RETRY_AFTER, "2"); break;
    default: break;
    }
}

void answer_error_with(struct request *request, const struct error *err, const json_t *extra)
{
    json_t *problem = error_to_problem(err);
    if (json_is_object(extra)) {
        /* the fields of the problem itself stand */
        json_t *more = json_deep_copy(extra);
        (void)json_object_update_missing(problem, more);
        json_decref(more);
    }
    answer_as(request, error_status(err->code), "application/problem+json", problem);
    json_decref(problem);
    add_hints(request, err);
}

void answer_error(struct request *request, const struct error *err)
{
    answer_error_with(request, err, NULL);
}

void answer_stream(struct request *request, int status, const char *type,
                   ssize_t (*read)(void *arg, uint64_t at, char *out, size_t room), void *arg)
{
    if (request->is_head) { /* the library would send the end of the chunks */
        answer_text(request, status, type, xstrdup(""), 0);
        return;
    }
    make(request, status, type, 0,
         MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read, arg, NULL));
    answer_header(request, "X-Accel-Buffering", "no");
}

void answer_reply(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    if (err->code) {
        answer_error_with(request, err, body);
    } else {
        answer_json(request, request->match.route->status, body);
    }
}
