/* units_time.c - durations and instants: parsing and printing. */
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/core/civil.h"
#include "broker/core/units_impl.h"
#include "broker/core/zone.h"

#define DURATION_MAX (INT64_C(3653) * 86400 * 1000)
#define DAY_MS INT64_C(86400000)
#define MINUTE_MS INT64_C(60000)

enum { YEAR_MIN = 1970, UNITS = 5 };

static const struct {
    const char *name;
    int64_t ms;
} duration_units[UNITS] = {
    {"d", DAY_MS}, {"h", 3600000}, {"m", MINUTE_MS}, {"s", 1000}, {"ms", 1},
};

/* A date and time as it stood in the text. */
struct civil {
    int year, month, day, hour, minute, second, millisecond;
};

static int duration_refuse(const char *text, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    size_t clock = strspn(text, "0123456789:");
    if (digits > 0 && text[digits] == '\0') {
        error_set(err, ERROR_INVALID, "duration without a unit");
        return error_expect(err, "write %.20ss, %.20sm or %.20sh", text, text, text);
    }
    not_a(text, "duration", err);
    if (digits > 0 && clock > digits && text[clock] == '\0') {
        return error_expect(err, "write units: %.*sh%.2sm or %.*sm%.2ss", (int)digits % 20, text,
                            text + digits + 1, (int)digits % 20, text, text + digits + 1);
    }
    return error_expect(err, "whole numbers with units, like 45s, 15m, 2h, 7d or 1h30m");
}

/* The unit at *text after index from; moves *text behind it. -1: none. */
static int unit_read(const char **text, int from)
{
    size_t length = strspn(*text, "dhms");
    for (int i = from; i < UNITS; i++) {
        if (strlen(duration_units[i].name) == length &&
            strncmp(*text, duration_units[i].name, length) == 0) {
            *text += length;
            return i;
        }
    }
    return -1;
}

int duration_parse(const char *text, int64_t *ms, struct error *err)
{
    const char *p = text;
    int64_t sum = 0, number = 0;
    int unit = -1;
    do {
        if (!digits_read(&p, &number)) {
            return duration_refuse(text, err);
        }
        unit = unit_read(&p, unit + 1);
        if (unit < 0) {
            return duration_refuse(text, err);
        }
        if (__builtin_mul_overflow(number, duration_units[unit].ms, &number) ||
            __builtin_add_overflow(sum, number, &sum)) {
            sum = INT64_MAX;
            break;
        }
    } while (*p);
    if (sum == 0 || sum > DURATION_MAX) {
        error_set(err, ERROR_INVALID, "the duration '%.60s' is too %s", text,
                  sum == 0 ? "short" : "long");
        return error_expect(err, "more than 0s and at most 3653d");
    }
    *ms = sum;
    return 0;
}

/* Exactly count digits. */
static bool field_read(const char **p, int count, int *out)
{
    int number = 0;
    for (int i = 0; i < count; i++) {
        if ((*p)[i] < '0' || (*p)[i] > '9') {
            return false;
        }
        number = number * 10 + ((*p)[i] - '0');
    }
    *p += count;
    *out = number;
    return true;
}

static bool is_next(const char **p, const char *accepted)
{
    if (**p == '\0' || !strchr(accepted, **p)) {
        return false;
    }
    ++*p;
    return true;
}

static bool date_read(const char **p, struct civil *out)
{
    return field_read(p, 4, &out->year) && is_next(p, "-") && field_read(p, 2, &out->month) &&
           is_next(p, "-") && field_read(p, 2, &out->day) && out->year >= YEAR_MIN &&
           civil_is_valid(out->year, out->month, out->day);
}

/* hh:mm[:ss[.fraction]]; what is finer than a millisecond is dropped. */
static bool clock_read(const char **p, struct civil *out)
{
    if (!field_read(p, 2, &out->hour) || !is_next(p, ":") || !field_read(p, 2, &out->minute)) {
        return false;
    }
    if (is_next(p, ":")) {
        if (!field_read(p, 2, &out->second)) {
            return false;
        }
        if (is_next(p, ".")) {
            size_t digits = strspn(*p, "0123456789");
            for (size_t i = 0; i < 3; i++) {
                out->millisecond = out->millisecond * 10 + (i < digits ? (*p)[i] - '0' : 0);
            }
            *p += digits;
            if (digits == 0) {
                return false;
            }
        }
    }
    return out->hour < 24 && out->minute < 60 && out->second < 60;
}

