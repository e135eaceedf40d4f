#include "broker/core/map.h"

#include "broker/core/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Open addressing with linear probing; deletion shifts back, so there are no tombstones. */
struct map_slot {
    const char *key;
    void *value;
};

static size_t hash(const char *key)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *key; key++) {
        h = (h ^ (unsigned char)*key) * UINT64_C(1099511628211);
    }
    return (size_t)(h ^ (h >> 32));
}

static size_t find(const struct map *map, const char *key)
{
    size_t i = hash(key) & (map->room - 1);
    while (map->slots[i].key && strcmp(map->slots[i].key, key) != 0) {
        i = (i + 1) & (map->room - 1);
    }
    return i;
}

static void grow(struct map *map)
{
    struct map old = *map;
    map->room = old.room ? old.room * 2 : 64;
    map->slots = xcalloc(map->room, sizeof *map->slots);
    for (size_t i = 0; i < old.room; i++) {
        if (old.slots[i].key) {
            map->slots[find(map, old.slots[i].key)] = old.slots[i];
        }
    }
    free(old.slots);
}

void map_init(struct map *map)
{
    memset(map, 0, sizeof *map);
}

void map_fini(struct map *map)
{
    free(map->slots);
    map_init(map);
}

void map_put(struct map *map, const char *key, void *value)
{
    if ((map->count + 1) * 2 > map->room) {
        grow(map);
    }
    size_t i = find(map, key);
    map->count += map->slots[i].key ? 0 : 1;
    map->slots[i] = (struct map_slot){key, value};
}

void *map_get(const struct map *map, const char *key)
{
    return map->room ? map->slots[find(map, key)].value : NULL;
}

void map_remove(struct map *map, const char *key)
{
    if (!map->room) {
        return;
    }
    size_t hole = find(map, key);
    if (!map->slots[hole].key) {
        return;
    }
    map->count--;
    for (size_t i = (hole + 1) & (map->room - 1); map->slots[i].key;
         i = (i + 1) & (map->room - 1)) {
        size_t home = hash(map->slots[i].key) & (map->room - 1);
        if (((i - home) & (map->room - 1)) >= ((i - hole) & (map->room - 1))) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole] = (struct map_slot){NULL, NULL};
}
