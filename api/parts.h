/* parts.h - what the files of the api share: the api itself, its listeners and connections. */
#ifndef API_PARTS_H
#define API_PARTS_H

#include "api/api.h"
#include "broker/core/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct MHD_Daemon;
struct api;
struct auth;
struct traffic;
struct request;

/* One address: an MHD daemon on the loop. */
struct listener {
    struct api *api;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;      /* of the daemon's epoll descriptor */
    struct timer *timer; /* the daemon's next deadline, or: run it in the next turn */
    struct conn *conns;
    int conn_count;
    int fd; /* listening */
    bool is_unix, polling;
    char *certificate, *key; /* PEM; with TLS */
};

enum conn_phase { CONN_WAITS, CONN_BODY, CONN_WORKS, CONN_ANSWERS };

/* An open connection and who is at its other end. */
struct conn {
    struct listener *listener;
    int fd;
    bool is_loopback; /* the peer is on this machine */
    uid_t uid;        /* of the peer; Unix socket only */
    bool is_half;     /* at the last look the client had closed its side */
    enum conn_phase phase;
    int64_t deadline_ms; /* monotonic; the phase must be over by then; 0: no such time */
    struct conn *prev, *next;
};

struct api {
    struct api_env env;
    struct listener listeners[2]; /* Unix socket, TCP */
    struct auth *auth;
    struct traffic *traffic;
    struct request *requests; /* all that are under way */
    struct timer *sweep;
    char *url, *address, *socket_path;
    char *url_host, *listen_host; /* names that a Host header may say */
    char *openapi;                /* the document, made once */
    size_t body_bytes;            /* of bodies held now */
    int closing;                  /* handles of the loop that are not closed yet */
    bool stopping;
};

/* Has the listener's daemon run in the next turn of the loop: after every resume. */
static inline void listener_kick(struct listener *listener)
{
    timer_start(listener->timer, 0);
}

/* How long a connection without news lives, in ms. */
static inline int64_t api_idle_ms(const struct api *api)
{
    return (api->env.idle_seconds ? api->env.idle_seconds : LIMIT_CONNECTION_IDLE) * INT64_C(1000);
}

#endif
