/* test_units.c - every form of the language's values, accepted and refused, and the printers. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/core/units.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define DAY INT64_C(86400000)

struct good {
    const char *text;
    int64_t value;
};
/* What must stand in the sentence, and in what was expected. */
struct bad {
    const char *text, *sentence, *expected;
};
typedef int (*parse_fn)(const char *text, int64_t *out, struct error *err);

static void check_good(parse_fn parse, const struct good *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        int64_t value = -1;
        cr_assert_eq(parse(cases[i].text, &value, &err), 0, "'%s': %s", cases[i].text, err.text);
        cr_assert_eq(value, cases[i].value, "'%s' is %" PRId64, cases[i].text, value);
    }
}

static void check_error(const struct bad *bad, int status, const struct error *err)
{
    cr_assert_eq(status, -1, "'%s' was accepted", bad->text);
    cr_assert_eq(err->code, ERROR_INVALID, "'%s'", bad->text);
    cr_assert(strstr(err->text, bad->sentence), "'%s': text is '%s'", bad->text, err->text);
    cr_assert(strstr(err->expected, bad->expected), "'%s': expected is '%s'", bad->text,
              err->expected);
}

static void check_bad(parse_fn parse, const struct bad *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct error err = {0};
        int64_t value = -77;
        check_error(&cases[i], parse(cases[i].text, &value, &err), &err);
        cr_assert_eq(value, -77, "'%s': out was touched", cases[i].text);
    }
}

Test(units, durations)
{
    static const struct good good[] = {
        {"45s", 45000},     {"15m", 900000}, {"2h", 7200000},           {"7d", 7 * DAY},
        {"1h30m", 5400000}, {"500ms", 500},  {"1d2h3m4s5ms", 93784005}, {"3653d", 3653 * DAY},
        {"90m", 5400000},   {"007s", 7000},
    };
    static const struct bad bad[] = {
        {"90", "duration without a unit", "write 90s, 90m or 90h"},
        {"1:30", "'1:30' is not a duration", "write units: 1h30m or 1m30s"},
        {"", "'' is not a duration", "45s, 15m, 2h, 7d or 1h30m"},
        {"s", "not a duration", "whole numbers with units"},
        {"1.5h", "not a duration", "whole numbers with units"},
        {"2 h", "not a duration", "whole numbers with units"},
        {"2H", "not a duration", "whole numbers with units"},
        {"2w", "not a duration", "whole numbers with units"},
        {"30m1h", "not a duration", "whole numbers with units"},
        {"1h1h", "not a duration", "whole numbers with units"},
        {"1hm", "not a duration", "whole numbers with units"},
        {"-5s", "not a duration", "whole numbers with units"},
        {"true", "not a duration", "whole numbers with units"},
        {"0s", "too short", "more than 0s"},
        {"3654d", "too long", "at most 3653d"},
        {"99999999999999999999s", "not a duration", "whole numbers"},
        {"9223372036854775807d", "too long", "at most"},
        {"9223372036854775807ms9", "not a duration", "whole"},
    };
    check_good(duration_parse, good, COUNT(good));
    check_bad(duration_parse, bad, COUNT(bad));
}

Test(units, sizes)
{
    static const struct good good[] = {
        {"512MiB", INT64_C(512) << 20},
        {"8GiB", INT64_C(8) << 30},
        {"1.5TiB", INT64_C(3) << 39},
        {"150GB", INT64_C(150000000000)},
        {"0B", 0},
        {"7kB", 7000},
        {"1.1GiB", 1181116006},
        {"8191PiB", INT64_C(8191) << 50},
        {"0.5KiB", 512},
        {"2TB", INT64_C(2000000000000)},
        {"0.0001KiB", 0},
    };
    static const struct bad bad[] = {
        {"8G", "'8G' says neither GiB nor GB", "write 8GiB (1024) or 8GB (1000)"},
        {"8k", "says neither KiB nor KB", "write 8KiB (1024) or 8kB (1000)"},
        {"8192", "size without a unit", "write 8192MiB or 8192GiB"},
        {"8 GiB", "'8 GiB' is not a size", "without a space"},
        {"8gib", "not a size", "8GiB"},
        {"GiB", "not a size", "8GiB"},
        {"", "not a size", "8GiB"},
        {"-1GiB", "not a size", "8GiB"},
        {"1.GiB", "not a size", "8GiB"},
        {".5GiB", "not a size", "8GiB"},
        {"1e3B", "not a size", "8GiB"},
        {"8192PiB", "too large", "less than 8192PiB"},
        {"9999999999999999999B", "not a size", "8GiB"},
    };
    check_good(size_parse, good, COUNT(good));
    check_bad(size_parse, bad, COUNT(bad));
}

