/* spec_at.c - `at`: what changes on an adapter, a cluster or a place.
 *
 * Overrides are merged into the source, in the order adapter, cluster, place, and the result is read
 * by the same table as any job. A submit checks each chain of overrides that some place could meet, so
 * that spec_at() finds nothing wrong later. */
#include "broker/core/spec_rows.h"

#include "broker/core/adapter.h"

#include <string.h>

enum { CHAIN_MAX = 3 };

struct chain { /* overrides that apply together, the least specific first */
    const struct override *items[CHAIN_MAX];
    size_t count;
};

static bool is_null(const struct value *value)
{
    return value_meaning(value) == VALUE_MEANS_NULL;
}

static struct value *merge(const struct value *base, const struct value *over)
{
    struct value *merged = value_create(VALUE_MAP);
    for (size_t i = 0; i < base->count; i++) {
        const struct value *old = base->items[i];
        const struct value *new = value_get(over, old->key);
        if (!new) {
            value_add_take(merged, old->key, value_clone(old));
        } else if (new->kind == VALUE_MAP && old->kind == VALUE_MAP) {
            value_add_take(merged, old->key, merge(old, new));
        } else if (!is_null(new)) {
            value_add_take(merged, old->key, value_clone(new));
        }
    }
    for (size_t i = 0; i < over->count; i++) {
        const struct value *new = over->items[i];
        if (!value_get(base, new->key) && !is_null(new)) {
            value_add_take(merged, new->key, value_clone(new));
        }
    }
    return merged;
}

static struct value *without(const struct value *map, const char *key)
{
    struct value *copy = value_create(VALUE_MAP);
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->items[i]->key, key) != 0) {
            value_add_take(copy, map->items[i]->key, value_clone(map->items[i]));
        }
    }
    return copy;
}

static bool gives(const struct value *over, const char *key)
{
    const struct value *item = value_get(over, key);
    return item && !is_null(item);
}

/* Replaces *source by what it is under this override. */
static void override_source(struct value **source, const struct value *over)
{
    static const char *const removed[][2] = {{"run", "command"}, {"command", "run"}};
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++) {
        if (gives(over, removed[i][0]) && !gives(over, removed[i][1])) {
            struct value *rest = without(*source, removed[i][1]);
            value_destroy(*source);
            *source = rest;
        }
    }
    struct value *change = without(over, "skip");
    struct value *merged = merge(*source, change);
    value_destroy(change);
    value_destroy(*source);
    *source = merged;
}

static bool chain_skips(const struct chain *chain)
{
    bool skip = false;
    for (size_t i = 0; i < chain->count; i++) {
        const struct value *value = value_get(chain->items[i]->value, "skip");
        if (value) {
            skip = value_meaning(value) == VALUE_MEANS_TRUE;
        }
    }
    return skip;
}

static int resolve(const struct spec *spec, const struct chain *chain, struct spec **out,
                   struct error *err)
{
    struct value *source = without(spec->source, "at");
    struct spec *resolved;
    for (size_t i = 0; i < chain->count; i++) {
        override_source(&source, chain->items[i]->value);
    }
    if (spec_read_take(source, &resolved, err) < 0) {
        return -1;
    }
    spec_defaults_copy(&resolved->defaults, &spec->defaults);
    spec_fill(resolved);
    resolved->skip = chain_skips(chain);
    if (spec_check(resolved, err) < 0) {
        spec_unref(resolved);
        return -1;
    }
    *out = resolved;
    return 0;
}

/* Adds the override of this name, once: a cluster may be called like its adapter or its only place. */
static void chain_add(struct chain *chain, const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->at.count; i++) {
        const struct override *candidate = &((const struct override *)spec->at.items)[i];
        if (strcmp(candidate->name, name) != 0) {
            continue;
        }
        for (size_t j = 0; j < chain->count; j++) {
            if (chain->items[j] == candidate) {
                return;
            }
        }
        chain->items[chain->count++] = candidate;
    }
}

static struct chain chain_of_cluster(const struct spec *spec, const struct cluster *cluster)
{
    struct chain chain = {.count = 0};
    chain_add(&chain, spec, cluster->adapter->name);
    chain_add(&chain, spec, cluster->name);
    return chain;
}

static int check_chain(const struct spec *spec, const struct chain *chain, struct error *err)
{
    struct spec *resolved;
    if (resolve(spec, chain, &resolved, err) < 0) {
        const struct override *last = chain->items[chain->count - 1];
        (void)value_locate(last->value, err);
        return error_prefix(err, "at '%s'", last->name);
    }
    spec_unref(resolved);
    return 0;
}

static bool is_adapter(const struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->cluster_count; i++) {
        if (strcmp(federation->clusters[i].adapter->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int unknown_name(const struct override *override, const struct federation *federation,
                        struct error *err)
{
    const char *near = federation_nearest(federation, override->name, true);
    (void)value_key_error(override->value, err, ERROR_INVALID,
                          "no adapter, cluster or place '%.128s'", override->name);
    (void)error_expect(err, near ? "did you mean '%s'?" : "a name that `tieline places` shows",
                       near);
    return -1;
}

static int check_override(const struct spec *spec, const struct override *override,
                          const struct federation *federation, struct error *err)
{
    struct chain chain = {.items = {override}, .count = 1};
    if (!federation) {
        return check_chain(spec, &chain, err);
    }
    const struct cluster *cluster = federation_cluster(federation, override->name);
    const struct place *place = federation_place(federation, override->name);
    if (!cluster && !place && !is_adapter(federation, override->name)) {
        return unknown_name(override, federation, err);
    }
    if (cluster || place) {
        chain = chain_of_cluster(spec, cluster ? cluster : place->cluster);
        chain_add(&chain, spec, override->name);
    }
    return check_chain(spec, &chain, err);
}

int spec_check_at(const struct spec *spec, const struct federation *federation, struct error *err)
{
    for (size_t i = 0; i < spec->at.count; i++) {
        const struct override *override = &((const struct override *)spec->at.items)[i];
        if (check_override(spec, override, federation, err) < 0) {
            return -1;
        }
    }
    return 0;
}

struct spec *spec_at(struct spec *spec, const struct place *place)
{
    struct chain chain = chain_of_cluster(spec, place->cluster);
    chain_add(&chain, spec, place->name);
    if (chain.count == 0) {
        return spec_ref(spec);
    }
    struct error err;
    struct spec *resolved;
    if (resolve(spec, &chain, &resolved, &err) == 0) {
        return resolved;
    }
    struct chain none = {.count = 0};
    if (resolve(spec, &none, &resolved, &err) < 0) {
        return spec_ref(spec);
    }
    resolved->skip = true;
    return resolved;
}
