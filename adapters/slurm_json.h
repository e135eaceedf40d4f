/* slurm_json.h - reading one value in whichever form a version of slurmrestd writes it. */
#ifndef ADAPTERS_SLURM_JSON_H
#define ADAPTERS_SLURM_JSON_H

#include <jansson.h>
#include <stdint.h>

/* Infinite: UNLIMITED. Not set, null, absent or no number: absent. */
int64_t slurm_number(const json_t *json, int64_t absent);

/* The text, or the first of a list of texts, else "". Borrowed. */
const char *slurm_text(const json_t *json);

/* The value at a path of keys, NULL-terminated; NULL: absent. */
const json_t *slurm_at(const json_t *json, ...) __attribute__((sentinel));

#endif