Test(units, shares)
{
    static const struct good good[] = {
        {"80%", 800000},
        {"0%", 0},
        {"12.5%", 125000},
        {"0.0001%", 1},
        {"10000%", 100 * SHARE_ONE},
        {"150%", 1500000},
    };
    static const struct bad bad[] = {
        {"0.8", "share without %", "write 80%"},
        {"80", "share without %", "write 80%"},
        {"1.0", "share without %", "write 100%"},
        {"80 %", "'80 %' is not a share", "write 80%"},
        {"0.00001%", "not a share", "at most 4 decimals"},
        {"-5%", "not a share", "like 80%"},
        {"%", "not a share", "like 80%"},
        {"", "not a share", "like 80%"},
        {"10001%", "too large", "at most 10000%"},
    };
    check_good(share_parse, good, COUNT(good));
    check_bad(share_parse, bad, COUNT(bad));
}

Test(units, power)
{
    static const struct good good[] = {{"350 W", 350000}, {"4 W", 4000}, {"0.125 W", 125}};
    static const struct bad bad[] = {
        {"350", "power without a unit", "write 350 W"},
        {"350W", "not a power", "350 W"},
        {"1 kW", "not a power", "350 W"},
        {"0.0001 W", "not a power", "at most 3 decimals"},
    };
    check_good(power_parse, good, COUNT(good));
    check_bad(power_parse, bad, COUNT(bad));
}

Test(units, thousandths)
{
    static const struct good good[] = {{"4", 4000}, {"1.5", 1500}, {"0.001", 1}, {"0", 0}};
    static const struct bad bad[] = {
        {"1.0005", "not a number", "at most 3 decimals"},
        {"-1", "not a number", "4 or 1.5"},
        {"4 cpus", "not a number", "4 or 1.5"},
        {"1e3", "not a number", "4 or 1.5"},
        {"", "not a number", "4 or 1.5"},
        {"9223372036854775807", "not", "4 or"},
    };
    check_good(thousandths_parse, good, COUNT(good));
    check_bad(thousandths_parse, bad, COUNT(bad));
}

Test(units, money)
{
    static const struct {
        const char *text;
        enum price_per per;
        int64_t nano;
        const char *currency;
    } good[] = {
        {"25 EUR", PRICE_PER_NONE, 25 * MONEY_UNIT, "EUR"},
        {"0.31 EUR/kWh", PRICE_PER_KWH, 310000000, "EUR"},
        {"-0.02 EUR/kWh", PRICE_PER_KWH, -20000000, "EUR"},
        {"1.52 USD/h", PRICE_PER_HOUR, 1520000000, "USD"},
        {"0.09 USD/GB", PRICE_PER_GB, 90000000, "USD"},
        {"0.000000001 CHF", PRICE_PER_NONE, 1, "CHF"},
    };
    static const struct {
        struct bad bad;
        enum price_per per;
    } bad[] = {
        {{"25", "money without a currency", "write 25 EUR"}, PRICE_PER_NONE},
        {{"€25", "not a sum of money", "write 25 EUR"}, PRICE_PER_NONE},
        {{"25EUR", "not a sum of money", "write 25 EUR"}, PRICE_PER_NONE},
        {{"25 eur", "not a sum of money", "write 25 EUR"}, PRICE_PER_NONE},
        {{"-25 EUR", "not a sum of money", "write 25 EUR"}, PRICE_PER_NONE},
        {{"much", "not a sum of money", "like 25 EUR"}, PRICE_PER_NONE},
        {{"25 EUR/h", "not", "write 25 EUR"}, PRICE_PER_NONE},
        {{"0.0000000001 EUR", "not a sum", "write"}, PRICE_PER_NONE},
        {{"9999999999 EUR", "too much", "at most 9000000000"}, PRICE_PER_NONE},
        {{"0.31", "price without a currency", "write 0.31 EUR/kWh"}, PRICE_PER_KWH},
        {{"1.52 USD", "not a price /h", "write 1.52 USD/h"}, PRICE_PER_HOUR},
        {{"1.52 USD/kWh", "not a price /h", "write 1.52 USD/h"}, PRICE_PER_HOUR},
        {{"-1 USD/h", "not a price", "write 1 EUR/h"}, PRICE_PER_HOUR},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct money money = {0};
        struct error err = {0};
        cr_assert_eq(price_parse(good[i].text, good[i].per, &money, &err), 0, "%s: %s",
                     good[i].text, err.text);
        cr_assert_eq(money.nano, good[i].nano, "%s", good[i].text);
        cr_assert_str_eq(money.currency, good[i].currency);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct money money = {-7, "XXX"};
        struct error err = {0};
        int status = price_parse(bad[i].bad.text, bad[i].per, &money, &err);
        check_error(&bad[i].bad, status, &err);
        cr_assert_eq(money.nano, -7);
        cr_assert_str_eq(money.currency, "XXX");
    }
}

