/* api.h - the HTTP side of the broker: a Unix socket and one TCP address, both on the loop. */
#ifndef API_API_H
#define API_API_H

#include "broker/broker.h"
#include "broker/core/clock.h"
#include "broker/core/cluster.h"
#include "broker/core/error.h"

#include <stdio.h>
#include <uv.h>

struct api;

struct api_env { /* borrowed; outlives the api */
    uv_loop_t *loop;
    struct clock *clock;
    struct broker *broker;
    const struct federation *federation;
    void (*log)(const char *level, const char *text);
    int idle_seconds; /* a connection without news is closed; 0: LIMIT_CONNECTION_IDLE */
    int stop_ms;      /* what is under way may take so long at the stop; 0: 5 s */
};

/* Listens on STATE/tieline.sock and on server.listen; makes STATE/token. Refused: an address that is
 * not loopback without TLS and tokens, a socket on which another broker answers. */
int api_create(const struct api_env *env, struct api **out, struct error *err);

/* Accepts nothing more, finishes what is under way within stop_ms, then cuts the rest. Runs the loop:
 * call it outside of the loop's callbacks, before broker_destroy. Calls to the broker that have not
 * been answered by then are forgotten: their replies do nothing. The loop must run once more. */
void api_destroy(struct api *api);

/* What clients are told: server.url, else made of the address. */
const char *api_url(const struct api *api);
/* The address itself, "http://127.0.0.1:7410": with the port that was taken when 0 was asked. */
const char *api_address(const struct api *api);
const char *api_socket(const struct api *api);

/* Prints the routes as Markdown: the table of docs/api.md. */
void api_routes_print(FILE *out);

#endif
