/* units.c - sizes, money, shares, rates, power, ranges and numbers: parsing and printing.
 *
 * Everything is exact: decimals are read into integers, never through floating point. Durations and
 * instants: units_time.c. Words and patterns: units_text.c. */
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/units_impl.h"

enum { SHOWN_MAX = 60, SHARE_PERCENT_MAX = 10000, KIB = 1024, KB = 1000 };

struct size_unit {
    const char *name;
    int64_t base;
    int power;
};
static const struct size_unit size_units[] = {
    {"B", KIB, 0},   {"KiB", KIB, 1}, {"MiB", KIB, 2}, {"GiB", KIB, 3},
    {"TiB", KIB, 4}, {"PiB", KIB, 5}, {"kB", KB, 1},   {"MB", KB, 2},
    {"GB", KB, 3},   {"TB", KB, 4},   {"PB", KB, 5},
};
enum { SIZE_UNITS = sizeof size_units / sizeof *size_units };

static const char *const per_suffixes[] = {
    [PRICE_PER_HOUR] = "/h",
    [PRICE_PER_KWH] = "/kWh",
    [PRICE_PER_GB] = "/GB",
    [PRICE_PER_NONE] = "",
};

bool digits_read(const char **text, int64_t *out)
{
    const char *p = *text;
    int64_t number = 0;
    if (*p < '0' || *p > '9') {
        return false;
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, *p - '0', &number)) {
            return false;
        }
    }
    *text = p;
    *out = number;
    return true;
}

bool decimal_read(const char **text, struct decimal *out)
{
    const char *p = *text;
    struct decimal number = {0};
    if (!digits_read(&p, &number.whole)) {
        return false;
    }
    if (*p == '.') {
        const char *start = p + 1;
        size_t digits = strspn(start, "0123456789");
        if (digits == 0 || digits > DECIMAL_DIGITS_MAX) {
            return false;
        }
        number.digits = (int)digits;
        for (size_t i = 0; i < DECIMAL_DIGITS_MAX; i++) {
            number.billionths = number.billionths * 10 + (i < digits ? start[i] - '0' : 0);
        }
        p = start + digits;
    }
    *text = p;
    *out = number;
    return true;
}

bool decimal_scale(const struct decimal *number, int64_t scale, int64_t *out)
{
    int64_t step = INT64_C(1000000000) / scale;
    int64_t result = 0;
    if (number->billionths % step != 0 || __builtin_mul_overflow(number->whole, scale, &result) ||
        __builtin_add_overflow(result, number->billionths / step, &result)) {
        return false;
    }
    *out = result;
    return true;
}

bool is_bare_number(const char *text)
{
    struct decimal number;
    return decimal_read(&text, &number) && *text == '\0';
}

int not_a(const char *text, const char *what, struct error *err)
{
    char shown[SHOWN_MAX];
    copy_text(shown, sizeof shown, text);
    for (char *p = shown; *p; p++) {
        if ((unsigned char)*p < ' ' || *p == 0x7f) {
            *p = ' ';
        }
    }
    return error_set(err, ERROR_INVALID, "'%s' is not a %s", shown, what);
}

/* number * base^power, rounded to the nearest byte. */
static bool size_scale(struct decimal number, const struct size_unit *unit, int64_t *out)
{
    for (int i = 0; i < unit->power; i++) {
        int64_t part = number.billionths * unit->base;
        number.billionths = part % 1000000000;
        if (__builtin_mul_overflow(number.whole, unit->base, &number.whole) ||
            __builtin_add_overflow(number.whole, part / 1000000000, &number.whole)) {
            return false;
        }
    }
    return !__builtin_add_overflow(number.whole, number.billionths >= 500000000, out);
}

static const struct size_unit *size_unit_find(const char *name)
{
    for (size_t i = 0; i < SIZE_UNITS; i++) {
        if (strcmp(size_units[i].name, name) == 0) {
            return &size_units[i];
        }
    }
    return NULL;
}

