#include "broker/core/error.h"

#include "broker/core/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int status;
    bool retry;
    const char *title;
} error_table[ERROR_COUNT] = {
#define X(constant, name, status, retry, title) [ERROR_##constant] = {name, status, retry, title},
    ERROR_LIST(X)
#undef X
};

int error_set(struct error *err, enum error_code code, const char *format, ...)
{
    char text[2 * ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    error_clear(err); /* after the arguments: they may be of this very error */
    err->code = code;
    copy_text(err->text, sizeof err->text, text); /* never cuts a character in two */
    return -1;
}

int error_expect(struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->expected, sizeof err->expected, format, args);
    va_end(args);
    return -1;
}

int error_prefix(struct error *err, const char *format, ...)
{
    char old[ERROR_TEXT_MAX];
    (void)snprintf(old, sizeof old, "%s", err->text);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof err->text) {
        return -1;
    }
    (void)snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", old);
    return -1;
}

void error_clear(struct error *err)
{
    memset(err, 0, sizeof *err);
}

const char *error_name(enum error_code code)
{
    return error_table[code].name;
}

int error_status(enum error_code code)
{
    return error_table[code].status;
}

bool error_retry_helps(enum error_code code)
{
    return error_table[code].retry;
}

const char *error_title(enum error_code code)
{
    return error_table[code].title;
}
