/* client.h - the command line's side of the REST API: one call at a time, with patience.
 *
 * A call that may be repeated (every GET and DELETE, and a POST with an Idempotency-Key) is tried again
 * on connection errors, 5xx and 429, after 1 to 15 s with jitter, until the client's patience is over. */
#ifndef API_CLI_CLIENT_H
#define API_CLI_CLIENT_H

#include "api/cli/cli.h"

#include <jansson.h>
#include <stdint.h>

struct client;

struct call {                  /* all borrowed */
    const char *method, *path; /* path with query, escaped */
    const char *body;          /* JSON, or NULL */
    const char *type;          /* of the body; NULL: application/json */
    const char *key;           /* Idempotency-Key, or NULL */
    bool repeat;               /* may be tried again */
    int64_t wait_ms;           /* how long the broker may hold it on purpose */
};

/* Finds the broker: --url, TIELINE_URL; else the Unix socket in the state directory; else TCP with the
 * token file there. patience_ms: when --patience says nothing. */
int client_open(struct cli *cli, const struct args *args, int64_t patience_ms, struct client **out,
                struct error *err);
void client_close(struct client *client); /* takes NULL */

/* *out is the caller's; NULL: no JSON came (204). A problem of the broker becomes err. */
int client_call(struct client *client, const struct call *call, json_t **out, struct error *err);
/* GET of a path; the usual case. */
int client_get(struct client *client, const char *path, json_t **out, struct error *err);

/* HTTP status of the last call; 0: no answer came. */
long client_status(const struct client *client);
/* Whether the last call was ended by an interrupt. */
bool client_was_interrupted(const struct client *client);
/* An interrupt no longer ends calls, each try is short, and patience is this: for what must be said before
 * leaving. */
void client_hurry(struct client *client, int64_t patience_ms);
/* Sleeps; an interrupt ends it. */
void client_sleep(struct client *client, int64_t ms);

const char *client_where(const struct client *client); /* for messages */
bool client_is_url(const struct client *client);       /* where is a URL that others can use */

extern const struct flag client_flags[];

/* Escapes a segment of a path or a value of a query: the caller frees. */
char *client_escape(const char *text);

/* Monotonic ms. */
int64_t client_now(const struct client *client);

#endif
