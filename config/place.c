/* place.c - what a place takes from elsewhere in the file: labels, its tariff, models of GPU. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>
#include <string.h>

static const struct site *site_find(const struct reading *reading, const char *name)
{
    for (size_t i = 0; i < reading->sites.count; i++) {
        const struct site *site = RULES_AT(reading->sites, struct site, i);
        if (strcmp(site->name, name) == 0) {
            return site;
        }
    }
    return NULL;
}

/* Names of a list whose items begin with `char *name`; the array is the caller's. */
static const char **list_names(const struct list *list, size_t item_size)
{
    const char **names = xcalloc(list->count, sizeof *names);
    for (size_t i = 0; i < list->count; i++) {
        memcpy(&names[i], (const char *)list->items + i * item_size, sizeof names[i]);
    }
    return names;
}

/* The key of the place, or of the cluster that it has it from. */
static const struct value *stands_at(const struct value *at, const char *section, const char *key)
{
    const struct value *map = section ? value_get(at, section) : at;
    const struct value *found = value_get(map, key);
    return found ? found : map;
}

static void labels_add(struct labels *labels, const char *name, const struct texts *values)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].name, name) == 0) {
            return; /* the nearer one wins */
        }
    }
    labels->items = xrealloc(labels->items, labels->count + 1, sizeof *labels->items);
    struct label *label = &labels->items[labels->count++];
    *label = (struct label){.name = xstrdup(name)};
    texts_copy(&label->values, values);
}

static void labels_add_all(struct labels *labels, const struct labels *from)
{
    for (size_t i = 0; i < from->count; i++) {
        labels_add(labels, from->items[i].name, &from->items[i].values);
    }
}

/* The cluster's labels, which were read and checked with the cluster already. */
static int add_cluster_labels(struct place *place, const struct value *cluster, struct error *err)
{
    const struct value *value = value_get(cluster, "labels");
    const struct key rows[] = {{.name = "labels", .type = KEY_LABELS}, {.name = NULL}};
    struct labels labels = {NULL, 0};
    if (!value) {
        return 0;
    }
    int status = keys_read_one(&rows[0], value, &labels, NULL, err);
    if (status == 0) {
        labels_add_all(&place->labels, &labels);
    }
    keys_free(rows, &labels);
    return status;
}

static int find_tariff(const struct reading *reading, struct place *place, const struct value *at,
                       struct error *err)
{
    const char *name = place->power.tariff;
    for (size_t i = 0; name && i < reading->tariffs.count; i++) {
        const struct tariff *tariff = RULES_AT(reading->tariffs, struct tariff, i);
        if (strcmp(tariff->name, name) == 0) {
            place->electricity = tariff->price;
            return 0;
        }
    }
    if (!name) {
        return 0;
    }
    const char **names = list_names(&reading->tariffs, sizeof(struct tariff));
    value_error(stands_at(at, "power", "tariff"), err, ERROR_INVALID, "no tariff '%.63s'", name);
    expect_names(err, name, names, reading->tariffs.count, "tariffs under `electricity`");
    free(names);
    return -1;
}

static int check_gpus(const struct reading *reading, const struct place *place,
                      const struct value *at, struct error *err)
{
    const struct federation *federation = &reading->federation;
    for (size_t i = 0; i < place->gpus.count; i++) {
        const char *name = RULES_AT(place->gpus, struct gpu_name, i)->name;
        if (!gpu_find(federation, name)) {
            return gpu_unknown(federation, stands_at(at, "gpus", name), name, true, err);
        }
    }
    for (size_t i = 0; i < place->power.gpus.count; i++) {
        const char *name = RULES_AT(place->power.gpus, struct gpu_power, i)->name;
        if (!gpu_find(federation, name)) {
            const struct value *map = value_get(value_get(at, "power"), "gpu");
            return gpu_unknown(federation, stands_at(map, NULL, name), name, true, err);
        }
    }
    return 0;
}

static int check_nodes(const struct reading *reading, const struct place *place,
                       const struct value *at, struct error *err)
{
    const struct federation *federation = &reading->federation;
    for (size_t i = 0; i < place->nodes.count; i++) {
        const struct node_shape *node = RULES_AT(place->nodes, struct node_shape, i);
        const struct value *map = value_get(value_get(at, "nodes"), node->name);
        if (node->gpu && !gpu_find(federation, node->gpu)) {
            return gpu_unknown(federation, stands_at(map, NULL, "gpu"), node->gpu, false, err);
        }
        if (!node->gpu != !node->gpus) {
            value_key_error(map, err, ERROR_INVALID, "'%.63s' has %s", node->name,
                            node->gpu ? "a GPU model, but no number of GPUs"
                                      : "GPUs, but of no model");
            return error_expect(err, "both `gpus: 1` and `gpu: MODEL`, or neither");
        }
    }
    return 0;
}

int site_check(const struct reading *reading, const struct value *at, const char *name,
               struct error *err)
{
    if (site_find(reading, name)) {
        return 0;
    }
    const char **names = list_names(&reading->sites, sizeof(struct site));
    value_error(at, err, ERROR_INVALID, "no site '%.63s'", name);
    expect_names(err, name, names, reading->sites.count, "sites");
    free(names);
    return -1;
}

int labels_check(const struct value *labels, struct error *err)
{
    static const char *const taken[] = {"places", "kind", "adapter"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const struct value *item = value_get(labels, taken[i]);
        if (item) {
            value_key_error(item, err, ERROR_INVALID, "a label cannot be called '%s'", taken[i]);
            return error_expect(err, "another name: `require: {%s: ...}` means something else",
                                taken[i]);
        }
    }
    return 0;
}

int place_finish(const struct reading *reading, struct place *place, const struct value *at,
                 const struct value *cluster, struct error *err)
{
    if (labels_check(value_get(at, "labels"), err) != 0 ||
        (place->site && site_check(reading, stands_at(at, NULL, "site"), place->site, err) != 0) ||
        add_cluster_labels(place, cluster, err) != 0) {
        return -1;
    }
    if (place->site) {
        labels_add_all(&place->labels, &site_find(reading, place->site)->labels);
    }
    if (find_tariff(reading, place, at, err) != 0 || check_gpus(reading, place, at, err) != 0) {
        return -1;
    }
    return check_nodes(reading, place, at, err);
}
