/* traffic.h - what the HTTP side counts. Names follow the Prometheus conventions. */
#ifndef API_TRAFFIC_H
#define API_TRAFFIC_H

#include "api/parts.h"

#include <stdint.h>
#include <stdio.h>

struct traffic;
struct endpoint;

struct traffic *traffic_create(void);
void traffic_destroy(struct traffic *traffic);

/* A request is over. route NULL: none fitted. status 0: the connection ended before an answer.
 * ms -1: it waited on purpose, its time says nothing. */
void traffic_request(struct traffic *traffic, const struct endpoint *route, int status, int64_t ms);

/* Prometheus text format. */
void traffic_print(const struct api *api, FILE *out);

/* The rows of the table that metrics_docs of the broker begins. */
void traffic_docs(FILE *out);

#endif
