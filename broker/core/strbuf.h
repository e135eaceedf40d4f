/* strbuf.h - a growing text with a hard maximum. */
#ifndef BROKER_CORE_STRBUF_H
#define BROKER_CORE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *text; /* NUL-terminated once something was added; NULL before */
    size_t length, room, max;
    bool full; /* something did not fit: the text ends before it */
};

void strbuf_init(struct strbuf *buf, size_t max);
void strbuf_fini(struct strbuf *buf);
void strbuf_add(struct strbuf *buf, const char *bytes, size_t length);
void strbuf_puts(struct strbuf *buf, const char *text);
void strbuf_printf(struct strbuf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Gives the text away; never NULL. The buffer is empty afterwards. */
char *strbuf_take(struct strbuf *buf);

#endif
