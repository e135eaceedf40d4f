/* request.h - one request, as a handler sees it. Its life from the first line to the last byte: exchange.h.
 *
 * A handler runs when the whole body is there. It answers (answer.h), or it asks the broker:
 *     broker_places(request->api->env.broker, answer_reply, request_call(request, 0));
 * and the connection sleeps until the reply, a deadline, or the client's going. A reply may come when
 * the request is long gone: reply functions begin with request_back() and do nothing when it says NULL. */
#ifndef API_REQUEST_H
#define API_REQUEST_H

#include "api/auth.h"
#include "api/head.h"
#include "api/endpoint.h"
#include "api/parts.h"
#include "broker/core/strbuf.h"

struct MHD_Connection;
struct MHD_Response;

/* A question to the broker that is not answered yet. Outlives its request when need be. */
struct call {
    struct request *request; /* NULL: nobody waits any more */
    struct value *value;     /* kept for the broker until it replies */
};

struct request {
    struct api *api;
    struct conn *conn;
    struct MHD_Connection *mhd;
    struct uri uri;
    struct endpoint_match match; /* route NULL: none fits */
    struct head head;
    struct identity who;
    struct caller caller; /* points into who */
    struct strbuf body;
    size_t swallowed; /* bytes of a body that is not wanted */
    char allow[64];

    struct MHD_Response *response; /* made, not yet queued */
    int status;                    /* of the answer; 0: none yet */
    size_t answer_length;
    struct call *call;
    int64_t begun_ms, deadline_ms; /* monotonic; deadline of the call, 0: none */
    bool begun, dispatched, suspended, queued;
    bool is_head; /* the answer goes without its body */
    bool waits;   /* a long poll or a stream: one of LIMIT_FOLLOWERS */
    bool broken;  /* a stream that must end */

    void *state; /* the handler's */
    void (*state_free)(void *state);
    struct request *prev, *next;
};

/* Returns arg for the broker's reply. wait_ms: how long the broker may hold it on purpose. */
void *request_call(struct request *request, int64_t wait_ms);
/* As request_call; value (taken) lives until the reply. */
void *request_call_with(struct request *request, int64_t wait_ms, struct value *value_take);
/* In a reply: the request that waits for it, or NULL. */
struct request *request_back(void *arg);
/* Nobody waits for the reply any more. */
void request_forget_call(struct request *request);

/* Takes one of LIMIT_FOLLOWERS. UNAVAILABLE when there is none. */
int request_claim_wait(struct request *request, struct error *err);

/* Wakes a connection that sleeps in a stream. */
void request_wake(struct request *request);
/* Puts it to sleep; only in a callback of the server for this connection. */
void request_sleep(struct request *request);

/* What the {name} of the path stands for; never NULL. */
const char *request_path(const struct request *request, const char *name);

/* Parameters of the query: 0, or -1 with MALFORMED. *out keeps its value when the parameter is absent. */
const char *request_query(const struct request *request, const char *name); /* NULL: absent */
int request_query_integer(const struct request *request, const char *name, int64_t low,
                          int64_t high, int64_t *out, struct error *err);
int request_query_bool(const struct request *request, const char *name, bool *out,
                       struct error *err);
/* Durations above the maximum are cut to it. */
int request_query_duration(const struct request *request, const char *name, int64_t max_ms,
                           int64_t *out, struct error *err);
int request_query_instant(const struct request *request, const char *name, int64_t *out,
                          struct error *err);

#endif
