/* http.c - curl's multi interface on the loop.
 *
 * curl tells which sockets to watch and when to be woken; what happens there goes back to it by
 * curl_multi_socket_action(), never from within one of its own callbacks. Completions run from the
 * drain loop, outside of curl, so they may start and cancel requests.
 *
 * Invariants: a request is in `running` while curl has it, else in `over` until its completion has run,
 * after which it is freed. A watch lives as
 * long as curl wants its socket watched: curl removes it before it closes the descriptor, so a number
 * that the kernel hands out again never meets an old watch. No proxy is taken from the environment. The
 * process must ignore SIGPIPE. */
#include "broker/net/http.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/strbuf.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    IDLE_SECONDS = 50,     /* load balancers close at 60: do not meet a dead connection */
    CONNECTIONS_KEPT = 256 /* idle ones; beyond, the oldest is closed */
};

struct http {
    uv_loop_t *loop;
    CURLM *multi;
    struct timer *wake;    /* as curl wants it */
    struct timer *deliver; /* completes what ended outside of the drain loop */
    struct http_request *running;
    struct http_request *over, **last; /* to be completed, oldest first */
    struct watch *watches;
};

struct http_request {
    struct http *http;
    struct http_request *next, **prev; /* prev: of `running` alone */
    CURL *easy;
    struct curl_slist *headers;
    http_done_fn done;
    void *arg;
    struct strbuf body;
    bool is_sent; /* at least its start may have left */
    bool is_over; /* err holds the result; `deliver` completes it */
    struct error err;
    char detail[CURL_ERROR_SIZE];
};

struct watch { /* of one socket */
    uv_poll_t poll;
    struct http *http;
    struct watch *next, **prev;
};

/* ---- completion */

static void request_free(struct http_request *request)
{
    curl_easy_cleanup(request->easy);
    curl_slist_free_all(request->headers);
    strbuf_fini(&request->body);
    free(request);
}

/* Takes the request from curl; err holds the result. */
static void request_end(struct http_request *request)
{
    (void)curl_multi_remove_handle(request->http->multi, request->easy);
    *request->prev = request->next;
    if (request->next) {
        request->next->prev = request->prev;
    }
    request->is_over = true;
}

static void complete_later(struct http_request *request)
{
    struct http *http = request->http;
    request->next = NULL;
    *http->last = request;
    http->last = &request->next;
    timer_start(http->deliver, 0);
}

static int64_t info_us(CURL *easy, CURLINFO what)
{
    curl_off_t us = 0;
    (void)curl_easy_getinfo(easy, what, &us);
    return (int64_t)us;
}

static void request_complete(struct http_request *request)
{
    struct http_response response = {
        .body = request->body.text ? request->body.text : "",
        .length = request->body.length,
        .content_type = "",
        .connected = request->is_sent || info_us(request->easy, CURLINFO_CONNECT_TIME_T) > 0,
        .sent = request->is_sent,
        .total_us = info_us(request->easy, CURLINFO_TOTAL_TIME_T),
        .connect_us = info_us(request->easy, CURLINFO_CONNECT_TIME_T),
        .err = request->err,
    };
    if (request->err.code == ERROR_NONE) {
        char *type = NULL;
        (void)curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &response.status);
        (void)curl_easy_getinfo(request->easy, CURLINFO_CONTENT_TYPE, &type);
        response.content_type = type ? type : "";
    }
    request->done(request->arg, &response);
    request_free(request);
}

static enum error_code code_of(const struct http_request *request, CURLcode result)
{
    switch (result) {
    case CURLE_OPERATION_TIMEDOUT: return ERROR_TIMEOUT;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST: return ERROR_UNAVAILABLE;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return ERROR_INVALID;
    case CURLE_WRITE_ERROR: return request->body.full ? ERROR_TOO_LARGE : ERROR_UPSTREAM;
    default: return request->is_sent ? ERROR_UPSTREAM : ERROR_UNAVAILABLE;
    }
}

static void set_result(struct http_request *request, CURLcode result)
{
    if (result == CURLE_OK) {
        return;
    }
    enum error_code code = code_of(request, result);
    if (code == ERROR_TOO_LARGE) {
        error_set(&request->err, code, "the answer is longer than %zu bytes", request->body.max);
        return;
    }
    error_set(&request->err, code, "%s",
              request->detail[0] ? request->detail : curl_easy_strerror(result));
}

