/* nasty.h - an HTTP server for tests that also misbehaves, on threads of its own.
 *
 * Rules say what happens to a request; a request without a rule gets a plain-text 404. All that was
 * received whole is counted and can be looked at. */
#ifndef TESTS_UNIT_NASTY_H
#define TESTS_UNIT_NASTY_H

#include <stddef.h>

enum nasty_way {
    NASTY_ANSWER,   /* status, type, body; the connection stays open */
    NASTY_HALF,     /* states the whole length, sends half of the body, closes */
    NASTY_DIE,      /* reads the request, closes without a word */
    NASTY_DIE_KEPT, /* answers the first request of a connection, then as DIE */
    NASTY_HANG,     /* reads the request, says nothing until the server stops */
};

struct nasty;

/* unix_path NULL: TCP on loopback. */
struct nasty *nasty_start(const char *unix_path);
void nasty_stop(struct nasty *server);
int nasty_port(const struct nasty *server);

/* what: "GET /path", without the query; "GET /path*" for all that begin so. A later rule for the same
 * what replaces the earlier; of several that fit the latest new one counts. Texts are copied. */
void nasty_on(struct nasty *server, const char *what, enum nasty_way way, int status,
              const char *type, const char *body);

/* How many whole requests begin with what. */
int nasty_count(struct nasty *server, const char *what);
/* The last whole request that begins with what, head and body; the caller's. NULL: none. */
char *nasty_last(struct nasty *server, const char *what);
int nasty_connections(struct nasty *server);

/* A port of loopback on which connecting hangs; *fds hold it open: close them all. */
enum { NASTY_HOLE_FDS = 8 };
int nasty_hole(int fds[NASTY_HOLE_FDS]);
/* A port of loopback on which nobody listens. */
int nasty_closed_port(void);

#endif
