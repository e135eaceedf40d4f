/* units.h - the values of the language (docs/configuration.md "Values"): parsing and printing.
 *
 * Parsers return 0, or -1 with INVALID, a sentence and what was expected; out is then untouched.
 * Money is int64 nano-units of a currency; shares are millionths; CPUs and GPUs are thousandths. */
#ifndef BROKER_CORE_UNITS_H
#define BROKER_CORE_UNITS_H

#include "broker/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MONEY_UNIT INT64_C(1000000000) /* nano-units in one unit of the currency */
#define SHARE_ONE INT64_C(1000000)     /* 100 % */
#define UNLIMITED INT64_MAX

enum { CURRENCY_SIZE = 4, UNITS_TEXT_SIZE = 48 };

struct money { /* currency "" : none was stated */
    int64_t nano;
    char currency[CURRENCY_SIZE];
};
struct range { /* inclusive; high UNLIMITED: no upper end */
    int64_t low, high;
};
struct rate { /* count events in each per_ms */
    int64_t count, per_ms;
};
enum price_per { PRICE_PER_HOUR, PRICE_PER_KWH, PRICE_PER_GB, PRICE_PER_NONE };

int duration_parse(const char *text, int64_t *ms,
                   struct error *err); /* "1h30m"; > 0; up to 10 years */
int size_parse(const char *text, int64_t *bytes, struct error *err);     /* "8GiB" "150GB" */
int money_parse(const char *text, struct money *out, struct error *err); /* "25 EUR" */
int price_parse(const char *text, enum price_per per, struct money *out,
                struct error *err); /* "0.31 EUR/kWh" */
int share_parse(const char *text, int64_t *millionths,
                struct error *err);                                       /* "80%" ; up to 10000% */
int rate_parse(const char *text, struct rate *out, struct error *err);    /* "5/s" "20/5m" */
int power_parse(const char *text, int64_t *milliwatt, struct error *err); /* "350 W" */
int range_parse(const char *text, struct range *out,
                struct error *err); /* "4" "4.." "..8" "4..8" */
/* The same with ends in another unit: "..8GiB" with size_parse, "1.5.." with thousandths_parse. */
typedef int (*range_bound_fn)(const char *text, int64_t *out, struct error *err);
int range_parse_by(const char *text, range_bound_fn bound, struct range *out, struct error *err);
int integer_parse(const char *text, int64_t low, int64_t high, int64_t *out, struct error *err);
int thousandths_parse(const char *text, int64_t *out, struct error *err); /* "1.5" -> 1500 */
/* RFC 3339 with offset, or "2026-03-10 06:00" in the zone when zone is not NULL. */
int instant_parse(const char *text, const char *zone, int64_t *wall_ms, struct error *err);

/* Printers write into out (UNITS_TEXT_SIZE) and return it; the text parses back to the same value
 * except for `short` forms, which round for people. */
char *duration_text(int64_t ms, char out[UNITS_TEXT_SIZE]);
char *duration_short(int64_t ms, char out[UNITS_TEXT_SIZE]); /* "18m 22s", "1h 52m" */
char *size_text(int64_t bytes, char out[UNITS_TEXT_SIZE]);
char *money_text(int64_t nano, const char *currency, char out[UNITS_TEXT_SIZE]);
char *money_short(int64_t nano, char out[UNITS_TEXT_SIZE]); /* four significant digits */
char *thousandths_text(int64_t thousandths, char out[UNITS_TEXT_SIZE]);
char *share_text(int64_t millionths, char out[UNITS_TEXT_SIZE]);
char *instant_text(int64_t wall_ms, char out[UNITS_TEXT_SIZE]); /* RFC 3339 UTC, milliseconds, Z */

/* The candidate nearest to word by edit distance, or NULL if none is near. */
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

/* "*" matches any run of characters; everything else itself. */
bool glob_match(const char *pattern, const char *text);

/* Whether text is a name: [A-Za-z0-9][A-Za-z0-9._-]*, up to 63 characters. */
bool name_is_valid(const char *text);

/* Whether text is UTF-8 without NUL and within length. */
bool utf8_is_valid(const char *text, size_t length);

#endif
