/* pairs.c - maps of names to single values: {USD: 0.92 EUR}, {a100-80: "gpu:a100"}. */
#include "config/internal.h"

#include "broker/core/alloc.h"

#include <stdlib.h>

enum { PAIRS_MAX = 1000 };

static int check_shape(const struct value *map, const struct key *row, struct error *err)
{
    if (map->kind != VALUE_MAP) {
        value_error(map, err, ERROR_INVALID, "'%s' must be a map", row->name);
        return error_expect(err, "a map: each name with its value");
    }
    if (map->count > PAIRS_MAX) {
        value_error(map, err, ERROR_INVALID, "'%s' has %zu entries", row->name, map->count);
        return error_expect(err, "at most %d", (int)PAIRS_MAX);
    }
    return 0;
}

int pairs_read(const struct value *map, struct list *list, size_t item_size,
               const struct key *value_row, const struct keys_context *context, struct error *err)
{
    if (check_shape(map, value_row, err) != 0) {
        return -1;
    }
    list->items = xcalloc(map->count, item_size);
    for (size_t i = 0; i < map->count; i++) {
        const struct value *item = map->items[i];
        char *base = (char *)list->items + list->count * item_size;
        if (!name_is_valid(item->key)) {
            value_key_error(item, err, ERROR_INVALID, "'%.80s' is not a name", item->key);
            return error_expect(err, "letters, digits, '.', '_' and '-', up to 63");
        }
        struct key row = *value_row;
        row.name = item->key;
        *(char **)(void *)base = xstrdup(item->key);
        list->count++;
        if (keys_read_one(&row, item, base + row.offset, context, err) != 0) {
            return -1;
        }
    }
    return 0;
}

void pairs_free(struct list *list, size_t item_size, const struct key *value_row)
{
    const struct key rows[] = {*value_row, {.name = NULL}};
    for (size_t i = 0; i < list->count; i++) {
        char *base = (char *)list->items + i * item_size;
        keys_free(rows, base);
        free(*(char **)(void *)base);
    }
    free(list->items);
    *list = (struct list){NULL, 0};
}
