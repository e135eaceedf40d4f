/* texts.h - what is done with lists of texts: copy, free, to JSON and back. */
#ifndef BROKER_CORE_TEXTS_H
#define BROKER_CORE_TEXTS_H

#include "broker/core/keys.h"

#include <jansson.h>

void texts_fini(struct texts *texts);
void texts_copy(struct texts *out, const struct texts *from);
void texts_add(struct texts *texts, const char *text);

json_t *texts_to_json(const struct texts *texts);
/* Of a list of texts; anything else in it is -1, NULL is the empty list. */
int texts_from_json(const json_t *array, struct texts *out);

#endif