/* Completes what curl has finished. Completions may add to it: the message is copied first. */
static void drain(struct http *http)
{
    const CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(http->multi, &left))) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        CURLcode result = message->data.result;
        struct http_request *request = NULL;
        (void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
        set_result(request, result);
        request_end(request);
        request_complete(request);
    }
}

static struct http_request *pop_over(struct http *http)
{
    struct http_request *request = http->over;
    if (request) {
        http->over = request->next;
        http->last = http->over ? http->last : &http->over;
    }
    return request;
}

static void deliver_cb(void *arg)
{
    struct http_request *request;
    while ((request = pop_over(arg))) {
        request_complete(request);
    }
}

/* ---- curl and the loop */

static void poll_cb(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct http *http = watch->http;
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)poll, &fd)) {
        return;
    }
    int flags = status < 0 ? CURL_CSELECT_ERR : 0; /* libuv has stopped the watch */
    flags |= events & UV_READABLE ? CURL_CSELECT_IN : 0;
    flags |= events & UV_WRITABLE ? CURL_CSELECT_OUT : 0;
    int running;
    (void)curl_multi_socket_action(http->multi, fd, flags, &running);
    drain(http);
}

static void wake_cb(void *arg)
{
    struct http *http = arg;
    int running;
    (void)curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    drain(http);
}

static void watch_closed_cb(uv_handle_t *handle)
{
    free(handle->data);
}

/* The descriptor leaves the loop here, at once; only the memory stays until the next turn. */
static void watch_close(struct watch *watch)
{
    *watch->prev = watch->next;
    if (watch->next) {
        watch->next->prev = watch->prev;
    }
    (void)uv_poll_stop(&watch->poll);
    uv_close((uv_handle_t *)&watch->poll, watch_closed_cb);
}

static struct watch *watch_open(struct http *http, curl_socket_t fd)
{
    struct watch *watch = xcalloc(1, sizeof *watch);
    if (uv_poll_init_socket(http->loop, &watch->poll, fd)) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    watch->http = http;
    watch->next = http->watches;
    watch->prev = &http->watches;
    if (watch->next) {
        watch->next->prev = &watch->next;
    }
    http->watches = watch;
    (void)curl_multi_assign(http->multi, fd, watch);
    return watch;
}

static int socket_cb(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    struct watch *watch = socket_arg;
    if (what == CURL_POLL_REMOVE) {
        if (watch) {
            (void)curl_multi_assign(((struct http *)arg)->multi, fd, NULL);
            watch_close(watch);
        }
        return 0;
    }
    if (!watch && !(watch = watch_open(arg, fd))) {
        return -1; /* curl fails the transfers of this socket */
    }
    int events = what & CURL_POLL_IN ? UV_READABLE : 0;
    events |= what & CURL_POLL_OUT ? UV_WRITABLE : 0;
    return uv_poll_start(&watch->poll, events, poll_cb) ? -1 : 0;
}

static int timer_cb(CURLM *multi, long delay_ms, void *arg)
{
    (void)multi;
    struct http *http = arg;
    if (delay_ms < 0) {
        timer_stop(http->wake);
    } else {
        timer_start(http->wake, delay_ms); /* 0 too is a turn later: never from within curl */
    }
    return 0;
}

static size_t write_cb(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_request *request = arg;
    strbuf_add(&request->body, bytes, size * count);
    return request->body.full ? 0 : size * count;
}

/* Runs when there is a connection, new or old, before the first byte of the request leaves. */
static int prereq_cb(void *arg, char *remote, char *local, int remote_port, int local_port)
{
    (void)remote;
    (void)local;
    (void)remote_port;
    (void)local_port;
    ((struct http_request *)arg)->is_sent = true;
    return CURL_PREREQFUNC_OK;
}

/* ---- starting */

/* curl sends these again by itself when a reused connection dies: only for what may run twice. */
static bool method_may_repeat(const char *method)
{
    static const char *const words[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!strcmp(method, words[i])) {
            return true;
        }
    }
    return false;
}

static void add_header(struct http_request *request, const char *line)
{
    struct curl_slist *list = curl_slist_append(request->headers, line);
    if (!list) {
        abort();
    }
    request->headers = list;
}

