/* clusters.c - the member clusters: the common keys and the adapter's own, read as one map.
 *
 * A cluster's map is read by a table put together from four: the common rows of a cluster, those of a
 * place (P: a place may set them again), and the adapter's for both. The same memory holds all four
 * structs one behind the other (struct shape says where). A place is read from its own map, to which
 * what only the cluster says is added: so inheritance is one rule for all keys, also an adapter's. */
#include "config/internal.h"

#include "broker/core/alloc.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 128, ADAPTERS_MAX = 64 };

/* A block of memory for one cluster or place, and the rows that fill it. */
struct shape {
    struct key rows[ROWS_MAX + 1];
    size_t count;
    size_t common, settings; /* offsets of the common struct and of the adapter's */
    size_t size;
};

static size_t aligned(size_t size)
{
    size_t step = _Alignof(max_align_t);
    return (size + step - 1) / step * step;
}

static bool has_row(const struct shape *shape, const char *name)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (strcmp(shape->rows[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

enum which { ALL_ROWS, PLACE_ROWS };

/* Adds rows whose struct lies at this offset; an adapter's row stands before a common one. */
static void add_rows(struct shape *shape, const struct key *rows, size_t offset, enum which which)
{
    for (size_t i = 0; rows && rows[i].name; i++) {
        bool wanted = which == ALL_ROWS || (rows[i].flags & KEY_PLACE);
        if (!wanted || has_row(shape, rows[i].name)) {
            continue;
        }
        assert(shape->count < ROWS_MAX);
        struct key *row = &shape->rows[shape->count++];
        *row = rows[i];
        row->offset += offset;
        row->given += row->given ? offset : 0;
        if (which == PLACE_ROWS) {
            row->flags &= ~KEY_REQUIRED; /* the place must have it, not the cluster */
        }
    }
}

static void shape_of_place(struct shape *shape, const struct adapter_type *type)
{
    memset(shape, 0, sizeof *shape);
    shape->settings = aligned(sizeof(struct place));
    shape->size = shape->settings + aligned(type->place_size);
    add_rows(shape, type->place_rows, shape->settings, ALL_ROWS);
    add_rows(shape, place_keys, 0, ALL_ROWS);
}

/* The rows of a place are read here too, to refuse what is wrong in them; their values are not kept. */
static void shape_of_cluster(struct shape *shape, const struct adapter_type *type, bool has_places)
{
    memset(shape, 0, sizeof *shape);
    shape->settings = aligned(sizeof(struct cluster));
    size_t place = shape->settings + aligned(type->cluster_size);
    size_t place_settings = place + aligned(sizeof(struct place));
    shape->size = place_settings + aligned(type->place_size);
    add_rows(shape, type->cluster_rows, shape->settings, ALL_ROWS);
    add_rows(shape, type->place_rows, place_settings, has_places ? PLACE_ROWS : ALL_ROWS);
    add_rows(shape, cluster_keys, 0, ALL_ROWS);
    add_rows(shape, place_keys, place, has_places ? PLACE_ROWS : ALL_ROWS);
}

/* The part of a block that is not kept: frees what its rows made. */
static void drop_rows(const struct shape *shape, void *block, size_t from, size_t to)
{
    struct key rows[ROWS_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->rows[i].offset >= from && shape->rows[i].offset < to) {
            rows[count++] = shape->rows[i];
        }
    }
    rows[count] = (struct key){.name = NULL};
    keys_free(rows, block);
}

/* The adapter's struct, out of the block into memory of its own; NULL when it has none. */
static void *take_settings(const char *block, size_t offset, size_t size)
{
    if (size == 0) {
        return NULL;
    }
    void *settings = xcalloc(1, size);
    memcpy(settings, block + offset, size);
    return settings;
}

/* ---------------------------------------------------------------------------------- places */

static bool inherits(const struct key *row, const struct value *own, const struct value *cluster,
                     bool has_places)
{
    bool wanted = !has_places || (row->flags & KEY_PLACE);
    return wanted && strcmp(row->name, "labels") != 0 && !value_get(own, row->name) &&
           value_get(cluster, row->name);
}

/* The place's own map, and from the cluster's what the place does not say. Labels add up later. */
static struct value *effective_map(const struct shape *shape, const struct value *own,
                                   const struct value *cluster, bool has_places)
{
    bool is_map = own && own->kind == VALUE_MAP;
    struct value *map = is_map ? value_clone(own) : value_create(VALUE_MAP);
    map->line = own ? own->line : cluster->line;
    map->column = own ? own->column : cluster->column;
    /* only for the pointer in messages; the parent does not know it */
    map->key = own ? xstrdup(own->key) : xstrdup(cluster->key);
    map->parent = own ? own->parent : cluster->parent;
    for (size_t i = 0; i < shape->count; i++) {
        if (inherits(&shape->rows[i], own, cluster, has_places)) {
            value_add_take(map, shape->rows[i].name,
                           value_clone(value_get(cluster, shape->rows[i].name)));
        }
    }
    return map;
}

static int read_place(struct reading *reading, struct cluster *cluster, struct place *place,
                      const struct value *own, const struct value *at, struct error *err)
{
    const struct adapter_type *type = cluster->adapter;
    const struct keys_context context = {reading->federation.timezone, NULL};
    struct shape shape;
    shape_of_place(&shape, type);
    char *block = xcalloc(1, shape.size);
    struct value *map = effective_map(&shape, own, at, own != NULL);
    int status = keys_read(shape.rows, map, block, &context, err);
    struct place named = *place;
    memcpy(place, block, sizeof *place);
    memcpy(place->name, named.name, sizeof place->name);
    place->local_name = named.local_name;
    place->cluster = cluster;
    place->settings = take_settings(block, shape.settings, type->place_size);
    free(block);
    if (status == 0) {
        status = place_finish(reading, place, map, at, err);
    }
    value_destroy(map);
    return status;
}

/* "hpc/gpu"; the local name is its end. */
static int name_place(struct cluster *cluster, struct place *place, const struct value *own,
                      struct error *err)
{
    if (!own) {
        copy_text(place->name, sizeof place->name, cluster->name);
        place->local_name = xstrdup(cluster->name);
        return 0;
    }
    if (!name_is_valid(own->key)) {
        value_key_error(own, err, ERROR_INVALID, "'%.80s' is not the name of a place", own->key);
        return error_expect(err, "letters, digits, '.', '_' and '-', up to 63");
    }
    if (own->kind != VALUE_MAP && value_meaning(own) != VALUE_MEANS_NULL) {
        value_error(own, err, ERROR_INVALID, "the place '%s' must be a map", own->key);
        return error_expect(err, "%s: {} if it has no keys of its own", own->key);
    }
    char *name = xasprintf("%s/%s", cluster->name, own->key);
    copy_text(place->name, sizeof place->name, name);
    free(name);
    place->local_name = xstrdup(own->key);
    return 0;
}

static int check_place_map(const struct value *places, struct error *err)
{
    if (places->kind == VALUE_MAP && places->count > 0 && places->count <= PLACES_MAX) {
        return 0;
    }
    value_error(places, err, ERROR_INVALID, "'places' must be a map of 1 to %d places",
                (int)PLACES_MAX);
    return error_expect(err, "places: {cpu: {...}}, or leave it out for one place");
}

static int read_places(struct reading *reading, struct cluster *cluster, const struct value *at,
                       struct error *err)
{
    const struct value *places = value_get(at, "places");
    if (places && check_place_map(places, err) != 0) {
        return -1;
    }
    size_t count = places ? places->count : 1;
    cluster->places = xcalloc(count, sizeof *cluster->places);
    for (size_t i = 0; i < count; i++) {
        const struct value *own = places ? places->items[i] : NULL;
        if (own && strncmp(own->key, "x-", 2) == 0) {
            continue;
        }
        struct place *place = &cluster->places[cluster->place_count];
        if (name_place(cluster, place, own, err) != 0) {
            return -1;
        }
        cluster->place_count++;
        if (read_place(reading, cluster, place, own, at, err) != 0) {
            return -1;
        }
    }
    if (cluster->place_count == 0) {
        value_error(places, err, ERROR_INVALID, "no place");
        return error_expect(err, "places: {cpu: {...}}, or leave it out for one place");
    }
    return 0;
}

/* -------------------------------------------------------------------------------- clusters */

static size_t adapter_names(const struct adapter_type *const *adapters, const char **names)
{
    size_t count = 0;
    for (; adapters[count] && count < ADAPTERS_MAX; count++) {
        names[count] = adapters[count]->name;
    }
    return count;
}

static const struct adapter_type *adapter_find(const struct adapter_type *const *adapters,
                                               const char *name)
{
    for (; *adapters; adapters++) {
        if (strcmp((*adapters)->name, name) == 0) {
            return *adapters;
        }
    }
    return NULL;
}

static const struct adapter_type *read_adapter(const struct reading *reading,
                                               const struct value *at, struct error *err)
{
    const char *names[ADAPTERS_MAX];
    size_t count = adapter_names(reading->adapters, names);
    const struct value *value = value_get(at, "adapter");
    const char *word = value && value->kind == VALUE_SCALAR ? value->text : "";
    const struct adapter_type *type = adapter_find(reading->adapters, word);
    if (type) {
        return type;
    }
    if (value) {
        value_error(value, err, ERROR_INVALID, "no adapter '%.63s'", word);
    } else {
        value_key_error(at, err, ERROR_INVALID, "'%.63s' does not say its adapter", at->key);
    }
    expect_names(err, word, names, count, "adapters");
    return NULL;
}

static int check_cluster_name(const struct reading *reading, const struct value *at,
                              struct error *err)
{
    if (!name_is_valid(at->key)) {
        value_key_error(at, err, ERROR_INVALID, "'%.80s' is not the name of a cluster", at->key);
        return error_expect(err, "letters, digits, '.', '_' and '-', up to 63");
    }
    if (at->kind != VALUE_MAP) {
        value_error(at, err, ERROR_INVALID, "the cluster '%s' must be a map", at->key);
        return error_expect(err, "%s: {adapter: slurm, ...}", at->key);
    }
    const struct adapter_type *type = adapter_find(reading->adapters, at->key);
    const struct value *adapter = value_get(at, "adapter");
    if (type && adapter && adapter->kind == VALUE_SCALAR && strcmp(adapter->text, at->key) != 0) {
        value_key_error(at, err, ERROR_INVALID, "a cluster called '%s' that is none", at->key);
        return error_expect(err, "another name: `at: {%s: ...}` of a job means the adapter",
                            at->key);
    }
    return 0;
}

/* Whether two trees say the same, in whatever order their keys stand. */
static bool is_same(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind || a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        const struct value *other =
            a->kind == VALUE_MAP ? value_get(b, a->items[i]->key) : b->items[i];
        if (!other || !is_same(a->items[i], other)) {
            return false;
        }
    }
    return a->kind != VALUE_SCALAR || strcmp(a->text, b->text) == 0;
}

/* The same member twice would be counted twice. */
static int check_twice(const struct value *clusters, size_t index, struct error *err)
{
    const struct value *own = clusters->items[index], *connect = value_get(own, "connect");
    for (size_t i = 0; connect && i < index; i++) {
        const struct value *other = value_get(clusters->items[i], "connect");
        if (other && is_same(connect, other)) {
            value_error(connect, err, ERROR_INVALID, "'%.63s' is the same member as '%.63s'",
                        own->key, clusters->items[i]->key);
            return error_expect(err, "one cluster with two places: the first is in line %d",
                                clusters->items[i]->key_line);
        }
    }
    return 0;
}

static int read_cluster(struct reading *reading, struct cluster *cluster, const struct value *at,
                        struct error *err)
{
    const struct keys_context context = {reading->federation.timezone, NULL};
    const struct adapter_type *type = read_adapter(reading, at, err);
    struct shape shape;
    if (!type) {
        return -1;
    }
    shape_of_cluster(&shape, type, value_get(at, "places") != NULL);
    char *block = xcalloc(1, shape.size);
    int status = keys_read(shape.rows, at, block, &context, err);
    drop_rows(&shape, block, shape.settings + aligned(type->cluster_size), shape.size);
    memcpy(cluster, block, sizeof *cluster);
    cluster->name = xstrdup(at->key);
    cluster->adapter = type;
    cluster->settings = take_settings(block, shape.settings, type->cluster_size);
    free(block);
    if (status == 0) {
        status = labels_check(value_get(at, "labels"), err);
    }
    return status == 0 ? read_places(reading, cluster, at, err) : -1;
}

/* Pointers between the parts, once nothing moves any more. */
static int link_places(struct federation *federation, const struct value *clusters,
                       struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < federation->cluster_count; i++) {
        federation->clusters[i].index = (int)i;
        count += federation->clusters[i].place_count;
    }
    if (count > PLACES_MAX) {
        value_error(clusters, err, ERROR_INVALID, "%zu places", count);
        return error_expect(err, "at most %d", (int)PLACES_MAX);
    }
    federation->places = xcalloc(count, sizeof(struct place *));
    for (size_t i = 0; i < federation->cluster_count; i++) {
        for (size_t j = 0; j < federation->clusters[i].place_count; j++) {
            struct place *place = &federation->clusters[i].places[j];
            place->index = (int)federation->place_count;
            federation->places[federation->place_count++] = place;
        }
    }
    return 0;
}

