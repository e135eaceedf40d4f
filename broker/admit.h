/* admit.h - whether a job may come in: its text, its team, and that some place could ever run it. */
#ifndef BROKER_ADMIT_H
#define BROKER_ADMIT_H

#include "broker/caller.h"
#include "broker/context.h"

/* Parses one job for a caller, its team filled in. spec_unref(*out). */
int admit(struct context *context, const struct caller *caller, const struct value *value,
          struct spec **out, struct error *err);

#endif
