#include "broker/core/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory)
{
    if (!memory) {
        (void)fputs("tieline: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t count, size_t size)
{
    return checked(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *xstrdup(const char *text)
{
    return text ? checked(strdup(text)) : NULL;
}

char *xstrndup(const char *text, size_t length)
{
    return checked(strndup(text, length));
}

char *xasprintf(const char *format, ...)
{
    char *out = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&out, format, args);
    va_end(args);
    return checked(length < 0 ? NULL : out);
}

void copy_text(char *out, size_t size, const char *text)
{
    size_t length = text ? strnlen(text, size - 1) : 0;
    /* A cut never leaves half a character: the rest would be no UTF-8, and no JSON. */
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
        length--;
    }
    memcpy(out, text ? text : "", length);
    out[length] = '\0';
}
