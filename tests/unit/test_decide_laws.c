/* What must hold for any decision, on random sites: 10,000 and more cases for each law. */
#include "tests/unit/policy_lab.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 10000 };

struct site {
    struct lab *lab;
    struct tier *own, *cloud;
    uint64_t seed;
};

static struct site site_create(uint64_t seed)
{
    struct site site = {.lab = lab_site(), .seed = seed};
    struct lab *lab = site.lab;
    lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
    lab_burst(lab, "overflow", 50);
    struct route *route = lab_route(lab, "own-first");
    site.own = lab_tier(lab, route, "hpc/cpu k8s/ci edge hpc/gpu");
    site.cloud = lab_tier(lab, route, "aws/on-demand aws/spot");
    site.cloud->burst = (char *)"overflow";
    lab->rules.reference.cpu = (struct money){40000000, "EUR"};
    struct guard *guard = lab_guard(lab, "country");
    lab_labels(lab, &guard->require, "country", "de fr");
    lab_labels(lab, &lab->spec.where.require, "region", "eu");
    for (size_t i = 0; i < lab->federation.place_count; i++) {
        lab_labels(lab, &lab->by_index[i]->labels, "country", "de");
        lab_labels(lab, &lab->by_index[i]->labels, "region", i % 2 ? "eu" : "us");
        lab->by_index[i]->nodes.count = lab->by_index[i]->nodes.count ? 1 : 0;
    }
    return site;
}

static bool chance(struct site *site, int percents)
{
    return lab_range(&site->seed, 1, 100) <= percents;
}

static void vary_place(struct site *site, struct place_view *view)
{
    struct place *place = site->lab->by_index[view->place->index];
    uint64_t *seed = &site->seed;
    if (view->condition.total.cpus > 0) {
        view->condition.free.cpus = lab_range(seed, 0, 64) * CPU;
        view->condition.free.memory = lab_range(seed, 0, 256) * GIB;
    }
    view->condition.up = chance(site, 95);
    view->condition.running = lab_range(seed, 0, 40);
    view->condition.waiting = lab_range(seed, 0, 40);
    view->condition.waiting_cpus = chance(site, 50) ? -1 : lab_range(seed, 0, 200) * CPU;
    view->waiting_ours = lab_range(seed, 0, 6);
    view->unseen.cpus = chance(site, 50) ? 0 : lab_range(seed, 0, 32) * CPU;
    view->service_ms = chance(site, 50) ? 0 : lab_range(seed, MINUTE, 5 * HOUR);
    view->health = chance(site, 50) ? SHARE_ONE : lab_range(seed, 0, SHARE_ONE);
    view->reachable = chance(site, 95);
    view->drained = chance(site, 5);
    view->age_ms = chance(site, 5) ? HOUR : 0;
    view->rented_nodes = lab_range(seed, 0, 12000);
    place->max_waiting = lab_range(seed, 0, 8);
    place->max_cpus = chance(site, 70) ? 0 : lab_range(seed, 1, 64) * CPU;
    place->max_time = chance(site, 80) ? 0 : lab_range(seed, 1, 48) * HOUR;
}

static void vary(struct site *site)
{
    struct lab *lab = site->lab;
    uint64_t *seed = &site->seed;
    for (size_t i = 0; i < lab->federation.place_count; i++) {
        vary_place(site, &lab->views[i]);
    }
    site->own->fill = chance(site, 50) ? 0 : lab_range(seed, 1, SHARE_ONE);
    site->own->wait = chance(site, 50) ? 0 : lab_range(seed, MINUTE, 3 * HOUR);
    site->own->leave_free = chance(site, 80) ? 0 : lab_range(seed, 1, SHARE_ONE / 2);
    site->cloud->fill = chance(site, 80) ? 0 : lab_range(seed, 1, SHARE_ONE);
    lab->bursts[0].state = chance(site, 60) ? BURST_OPEN : BURST_CLOSED;
    lab->bursts[0].nodes = lab_range(seed, 0, 20000);
    lab->budgets[0].settled = chance(site, 80) ? 0 : lab_range(seed, 0, 3000) * MONEY_UNIT;
    lab->spec.is_protected = chance(site, 20);
    lab->spec.where.require.count = chance(site, 20) ? 1 : 0;
    lab->subject.waited_ms = lab_range(seed, 0, 4 * HOUR);
    int64_t cpus = lab_range(seed, 1, 24), gib = lab_range(seed, 1, 40);
    lab_job(lab, cpus, gib, lab_range(seed, 1, 2000));
}

