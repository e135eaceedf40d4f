#include "broker/context.h"

#include <stdarg.h>
#include <stdio.h>

void context_log(const struct context *context, const char *level, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    context->log(level, line);
}
