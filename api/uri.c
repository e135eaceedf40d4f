/* uri.c - strict on purpose: what cannot be read in one way only is refused. */
#include "api/uri.h"

#include "broker/core/alloc.h"
#include "broker/core/units.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)((at - digits) % 16) : -1;
}

/* Decodes in place. */
static int decode(char *text, struct error *err)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        int c = (unsigned char)*in;
        if (c == '%') {
            int high = hex_digit(in[1]);
            int low = high < 0 ? -1 : hex_digit(in[2]);
            if (low < 0) {
                error_set(err, ERROR_MALFORMED, "a '%%' in the target is not an escape");
                return error_expect(err,
                                    "'%%' and two hexadecimal digits; '%%25' for the sign itself");
            }
            c = high * 16 + low;
            in += 2;
        }
        if (c < ' ' || c == 127) {
            return error_set(err, ERROR_MALFORMED, "a control character in the target");
        }
        *out++ = (char)c;
    }
    *out = '\0';
    if (!utf8_is_valid(text, (size_t)(out - text))) {
        return error_set(err, ERROR_MALFORMED, "the target is not UTF-8");
    }
    return 0;
}

/* Cuts at the next separator. Returns what follows it, or NULL. */
static char *cut(char *text, char separator)
{
    char *at = strchr(text, separator);
    if (at) {
        *at++ = '\0';
    }
    return at;
}

static int read_path(struct uri *uri, char *path, struct error *err)
{
    if (*path != '/') {
        error_set(err, ERROR_MALFORMED, "the target does not begin with '/'");
        return error_expect(err, "a path, like /v1/jobs");
    }
    for (char *segment = path[1] ? path + 1 : NULL; segment;) {
        char *next = cut(segment, '/');
        if (uri->segment_count == URI_SEGMENTS_MAX) {
            return error_set(err, ERROR_NOT_FOUND, "no path here has so many parts");
        }
        if (decode(segment, err) < 0) {
            return -1;
        }
        uri->segments[uri->segment_count++] = segment;
        segment = next;
    }
    return 0;
}

static int read_query(struct uri *uri, char *query, struct error *err)
{
    for (char *name = query; name && *name;) {
        char *next = cut(name, '&');
        char *value = cut(name, '=');
        if (decode(name, err) < 0 || (value && decode(value, err) < 0)) {
            return -1;
        }
        if (uri_query(uri, name)) {
            return error_set(err, ERROR_MALFORMED, "the parameter '%.64s' stands twice", name);
        }
        if (uri->query_count == URI_QUERY_MAX) {
            return error_set(err, ERROR_MALFORMED, "more than %d parameters", (int)URI_QUERY_MAX);
        }
        uri->query[uri->query_count++] = (struct uri_param){name, value ? value : ""};
        name = next;
    }
    return 0;
}

int uri_parse(const char *target, struct uri *out, struct error *err)
{
    struct uri uri = {.text = xstrdup(target)};
    char *query = cut(uri.text, '?');
    if (read_path(&uri, uri.text, err) < 0 || read_query(&uri, query, err) < 0) {
        free(uri.text);
        return -1;
    }
    *out = uri;
    return 0;
}

void uri_fini(struct uri *uri)
{
    free(uri->text);
    *uri = (struct uri){0};
}

const char *uri_query(const struct uri *uri, const char *name)
{
    for (size_t i = 0; i < uri->query_count; i++) {
        if (strcmp(uri->query[i].name, name) == 0) {
            return uri->query[i].value;
        }
    }
    return NULL;
}