static bool can_take(const struct verdict_row *row)
{
    return row->verdict == VERDICT_CHOSEN || row->verdict == VERDICT_DEARER ||
           row->verdict == VERDICT_FULL || row->verdict == VERDICT_CLOSED;
}

/* Asks for less, or gives the places more: in one way out of these. */
static const char *relax(struct site *site)
{
    struct lab *lab = site->lab;
    struct place_view *view = &lab->views[lab_range(&site->seed, 0, 5)];
    struct place *place = lab->by_index[view->place->index];
    switch (lab_range(&site->seed, 0, 9)) {
    case 0: lab->spec.needs.cpus = 1 + lab->spec.needs.cpus / 2; return "fewer cpus";
    case 1: lab->spec.needs.memory = 1 + lab->spec.needs.memory / 2; return "less memory";
    case 2: lab->spec.where.require.count = 0; return "no where";
    case 3: lab->spec.is_protected = false; return "not protected";
    case 4:
        lab->spec.time.limit /= 2;
        lab->spec.time.estimate /= 2;
        return "shorter";
    case 5: place->max_waiting += 3; return "more slots";
    case 6: view->unseen.cpus = 0; return "nothing in flight";
    case 7: lab->budgets[0].settled = 0; return "money";
    case 8: place->max_cpus = 0; return "no cap";
    default: site->own->leave_free = 0; return "leave nothing free";
    }
}

Test(laws, filters_are_monotone)
{
    struct site site = site_create(17);
    int taken = 0;
    for (int i = 0; i < 2 * CASES; i++) {
        vary(&site);
        struct decision before = lab_decide(site.lab);
        const char *how = relax(&site);
        struct decision after = lab_decide(site.lab);
        for (size_t p = 0; p < before.row_count; p++) {
            cr_assert(!can_take(&before.rows[p]) || can_take(&after.rows[p]),
                      "case %d: %s removed %s: %s", i, how, after.rows[p].place->name,
                      after.rows[p].why);
            taken += can_take(&before.rows[p]);
        }
        decision_fini(&before);
        decision_fini(&after);
    }
    cr_assert_gt(taken, CASES); /* the law was put to the test */
    lab_destroy(site.lab);
}

/* The tier without its nth pattern. */
static struct texts without(const struct texts *texts, size_t n, char **room)
{
    struct texts rest = {room, 0};
    for (size_t i = 0; i < texts->count; i++) {
        if (i != n) {
            rest.items[rest.count++] = texts->items[i];
        }
    }
    return rest;
}

Test(laws, a_place_that_loses_changes_nothing_for_the_others)
{
    struct site site = site_create(19);
    int checked = 0;
    for (int i = 0; i < 2 * CASES; i++) {
        char *room[8];
        vary(&site);
        struct decision all = lab_decide(site.lab);
        struct tier *tier = i % 2 ? site.own : site.cloud;
        struct texts full = tier->places;
        size_t n = (size_t)lab_range(&site.seed, 0, (int64_t)full.count - 1);
        tier->places = without(&full, n, room);
        struct decision fewer = lab_decide(site.lab);
        tier->places = full;
        if (strcmp(lab_chosen(&all), full.items[n]) != 0) {
            cr_assert_str_eq(lab_chosen(&fewer), lab_chosen(&all), "case %d without %s", i,
                             full.items[n]);
            checked += all.chosen >= 0;
        }
        for (size_t p = 0; p < all.row_count; p++) {
            cr_assert(!all.rows[p].priced || !fewer.rows[p].priced ||
                      all.rows[p].sum == fewer.rows[p].sum);
        }
        decision_fini(&all);
        decision_fini(&fewer);
    }
    cr_assert_gt(checked, CASES / 2);
    lab_destroy(site.lab);
}

