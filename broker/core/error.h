/* error.h - an error as a value that the caller holds: a code, a sentence, and where. */
#ifndef BROKER_CORE_ERROR_H
#define BROKER_CORE_ERROR_H

#include <stdbool.h>

/* X(constant, JSON name, HTTP status, another try can help, title) */
#define ERROR_LIST(X)                                                                              \
    X(NONE, "none", 200, false, "No error")                                                        \
    X(MALFORMED, "malformed", 400, false, "The text could not be parsed")                          \
    X(INVALID, "invalid", 422, false, "A value is not what was expected")                          \
    X(IMPOSSIBLE, "impossible", 422, false, "No configured place could ever run this")             \
    X(KEY_MISMATCH, "key-mismatch", 422, false, "The idempotency key was used with another body")  \
    X(UNAUTHORIZED, "unauthorized", 401, false, "Credentials are missing or wrong")                \
    X(FORBIDDEN, "forbidden", 403, false, "These credentials do not allow this")                   \
    X(NOT_FOUND, "not-found", 404, false, "There is no such thing")                                \
    X(METHOD, "method-not-allowed", 405, false, "The method is not allowed here")                  \
    X(CONFLICT, "conflict", 409, false, "The state does not allow this")                           \
    X(GONE, "gone", 410, false, "The cursor or the data has expired")                              \
    X(TOO_LARGE, "too-large", 413, false, "The body or the value is over its limit")               \
    X(MEDIA_TYPE, "media-type", 415, false, "The content type is not served")                      \
    X(MISDIRECTED, "misdirected", 421, false, "The Host header names another server")              \
    X(HEADERS, "headers-too-large", 431, false, "The header is over its limit")                    \
    X(TOO_MANY, "too-many", 429, true, "A rate or a quota is exceeded")                            \
    X(INTERNAL, "internal", 500, true, "The broker met a state it does not know")                  \
    X(UPSTREAM, "upstream", 502, true, "A member answered what cannot be used")                    \
    X(UNAVAILABLE, "unavailable", 503, true, "The broker cannot do this at the moment")            \
    X(STORE, "store", 503, true, "The store cannot make this durable")                             \
    X(TIMEOUT, "timeout", 504, true, "The answer did not come in time")

enum error_code {
#define X(constant, name, status, retry, title) ERROR_##constant,
    ERROR_LIST(X)
#undef X
        ERROR_COUNT
};

enum { ERROR_TEXT_MAX = 400, ERROR_PATH_MAX = 200 };

/* line and column count from 1; 0: unknown. pointer is an RFC 6901 JSON pointer, "" when unknown. */
struct error {
    enum error_code code;
    int line;
    int column;
    int width; /* characters of the source that are meant, 0: unknown */
    char file[ERROR_PATH_MAX];
    char pointer[ERROR_PATH_MAX];
    char text[ERROR_TEXT_MAX];     /* what is wrong: no capital, no full stop */
    char expected[ERROR_PATH_MAX]; /* what was expected or what to do; "" when the text says it */
};

/* Sets code and text, clears the place. Returns -1, so that `return error_set(...)` is a path. */
int error_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds what was expected; keeps the rest. Returns -1. */
int error_expect(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "text: " before the text. Returns -1. */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

void error_clear(struct error *err);

const char *error_name(enum error_code code);
int error_status(enum error_code code);
bool error_retry_helps(enum error_code code);
const char *error_title(enum error_code code);

#endif
