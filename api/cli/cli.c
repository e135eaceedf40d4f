#include "api/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 1024 };

void cli_say(const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fflush(stdout); /* what the job wrote comes first */
    (void)fprintf(stderr, "tieline: %s\n", text);
}

char *cli_place(const struct error *err, char *out, size_t size)
{
    out[0] = '\0';
    if (err->file[0] && err->line) {
        (void)snprintf(out, size, "%s:%d:%d: ", err->file, err->line, err->column);
    } else if (err->line) {
        (void)snprintf(out, size, "%d:%d: ", err->line, err->column);
    } else if (err->pointer[0]) {
        (void)snprintf(out, size, "%s: ", err->pointer);
    }
    return out;
}

int cli_fail(const struct error *err)
{
    char place[LINE_MAX_BYTES];
    cli_say("%s%s", cli_place(err, place, sizeof place), err->text);
    if (err->expected[0]) {
        (void)fprintf(stderr, "         %s\n", err->expected);
    }
    return 1;
}
