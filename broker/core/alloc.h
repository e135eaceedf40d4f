/* alloc.h - allocation that cannot fail: exhausted memory ends the process, state is on disk. */
#ifndef BROKER_CORE_ALLOC_H
#define BROKER_CORE_ALLOC_H

#include <stddef.h>

void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t count, size_t size);
char *xstrdup(const char *text); /* NULL gives NULL */
char *xstrndup(const char *text, size_t length);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Copies text into an array of this size, cut between two characters if need be, always
 * ended. NULL counts as "". */
void copy_text(char *out, size_t size, const char *text);

#endif
