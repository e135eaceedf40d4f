/* http.h - HTTP client: one curl multi handle on the loop. HTTP/1.1 and TLS, no redirects.
 *
 * A request completes exactly once, with a status, or with an error when no whole answer came. POSTs
 * never go over a reused connection: libcurl would send them again when it dies (docs: CURLOPT_
 * FRESH_CONNECT; protocol reference of the adapters). Bodies are capped. No proxy is taken from the
 * environment. A name lookup that hangs holds up nobody: it has a thread of its own, which is left to
 * end by itself. The process must ignore SIGPIPE. */
#ifndef BROKER_NET_HTTP_H
#define BROKER_NET_HTTP_H

#include "broker/core/clock.h"
#include "broker/core/error.h"

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct http;
struct http_request;

struct http_response { /* borrowed; valid while done runs */
    long status;       /* 0: no whole answer; err says why */
    const char *body;  /* NUL-terminated */
    size_t length;
    const char *content_type; /* "" when absent */
    bool connected;           /* a connection was made: the request may have been received */
    bool sent;                /* at least part of the request left */
    int64_t total_us, connect_us;
    struct error err;
};
typedef void (*http_done_fn)(void *arg, const struct http_response *response);

struct http_spec {      /* all borrowed for the time of http_start */
    const char *method; /* GET POST DELETE ... */
    const char *url;
    const char *unix_socket;    /* path, or NULL for TCP */
    const char *const *headers; /* "Name: value", NULL-terminated; may be NULL */
    const char *body;           /* or NULL */
    size_t body_length;
    int64_t timeout_ms, connect_timeout_ms;
    size_t body_max;     /* of the answer; beyond: an error */
    const char *ca_file; /* or NULL: the system's */
};

struct http *http_create(uv_loop_t *loop, struct clock *clock);
/* Completes all outstanding requests with an error, then frees; not from within done. The loop must run
 * once more, to close what watched the sockets. */
void http_destroy(struct http *http);

/* Starts a request. done runs later, never from within http_start. */
struct http_request *http_start(struct http *http, const struct http_spec *spec, http_done_fn done,
                                void *arg);
/* Before done has begun. done runs with an error, in the next turn. A POST that was sent may still be carried out there. */
void http_cancel(struct http_request *request);

#endif