Test(laws, what_was_not_chosen_is_not_chosen_for_being_dearer)
{
    struct site site = site_create(23);
    for (int i = 0; i < CASES; i++) {
        vary(&site);
        struct decision before = lab_decide(site.lab);
        size_t p = (size_t)lab_range(&site.seed, 0, 3);
        int64_t watts = site.lab->by_index[p]->power.cpu;
        site.lab->by_index[p]->power.cpu += lab_range(&site.seed, 0, 200000);
        struct decision after = lab_decide(site.lab);
        cr_assert(after.chosen == before.chosen || before.chosen == (int)p, "case %d", i);
        site.lab->by_index[p]->power.cpu = watts;
        decision_fini(&before);
        decision_fini(&after);
    }
    lab_destroy(site.lab);
}

/* Every sum of money of the site times k. */
static void scale_money(struct lab *lab, int64_t k)
{
    for (size_t i = 0; i < lab->federation.place_count; i++) {
        struct place *place = lab->by_index[i];
        place->electricity.nano *= k;
        for (size_t n = 0; n < place->nodes.count; n++) {
            RULES_AT(place->nodes, struct node_shape, n)->price.nano *= k;
        }
    }
    lab->rules.reference.cpu.nano *= k;
    RULES_AT(lab->rules.budgets, struct budget_rule, 0)->limit.nano *= k;
    lab->budgets[0].settled *= k;
}

Test(laws, scaling_all_money_keeps_the_choice)
{
    struct site site = site_create(29);
    for (int i = 0; i < CASES; i++) {
        int64_t k = lab_range(&site.seed, 2, 1000);
        vary(&site);
        struct decision before = lab_decide(site.lab);
        scale_money(site.lab, k);
        struct decision after = lab_decide(site.lab);
        cr_assert_str_eq(lab_chosen(&after), lab_chosen(&before), "case %d times %ld", i, (long)k);
        for (size_t p = 0; p < before.row_count; p++) {
            int64_t off = after.rows[p].sum - k * before.rows[p].sum;
            cr_assert(llabs(off) <= k * (TERM_COUNT + 1) * 2, "case %d: off by %ld", i, (long)off);
        }
        decision_fini(&before);
        decision_fini(&after);
        lab_destroy(site.lab);
        uint64_t seed = site.seed;
        site = site_create(seed);
    }
    lab_destroy(site.lab);
}

Test(laws, terms_add_up_and_rent_is_never_free)
{
    struct site site = site_create(31);
    for (int i = 0; i < CASES; i++) {
        vary(&site);
        struct decision decision = lab_decide(site.lab);
        int64_t left = 3000 * MONEY_UNIT - site.lab->budgets[0].settled;
        for (size_t p = 0; p < decision.row_count; p++) {
            const struct verdict_row *row = &decision.rows[p];
            int64_t sum = 0;
            for (int t = 0; t < TERM_COUNT; t++) {
                sum += row->terms[t];
            }
            cr_assert_eq(sum, row->sum);
            cr_assert_leq(row->rent_expected, row->booked);
            if (row->verdict == VERDICT_CHOSEN && place_kind_is_rented(row->place->kind)) {
                cr_assert_gt(row->booked, 0);
                cr_assert_leq(row->booked, left);
                cr_assert_eq(decision.budgets.count, 1);
            }
            cr_assert(row->verdict <= VERDICT_DEARER || row->why[0],
                      "a removal without a sentence");
        }
        cr_assert(decision.summary[0]);
        decision_fini(&decision);
    }
    lab_destroy(site.lab);
}

/* The same on every compiler and at every level of optimisation: this figure is that of all of them. */
Test(laws, decisions_do_not_depend_on_the_compiler)
{
    struct site site = site_create(37);
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < CASES; i++) {
        vary(&site);
        struct decision decision = lab_decide(site.lab);
        for (size_t p = 0; p < decision.row_count; p++) {
            hash = (hash ^ (uint64_t)decision.rows[p].verdict) * UINT64_C(1099511628211);
            hash = (hash ^ (uint64_t)decision.rows[p].tier) * UINT64_C(1099511628211);
        }
        decision_fini(&decision);
    }
    cr_assert_eq(hash, UINT64_C(0x17d3f6ae73347381), "0x%lx", (unsigned long)hash);
    lab_destroy(site.lab);
}
