/* config.h - what users write, read into immutable structs: tieline.yaml, policy.yaml, a job file.
 *
 * Every key is a row of a table, from which reading, checking and docs/configuration.md derive. Errors
 * name file, line, column and the nearest right spelling. Layer: core only; adapters hand in their rows. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include "broker/core/adapter.h"
#include "broker/core/cluster.h"
#include "broker/core/error.h"
#include "broker/core/rules.h"
#include "broker/core/value.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Reads tieline.yaml. path NULL: the federation to look around in, three members on this machine.
 * adapters ends with NULL. */
int config_federation_load(const char *path, const struct adapter_type *const *adapters,
                           struct federation **out, struct error *err);
int config_federation_parse(const char *text, const char *file,
                            const struct adapter_type *const *adapters, struct federation **out,
                            struct error *err);
void federation_destroy(struct federation *federation); /* takes NULL */

/* Reads policy.yaml. path NULL: the built-in policy, which never rents; "builtin:NAME": one that is
 * compiled in. Usually federation->policy_file. */
int config_rules_load(const char *path, const struct federation *federation, struct rules **out,
                      struct error *err);
/* As broker_env.rules_parse wants it. */
int config_rules_parse(const char *text, const char *file, const struct federation *federation,
                       struct rules **out, struct error *err);
void rules_destroy(struct rules *rules); /* takes NULL */

/* What a check asks of the policy layer. Each may be NULL: then it is not checked. */
struct config_hooks {
    bool (*covers)(const struct match *a, const struct match *b); /* match_covers */
    int (*expect_run)(const struct rules *rules, const struct federation *federation,
                      int64_t now_ms,
                      void (*failed)(void *arg, const struct expectation *expectation,
                                     const struct error *err),
                      void *arg); /* expect_run */
    int64_t now_ms;               /* wall time at which expectations are run */
};
struct config_check {
    int errors, warnings, failed; /* failed: expectations */
};
/* Prints all mistakes of a policy with their lines, and the counts. live: of the running policy, as
 * "9f31c2, since 2026-03-09 14:02"; NULL: none is known. Returns errors and failed expectations. */
int config_policy_check(const char *text, const char *file, const struct federation *federation,
                        const struct config_hooks *hooks, const char *live, FILE *out,
                        struct config_check *counts);

/* Reads a job, YAML or JSON by its content; "-": standard input. */
int config_job_load(const char *path, struct value **out, struct error *err);
/* The same of a text that was read; path is for messages, and .json says that it is no YAML. */
int config_job_parse(const char *text, size_t length, const char *path, struct value **out,
                     struct error *err);

/* Reads a whole text file of at most VALUE_BYTES_MAX bytes; "-": standard input. The caller frees. */
int config_file_read(const char *path, char **text, size_t *length, struct error *err);

/* Prints docs/configuration.md. */
void config_docs_print(const struct adapter_type *const *adapters, FILE *out);

#endif
