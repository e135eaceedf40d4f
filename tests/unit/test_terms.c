/* Cost terms: the figures of the worked examples, and what must hold for every sum. */
#include "tests/unit/policy_lab.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <math.h>

#define NANO(units) ((double)(units)*1e9)

/* Prices one place of the lab's site. */
static struct verdict_row price(struct lab *lab, const char *place)
{
    struct verdict_row row = {0};
    struct option option;
    struct deciding deciding = {.view = &lab->view, .subject = &lab->subject};
    terms_reference(&deciding);
    option_init(&option, &lab->federation, lab_view(lab, place), &lab->subject, &row);
    cr_assert(rent_price(&option, &deciding), "%s", row.why);
    terms_price(&option, &deciding);
    option_fini(&option);
    return row;
}

static struct deciding reference(struct lab *lab)
{
    struct deciding deciding = {.view = &lab->view, .subject = &lab->subject};
    terms_reference(&deciding);
    return deciding;
}

static void near(int64_t has, double wanted, double by)
{
    cr_assert(fabs((double)has - wanted) <= by, "%ld is not %.1f", (long)has, wanted);
}

Test(terms, rent_of_the_site_in_the_policy_s_currency)
{
    struct lab *lab = lab_site();
    lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
    struct verdict_row spot = price(lab, "aws/spot");
    /* 4 of 16 CPUs at 0.298 USD/h, 0.92 EUR for 1 USD, 20 minutes */
    near(spot.price_hour, NANO(0.298 * 0.92 / 4), 1);
    near(spot.terms[TERM_RENT], NANO(0.298 * 0.92 / 4 / 3), 2);
    near(spot.booked, NANO(0.298 * 0.92 / 4 / 3 * 1.2), 3);
    cr_assert_eq(spot.nodes, 250);
    struct verdict_row certain = price(lab, "aws/on-demand");
    near(certain.terms[TERM_RENT], NANO(0.0595), NANO(0.00005));
    lab_destroy(lab);
}

Test(terms, power_of_the_site)
{
    struct lab *lab = lab_site();
    near(price(lab, "hpc/cpu").terms[TERM_POWER], NANO(0.0022464), 1);
    near(price(lab, "k8s/ci").terms[TERM_POWER], NANO(0.0019968), 1);
    lab_job(lab, 2, 3, 20);
    near(price(lab, "edge").terms[TERM_POWER], NANO(0.0008324), 1);
    lab_destroy(lab);
}

Test(terms, power_of_a_gpu_is_that_of_its_model)
{
    struct lab *lab = lab_site();
    struct gpu_power gpus[] = {{(char *)"h100", 600000}, {(char *)"a100-80", 350000}};
    struct place *place = &lab->places[0][1];
    place->power.gpus = (struct list){gpus, 2};
    place->power.cpu = 0;
    lab->spec.needs.gpus = 2 * CPU;
    lab->spec.needs.gpu = lab_texts(lab, "a100-80");
    near(price(lab, "hpc/gpu").terms[TERM_POWER], NANO(0.7 * 1.35 * 0.312 / 3), 1);
    lab->spec.needs.gpu.count = 0;
    near(price(lab, "hpc/gpu").terms[TERM_POWER], NANO(1.2 * 1.35 * 0.312 / 3), 1);
    lab_destroy(lab);
}

Test(terms, power_is_nothing_without_a_tariff_or_a_rate)
{
    struct lab *lab = lab_site();
    lab->places[0][0].electricity.currency[0] = '\0';
    cr_assert_eq(price(lab, "hpc/cpu").terms[TERM_POWER], 0);
    copy_text(lab->places[0][1].electricity.currency, CURRENCY_SIZE, "CHF");
    cr_assert_eq(price(lab, "hpc/gpu").terms[TERM_POWER], 0);
    lab_destroy(lab);
}

Test(terms, waiting_is_a_share_of_the_cheapest_rented_cpu)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    struct deciding deciding = reference(lab);
    double hour = 4 * 0.298 * 0.92 / 16;
    near(deciding.reference, NANO(hour / 3), 3);
    near(deciding.waiting_hour, NANO(hour * 0.01), 3);
    view->condition.free.cpus = 0;
    view->condition.waiting_cpus = 60 * CPU;
    view->service_ms = 112 * MINUTE; /* and so the wait: 1h 52m */
    struct verdict_row row = price(lab, "hpc/cpu");
    cr_assert_eq(row.wait_ms, 112 * MINUTE);
    near(row.terms[TERM_WAITING], NANO(0.0013), NANO(0.00005));
    lab_destroy(lab);
}