/* Z, or +hh:mm. */
static bool offset_read(const char **p, int64_t *ms)
{
    int hours = 0, minutes = 0;
    int sign = **p == '-' ? -1 : 1;
    if (is_next(p, "Zz")) {
        *ms = 0;
        return true;
    }
    if (!is_next(p, "+-") || !field_read(p, 2, &hours) || !is_next(p, ":") ||
        !field_read(p, 2, &minutes) || hours > 23 || minutes > 59) {
        return false;
    }
    *ms = sign * (hours * 60 + minutes) * MINUTE_MS;
    return true;
}

int instant_parse(const char *text, const char *zone, int64_t *wall_ms, struct error *err)
{
    const char *p = text;
    struct civil civil = {0};
    int64_t offset = 0, instant = 0;
    if (!date_read(&p, &civil) || !is_next(&p, "Tt ") || !clock_read(&p, &civil)) {
        not_a(text, "date and time", err);
        return error_expect(err, zone ? "write it like 2026-03-10 06:00"
                                      : "write it like 2026-03-10T06:00:00+01:00");
    }
    int64_t rest = civil.second * INT64_C(1000) + civil.millisecond;
    if (*p == '\0') {
        if (!zone) {
            error_set(err, ERROR_INVALID, "'%.60s' does not say in which time zone", text);
            return error_expect(err, "add the offset: %.10sT%.5s:00+01:00, or Z for UTC", text,
                                text + 11);
        }
        if (zone_from_local(zone, civil.year, civil.month, civil.day, civil.hour, civil.minute,
                            &instant, err) != 0) {
            return -1;
        }
        *wall_ms = instant + rest;
        return 0;
    }
    if (!offset_read(&p, &offset) || *p != '\0') {
        not_a(text, "date and time", err);
        return error_expect(err, "end it with an offset like +01:00, or with Z");
    }
    *wall_ms = days_from_civil(civil.year, civil.month, civil.day) * DAY_MS +
               (civil.hour * INT64_C(60) + civil.minute) * MINUTE_MS + rest - offset;
    return 0;
}

char *duration_text(int64_t ms, char out[UNITS_TEXT_SIZE])
{
    uint64_t rest = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    int n = snprintf(out, UNITS_TEXT_SIZE, "%s", ms < 0 ? "-" : rest ? "" : "0s");
    for (int i = 0; i < UNITS; i++) {
        uint64_t unit = (uint64_t)duration_units[i].ms;
        if (rest / unit) {
            n += snprintf(out + n, (size_t)(UNITS_TEXT_SIZE - n), "%" PRIu64 "%s", rest / unit,
                          duration_units[i].name);
            rest %= unit;
        }
    }
    return out;
}

char *duration_short(int64_t ms, char out[UNITS_TEXT_SIZE])
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    const char *sign = ms < 0 ? "-" : "";
    int i = 0;
    while (i < UNITS - 1 && size < (uint64_t)duration_units[i].ms) {
        i++;
    }
    uint64_t unit = (uint64_t)duration_units[i].ms;
    uint64_t next = i < UNITS - 2 ? (uint64_t)duration_units[i + 1].ms : unit;
    uint64_t second = size % unit / next;
    if (second == 0) {
        (void)snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s", sign, size / unit,
                       size ? duration_units[i].name : "s");
    } else {
        (void)snprintf(out, UNITS_TEXT_SIZE, "%s%" PRIu64 "%s %" PRIu64 "%s", sign, size / unit,
                       duration_units[i].name, second, duration_units[i + 1].name);
    }
    return out;
}

char *instant_text(int64_t wall_ms, char out[UNITS_TEXT_SIZE])
{
    int year = 0, month = 0, day = 0;
    int64_t days = wall_ms / DAY_MS - (wall_ms % DAY_MS < 0);
    int rest = (int)(wall_ms - days * DAY_MS);
    civil_from_days(days, &year, &month, &day);
    (void)snprintf(out, UNITS_TEXT_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", year, month, day,
                   rest / 3600000, rest / 60000 % 60, rest / 1000 % 60, rest % 1000);
    return out;
}
