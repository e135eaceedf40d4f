/* tzif.c - time zone files (RFC 9636): the 64-bit block of version 2 and later, and its footer.
 *
 * File: header and block with 32-bit times (skipped), header and block with 64-bit times, then the rule
 * for all times behind the last transition, between two line ends, in the form of POSIX TZ. Version 1
 * files are refused: the system's compiler has not written them since 2006. */
#include "broker/core/tzif.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/civil.h"

enum {
    HEADER_SIZE = 44,
    COUNTS_AT = 20,
    TYPE_SIZE = 6,
    TIMES_MAX = 10000,
    FOOTER_MAX = 128,
    DAY_SECONDS = 86400,
    OFFSET_MAX = 26 * 3600
};

struct counts {
    uint32_t ut, standard, leap, times, types, characters;
};
enum rule_kind { RULE_MONTH, RULE_JULIAN, RULE_DAY };
struct rule { /* when the clock is set, each year */
    enum rule_kind kind;
    int month, week, day;
    int32_t seconds; /* after midnight, local */
};
struct tail { /* POSIX TZ, in seconds east of UTC */
    bool given, summer;
    int32_t standard_offset, summer_offset;
    struct rule start, end;
};
struct tzif {
    size_t count;
    int64_t *at;      /* ascending */
    int32_t *offsets; /* from at[i] on */
    int32_t first;    /* before at[0] */
    struct tail tail;
};

static uint32_t read32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read64(const unsigned char *p)
{
    return (int64_t)((uint64_t)read32(p) << 32 | read32(p + 4));
}

static bool header_read(const unsigned char *p, size_t length, struct counts *out)
{
    if (length < HEADER_SIZE || memcmp(p, "TZif", 4) != 0 || p[4] < '2') {
        return false;
    }
    uint32_t n[6];
    for (int i = 0; i < 6; i++) {
        n[i] = read32(p + COUNTS_AT + (ptrdiff_t)4 * i);
        if (n[i] > TIMES_MAX) {
            return false;
        }
    }
    *out = (struct counts){n[0], n[1], n[2], n[3], n[4], n[5]};
    return true;
}

static size_t block_size(const struct counts *n, size_t time_size)
{
    return n->times * (time_size + 1) + (size_t)n->types * TYPE_SIZE + n->characters +
           n->leap * (time_size + 4) + n->standard + n->ut;
}

static bool block_read(struct tzif *tzif, const unsigned char *p, const struct counts *n)
{
    const unsigned char *indices = p + (size_t)n->times * 8;
    const unsigned char *types = indices + n->times;
    if (n->types == 0) {
        return false;
    }
    tzif->at = xcalloc(n->times, sizeof *tzif->at);
    tzif->offsets = xcalloc(n->times, sizeof *tzif->offsets);
    tzif->first = (int32_t)read32(types);
    for (uint32_t i = 0; i < n->times; i++) {
        tzif->at[i] = read64(p + (size_t)i * 8);
        if (indices[i] >= n->types || (i > 0 && tzif->at[i] <= tzif->at[i - 1])) {
            return false;
        }
        tzif->offsets[i] = (int32_t)read32(types + (size_t)indices[i] * TYPE_SIZE);
        if (abs(tzif->offsets[i]) > OFFSET_MAX) {
            return false;
        }
    }
    tzif->count = n->times;
    return abs(tzif->first) <= OFFSET_MAX;
}

/* Letters, or anything between < and >. */
static bool skip_name(const char **p)
{
    const char *start = *p;
    if (**p == '<') {
        *p += strcspn(*p, ">");
        if (**p != '>') {
            return false;
        }
        ++*p;
    } else {
        while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z')) {
            ++*p;
        }
    }
    return *p > start;
}

static bool number_read(const char **p, int32_t *out)
{
    int32_t number = 0;
    const char *start = *p;
    while (**p >= '0' && **p <= '9' && *p - start < 4) {
        number = number * 10 + (**p - '0');
        ++*p;
    }
    *out = number;
    return *p > start;
}

/* [+-]hh[:mm[:ss]] */
static bool time_read(const char **p, int32_t *seconds)
{
    int32_t sign = **p == '-' ? -1 : 1;
    int32_t part = 0, sum = 0, scale = 3600;
    *p += **p == '-' || **p == '+';
    do {
        if (!number_read(p, &part)) {
            return false;
        }
        sum += part * scale;
        scale /= 60;
    } while (scale > 0 && **p == ':' && ++*p);
    *seconds = sign * sum;
    return true;
}

/* Mm.w.d, Jn or n, then /time; 02:00 when no time is given. */
static bool rule_read(const char **p, struct rule *out)
{
    int32_t a = 0, b = 0, c = 0;
    struct rule rule = {.kind = RULE_DAY, .seconds = 2 * 3600};
    if (**p == 'M') {
        ++*p;
        if (!number_read(p, &a) || *(*p)++ != '.' || !number_read(p, &b) || *(*p)++ != '.' ||
            !number_read(p, &c) || a < 1 || a > 12 || b < 1 || b > 5 || c > 6) {
            return false;
        }
        rule = (struct rule){RULE_MONTH, a, b, c, rule.seconds};
    } else {
        rule.kind = **p == 'J' ? RULE_JULIAN : RULE_DAY;
        *p += **p == 'J';
        if (!number_read(p, &a) || a > 365) {
            return false;
        }
        rule.day = a;
    }
    if (**p == '/') {
        ++*p;
        if (!time_read(p, &rule.seconds)) {
            return false;
        }
    }
    *out = rule;
    return true;
}