static int size_refuse(const char *text, const char *unit, struct error *err)
{
    int number = (int)(unit - text);
    if (number > 0 && *unit == '\0') {
        error_set(err, ERROR_INVALID, "size without a unit");
        return error_expect(err, "write %sMiB or %sGiB", text, text);
    }
    if (number > 0 && unit[1] == '\0' && strchr("KkMmGgTtPp", *unit)) {
        char prefix = *unit == 'k' ? 'K' : *unit;
        prefix = (char)(prefix >= 'a' ? prefix - 'a' + 'A' : prefix);
        error_set(err, ERROR_INVALID, "'%s' says neither %ciB nor %cB", text, prefix, prefix);
        return error_expect(err, "write %.*s%ciB (1024) or %.*s%cB (1000)", number, text, prefix,
                            number, text, prefix == 'K' ? 'k' : prefix);
    }
    not_a(text, "size", err);
    return error_expect(err, "write it like 512MiB, 8GiB, 1.5TiB or 150GB, without a space");
}

int size_parse(const char *text, int64_t *bytes, struct error *err)
{
    const char *p = text;
    struct decimal number;
    if (!decimal_read(&p, &number)) {
        return size_refuse(text, text, err);
    }
    const struct size_unit *unit = size_unit_find(p);
    if (!unit) {
        return size_refuse(text, p, err);
    }
    int64_t result = 0;
    if (!size_scale(number, unit, &result)) {
        error_set(err, ERROR_INVALID, "'%s' is too large", text);
        return error_expect(err, "less than 8192PiB");
    }
    *bytes = result;
    return 0;
}

static bool currency_read(const char **text, char out[CURRENCY_SIZE])
{
    for (int i = 0; i < CURRENCY_SIZE - 1; i++) {
        if ((*text)[i] < 'A' || (*text)[i] > 'Z') {
            return false;
        }
        out[i] = (*text)[i];
    }
    out[CURRENCY_SIZE - 1] = '\0';
    *text += CURRENCY_SIZE - 1;
    return true;
}

/* The number that someone meant who wrote "€25", "25", "25EUR" or "25 euros". */
static void money_refuse(const char *text, const char *suffix, struct error *err)
{
    const char *what = *suffix ? "price" : "money";
    const char *number = text + strcspn(text, "0123456789");
    size_t length = strspn(number, "0123456789.");
    length = length > 20 ? 20 : length;
    if (is_bare_number(text)) {
        error_set(err, ERROR_INVALID, "%s without a currency", what);
    } else {
        not_a(text, *suffix ? "price" : "sum of money", err);
    }
    if (length == 0) {
        error_expect(err, "write it like 25 EUR%s", suffix);
    } else {
        error_expect(err, "write %.*s EUR%s (or another currency)", (int)length, number, suffix);
    }
}

int price_parse(const char *text, enum price_per per, struct money *out, struct error *err)
{
    const char *suffix = per_suffixes[per];
    /* only the market's price of energy can fall below zero */
    bool negative = per == PRICE_PER_KWH && *text == '-';
    const char *p = text + negative;
    struct decimal number;
    struct money money = {0};
    if (!decimal_read(&p, &number) || *p++ != ' ' || !currency_read(&p, money.currency) ||
        (*p != '\0' && *p != '/')) {
        money_refuse(text, suffix, err);
        return -1;
    }
    if (strcmp(p, suffix) != 0) {
        error_set(err, ERROR_INVALID, "'%.60s' is not a %s%s", text,
                  *suffix ? "price " : "sum of money", suffix);
        return error_expect(err, "write %.*s%s", (int)(p - text), text, suffix);
    }
    if (!decimal_scale(&number, MONEY_UNIT, &money.nano)) {
        error_set(err, ERROR_INVALID, "'%.60s' is too much", text);
        return error_expect(err, "at most 9000000000 of a currency");
    }
    money.nano = negative ? -money.nano : money.nano;
    *out = money;
    return 0;
}

int money_parse(const char *text, struct money *out, struct error *err)
{
    return price_parse(text, PRICE_PER_NONE, out, err);
}

