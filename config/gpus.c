/* gpus.c - GPU models: the common ones are built in, tieline.yaml changes them or adds to them. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>
#include <string.h>

enum { GPUS_MAX = 1000 };
#define GIB (INT64_C(1) << 30)
#define SPEED_ONE INT64_C(1000)

/* Sorted by name. Speed is not built in: it is measured at a site. */
static const struct {
    const char *name;
    int64_t gib;
} built_in[] = {
    {"a10", 24},      {"a100-40", 40}, {"a100-80", 80},    {"a10g", 24},     {"a16", 16},
    {"a2", 16},       {"a30", 24},     {"a40", 48},        {"a4000", 16},    {"a5000", 24},
    {"a6000", 48},    {"b200", 180},   {"gh200", 96},      {"h100", 80},     {"h100-94", 94},
    {"h200", 141},    {"l4", 24},      {"l40", 48},        {"l40s", 48},     {"mi210", 64},
    {"mi250", 128},   {"mi300x", 192}, {"rtx-2080ti", 11}, {"rtx-3090", 24}, {"rtx-4090", 24},
    {"rtx-5090", 32}, {"t4", 16},      {"v100-16", 16},    {"v100-32", 32},
};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

static int compare(const void *a, const void *b)
{
    const struct gpu_model *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static struct gpu_model *find(struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->gpu_count; i++) {
        if (strcmp(federation->gpus[i].name, name) == 0) {
            return &federation->gpus[i];
        }
    }
    return NULL;
}

/* What the file says of one model, over what is built in. */
static int merge(struct federation *federation, const struct gpu_model *written,
                 const struct value *at, struct error *err)
{
    struct gpu_model *model = find(federation, written->name);
    if (!model && written->memory == 0) {
        value_key_error(at, err, ERROR_INVALID, "the memory of '%.63s' is not known",
                        written->name);
        return error_expect(err, "write %.63s: {memory: 24GiB}", written->name);
    }
    if (!model) {
        model = &federation->gpus[federation->gpu_count++];
        model->name = xstrdup(written->name);
        model->speed = SPEED_ONE;
    }
    model->memory = written->memory ? written->memory : model->memory;
    model->speed = written->speed ? written->speed : model->speed;
    return 0;
}

int gpus_read(struct reading *reading, const struct value *root, struct error *err)
{
    struct federation *federation = &reading->federation;
    const struct value *map = value_get(root, "gpus");
    federation->gpus = xcalloc(BUILT_IN + reading->gpus.count, sizeof *federation->gpus);
    for (size_t i = 0; i < BUILT_IN; i++) {
        federation->gpus[i] =
            (struct gpu_model){xstrdup(built_in[i].name), built_in[i].gib * GIB, SPEED_ONE};
    }
    federation->gpu_count = BUILT_IN;
    for (size_t i = 0; i < reading->gpus.count; i++) {
        const struct gpu_model *written = RULES_AT(reading->gpus, struct gpu_model, i);
        if (merge(federation, written, value_get(map, written->name), err) != 0) {
            return -1;
        }
    }
    qsort(federation->gpus, federation->gpu_count, sizeof *federation->gpus, compare);
    return 0;
}

const struct gpu_model *gpu_find(const struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->gpu_count; i++) {
        if (strcmp(federation->gpus[i].name, name) == 0) {
            return &federation->gpus[i];
        }
    }
    return NULL;
}

int gpu_unknown(const struct federation *federation, const struct value *at, const char *name,
                bool is_key, struct error *err)
{
    const char **names = xcalloc(federation->gpu_count, sizeof *names);
    for (size_t i = 0; i < federation->gpu_count; i++) {
        names[i] = federation->gpus[i].name;
    }
    const char *nearest = nearest_word(name, names, federation->gpu_count);
    free(names);
    if (is_key) {
        value_key_error(at, err, ERROR_INVALID, "no GPU model '%.63s'", name);
    } else {
        value_error(at, err, ERROR_INVALID, "no GPU model '%.63s'", name);
    }
    return nearest ? error_expect(err, "did you mean '%s'? Others are added under `gpus`", nearest)
                   : error_expect(err, "add it under `gpus`: %.63s: {memory: 24GiB}", name);
}

void gpus_print(FILE *out)
{
    for (size_t i = 0; i < BUILT_IN; i++) {
        (void)fprintf(out, "%s`%s`", i ? " " : "", built_in[i].name);
    }
}