Test(terms, waiting_worth_in_money_is_taken_as_it_stands)
{
    struct lab *lab = lab_site();
    struct class_rule *ci = lab_class(lab, "ci", 0);
    ci->waiting = (struct worth){.money = {4 * MONEY_UNIT, "USD"}};
    lab->spec.class_name = (char *)"ci";
    cr_assert_eq(reference(lab).waiting_hour, 3680000000);
    lab->spec.class_name = (char *)"gone"; /* counts as the default class */
    near(reference(lab).waiting_hour, NANO(4 * 0.298 * 0.92 / 16 * 0.01), 3);
    lab_destroy(lab);
}

Test(terms, reference_falls_back_in_order)
{
    struct lab *lab = lab_site();
    lab->spec.needs.gpus = 2 * CPU;
    near(reference(lab).reference, NANO(2 * 0.6 * 0.92 / 3), 3);
    lab->spec.needs.gpu = lab_texts(lab, "h100"); /* nobody rents one */
    near(reference(lab).reference, NANO(2 * 2.0 / 3), 3);
    struct gpu_price stated = {(char *)"h100", {3 * MONEY_UNIT, "EUR"}};
    lab->rules.reference.gpus = (struct list){&stated, 1};
    near(reference(lab).reference, NANO(2 * 3.0 / 3), 3);
    lab->spec.needs.gpus = 0;
    lab->rules.reference.cpu = (struct money){60000000, "EUR"};
    near(reference(lab).reference, NANO(4 * 0.06 / 3), 3);
    lab->rules.reference.cpu.nano = 0;
    for (size_t i = 0; i < 2; i++) {
        lab->places[3][i].nodes.count = 0;
    }
    near(reference(lab).reference, NANO(4 * 0.04 / 3), 3);
    lab_destroy(lab);
}

Test(terms, risk_and_crowd_have_their_known_values)
{
    struct lab *lab = lab_site();
    struct place_view *view = lab_view(lab, "hpc/cpu");
    static const struct {
        int64_t used, factor; /* percent; 10^(u + .05) - 10^u in ten thousandths */
    } rows[] = {{10, 1536}, {50, 3859}, {80, 7699}, {90, 9692}};
    lab->rules.reference.cpu = (struct money){24 * MONEY_UNIT, "EUR"}; /* G_ref: 32 EUR */
    view->health = SHARE_ONE * 9 / 10;
    view->condition.total.cpus = 80 * CPU;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        view->condition.free.cpus = (100 - rows[i].used) * 80 * CPU / 100;
        struct verdict_row row = price(lab, "hpc/cpu");
        near(row.terms[TERM_CROWD], NANO(0.05 * 32 * (double)rows[i].factor / 10000),
             NANO(0.05 * 32 * 0.00005));
        near(row.terms[TERM_RISK], NANO(0.1 * 0.2 * 32), 1);
    }
    lab_destroy(lab);
}

Test(terms, the_cheapest_machine_that_fits_is_taken)
{
    struct lab *lab = lab_site();
    struct place *place = &lab->places[3][0];
    lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
    lab_shape(lab, place, "big", 64, 512, 0, NULL, 2000, "EUR", 1);
    lab_job(lab, 32, 16, 60);
    struct verdict_row row = price(lab, "aws/spot");
    cr_assert_eq(row.price_hour, MONEY_UNIT);
    cr_assert_eq(row.nodes, 500);
    lab_job(lab, 4, 32, 60); /* the whole memory of a c6i: the whole price */
    near(price(lab, "aws/spot").price_hour, NANO(2.0 * 32 / 512), 1);
    lab->spec.needs.gpus = CPU;
    row = price(lab, "aws/spot");
    near(row.price_hour, NANO(0.6 * 0.92), 1);
    cr_assert_eq(row.nodes, 1000);
    lab_destroy(lab);
}

Test(terms, booking_stays_between_expectation_and_limit)
{
    struct lab *lab = lab_site();
    lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
    lab->spec.time.limit = lab->spec.time.estimate * 11 / 10;
    struct verdict_row row = price(lab, "aws/spot");
    near(row.booked, (double)row.rent_expected * 1.1, 2);
    lab->spec.time.limit = lab->spec.time.estimate;
    row = price(lab, "aws/spot");
    cr_assert_eq(row.booked, row.rent_expected);
    lab_destroy(lab);
}

