/* place_select.c - whether a selector of the policy or of a job fits a place; the nearest name. Apart
 * from cluster.c, since it must see what an adapter is called. */
#include "broker/core/cluster.h"

#include "broker/core/adapter.h"
#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Whether any of the patterns names the place. */
static bool any_names(const struct texts *patterns, const struct place *place)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (place_is_named(place, patterns->items[i])) {
            return true;
        }
    }
    return false;
}

/* A place may carry several values of one label: any of them will do. */
static bool label_fits(const struct labels *labels, const struct label *wanted)
{
    for (size_t i = 0; i < labels->count; i++) {
        const struct label *label = &labels->items[i];
        for (size_t v = 0; strcmp(label->name, wanted->name) == 0 && v < label->values.count; v++) {
            if (texts_match(&wanted->values, label->values.items[v])) {
                return true;
            }
        }
    }
    return false;
}

static bool place_fits(const struct place *place, const struct label *wanted)
{
    if (strcmp(wanted->name, "places") == 0) {
        return any_names(&wanted->values, place);
    }
    if (strcmp(wanted->name, "kind") == 0) {
        return texts_match(&wanted->values, place_kind_words[place->kind]);
    }
    if (strcmp(wanted->name, "adapter") == 0) {
        return texts_match(&wanted->values, place->cluster->adapter->name);
    }
    return label_fits(&place->labels, wanted);
}

const char *federation_nearest(const struct federation *federation, const char *word, bool adapters)
{
    size_t room = federation->cluster_count * 2 + federation->place_count, count = 0;
    const char **names = xcalloc(room, sizeof *names);
    for (size_t i = 0; i < federation->cluster_count; i++) {
        names[count++] = federation->clusters[i].name;
        if (adapters) {
            names[count++] = federation->clusters[i].adapter->name;
        }
    }
    for (size_t i = 0; i < federation->place_count; i++) {
        names[count++] = federation->places[i]->name;
    }
    const char *nearest = nearest_word(word, names, count);
    free(names);
    return nearest;
}

const struct label *place_unselected(const struct place *place, const struct labels *selector)
{
    for (size_t i = 0; i < selector->count; i++) {
        if (!place_fits(place, &selector->items[i])) {
            return &selector->items[i];
        }
    }
    return NULL;
}

bool place_is_selected(const struct place *place, const struct labels *selector)
{
    return !place_unselected(place, selector);
}
