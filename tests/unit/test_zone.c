/* test_zone.c - civil dates, zone files, and the days on which clocks are set. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "broker/core/tzif.h"
#include "broker/core/zone.h"

#define HOUR INT64_C(3600000)
#define COUNT(array) (sizeof(array) / sizeof *(array))

static void need_tzdata(void)
{
    if (access("/usr/share/zoneinfo/Europe/Berlin", R_OK) != 0) {
        cr_skip_test("skip: package tzdata is not installed");
    }
}

static int64_t utc(int year, int month, int day, int hour, int minute)
{
    return days_from_civil(year, month, day) * 24 * HOUR + hour * HOUR + minute * INT64_C(60000);
}

Test(zone, civil_days)
{
    cr_expect_eq(days_from_civil(1970, 1, 1), 0);
    cr_expect_eq(days_from_civil(2000, 3, 1), 11017);
    cr_expect_eq(days_from_civil(2026, 3, 29), 20541);
    cr_expect_eq(days_from_civil(1969, 12, 31), -1);
    cr_expect_eq(weekday_of(0), 3); /* a Thursday */
    cr_expect_eq(weekday_of(-1), 2);
    cr_expect_eq(weekday_of(days_from_civil(2026, 3, 29)), 6);
    for (int64_t days = -800000; days < 800000; days += 97) {
        int year = 0, month = 0, day = 0;
        civil_from_days(days, &year, &month, &day);
        cr_assert_eq(days_from_civil(year, month, day), days);
    }
}

Test(zone, civil_dates_that_exist)
{
    cr_expect(civil_is_valid(2024, 2, 29));
    cr_expect(civil_is_valid(2000, 2, 29));
    cr_expect(civil_is_valid(2026, 12, 31));
    cr_expect_not(civil_is_valid(2026, 2, 29));
    cr_expect_not(civil_is_valid(1900, 2, 29));
    cr_expect_not(civil_is_valid(2026, 4, 31));
    cr_expect_not(civil_is_valid(2026, 0, 1));
    cr_expect_not(civil_is_valid(2026, 1, 0));
}