static void set_method(struct http_request *request, const struct http_spec *spec)
{
    CURL *easy = request->easy;
    bool has_body = spec->body || !strcmp(spec->method, "POST");
    if (has_body) { /* a size and no callback: the length is stated, never chunked */
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                               (curl_off_t)(spec->body ? spec->body_length : 0));
        (void)curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, spec->body ? spec->body : "");
    }
    if (!strcmp(spec->method, "HEAD")) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else if (strcmp(spec->method, has_body ? "POST" : "GET") != 0) {
        (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, spec->method);
    }
    if (!method_may_repeat(spec->method)) {
        (void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    }
}

static void set_target(struct http_request *request, const struct http_spec *spec)
{
    CURL *easy = request->easy;
    (void)curl_easy_setopt(easy, CURLOPT_URL, spec->url);
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "tieline/" TIELINE_VERSION);
    if (spec->unix_socket) {
        (void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, spec->unix_socket);
    }
    if (spec->ca_file) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, spec->ca_file);
    }
}

static void set_limits(struct http_request *request, const struct http_spec *spec)
{
    CURL *easy = request->easy;
    long timeout = spec->timeout_ms > 0 ? (long)spec->timeout_ms : (long)LIMIT_CALL_MS;
    long connect = spec->connect_timeout_ms > 0 ? (long)spec->connect_timeout_ms : timeout;
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, connect);
    /* A hung name lookup has its own thread. Without this, to end the request would wait for it. */
    (void)curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    strbuf_init(&request->body, spec->body_max ? spec->body_max : (size_t)LIMIT_MEMBER_BODY);
}

static void set_callbacks(struct http_request *request)
{
    CURL *easy = request->easy;
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, request);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, request->detail);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_cb);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, prereq_cb);
    (void)curl_easy_setopt(easy, CURLOPT_PREREQDATA, request);
}

static void set_headers(struct http_request *request, const struct http_spec *spec)
{
    add_header(request, "Expect:"); /* no round trip of its own before a long body */
    for (size_t i = 0; spec->headers && spec->headers[i]; i++) {
        add_header(request, spec->headers[i]);
    }
    (void)curl_easy_setopt(request->easy, CURLOPT_HTTPHEADER, request->headers);
}

struct http_request *http_start(struct http *http, const struct http_spec *spec, http_done_fn done,
                                void *arg)
{
    struct http_request *request = xcalloc(1, sizeof *request);
    *request = (struct http_request){.http = http, .done = done, .arg = arg};
    request->easy = curl_easy_init();
    if (!request->easy) {
        abort();
    }
    request->next = http->running;
    request->prev = &http->running;
    if (request->next) {
        request->next->prev = &request->next;
    }
    http->running = request;
    set_target(request, spec);
    set_method(request, spec);
    set_limits(request, spec);
    set_callbacks(request);
    set_headers(request, spec);
    CURLMcode code = curl_multi_add_handle(http->multi, request->easy);
    if (code != CURLM_OK) {
        error_set(&request->err, ERROR_INTERNAL, "%s", curl_multi_strerror(code));
        request_end(request);
        complete_later(request);
    }
    return request;
}

void http_cancel(struct http_request *request)
{
    if (request->is_over) {
        return;
    }
    error_set(&request->err, ERROR_UNAVAILABLE, "the request was given up");
    request_end(request);
    complete_later(request);
}

struct http *http_create(uv_loop_t *loop, struct clock *clock)
{
    struct http *http = xcalloc(1, sizeof *http);
    http->loop = loop;
    http->last = &http->over;
    http->wake = clock_timer(clock, wake_cb, http);
    http->deliver = clock_timer(clock, deliver_cb, http);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(http->multi = curl_multi_init())) {
        abort();
    }
    (void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_cb);
    (void)curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    (void)curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_cb);
    (void)curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    (void)curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT);
    return http;
}

void http_destroy(struct http *http)
{
    if (!http) {
        return;
    }
    while (http->running) {
        struct http_request *request = http->running;
        error_set(&request->err, ERROR_UNAVAILABLE, "the broker stops");
        request_end(request);
        complete_later(request);
    }
    deliver_cb(http);
    (void)curl_multi_cleanup(http->multi);
    while (http->watches) {
        watch_close(http->watches);
    }
    timer_destroy(http->wake);
    timer_destroy(http->deliver);
    curl_global_cleanup();
    free(http);
}
