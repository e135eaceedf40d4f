/* caller.h - who asks, what they submit, and how they are answered. */
#ifndef BROKER_CALLER_H
#define BROKER_CALLER_H

#include "broker/core/error.h"
#include "broker/core/value.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Exactly once, never from within the call. body is the reply's for the time of the callback.
 * err->code is ERROR_NONE on success. */
typedef void (*reply_fn)(void *arg, json_t *body, const struct error *err);

/* X(constant, name): each may do what those before it may */
#define ROLE_LIST(X)                                                                               \
    X(NONE, "none") X(READ, "read") X(SUBMIT, "submit") X(OPERATE, "operate") X(ADMIN, "admin")
enum role {
#define X(constant, name) ROLE_##constant,
    ROLE_LIST(X)
#undef X
        ROLE_COUNT
};
struct caller { /* who asks; borrowed for the call */
    const char *owner;
    const char *team; /* "" when the token says none */
    enum role role;
};

/* Submits jobs. Each item is one job document. One item, bulk false: body is the job as broker_job
 * gives it; else {"jobs": [{"id"} or {"problem"}, ...]} in order. key NULL: none. fingerprint: hash of
 * the body. "existing": true marks a job that the key had made before. */
struct submission {
    struct value **items; /* taken with its elements */
    size_t count;
    bool bulk;
    const char *key;
    const char *fingerprint;
};

#endif
