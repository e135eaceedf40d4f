/* endpoint.h - the one table of what is served. Dispatch, /openapi.json and docs/api.md derive from it. */
#ifndef API_ENDPOINT_H
#define API_ENDPOINT_H

#include "api/uri.h"
#include "broker/broker.h"

#include <stdbool.h>
#include <stddef.h>

struct request;

/* X(constant, JSON Schema type, what it takes) */
#define PARAM_LIST(X)                                                                              \
    X(TEXT, "string", "text")                                                                      \
    X(INTEGER, "integer", "whole number")                                                          \
    X(BOOL, "boolean", "`true` or `false`")                                                        \
    X(DURATION, "string", "duration, like `30s`")                                                  \
    X(INSTANT, "string", "RFC 3339 time, or a duration before now")

enum param_type {
#define X(constant, type, words) PARAM_##constant,
    PARAM_LIST(X)
#undef X
};
struct endpoint_param {
    const char *name;
    enum param_type type;
    const char *help;
};

enum { ENDPOINT_PARAMS_MAX = 12, ENDPOINT_PATH_MAX = 2 };

struct endpoint {
    const char *method, *pattern; /* "/v1/jobs/{id}" */
    const char *name;             /* operationId */
    enum role role;               /* that it takes; NONE: anybody */
    bool open_here;               /* peers on this machine need no credentials */
    void (*handle)(struct request *request);
    const char *summary; /* one sentence */
    const char *help;    /* more of it, or NULL */
    struct endpoint_param query[ENDPOINT_PARAMS_MAX];
    const char *takes;   /* content types of the body, separated by a blank; NULL: no body */
    bool body_optional;  /* a request without one, and without a content type, is fine */
    size_t body_max;     /* bytes */
    const char *request; /* schema of the body; NULL: text */
    int status;          /* of a success */
    const char *gives;   /* content type of a success */
    const char *schema;  /* of a success; NULL: text */
};

extern const struct endpoint endpoint_table[];
extern const size_t endpoint_count;

/* A route that fits the path and what its {names} stand for. */
struct endpoint_match {
    const struct endpoint *route;
    struct uri_param path[ENDPOINT_PATH_MAX];
    char names[ENDPOINT_PATH_MAX][16];
    size_t path_count;
};

/* HEAD is served like GET. NOT_FOUND, or METHOD with the methods in allow (comma list). */
int endpoint_find(const char *method, const struct uri *uri, struct endpoint_match *out,
                  char allow[64], struct error *err);

/* Each parameter of the query is one of the route's; else MALFORMED with the nearest spelling. */
int endpoint_check_query(const struct endpoint *route, const struct uri *uri, struct error *err);

const char *param_schema_type(enum param_type type);

#endif
