/* map.h - from short text to a pointer; for look-ups only: nothing iterates over it. */
#ifndef BROKER_CORE_MAP_H
#define BROKER_CORE_MAP_H

#include <stddef.h>

struct map {
    struct map_slot *slots;
    size_t room, count;
};

void map_init(struct map *map);
void map_fini(struct map *map);
/* The key is borrowed: it must live as long as its entry. Replaces what was there. */
void map_put(struct map *map, const char *key, void *value);
void *map_get(const struct map *map, const char *key); /* NULL: absent */
void map_remove(struct map *map, const char *key);

#endif
