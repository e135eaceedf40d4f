/* present.h - a job as users see it: the JSON of GET /v1/jobs/{id} and of every list. */
#ifndef BROKER_PRESENT_H
#define BROKER_PRESENT_H

#include "broker/core/job.h"

#include <jansson.h>

/* The job with its attempts; whole: with its spec as it was taken. currency: of the policy. why: one
 * line that says what a waiting job waits for, or NULL. New reference. */
json_t *job_present(const struct job *job, const char *currency, const char *why, bool whole);

/* Puts "name": RFC 3339 text when wall_ms is not 0. */
void present_time(json_t *object, const char *name, int64_t wall_ms);
/* Puts "name": "0.0237 EUR", as parsed back exactly. */
void present_money(json_t *object, const char *name, int64_t nano, const char *currency);

#endif