static int share_refuse(const char *text, struct error *err)
{
    struct decimal number;
    const char *p = text;
    int64_t share = 0;
    char shown[UNITS_TEXT_SIZE];
    if (!decimal_read(&p, &number) || strspn(p, " %") != strlen(p)) {
        not_a(text, "share", err);
        return error_expect(err, "write it in percent, like 80%%");
    }
    bool fraction = *p == '\0' && number.whole <= 1 && number.digits > 0;
    int64_t scale = fraction ? SHARE_ONE : SHARE_ONE / 100;
    error_set(err, ERROR_INVALID, *p ? "'%.60s' is not a share" : "share without %%", text);
    if (!decimal_scale(&number, scale, &share)) {
        return error_expect(err, "percent with at most 4 decimals, like 80%%");
    }
    return error_expect(err, "write %s", share_text(share, shown));
}

int share_parse(const char *text, int64_t *millionths, struct error *err)
{
    const char *p = text;
    struct decimal number;
    int64_t share = 0;
    if (!decimal_read(&p, &number) || strcmp(p, "%") != 0 ||
        !decimal_scale(&number, SHARE_ONE / 100, &share)) {
        return share_refuse(text, err);
    }
    if (share > SHARE_ONE / 100 * SHARE_PERCENT_MAX) {
        error_set(err, ERROR_INVALID, "'%.60s' is too large", text);
        return error_expect(err, "at most %d%%", (int)SHARE_PERCENT_MAX);
    }
    *millionths = share;
    return 0;
}

int rate_parse(const char *text, struct rate *out, struct error *err)
{
    const char *p = text;
    struct rate rate = {0};
    struct error inner;
    char per[UNITS_TEXT_SIZE];
    if (digits_read(&p, &rate.count) && *p == '\0') {
        error_set(err, ERROR_INVALID, "rate without a time");
        return error_expect(err, "write %.20s/s or %.20s/5m", text, text);
    }
    if (rate.count > 0 && *p == '/') {
        p++;
        bool bare = *p != '\0' && strspn(p, "0123456789") == 0;
        (void)snprintf(per, sizeof per, "%s%s", bare ? "1" : "", p);
        if (duration_parse(per, &rate.per_ms, &inner) == 0) {
            *out = rate;
            return 0;
        }
    }
    not_a(text, "rate", err);
    return error_expect(err, "write a number of at least 1 and a time, like 5/s or 20/5m");
}

int power_parse(const char *text, int64_t *milliwatt, struct error *err)
{
    const char *p = text;
    struct decimal number;
    int64_t result = 0;
    if (decimal_read(&p, &number) && strcmp(p, " W") == 0 &&
        decimal_scale(&number, 1000, &result)) {
        *milliwatt = result;
        return 0;
    }
    if (is_bare_number(text)) {
        error_set(err, ERROR_INVALID, "power without a unit");
        return error_expect(err, "write %.20s W", text);
    }
    not_a(text, "power", err);
    return error_expect(err, "write it like 350 W, with at most 3 decimals");
}

static int range_refuse(const char *text, struct error *err)
{
    not_a(text, "range", err);
    return error_expect(err, "write 4 (exactly), 4.. (at least), ..8 (at most) or 4..8");
}

/* One end of a range, the text from start up to end, in the words of its unit. */
static int bound_read(const char *start, size_t length, range_bound_fn bound, int64_t *out,
                      struct error *err)
{
    char text[UNITS_TEXT_SIZE];
    if (length >= sizeof text) {
        return not_a(start, "range", err);
    }
    memcpy(text, start, length);
    text[length] = '\0';
    return bound(text, out, err);
}

int range_parse_by(const char *text, range_bound_fn bound, struct range *out, struct error *err)
{
    struct range range = {0, UNLIMITED};
    const char *dots = strstr(text, "..");
    size_t low = dots ? (size_t)(dots - text) : strlen(text);
    size_t high = dots ? strlen(dots + 2) : 0;
    if (low + high == 0 || text[strcspn(text, "<>= ")] != '\0') {
        return range_refuse(text, err);
    }
    if (low > 0 && bound_read(text, low, bound, &range.low, err) != 0) {
        return -1;
    }
    if (high > 0 && bound_read(dots + 2, high, bound, &range.high, err) != 0) {
        return -1;
    }
    range.high = dots ? range.high : range.low;
    if (range.low > range.high) {
        error_set(err, ERROR_INVALID, "the range '%.60s' is empty", text);
        return error_expect(err, "the smaller end first");
    }
    *out = range;
    return 0;
}

