/* explain.h - why: the record behind `tieline explain`, for running, waiting and imagined jobs. */
#ifndef BROKER_EXPLAIN_H
#define BROKER_EXPLAIN_H

#include "broker/caller.h"
#include "broker/query.h"

/* {"currency", "policy", "job", "decision", "decided": "then" or "now", "position"?, "budgets",
 * "bursts"}: of a placed job the decision that placed it, of a waiting one the decision of now. */
void explain_job(const struct reader *reader, const char *id, reply_fn reply, void *arg);

/* The same of a job that was not submitted; "render": what would be sent to that place, or NULL. */
void explain_imagined(struct context *context, const struct caller *caller,
                      const struct value *value, const char *render, reply_fn reply, void *arg);

/* Bursts and budgets as they are: {"currency", "bursts": [...], "budgets": [...]}. New reference. */
json_t *explain_money(struct context *context);

#endif