Test(units, rates)
{
    static const struct {
        const char *text;
        struct rate rate;
    } good[] = {
        {"5/s", {5, 1000}}, {"20/5m", {20, 300000}}, {"1/d", {1, DAY}}, {"3/1h30m", {3, 5400000}}};
    static const struct bad bad[] = {
        {"5", "rate without a time", "write 5/s or 5/5m"},
        {"0/s", "not a rate", "like 5/s"},
        {"5/", "not a rate", "like 5/s"},
        {"/s", "not a rate", "like 5/s"},
        {"5/5", "not a rate", "like 5/s"},
        {"1.5/s", "not a rate", "like 5/s"},
        {"5 per s", "not a rate", "like 5/s"},
        {"5/0s", "not a rate", "like 5/s"},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct rate rate = {0};
        struct error err = {0};
        cr_assert_eq(rate_parse(good[i].text, &rate, &err), 0, "%s: %s", good[i].text, err.text);
        cr_assert_eq(rate.count, good[i].rate.count);
        cr_assert_eq(rate.per_ms, good[i].rate.per_ms, "%s", good[i].text);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct rate rate = {0};
        struct error err = {0};
        check_error(&bad[i], rate_parse(bad[i].text, &rate, &err), &err);
    }
}

Test(units, ranges)
{
    static const struct {
        const char *text;
        struct range range;
    } good[] = {
        {"4", {4, 4}}, {"4..", {4, UNLIMITED}}, {"..8", {0, 8}}, {"4..8", {4, 8}}, {"0", {0, 0}}};
    static const struct bad bad[] = {
        {">= 4", "'>= 4' is not a range", "4.. (at least)"},
        {"..", "not a range", "4 (exactly)"},
        {"", "not a range", "4 (exactly)"},
        {"4...8", "not a range", "4..8"},
        {"4..8..9", "not a range", "4..8"},
        {"-1..", "not a range", "4..8"},
        {"a..b", "not a range", "4..8"},
        {"8..4", "the range '8..4' is empty", "the smaller end first"},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct range range = {-1, -1};
        struct error err = {0};
        cr_assert_eq(range_parse(good[i].text, &range, &err), 0, "%s: %s", good[i].text, err.text);
        cr_assert_eq(range.low, good[i].range.low, "%s", good[i].text);
        cr_assert_eq(range.high, good[i].range.high, "%s", good[i].text);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct range range = {0};
        struct error err = {0};
        check_error(&bad[i], range_parse(bad[i].text, &range, &err), &err);
    }
}

Test(units, ranges_in_other_units)
{
    struct range range = {0};
    struct error err = {0};
    cr_assert_eq(range_parse_by("..8GiB", size_parse, &range, &err), 0, "%s", err.text);
    cr_assert_eq(range.low, 0);
    cr_assert_eq(range.high, INT64_C(8) << 30);
    cr_assert_eq(range_parse_by("0.5..1.5", thousandths_parse, &range, &err), 0, "%s", err.text);
    cr_assert_eq(range.low, 500);
    cr_assert_eq(range.high, 1500);
    cr_assert_eq(range_parse_by("8..16", size_parse, &range, &err), -1);
    cr_assert_str_eq(err.text, "size without a unit");
}

