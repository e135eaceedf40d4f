#include "broker/core/strbuf.h"

#include "broker/core/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void strbuf_init(struct strbuf *buf, size_t max)
{
    memset(buf, 0, sizeof *buf);
    buf->max = max;
}

void strbuf_fini(struct strbuf *buf)
{
    free(buf->text);
    strbuf_init(buf, buf->max);
}

static bool reserve(struct strbuf *buf, size_t more)
{
    size_t need = buf->length + more + 1;
    if (more > buf->max || need - 1 > buf->max) {
        buf->full = true;
        return false;
    }
    if (need > buf->room) {
        buf->room = need < 256 ? 256 : need * 2;
        buf->text = xrealloc(buf->text, buf->room, 1);
    }
    return true;
}

void strbuf_add(struct strbuf *buf, const char *bytes, size_t length)
{
    if (!reserve(buf, length)) {
        return;
    }
    if (length) {
        memcpy(buf->text + buf->length, bytes, length);
    }
    buf->length += length;
    buf->text[buf->length] = '\0';
}

void strbuf_puts(struct strbuf *buf, const char *text)
{
    strbuf_add(buf, text, strlen(text));
}

void strbuf_printf(struct strbuf *buf, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length >= 0) {
        strbuf_add(buf, text, (size_t)length);
        free(text);
    }
}

char *strbuf_take(struct strbuf *buf)
{
    char *text = buf->text ? buf->text : xstrdup("");
    buf->text = NULL;
    buf->length = buf->room = 0;
    return text;
}
