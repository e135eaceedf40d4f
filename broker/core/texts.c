#include "broker/core/texts.h"

#include "broker/core/alloc.h"
#include "broker/core/units.h"

#include <stdlib.h>
#include <string.h>

void texts_fini(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
    *texts = (struct texts){NULL, 0};
}

void texts_add(struct texts *texts, const char *text)
{
    texts->items = xrealloc(texts->items, texts->count + 1, sizeof *texts->items);
    texts->items[texts->count++] = xstrdup(text);
}

void texts_copy(struct texts *out, const struct texts *from)
{
    *out = (struct texts){NULL, 0};
    for (size_t i = 0; i < from->count; i++) {
        texts_add(out, from->items[i]);
    }
}

bool texts_contain(const struct texts *texts, const char *word)
{
    for (size_t i = 0; i < texts->count; i++) {
        if (strcmp(texts->items[i], word) == 0) {
            return true;
        }
    }
    return false;
}

bool texts_match(const struct texts *patterns, const char *word)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (glob_match(patterns->items[i], word)) {
            return true;
        }
    }
    return false;
}

json_t *texts_to_json(const struct texts *texts)
{
    json_t *array = json_array();
    for (size_t i = 0; i < texts->count; i++) {
        (void)json_array_append_new(array, json_string(texts->items[i]));
    }
    return array;
}

int texts_from_json(const json_t *array, struct texts *out)
{
    struct texts read = {NULL, 0};
    if (array && !json_is_array(array)) {
        return -1;
    }
    for (size_t i = 0; i < json_array_size(array); i++) {
        const char *text = json_string_value(json_array_get(array, i));
        if (!text) {
            texts_fini(&read);
            return -1;
        }
        texts_add(&read, text);
    }
    *out = read;
    return 0;
}
