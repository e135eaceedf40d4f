/* internal.h - what the files of config share. For config/ alone. */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include "config/config.h"

/* ------------------------------------------------------------------------------------- pairs.c */

/* A map of names to single values, as a list of structs that begin with `char *name`. value_row says
 * the type and the offset of the value in the item; its name is what messages call the map. */
int pairs_read(const struct value *map, struct list *list, size_t item_size,
               const struct key *value_row, const struct keys_context *context, struct error *err);
void pairs_free(struct list *list, size_t item_size, const struct key *value_row);

/* ---------------------------------------------------------------------------------- names.c */

enum severity { SEVERITY_ERROR, SEVERITY_WARNING };

/* Where mistakes go: the first is kept, or all are printed. */
struct findings {
    void (*found)(void *arg, enum severity severity, const struct error *err);
    void *arg;
    int errors, warnings;
};
void findings_add(struct findings *findings, enum severity severity, const struct error *err);

/* Items of a list or map; a map alone, or any value alone, counts as a list of one. */
size_t value_item_count(const struct value *value);
const struct value *value_item(const struct value *value, size_t i);

/* "did you mean 'x'?" and what there is, into err. */
void expect_names(struct error *err, const char *word, const char *const *names, size_t count,
                  const char *what);

/* Whether each text names a place; those that do not are findings. */
void check_places(const struct value *texts, const struct federation *federation,
                  struct findings *findings);

/* ------------------------------------------------------------------------------ federation.c */

/* What tieline.yaml holds; the federation is its first member and lives as long. */
struct site {
    char *name;
    struct labels labels;
};
struct tariff {
    char *name;
    int source;
    struct money price;
};
struct reading {
    struct federation federation;
    int64_t version;
    struct list sites;            /* struct site */
    struct list tariffs;          /* struct tariff */
    struct list gpus;             /* struct gpu_model, as written */
    const struct value *clusters; /* borrowed while reading */
    const struct adapter_type *const *adapters;
};
extern const struct key federation_keys[], cluster_keys[], place_keys[];

/* gpus.c: the built-in models and those of the file, into the federation. */
int gpus_read(struct reading *reading, const struct value *root, struct error *err);
const struct gpu_model *gpu_find(const struct federation *federation, const char *name);
int gpu_unknown(const struct federation *federation, const struct value *at, const char *name,
                bool is_key, struct error *err);
void gpus_print(FILE *out);

/* clusters.c: all clusters of the file, with their places. */
int clusters_read(struct reading *reading, struct error *err);
void clusters_destroy(struct federation *federation);

/* place.c: a place whose own keys were read: names, labels, prices. at: its map. */
int place_finish(const struct reading *reading, struct place *place, const struct value *at,
                 const struct value *cluster, struct error *err);
int site_check(const struct reading *reading, const struct value *at, const char *name,
               struct error *err);
int labels_check(const struct value *labels, struct error *err);

/* ---------------------------------------------------------------------------------- policy */

/* A policy that is being read. rules is whole enough to be used even after errors. */
struct policy {
    const struct value *root; /* NULL: an empty document */
    const struct federation *federation;
    struct rules *rules;
    struct findings *findings;
};
extern const struct key policy_keys[];

/* policy_defaults.c: classes, bursts and routes that the policy leaves to us. */
void policy_fill(struct policy *policy);
/* policy_names.c: everything that names something else. */
void policy_check_names(struct policy *policy);
/* policy_checks.c: everything else that a table cannot say. */
void policy_check_sense(struct policy *policy);

/* policy.c: reads, fills and checks; findings get all mistakes. root is borrowed. Never NULL. */
struct rules *policy_read(const char *text, const struct value *root,
                          const struct federation *federation, struct findings *findings);

/* ------------------------------------------------------------------------------- embedded.c */

extern const char embedded_federation[];
const char *embedded_policy(const char *name); /* NULL: the built-in one; unknown: NULL */

#endif
