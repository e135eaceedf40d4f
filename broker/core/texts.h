/* texts.h - a list of texts: copy, free, search, to JSON and back. */
#ifndef BROKER_CORE_TEXTS_H
#define BROKER_CORE_TEXTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct texts { /* owned */
    char **items;
    size_t count;
};

void texts_fini(struct texts *texts);
void texts_copy(struct texts *out, const struct texts *from);
void texts_add(struct texts *texts, const char *text);

bool texts_contain(const struct texts *texts, const char *word);
bool texts_match(const struct texts *patterns, const char *word); /* any glob fits; empty: false */

json_t *texts_to_json(const struct texts *texts);
/* Of a list of texts; anything else in it is -1, NULL is the empty list. */
int texts_from_json(const json_t *array, struct texts *out);

#endif