/* CET-1CEST,M3.5.0,M10.5.0/3; offsets there count west. */
static bool tail_read(const char *p, struct tail *out)
{
    struct tail tail = {.given = true};
    int32_t west = 0;
    if (*p == '\0') {
        return true;
    }
    if (!skip_name(&p) || !time_read(&p, &west)) {
        return false;
    }
    tail.standard_offset = -west;
    if (*p != '\0') {
        tail.summer = true;
        tail.summer_offset = tail.standard_offset + 3600;
        if (!skip_name(&p)) {
            return false;
        }
        if (*p != ',') {
            if (!time_read(&p, &west)) {
                return false;
            }
            tail.summer_offset = -west;
        }
        if (*p++ != ',' || !rule_read(&p, &tail.start) || *p++ != ',' ||
            !rule_read(&p, &tail.end) || *p != '\0') {
            return false;
        }
    }
    *out = tail;
    return abs(tail.standard_offset) <= OFFSET_MAX && abs(tail.summer_offset) <= OFFSET_MAX;
}

static bool footer_read(struct tzif *tzif, const unsigned char *p, size_t length)
{
    char text[FOOTER_MAX];
    if (length < 2 || p[0] != '\n') {
        return false;
    }
    const unsigned char *end = memchr(p + 1, '\n', length - 1);
    if (!end || end - (p + 1) >= FOOTER_MAX) {
        return false;
    }
    size_t size = (size_t)(end - (p + 1));
    memcpy(text, p + 1, size);
    text[size] = '\0';
    return tail_read(text, &tzif->tail);
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Local seconds since 1970, without any offset, of the rule in that year. */
static int64_t rule_seconds(const struct rule *rule, int year)
{
    int64_t first = days_from_civil(year, rule->kind == RULE_MONTH ? rule->month : 1, 1);
    int64_t day = first + rule->day;
    if (rule->kind == RULE_JULIAN) {
        /* 29 February is never counted */
        day = first + rule->day - 1 + (is_leap(year) && rule->day >= 60);
    } else if (rule->kind == RULE_MONTH) {
        int weekday = (weekday_of(first) + 1) % 7; /* here Sunday is 0 */
        day = first + (rule->day - weekday + 7) % 7 + (rule->week - 1) * 7;
        int64_t next = rule->month == 12 ? days_from_civil(year + 1, 1, 1)
                                         : days_from_civil(year, rule->month + 1, 1);
        day -= day >= next ? 7 : 0;
    }
    return day * DAY_SECONDS + rule->seconds;
}

static int32_t tail_offset(const struct tail *tail, int64_t seconds)
{
    if (!tail->summer) {
        return tail->standard_offset;
    }
    int year = 0, month = 0, day = 0;
    int64_t local = seconds + tail->standard_offset;
    int64_t days = local / DAY_SECONDS - (local % DAY_SECONDS < 0);
    civil_from_days(days, &year, &month, &day);
    int64_t start = rule_seconds(&tail->start, year) - tail->standard_offset;
    int64_t end = rule_seconds(&tail->end, year) - tail->summer_offset;
    /* in the south summer goes over the turn of the year */
    bool summer =
        start < end ? seconds >= start && seconds < end : seconds >= start || seconds < end;
    return summer ? tail->summer_offset : tail->standard_offset;
}

static bool tzif_read(struct tzif *tzif, const unsigned char *bytes, size_t length)
{
    struct counts counts;
    if (!header_read(bytes, length, &counts)) {
        return false;
    }
    size_t skip = HEADER_SIZE + block_size(&counts, 4);
    if (skip > length || !header_read(bytes + skip, length - skip, &counts)) {
        return false;
    }
    size_t start = skip + HEADER_SIZE, size = block_size(&counts, 8);
    if (size > length - start || !block_read(tzif, bytes + start, &counts)) {
        return false;
    }
    return footer_read(tzif, bytes + start + size, length - start - size);
}

int32_t tzif_offset(const struct tzif *tzif, int64_t seconds)
{
    size_t low = 0, high = tzif->count; /* the first transition behind seconds */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tzif->at[middle] <= seconds) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == tzif->count && tzif->tail.given) {
        return tail_offset(&tzif->tail, seconds);
    }
    return low == 0 ? tzif->first : tzif->offsets[low - 1];
}

struct tzif *tzif_create(const unsigned char *bytes, size_t length)
{
    struct tzif *tzif = xcalloc(1, sizeof *tzif);
    if (!tzif_read(tzif, bytes, length)) {
        tzif_destroy(tzif);
        return NULL;
    }
    return tzif;
}

void tzif_destroy(struct tzif *tzif)
{
    if (!tzif) {
        return;
    }
    free(tzif->at);
    free(tzif->offsets);
    free(tzif);
}
