/* spec_rows.h - what the files of spec share; nobody else includes it. */
#ifndef BROKER_CORE_SPEC_ROWS_H
#define BROKER_CORE_SPEC_ROWS_H

#include "broker/core/spec.h"

/* What one entry of `at` may say; read to check it, then freed. */
struct spec_override {
    bool skip;
    char *run;
    struct texts command;
    struct env env;
    struct needs needs;
};
extern const struct key spec_override_keys[];

/* Reads source by the table, without defaults. source is taken, also on failure. */
int spec_read_take(struct value *source, struct spec **out, struct error *err);

/* Puts the defaults where the job says nothing. spec->defaults must be set. */
void spec_fill(struct spec *spec);
void spec_defaults_copy(struct spec_defaults *out, const struct spec_defaults *from);

/* The checks that one job must pass by itself, whatever policy and federation say. */
int spec_check(const struct spec *spec, struct error *err);

/* Whether every name and every override in `at` is right; federation may be NULL. */
int spec_check_at(const struct spec *spec, const struct federation *federation, struct error *err);

#endif
