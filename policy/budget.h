/* budget.h - which budgets count a job, and in which period. Pure. */
#ifndef POLICY_BUDGET_H
#define POLICY_BUDGET_H

#include "broker/core/cluster.h"
#include "broker/core/rules.h"
#include "broker/core/spec.h"

#include <stdint.h>

/* Whether this budget counts a job at this rented place. */
bool budget_counts(const struct budget_rule *budget, const struct spec *spec, const char *owner,
                   const struct place *place);

/* Start of the period that holds now_ms, in the zone (IANA name): midnight, Monday, the 1st. For
 * BUDGET_JOB: 0. Wall ms. */
int64_t budget_period_start(const struct budget_rule *budget, int64_t now_ms, const char *zone);

/* Rent for a run of duration_ms at price_hour nano-units per hour, rounded up; saturates. */
int64_t budget_rent(int64_t price_hour, int64_t duration_ms);

#endif