Test(terms, arithmetic_saturates_and_rounds_one_way)
{
    cr_assert_eq(scale_up(INT64_MAX, INT64_MAX, 1), INT64_MAX);
    cr_assert_eq(scale_near(5, 1, 2), 3);
    cr_assert_eq(scale_near(-5, 1, 2), -2);
    cr_assert_eq(scale_near(-7, 1, 4), -2);
    cr_assert_eq(scale_up(1, 1, 1000), 1);
    cr_assert_eq(scale_down(999, 1, 1000), 0);
    cr_assert_eq(add_capped(INT64_MAX, 1), INT64_MAX);
    cr_assert_eq(add_capped(INT64_MIN, -1), INT64_MIN);
    cr_assert_eq(nano_round(1e30), INT64_MAX);
    cr_assert_eq(nano_round(-1e30), INT64_MIN);
    cr_assert_eq(nano_round(-2.5), -3);
}

/* Any sum, over many orders of magnitude and both signs. */
static int64_t any_sum(uint64_t *seed)
{
    int64_t size = (int64_t)(lab_random(seed) >> lab_range(seed, 1, 63));
    return lab_range(seed, 0, 1) ? size : -size;
}

Test(terms, property_bins_are_a_total_order)
{
    uint64_t seed = 11;
    for (int i = 0; i < 100000; i++) {
        int64_t reference_cost = lab_range(&seed, 0, INT64_C(1000) * MONEY_UNIT);
        int64_t a = any_sum(&seed), b = any_sum(&seed);
        int64_t low = a < b ? a : b, high = a < b ? b : a;
        cr_assert_leq(cost_bin(low, reference_cost), cost_bin(high, reference_cost));
    }
    cr_assert_lt(cost_bin(INT64_MIN, 1), cost_bin(INT64_MAX, 1));
}

Test(terms, bins_are_two_percent_wide)
{
    int64_t unit = MONEY_UNIT;
    cr_assert_lt(cost_bin(100 * unit, unit), cost_bin(103 * unit, unit));
    cr_assert_leq(cost_bin(103 * unit, unit) - cost_bin(100 * unit, unit), 2);
    cr_assert_gt(cost_bin(-100 * unit, unit), cost_bin(-103 * unit, unit));
    cr_assert_lt(cost_bin(-unit, unit), cost_bin(unit, unit));
}

static void random_place(struct lab *lab, uint64_t *seed)
{
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->condition.free.cpus = lab_range(seed, 0, 64) * CPU;
    view->condition.waiting = lab_range(seed, 0, 100);
    view->condition.running = lab_range(seed, 0, 64);
    view->condition.waiting_cpus = -1;
    view->service_ms = lab_range(seed, 0, 10 * HOUR);
    view->health = lab_range(seed, 0, SHARE_ONE);
    lab->places[0][0].power.cpu = lab_range(seed, 0, 20000);
    lab->places[0][0].electricity.nano = lab_range(seed, -MONEY_UNIT / 10, MONEY_UNIT);
    int64_t cpus = lab_range(seed, 1, 64), gib = lab_range(seed, 1, 256);
    lab_job(lab, cpus, gib, lab_range(seed, 1, 3000));
}

/* What makes one term dearer makes the sum dearer and no other term. */
Test(terms, property_monotone_in_each_term)
{
    struct lab *lab = lab_site();
    uint64_t seed = 13;
    for (int i = 0; i < 10000; i++) {
        random_place(lab, &seed);
        struct place_view *view = lab_view(lab, "hpc/cpu");
        struct verdict_row before = price(lab, "hpc/cpu");
        switch (i % 4) {
        case 0: view->health -= lab_range(&seed, 0, view->health); break;
        case 1: lab->places[0][0].electricity.nano += lab_range(&seed, 0, MONEY_UNIT); break;
        case 2: view->condition.waiting += lab_range(&seed, 0, 50); break;
        default: view->unseen.cpus = lab_range(&seed, 0, 64) * CPU; break;
        }
        struct verdict_row after = price(lab, "hpc/cpu");
        cr_assert_geq(after.sum, before.sum, "case %d", i);
        cr_assert(i % 4 == 0 || after.terms[TERM_RISK] == before.terms[TERM_RISK]);
        cr_assert(i % 4 == 1 || after.terms[TERM_POWER] == before.terms[TERM_POWER]);
        cr_assert(i % 4 >= 2 || after.terms[TERM_WAITING] == before.terms[TERM_WAITING]);
        cr_assert(i % 4 == 3 || after.terms[TERM_CROWD] == before.terms[TERM_CROWD]);
        view->unseen.cpus = 0;
    }
    lab_destroy(lab);
}
