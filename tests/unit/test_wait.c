/* Expected waits: the known values of queueing theory, and what a place's board says. */
#include "tests/unit/policy_lab.h"

#include <criterion/criterion.h>
#include <math.h>

static void near(double has, double wanted, double by)
{
    cr_assert(fabs(has - wanted) <= by, "%.9f is not %.9f", has, wanted);
}

Test(wait, erlang_c_and_mean_have_their_known_values)
{
    static const struct {
        int64_t servers;
        double load, erlang, mean;
    } rows[] = {{1, 0.8, 0.800000, 4.000000},    {2, 1.6, 0.711111, 1.777778},
                {10, 8.0, 0.409180, 0.204590},   {50, 40.0, 0.086953, 0.008695},
                {100, 80.0, 0.019646, 0.000982}, {100, 90.0, 0.216940, 0.021694}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        near(wait_erlang_c(rows[i].servers, rows[i].load), rows[i].erlang, 5e-7);
        near(wait_mean(rows[i].servers, rows[i].load, 1.0, 1.0), rows[i].mean, 5e-7);
    }
    near(wait_p95(10, 8.0), 1.0511, 5e-5);
    near(wait_mean(1, 0.8, 1.0, 4.0), 10.0, 1e-9);
}

Test(wait, the_ends_of_the_formula_are_certain)
{
    near(wait_erlang_c(4, 0.0), 0.0, 0.0);
    near(wait_erlang_c(4, 4.0), 1.0, 0.0);
    near(wait_erlang_c(4, 9.0), 1.0, 0.0);
    near(wait_p95(100, 1.0), 0.0, 0.0);
}

static int64_t wait_at(struct lab *lab, const char *place)
{
    struct verdict_row row = {0};
    struct option option;
    option_init(&option, &lab->federation, lab_view(lab, place), &lab->subject, &row);
    int64_t ms = wait_expected(&option);
    option_fini(&option);
    return ms;
}

Test(wait, what_fits_starts_at_once)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.free.cpus = 4 * CPU;
    cr_assert_eq(wait_at(lab, "hpc/cpu"), 0);
    view->unseen.cpus = 1;
    cr_assert_gt(wait_at(lab, "hpc/cpu"), 0);
    cr_assert_eq(wait_at(lab, "aws/spot"), 0);
    lab_destroy(lab);
}

Test(wait, a_full_place_drains_what_is_ahead)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.free.cpus = 0;
    view->condition.running = 16; /* of 4 CPUs each: 16 servers */
    view->condition.waiting = 31;
    view->condition.waiting_cpus = -1;
    view->service_ms = HOUR;
    /* M/M/c with 31 ahead: (31 + 1) x 1 h / 16 */
    cr_assert_eq(wait_at(lab, "hpc/cpu"), 2 * HOUR);
    view->condition.waiting_cpus = 60 * CPU;
    cr_assert_eq(wait_at(lab, "hpc/cpu"), HOUR);
    view->unseen.cpus = 32 * CPU;
    cr_assert_eq(wait_at(lab, "hpc/cpu"), HOUR + HOUR / 2);
    view->service_ms = 0; /* then as long as the job itself */
    cr_assert_eq(wait_at(lab, "hpc/cpu"), 30 * MINUTE);
    lab_destroy(lab);
}

Test(wait, the_scarcest_resource_decides)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.free.memory = 0;
    view->service_ms = HOUR;
    int64_t ms = wait_at(lab, "hpc/cpu");
    cr_assert_eq(ms, (int64_t)llround(6.0 / 256.0 * HOUR), "%ld", (long)ms);
    lab_destroy(lab);
}

Test(wait, a_silent_queue_is_taken_from_arrivals)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.total.cpus = 40 * CPU; /* 10 servers of 4 CPUs */
    view->condition.free.cpus = 0;
    view->condition.running = 10;
    view->condition.waiting = view->condition.waiting_cpus = -1;
    view->service_ms = 8 * MINUTE;
    view->arrivals_ms = MINUTE;
    /* load 8 of 10, and it must wait: S / (c - a) */
    cr_assert_eq(wait_at(lab, "hpc/cpu"), 4 * MINUTE);
    view->condition.free.cpus = -1;
    near((double)wait_at(lab, "hpc/cpu"), 0.204590 * 8 * MINUTE, 2.0);
    view->arrivals_ms = MINUTE / 2; /* load 16 of 10: fluid, with our own ahead */
    view->condition.free.cpus = 0;
    view->waiting_ours = 9;
    cr_assert_eq(wait_at(lab, "hpc/cpu"), 8 * MINUTE);
    lab_destroy(lab);
}

Test(wait, many_servers_are_bounded_work)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.total.cpus = INT64_C(400000000) * CPU;
    view->condition.free.cpus = 0;
    view->condition.running = 100000000;
    view->condition.waiting = view->condition.waiting_cpus = -1;
    view->service_ms = HOUR;
    view->arrivals_ms = 1;
    cr_assert_geq(wait_at(lab, "hpc/cpu"), 0);
    cr_assert_leq(wait_at(lab, "hpc/cpu"), HOUR);
    lab_destroy(lab);
}

/* More ahead, or more of our own in flight, never shortens a wait. */
Test(wait, property_monotone_in_what_is_ahead)
{
    struct lab *lab = lab_site();
    uint64_t seed = 7;
    for (int i = 0; i < 10000; i++) {
        struct place_view *view = lab_view(lab, "hpc/cpu");
        view->condition.free.cpus = lab_range(&seed, 0, 64) * CPU;
        view->condition.running = lab_range(&seed, 0, 64);
        view->condition.waiting = lab_range(&seed, 0, 500);
        view->condition.waiting_cpus =
            lab_range(&seed, 0, 1) ? -1 : lab_range(&seed, 0, 2000) * CPU;
        view->service_ms = lab_range(&seed, 1, 10 * HOUR);
        view->unseen.cpus = lab_range(&seed, 0, 64) * CPU;
        int64_t cpus = lab_range(&seed, 1, 64), gib = lab_range(&seed, 1, 200);
        lab_job(lab, cpus, gib, lab_range(&seed, 1, 600));
        int64_t before = wait_at(lab, "hpc/cpu");
        view->unseen.cpus += lab_range(&seed, 0, 8) * CPU;
        view->condition.waiting += lab_range(&seed, 0, 8);
        cr_assert_geq(wait_at(lab, "hpc/cpu"), before, "case %d", i);
    }
    lab_destroy(lab);
}