Test(zone, offsets_of_berlin, .init = need_tzdata)
{
    static const struct {
        int year, month, day, hour, minute, offset;
    } cases[] = {
        {2026, 1, 15, 12, 0, 1},  {2026, 7, 15, 12, 0, 2},  {2026, 3, 29, 0, 59, 1},
        {2026, 3, 29, 1, 0, 2},   {2026, 10, 25, 0, 59, 2}, {2026, 10, 25, 1, 0, 1},
        {2060, 3, 28, 0, 59, 1},  {2060, 3, 28, 1, 0, 2}, /* by the rule behind the table */
        {2060, 10, 31, 0, 59, 2}, {2060, 10, 31, 1, 0, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {0};
        int64_t offset = -1;
        int64_t at =
            utc(cases[i].year, cases[i].month, cases[i].day, cases[i].hour, cases[i].minute);
        cr_assert_eq(zone_offset("Europe/Berlin", at, &offset, &err), 0, "%s", err.text);
        cr_assert_eq(offset, cases[i].offset * HOUR, "case %zu: %" PRId64, i, offset);
    }
}

Test(zone, offsets_elsewhere, .init = need_tzdata)
{
    struct error err = {0};
    int64_t offset = 0;
    cr_assert_eq(zone_offset("Australia/Sydney", utc(2061, 1, 10, 0, 0), &offset, &err), 0);
    cr_expect_eq(offset, 11 * HOUR); /* summer goes over the turn of the year */
    cr_assert_eq(zone_offset("Australia/Sydney", utc(2061, 7, 10, 0, 0), &offset, &err), 0);
    cr_expect_eq(offset, 10 * HOUR);
    cr_assert_eq(zone_offset("Asia/Kolkata", utc(2026, 7, 10, 0, 0), &offset, &err), 0);
    cr_expect_eq(offset, 5 * HOUR + HOUR / 2);
    cr_assert_eq(zone_offset("America/New_York", utc(1971, 1, 10, 0, 0), &offset, &err), 0);
    cr_expect_eq(offset, -5 * HOUR);
    cr_assert_eq(zone_offset("Etc/UTC", utc(2026, 7, 10, 0, 0), &offset, &err), 0);
    cr_expect_eq(offset, 0);
}

Test(zone, from_local_on_days_when_clocks_are_set, .init = need_tzdata)
{
    static const struct {
        int month, day, hour, minute, utc_day, utc_hour, utc_minute;
    } cases[] = {
        {3, 10, 6, 0, 10, 5, 0},    {3, 29, 1, 59, 29, 0, 59},
        {3, 29, 2, 30, 29, 1, 30}, /* does not exist: read as 03:30 summer time */
        {3, 29, 3, 0, 29, 1, 0},    {3, 29, 0, 0, 28, 23, 0},
        {3, 30, 0, 0, 29, 22, 0},   {10, 25, 1, 59, 24, 23, 59},
        {10, 25, 2, 30, 25, 0, 30}, /* happens twice: the first */
        {10, 25, 3, 0, 25, 2, 0},   {10, 25, 0, 0, 24, 22, 0},
        {10, 26, 0, 0, 25, 23, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {0};
        int64_t wall = 0;
        cr_assert_eq(zone_from_local("Europe/Berlin", 2026, cases[i].month, cases[i].day,
                                     cases[i].hour, cases[i].minute, &wall, &err),
                     0, "%s", err.text);
        cr_assert_eq(
            wall,
            utc(2026, cases[i].month, cases[i].utc_day, cases[i].utc_hour, cases[i].utc_minute),
            "case %zu", i);
    }
}

Test(zone, utc_needs_no_file)
{
    struct error err = {0};
    int64_t wall = 0;
    cr_assert_eq(zone_from_local("UTC", 2026, 3, 10, 6, 0, &wall, &err), 0);
    cr_assert_eq(wall, utc(2026, 3, 10, 6, 0));
    cr_assert_eq(zone_check("UTC", &err), 0);
}

Test(zone, names_refused)
{
    static const char *const names[] = {
        "Mars/Base",
        "",
        "/etc/passwd",
        "../../../etc/passwd",
        "Europe/../../../../etc/passwd",
        "Europe",
        "Europe/",
        "Europe//Berlin",
        "Europe/Berlin\n",
        "zone.tab",
        "tzdata.zi",
        "CEST!",
        "AVeryLongNameOfAZoneThatNobodyWouldEverHaveOnAnyMachineInTheWorld/AndMore",
    };
    for (size_t i = 0; i < COUNT(names); i++) {
        struct error err = {0};
        cr_assert_eq(zone_check(names[i], &err), -1, "'%s' was accepted", names[i]);
        cr_assert_eq(err.code, ERROR_INVALID);
        cr_assert(strstr(err.expected, "Europe/Berlin"), "%s", err.expected);
    }
}

Test(zone, many_zones_share_the_cache, .init = need_tzdata)
{
    for (int round = 0; round < 3; round++) {
        for (int hours = 0; hours <= 12; hours++) {
            for (int sign = 0; sign < 2; sign++) {
                char name[16];
                struct error err = {0};
                int64_t offset = -1;
                (void)snprintf(name, sizeof name, "Etc/GMT%c%d", sign ? '-' : '+', hours);
                cr_assert_eq(zone_offset(name, 0, &offset, &err), 0, "%s", err.text);
                cr_assert_eq(offset, (sign ? hours : -hours) * HOUR, "%s", name);
            }
        }
    }
}

/* A version 2 file with no 32-bit data, one type of one hour, no transition, and this footer. */
static size_t file_make(unsigned char *out, const char *footer)
{
    static const unsigned char header[] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                          "\0\0\0\0"
                                          "\0\0\0\0"
                                          "\0\0\0\0"
                                          "\0\0\0\0"
                                          "\0\0\0\1"
                                          "\0\0\0\4";
    static const unsigned char body[] = "\0\0\x0e\x10\0\0"
                                        "CET";
    size_t n = 0;
    for (int block = 0; block < 2; block++) {
        memcpy(out + n, header, 44);
        n += 44;
        memcpy(out + n, body, 10);
        n += 10;
    }
    out[n++] = '\n';
    memcpy(out + n, footer, strlen(footer));
    n += strlen(footer);
    out[n++] = '\n';
    return n;
}

static int32_t offset_by(const char *footer, int64_t ms)
{
    unsigned char bytes[400];
    struct tzif *tzif = tzif_create(bytes, file_make(bytes, footer));
    cr_assert_not_null(tzif, "%s", footer);
    int32_t offset = tzif_offset(tzif, ms / 1000);
    tzif_destroy(tzif);
    return offset;
}

Test(zone, footer_rules)
{
    cr_expect_eq(offset_by("", 0), 3600);
    cr_expect_eq(offset_by("UTC0", 0), 0);
    cr_expect_eq(offset_by("<+0530>-5:30", 0), 19800);
    cr_expect_eq(offset_by("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", utc(2026, 7, 1, 0, 0)), -3600);
    cr_expect_eq(offset_by("AAA0BBB,J60,J300", utc(2024, 3, 1, 1, 59)), 0);
    cr_expect_eq(offset_by("AAA0BBB,J60,J300", utc(2024, 3, 1, 2, 0)), 3600);
    cr_expect_eq(offset_by("AAA0BBB,59/0,300", utc(2024, 2, 29, 0, 0)), 3600);
    cr_expect_eq(offset_by("AAA0BBB,59/0,300", utc(2024, 2, 28, 23, 59)), 0);
    cr_expect_eq(offset_by("AAA0BBB-2,M12.1.0,M3.1.0", utc(2026, 1, 1, 0, 0)), 7200);
}

Test(zone, broken_files_are_refused)
{
    static const char *const footers[] = {"CET",
                                          "CET-1CEST",
                                          "CET-1CEST,M3.5.0",
                                          "C<ET-1",
                                          "<CET-1",
                                          "CET-1CEST,M13.5.0,M10.5.0",
                                          "CET-1CEST,M3.5.0,M10.5.0x",
                                          "CET-1CEST,M3.6.0,M10.5.0",
                                          "CET-99",
                                          "-1"};
    unsigned char bytes[400];
    size_t length = file_make(bytes, "CET-1CEST,M3.5.0,M10.5.0/3");
    struct tzif *tzif = tzif_create(bytes, length);
    cr_assert_not_null(tzif);
    tzif_destroy(tzif);
    for (size_t cut = 0; cut < length; cut++) {
        cr_assert_null(tzif_create(bytes, cut), "cut at %zu", cut);
    }
    for (size_t i = 0; i < COUNT(footers); i++) {
        cr_assert_null(tzif_create(bytes, file_make(bytes, footers[i])), "%s", footers[i]);
    }
    length = file_make(bytes, "");
    for (size_t at = 0; at < 44; at++) { /* whatever the counts say: no reading outside, no crash */
        for (int block = 0; block < 2; block++) {
            unsigned char copy[400];
            memcpy(copy, bytes, length);
            copy[at + (block ? 54U : 0U)] ^= 0xff;
            tzif_destroy(tzif_create(copy, length));
        }
    }
}
