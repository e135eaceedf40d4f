/* arith.c - integer arithmetic of money and shares: no overflow, one way of rounding. */
#include "policy/internal.h"

#include <math.h>

__extension__ typedef __int128 wide;

static int64_t narrow(wide value)
{
    if (value > INT64_MAX) {
        return INT64_MAX;
    }
    return value < INT64_MIN ? INT64_MIN : (int64_t)value;
}

int64_t scale_up(int64_t a, int64_t b, int64_t c)
{
    return narrow(((wide)a * b + c - 1) / c);
}

int64_t scale_down(int64_t a, int64_t b, int64_t c)
{
    return narrow((wide)a * b / c);
}

int64_t scale_near(int64_t a, int64_t b, int64_t c)
{
    wide doubled = 2 * (wide)a * b + c, whole = doubled / (2 * (wide)c);
    return narrow(doubled % (2 * (wide)c) < 0 ? whole - 1 : whole);
}

int64_t add_capped(int64_t a, int64_t b)
{
    return narrow((wide)a + b);
}

int64_t nano_round(double nano)
{
    /* 2^63 is a double, INT64_MAX is not. */
    if (!(nano < 9223372036854775808.0)) {
        return INT64_MAX;
    }
    if (nano < -9223372036854775808.0) {
        return INT64_MIN;
    }
    return (int64_t)llround(nano);
}
