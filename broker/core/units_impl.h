/* units_impl.h - what the files of units share. For units*.c alone. */
#ifndef BROKER_CORE_UNITS_IMPL_H
#define BROKER_CORE_UNITS_IMPL_H

#include "broker/core/error.h"

#include <stdbool.h>
#include <stdint.h>

/* A decimal number: whole + billionths / 10^9. digits: how many stood after the point. */
struct decimal {
    int64_t whole;
    int64_t billionths;
    int digits;
};

enum { DECIMAL_DIGITS_MAX = 9 };

/* Reads digits[.digits] at *text and moves *text behind it. False: none there, or over the limits. */
bool decimal_read(const char **text, struct decimal *out);

/* Reads digits at *text and moves *text behind it. False: none there, or over INT64_MAX. */
bool digits_read(const char **text, int64_t *out);

/* number * scale, exactly; scale is a power of ten up to 10^9. False: too large, or digits are lost. */
bool decimal_scale(const struct decimal *number, int64_t scale, int64_t *out);

/* Whether text is a decimal number and nothing else: a value whose unit was forgotten. */
bool is_bare_number(const char *text);

/* "'text' is not a what": text is cut and cleaned of control characters. Returns -1. */
int not_a(const char *text, const char *what, struct error *err);

#endif
