/* Budgets: what they count, when their period starts, and rent to the nano-unit. */
#include "tests/unit/policy_lab.h"

#include "policy/budget.h"

#include <criterion/criterion.h>

static struct lab *lab;
static struct budget_rule *budget;

static void set_up(void)
{
    lab = lab_site();
    budget = lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
}

static void tear_down(void)
{
    lab_destroy(lab);
}

TestSuite(budget, .init = set_up, .fini = tear_down);

static bool counts(const char *place)
{
    return budget_counts(budget, &lab->spec, "alice@example.org", lab_view(lab, place)->place);
}

Test(budget, counts_rent_alone)
{
    cr_assert(counts("aws/spot"));
    cr_assert(counts("aws/on-demand"));
    cr_assert_not(counts("hpc/cpu"));
}

Test(budget, counts_by_place_and_by_match)
{
    budget->places = lab_texts(lab, "aws/on-demand gcp");
    cr_assert_not(counts("aws/spot"));
    cr_assert(counts("aws/on-demand"));
    budget->places = lab_texts(lab, "aws");
    cr_assert(counts("aws/spot"));
    budget->match.team = lab_texts(lab, "ml");
    cr_assert_not(counts("aws/spot"));
}

/* Wall ms of a UTC time, by days since 1970. */
static int64_t utc(int64_t days, int64_t hours, int64_t minutes)
{
    return (days * 24 + hours) * HOUR + minutes * MINUTE;
}

enum { MARCH_9 = 20521 /* 2026-03-09, a Monday */ };

static int64_t start(int per, int64_t now_ms, const char *zone)
{
    budget->per = per;
    return budget_period_start(budget, now_ms, zone);
}

Test(budget, periods_start_at_midnight_monday_and_the_first)
{
    int64_t now = utc(MARCH_9 + 3, 14, 2);
    cr_assert_eq(start(BUDGET_JOB, now, "UTC"), 0);
    cr_assert_eq(start(BUDGET_DAY, now, "UTC"), utc(MARCH_9 + 3, 0, 0));
    cr_assert_eq(start(BUDGET_WEEK, now, "UTC"), utc(MARCH_9, 0, 0));
    cr_assert_eq(start(BUDGET_MONTH, now, "UTC"), utc(MARCH_9 - 8, 0, 0));
    cr_assert_eq(start(BUDGET_YEAR, now, "UTC"), utc(MARCH_9 - 8 - 59, 0, 0));
    cr_assert_eq(start(BUDGET_DAY, utc(MARCH_9, 0, 0), NULL), utc(MARCH_9, 0, 0));
    cr_assert_eq(start(BUDGET_WEEK, utc(MARCH_9, 0, 0) - 1, "UTC"), utc(MARCH_9 - 7, 0, 0));
    cr_assert_eq(start(BUDGET_DAY, -1, "UTC"), utc(-1, 0, 0));
}

Test(budget, periods_are_of_the_zone)
{
    /* Berlin is an hour ahead in winter, two in summer; the change was on 2026-03-29. */
    cr_assert_eq(start(BUDGET_DAY, utc(MARCH_9, 23, 30), "Europe/Berlin"), utc(MARCH_9, 23, 0));
    cr_assert_eq(start(BUDGET_MONTH, utc(MARCH_9 + 21, 12, 0), "Europe/Berlin"),
                 utc(MARCH_9 - 9, 23, 0)); /* still winter on the 1st */
    cr_assert_eq(start(BUDGET_MONTH, utc(MARCH_9 + 30, 12, 0), "Europe/Berlin"),
                 utc(MARCH_9 + 22, 22, 0));
    cr_assert_eq(start(BUDGET_DAY, utc(MARCH_9 + 20, 12, 0), "Europe/Berlin"),
                 utc(MARCH_9 + 19, 23, 0));
    cr_assert_eq(start(BUDGET_DAY, utc(MARCH_9 + 21, 12, 0), "Europe/Berlin"),
                 utc(MARCH_9 + 20, 22, 0));
}

Test(budget, a_zone_that_is_gone_counts_as_utc)
{
    cr_assert_eq(start(BUDGET_DAY, utc(MARCH_9, 23, 30), "No/Where"), utc(MARCH_9, 0, 0));
}

/* A period holds its own now, and all of it starts at the same time. */
Test(budget, property_a_period_is_its_own)
{
    uint64_t seed = 3;
    for (int i = 0; i < 10000; i++) {
        int per = (int)lab_range(&seed, BUDGET_DAY, BUDGET_YEAR);
        int64_t now = utc(lab_range(&seed, 15000, 25000), 0, lab_range(&seed, 0, 1439));
        int64_t from = start(per, now, "Europe/Berlin");
        cr_assert_leq(from, now);
        cr_assert_geq(from, now - INT64_C(367) * 24 * HOUR);
        cr_assert_eq(start(per, from, "Europe/Berlin"), from);
        cr_assert_lt(start(per, from - 1, "Europe/Berlin"), from);
    }
}

Test(budget, rent_is_rounded_up_and_saturates)
{
    cr_assert_eq(budget_rent(MONEY_UNIT, HOUR), MONEY_UNIT);
    cr_assert_eq(budget_rent(1, 1), 1);
    cr_assert_eq(budget_rent(0, HOUR), 0);
    cr_assert_eq(budget_rent(298000000, 20 * MINUTE), 99333334);
    cr_assert_eq(budget_rent(INT64_MAX, INT64_MAX), INT64_MAX);
}
