/* uri.h - the target of a request: its path in segments and its query, both decoded. */
#ifndef API_URI_H
#define API_URI_H

#include "broker/core/error.h"

#include <stddef.h>

enum { URI_SEGMENTS_MAX = 8, URI_QUERY_MAX = 32 };

struct uri_param {
    const char *name, *value;
};
struct uri {
    char *text;                             /* what the others point into */
    const char *segments[URI_SEGMENTS_MAX]; /* decoded, so "%2F" is a '/' within one */
    size_t segment_count;                   /* 0: "/" */
    struct uri_param query[URI_QUERY_MAX];
    size_t query_count;
};

/* MALFORMED: bad escapes, control characters, not UTF-8, a parameter twice. A '+' is a plus. On failure
 * out needs no uri_fini, which takes a zeroed struct too. */
int uri_parse(const char *target, struct uri *out, struct error *err);
void uri_fini(struct uri *uri);

const char *uri_query(const struct uri *uri, const char *name); /* NULL: absent */

#endif
