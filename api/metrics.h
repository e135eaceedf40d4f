/* metrics.h - what the HTTP side counts. Names follow the Prometheus conventions. */
#ifndef API_METRICS_H
#define API_METRICS_H

#include "api/server.h"

#include <stdint.h>
#include <stdio.h>

struct metrics;
struct route;

struct metrics *metrics_create(void);
void metrics_destroy(struct metrics *metrics);

/* A request is over. route NULL: none fitted. status 0: the connection ended before an answer.
 * ms -1: it waited on purpose, its time says nothing. */
void metrics_request(struct metrics *metrics, const struct route *route, int status, int64_t ms);

/* Prometheus text format. */
void metrics_print(const struct api *api, FILE *out);

#endif