static int count_parse(const char *text, int64_t *out, struct error *err)
{
    int64_t number = 0;
    const char *p = text;
    if (!digits_read(&p, &number) || *p != '\0') {
        return range_refuse(text, err);
    }
    *out = number;
    return 0;
}

int range_parse(const char *text, struct range *out, struct error *err)
{
    return range_parse_by(text, count_parse, out, err);
}

int integer_parse(const char *text, int64_t low, int64_t high, int64_t *out, struct error *err)
{
    const char *p = text + (*text == '-');
    int64_t number = 0;
    if (!digits_read(&p, &number) || *p != '\0') {
        not_a(text, "whole number", err);
    } else {
        number = *text == '-' ? -number : number;
        if (number >= low && number <= high) {
            *out = number;
            return 0;
        }
        error_set(err, ERROR_INVALID, "%" PRId64 " is out of range", number);
    }
    if (high == INT64_MAX) {
        return error_expect(err, "a whole number of at least %" PRId64, low);
    }
    return error_expect(err, "a whole number from %" PRId64 " to %" PRId64, low, high);
}

int thousandths_parse(const char *text, int64_t *out, struct error *err)
{
    const char *p = text;
    struct decimal number;
    int64_t result = 0;
    if (!decimal_read(&p, &number) || *p != '\0' || !decimal_scale(&number, 1000, &result)) {
        not_a(text, "number", err);
        return error_expect(err, "write it like 4 or 1.5, with at most 3 decimals");
    }
    *out = result;
    return 0;
}

static uint64_t magnitude(int64_t number)
{
    return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

/* Writes size / scale in decimals, without zeros at the end; scale is a power of ten. */
static char *decimal_text(bool negative, uint64_t size, uint64_t scale, const char *suffix,
                          char out[UNITS_TEXT_SIZE])
{
    uint64_t part = size % scale;
    int n = snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64, negative ? "-" : "", size / scale);
    if (part) {
        out[n++] = '.';
        for (uint64_t at = scale / 10; part; at /= 10) {
            out[n++] = (char)('0' + part / at);
            part %= at;
        }
    }
    (void)snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%s", suffix);
    return out;
}

char *size_text(int64_t bytes, char out[UNITS_TEXT_SIZE])
{
    const struct size_unit *best = &size_units[0];
    int64_t least = bytes;
    for (size_t i = 1; bytes != 0 && i < SIZE_UNITS; i++) {
        int64_t count = bytes;
        int power = size_units[i].power;
        while (power > 0 && count % size_units[i].base == 0) {
            count /= size_units[i].base;
            power--;
        }
        if (power == 0 && (count < 0 ? count > least : count < least)) {
            least = count;
            best = &size_units[i];
        }
    }
    (void)snprintf(out, UNITS_TEXT_SIZE, "%" PRId64 "%s", least, best->name);
    return out;
}

char *money_text(int64_t nano, const char *currency, char out[UNITS_TEXT_SIZE])
{
    char suffix[CURRENCY_SIZE + 1] = "";
    if (currency && *currency) {
        (void)snprintf(suffix, sizeof suffix, " %s", currency);
    }
    return decimal_text(nano < 0, magnitude(nano), MONEY_UNIT, suffix, out);
}

char *money_short(int64_t nano, char out[UNITS_TEXT_SIZE])
{
    uint64_t size = magnitude(nano), step = 1;
    while (size / step >= 10000 && step < (uint64_t)MONEY_UNIT) {
        step *= 10;
    }
    size = (size + step / 2) / step * step;
    return decimal_text(nano < 0, size, MONEY_UNIT, "", out);
}

char *thousandths_text(int64_t thousandths, char out[UNITS_TEXT_SIZE])
{
    return decimal_text(thousandths < 0, magnitude(thousandths), 1000, "", out);
}

char *share_text(int64_t millionths, char out[UNITS_TEXT_SIZE])
{
    return decimal_text(millionths < 0, magnitude(millionths), SHARE_ONE / 100, "%", out);
}
