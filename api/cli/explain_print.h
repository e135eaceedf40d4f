/* explain_print.h - the record of GET /v1/jobs/ID/explain and POST /v1/explain, for people: first the
 * answer in words, then the table, then the facts; never wider than 100 columns. */
#ifndef API_CLI_EXPLAIN_PRINT_H
#define API_CLI_EXPLAIN_PRINT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

void explain_print(const json_t *record, int64_t now_ms, FILE *out);

/* The table of costs, or of reasons when nothing was chosen; and the facts. */
void explain_print_costs(const json_t *decision, FILE *out);
void explain_print_reasons(const json_t *decision, FILE *out);
void explain_print_facts(const json_t *decision, FILE *out);

/* Nano-units with four significant digits, at least as many decimals as make small sums readable. */
char *nano_words(int64_t nano, char *out, size_t size);

#endif
