/* spec.h - what a user asks for. spec_parse() is the only validation of a job.
 *
 * A spec is immutable once parsed. Values that the user left out are taken from the class when the job
 * is submitted, and kept: a later policy does not change a job that was accepted. */
#ifndef BROKER_CORE_SPEC_H
#define BROKER_CORE_SPEC_H

#include "broker/core/cluster.h"
#include "broker/core/error.h"
#include "broker/core/keys.h"
#include "broker/core/units.h"
#include "broker/core/value.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct rules;

struct needs {
    int64_t cpus;     /* thousandths */
    int64_t memory;   /* bytes */
    int64_t gpus;     /* thousandths */
    struct texts gpu; /* models that will do; empty: any */
    bool has_cpus, has_memory, has_gpus;
};
struct job_time {
    int64_t limit;    /* ms; never 0 after parsing */
    int64_t estimate; /* ms; never 0 after parsing: the limit when unknown */
    bool has_limit, has_estimate;
};
enum rerun { RERUN_DEFAULT, RERUN_NEVER };
struct retry_exit {
    char *name; /* exit code as text */
    int64_t times;
};
struct retry { /* further attempts by cause */
    int64_t lost, start_failed, out_of_memory;
    struct list exits; /* struct retry_exit */
};
struct where {
    struct labels require, forbid;
};
struct env_entry {
    char *name, *value;
};
struct env {
    struct env_entry *items;
    size_t count;
};
struct override { /* `at`: what changes on an adapter, cluster or place */
    char *name;
    const struct value *value; /* in the source of the spec; checked when that was parsed */
};

struct spec_defaults {              /* taken where the job says nothing; kept with the job */
    char *name, *class_name, *team; /* team: NULL when there is none */
    struct needs needs;
    int64_t limit;    /* ms */
    int64_t estimate; /* ms; 0: the limit */
};

struct spec {
    int refs;
    char *name;
    char *class_name;
    char *team;
    struct labels labels;
    char *run;            /* text for a shell; exactly one of run and command */
    struct texts command; /* words, no shell */
    struct env env;
    struct needs needs;
    struct job_time time;
    struct where where;
    int64_t priority; /* 0..100 */
    bool is_protected;
    int rerun; /* enum rerun */
    struct retry retry;
    struct list at;       /* struct override */
    bool skip;            /* only of a resolved spec: this place is not to be used */
    struct value *source; /* as received */
    struct spec_defaults defaults;
};

/* Limits of one job. Beyond them: 422 with the limit. */
enum {
    SPEC_RUN_MAX = 96 * 1024,
    SPEC_ENV_MAX = 512,
    SPEC_LABELS_MAX = 64,
    SPEC_COMMAND_MAX = 1024,
    SPEC_ENV_BYTES_MAX = 64 * 1024, /* names and values together */
    SPEC_LABEL_VALUE_MAX = 255,
    SPEC_GPU_MAX = 16,
    SPEC_EXITS_MAX = 32,
    SPEC_AT_MAX = 64
};

extern const struct key spec_keys[];
/* The rows of struct needs and struct job_time; a class of the policy says the same. */
extern const struct key spec_needs_keys[], spec_time_keys[];

/* Parses and validates a job. rules gives the classes' defaults, federation the names that `at` and
 * `where` may use. Takes nothing; value is cloned into the spec. INVALID: with place and expectation. */
int spec_parse(const struct value *value, const struct rules *rules,
               const struct federation *federation, struct spec **out, struct error *err);

/* Sets the team of a spec that says none: the caller's. Only before the spec is shared. */
void spec_set_team(struct spec *spec, const char *team);

/* What an accepted job leaves in its SUBMIT event, and the same spec from it: no policy is asked and
 * no name is looked up, since both may have changed. team NULL or "": none. */
json_t *spec_source_to_json(const struct spec *spec);
json_t *spec_defaults_to_json(const struct spec *spec);
int spec_restore(const json_t *source, const json_t *defaults, const char *team, struct spec **out,
                 struct error *err);

/* The spec with the overrides of `at` for this place: adapter, then cluster, then place. Maps merge key
 * by key, everything else is replaced, null removes; `run` also takes `command` away, and the other way
 * round. Returns spec itself (shared) when none applies, else a new one; give either to spec_unref.
 * Overrides that no longer give a job, since the place moved to another adapter: the result is skip. */
struct spec *spec_at(struct spec *spec, const struct place *place);

struct spec *spec_ref(struct spec *spec);
void spec_unref(struct spec *spec); /* takes NULL */

/* The whole job as it will be taken, defaults filled in, as JSON. New reference. */
json_t *spec_to_json(const struct spec *spec);

#endif
