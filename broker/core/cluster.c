/* cluster.c - finding clusters and places by name. */
#include "broker/core/cluster.h"

#include <string.h>

const char *const place_kind_words[] = {
#define X(constant, word, rented) [PLACE_##constant] = (word),
    PLACE_KIND_LIST(X)
#undef X
        [PLACE_KIND_COUNT] = NULL};

static const struct cluster *find_cluster(const struct federation *federation, const char *name,
                                          size_t length)
{
    for (size_t i = 0; i < federation->cluster_count; i++) {
        const char *candidate = federation->clusters[i].name;
        if (strncmp(candidate, name, length) == 0 && candidate[length] == '\0') {
            return &federation->clusters[i];
        }
    }
    return NULL;
}

const struct cluster *federation_cluster(const struct federation *federation, const char *name)
{
    return find_cluster(federation, name, strlen(name));
}

const struct place *federation_place(const struct federation *federation, const char *name)
{
    const struct cluster *cluster = find_cluster(federation, name, strcspn(name, "/"));
    if (!cluster) {
        return NULL;
    }
    if (!strchr(name, '/')) {
        return cluster->place_count == 1 ? &cluster->places[0] : NULL;
    }
    for (size_t i = 0; i < cluster->place_count; i++) {
        if (strcmp(cluster->places[i].name, name) == 0) {
            return &cluster->places[i];
        }
    }
    return NULL;
}

bool place_is_named(const struct place *place, const char *pattern)
{
    return glob_match(pattern, place->name) || glob_match(pattern, place->cluster->name);
}
