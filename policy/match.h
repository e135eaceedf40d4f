/* match.h - whether a `match` of the policy fits a job. Pure. */
#ifndef POLICY_MATCH_H
#define POLICY_MATCH_H

#include "broker/core/rules.h"
#include "broker/core/spec.h"

#include <stdbool.h>

bool match_fits(const struct match *match, const struct spec *spec, const char *owner);

/* Whether every job that b takes is taken by a already: then b behind a is dead. Errs to false. */
bool match_covers(const struct match *a, const struct match *b);

#endif