int clusters_read(struct reading *reading, struct error *err)
{
    struct federation *federation = &reading->federation;
    const struct value *clusters = reading->clusters;
    federation->clusters = xcalloc(clusters->count, sizeof *federation->clusters);
    for (size_t i = 0; i < clusters->count; i++) {
        const struct value *at = clusters->items[i];
        if (strncmp(at->key, "x-", 2) == 0) {
            continue;
        }
        if (check_cluster_name(reading, at, err) != 0 || check_twice(clusters, i, err) != 0) {
            return -1;
        }
        struct cluster *cluster = &federation->clusters[federation->cluster_count++];
        if (read_cluster(reading, cluster, at, err) != 0) {
            return -1;
        }
    }
    if (federation->cluster_count == 0) {
        value_error(clusters, err, ERROR_INVALID, "no cluster");
        return error_expect(err, "clusters: {hpc: {adapter: slurm, connect: {via: rest, ...}}}");
    }
    return link_places(federation, clusters, err);
}

static void free_settings(const struct key *rows, void *settings)
{
    if (settings && rows) {
        keys_free(rows, settings);
    }
    free(settings);
}

void clusters_destroy(struct federation *federation)
{
    for (size_t i = 0; i < federation->cluster_count; i++) {
        struct cluster *cluster = &federation->clusters[i];
        for (size_t j = 0; j < cluster->place_count; j++) {
            struct place *place = &cluster->places[j];
            free((char *)(uintptr_t)place->local_name);
            if (place->cluster) {
                free_settings(cluster->adapter->place_rows, place->settings);
                keys_free(place_keys, place);
            }
        }
        free(cluster->places);
        if (cluster->adapter) {
            free_settings(cluster->adapter->cluster_rows, cluster->settings);
            keys_free(cluster_keys, cluster);
        }
        free(cluster->name);
    }
    free(federation->clusters);
    free(federation->places);
}