Test(units, integers)
{
    struct error err = {0};
    int64_t number = 0;
    cr_assert_eq(integer_parse("9", 1, 9, &number, &err), 0);
    cr_assert_eq(number, 9);
    cr_assert_eq(integer_parse("-3", -5, 5, &number, &err), 0);
    cr_assert_eq(number, -3);
    cr_assert_eq(integer_parse("9223372036854775807", 0, INT64_MAX, &number, &err), 0);
    static const struct bad bad[] = {
        {"10", "10 is out of range", "from 1 to 9"},
        {"0", "0 is out of range", "from 1 to 9"},
        {"-3", "-3 is out of range", "from 1 to 9"},
        {"4.0", "not a whole number", "from 1 to 9"},
        {"four", "not a whole number", "1 to 9"},
        {"", "not a whole number", "1 to 9"},
        {"-", "not a whole number", "1 to 9"},
        {"+4", "not a whole number", "1 to 9"},
        {"1_000", "not a whole number", "1 to 9"},
        {"99999999999999999999", "not a whole", "1 to"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        number = -77;
        check_error(&bad[i], integer_parse(bad[i].text, 1, 9, &number, &err), &err);
        cr_assert_eq(number, -77);
    }
    cr_assert_eq(integer_parse("-1", 0, INT64_MAX, &number, &err), -1);
    cr_assert_str_eq(err.expected, "a whole number of at least 0");
}

Test(units, instants)
{
    static const struct {
        const char *text, *zone;
        int64_t wall_ms;
    } good[] = {
        {"1970-01-01T00:00:00Z", NULL, 0},
        {"2026-03-12T08:00:00+01:00", NULL, INT64_C(1773298800000)},
        {"2026-03-12T07:00:00Z", NULL, INT64_C(1773298800000)},
        {"2026-03-12t07:00:00.25z", NULL, INT64_C(1773298800250)},
        {"2026-03-12T07:00:00.1239Z", NULL, INT64_C(1773298800123)},
        {"2026-03-12 02:30:00-04:30", NULL, INT64_C(1773298800000)},
        {"2026-03-10 06:00", "UTC", INT64_C(1773122400000)},
        {"2024-02-29 00:00", "UTC", INT64_C(1709164800000)},
        {"2026-03-12T08:00:00+01:00", "UTC", INT64_C(1773298800000)},
    };
    for (size_t i = 0; i < COUNT(good); i++) {
        struct error err = {0};
        int64_t wall = -1;
        cr_assert_eq(instant_parse(good[i].text, good[i].zone, &wall, &err), 0, "%s: %s",
                     good[i].text, err.text);
        cr_assert_eq(wall, good[i].wall_ms, "%s is %" PRId64, good[i].text, wall);
    }
}

Test(units, instants_refused)
{
    static const struct {
        struct bad bad;
        const char *zone;
    } bad[] = {
        {{"2026-03-10 06:00", "does not say in which time zone", "2026-03-10T06:00:00+01:00"},
         NULL},
        {{"2026-03-10 06:00", "no time zone 'Mars/Base'", "Europe/Berlin"}, "Mars/Base"},
        {{"2026-02-29T00:00:00Z", "not a date", "2026-03-10T06"}, NULL},
        {{"2026-13-01T00:00:00Z", "not a date", "2026-03-10T06"}, NULL},
        {{"2026-03-10T24:00:00Z", "not a date", "2026-03-10T06"}, NULL},
        {{"2026-03-10T06:60:00Z", "not a date", "2026-03-10T06"}, NULL},
        {{"2026-03-10", "not a date and time", "2026-03-10 06:00"}, "UTC"},
        {{"1773122400", "not a date", "2026-03-10T06"}, NULL},
        {{"2026-03-10T06:00:00+1", "not a date", "offset like +01:00"}, NULL},
        {{"2026-03-10T06:00:00Zulu", "not a date", "offset like +01:00"}, NULL},
        {{"2026-03-10T06:00:00.Z", "not a date", "2026-03-10T06"}, NULL},
        {{"tomorrow", "not a date", "2026-03-10 06:00"}, "UTC"},
        {{"", "not a date", "2026-03-10 06:00"}, "UTC"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error err = {0};
        int64_t wall = -77;
        check_error(&bad[i].bad, instant_parse(bad[i].bad.text, bad[i].zone, &wall, &err), &err);
        cr_assert_eq(wall, -77);
    }
}

Test(units, messages_are_clean)
{
    char text[600];
    struct error err = {0};
    int64_t out = 0;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[0] = '\n';
    text[1] = '\x1b';
    cr_assert_eq(duration_parse(text, &out, &err), -1);
    cr_assert(strlen(err.text) < 100, "%s", err.text);
    cr_assert_null(strpbrk(err.text, "\n\x1b"));
    memset(text, '7', sizeof text - 1);
    cr_assert_eq(share_parse(text, &out, &err), -1);
    cr_assert_eq(size_parse(text, &out, &err), -1);
    cr_assert_eq(duration_parse(text, &out, &err), -1);
}

Test(units, printed_text_reads_back)
{
    static const int64_t numbers[] = {1,       999, 1000,    1500,       60000,
                                      5400000, DAY, DAY + 1, 3653 * DAY, 93784005};
    char text[UNITS_TEXT_SIZE];
    struct error err = {0};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        int64_t back = 0;
        cr_assert_eq(duration_parse(duration_text(numbers[i], text), &back, &err), 0, "%s", text);
        cr_assert_eq(back, numbers[i], "%s", text);
        cr_assert_eq(size_parse(size_text(numbers[i], text), &back, &err), 0, "%s", text);
        cr_assert_eq(back, numbers[i], "%s", text);
        cr_assert_eq(thousandths_parse(thousandths_text(numbers[i], text), &back, &err), 0);
        cr_assert_eq(back, numbers[i], "%s", text);
        struct money money = {0};
        cr_assert_eq(money_parse(money_text(numbers[i], "EUR", text), &money, &err), 0, "%s", text);
        cr_assert_eq(money.nano, numbers[i], "%s", text);
        int64_t share = numbers[i] % (100 * SHARE_ONE);
        cr_assert_eq(share_parse(share_text(share, text), &back, &err), 0, "%s", text);
        cr_assert_eq(back, share, "%s", text);
        int64_t instant = numbers[i] * 7;
        cr_assert_eq(instant_parse(instant_text(instant, text), NULL, &back, &err), 0, "%s", text);
        cr_assert_eq(back, instant, "%s", text);
    }
}

Test(units, printed_forms)
{
    char out[UNITS_TEXT_SIZE];
    cr_expect_str_eq(duration_text(0, out), "0s");
    cr_expect_str_eq(duration_text(5400000, out), "1h30m");
    cr_expect_str_eq(duration_short(1102000, out), "18m 22s");
    cr_expect_str_eq(duration_short(6720000, out), "1h 52m");
    cr_expect_str_eq(duration_short(2 * DAY, out), "2d");
    cr_expect_str_eq(duration_short(DAY + 3 * 3600000 + 59, out), "1d 3h");
    cr_expect_str_eq(duration_short(44250, out), "44s");
    cr_expect_str_eq(duration_short(350, out), "350ms");
    cr_expect_str_eq(duration_short(0, out), "0s");
    cr_expect_str_eq(duration_short(-1102000, out), "-18m 22s");
    cr_expect_str_eq(size_text(INT64_C(3) << 39, out), "1536GiB");
    cr_expect_str_eq(size_text(INT64_C(150000000000), out), "150GB");
    cr_expect_str_eq(size_text(1000001, out), "1000001B");
    cr_expect_str_eq(size_text(0, out), "0B");
    cr_expect_str_eq(money_text(23700000, "EUR", out), "0.0237 EUR");
    cr_expect_str_eq(money_text(3000 * MONEY_UNIT, "EUR", out), "3000 EUR");
    cr_expect_str_eq(money_text(-20000000, "", out), "-0.02");
    cr_expect_str_eq(money_text(INT64_MIN, "EUR", out), "-9223372036.854775808 EUR");
    cr_expect_str_eq(share_text(800000, out), "80%");
    cr_expect_str_eq(share_text(125000, out), "12.5%");
    cr_expect_str_eq(thousandths_text(1500, out), "1.5");
    cr_expect_str_eq(instant_text(INT64_C(1773298800005), out), "2026-03-12T07:00:00.005Z");
    cr_expect_str_eq(instant_text(-1, out), "1969-12-31T23:59:59.999Z");
}

Test(units, money_for_people_has_four_digits)
{
    char out[UNITS_TEXT_SIZE];
    cr_expect_str_eq(money_short(0, out), "0");
    cr_expect_str_eq(money_short(1, out), "0.000000001");
    cr_expect_str_eq(money_short(23712345, out), "0.02371");
    cr_expect_str_eq(money_short(23700000, out), "0.0237");
    cr_expect_str_eq(money_short(INT64_C(412604999999), out), "412.6");
    cr_expect_str_eq(money_short(INT64_C(999950000000), out), "1000");
    cr_expect_str_eq(money_short(INT64_C(12345678900000), out), "12346");
    cr_expect_str_eq(money_short(-23712345, out), "-0.02371");
    cr_expect_str_eq(money_short(INT64_MAX, out), "9223372037");
    cr_expect_str_eq(money_short(INT64_MIN, out), "-9223372037");
}

Test(units, nearest_words)
{
    static const char *const words[] = {"leave_free", "places", "fill", "wait", "burst", "hpc/gpu"};
    cr_expect_str_eq(nearest_word("leave_fre", words, 6), "leave_free");
    cr_expect_str_eq(nearest_word("leavefree", words, 6), "leave_free");
    cr_expect_str_eq(nearest_word("plcaes", words, 6), "places");
    cr_expect_str_eq(nearest_word("Wait", words, 6), "wait");
    cr_expect_str_eq(nearest_word("hpc/gpus", words, 6), "hpc/gpu");
    cr_expect_null(nearest_word("colour", words, 6));
    cr_expect_null(nearest_word("", words, 6));
    cr_expect_null(nearest_word("wait", words, 0));
    char word[5000];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    cr_expect_null(nearest_word(word, words, 6));
}

Test(units, globs)
{
    cr_expect(glob_match("*", ""));
    cr_expect(glob_match("hpc/*", "hpc/gpu"));
    cr_expect(glob_match("*-test-*", "a-test-b-test-c"));
    cr_expect(glob_match("a*b*c", "aXbXbc"));
    cr_expect(glob_match("[x]?", "[x]?"));
    cr_expect_not(glob_match("hpc", "hpc/gpu"));
    cr_expect_not(glob_match("a*b", "ab c"));
    cr_expect_not(glob_match("", "a"));
    cr_expect_not(glob_match("?", "a"));
    char text[20001], pattern[401];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < 400; i += 2) {
        pattern[i] = '*';
        pattern[i + 1] = 'a';
    }
    pattern[399] = 'b';
    pattern[400] = '\0';
    cr_expect_not(glob_match(pattern, text)); /* must end: no exponential search */
}

Test(units, utf8)
{
    static const struct {
        const char *text;
        size_t length;
        bool valid;
    } cases[] = {
        {"", 0, true},
        {"plain", 5, true},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80", 9, true},
        {"\xEF\xBF\xBF", 3, true},
        {"\xF4\x8F\xBF\xBF", 4, true},
        {"a\0b", 3, false},
        {"\x80", 1, false},
        {"\xC0\xAF", 2, false},         /* overlong */
        {"\xE0\x80\xAF", 3, false},     /* overlong */
        {"\xF0\x80\x80\xAF", 4, false}, /* overlong */
        {"\xED\xA0\x80", 3, false},     /* surrogate */
        {"\xF4\x90\x80\x80", 4, false}, /* beyond U+10FFFF */
        {"\xF5\x80\x80\x80", 4, false},
        {"\xE2\x82", 2, false}, /* cut */
        {"\xC3", 1, false},
        {"\xC3(", 2, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_eq(utf8_is_valid(cases[i].text, cases[i].length), cases[i].valid, "case %zu", i);
    }
}
