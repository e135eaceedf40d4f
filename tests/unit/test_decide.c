/* Decisions: every sentence that removes a place, tiers in order, and what must hold for any of them. */
#include "tests/unit/policy_lab.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <string.h>

struct own_first { /* the lab's site under the policy "own machines first" */
    struct lab *lab;
    struct route *route;
    struct tier *own, *cloud;
    struct burst_rule *burst;
};

static struct own_first own_first(void)
{
    struct own_first site = {.lab = lab_site()};
    lab_budget(site.lab, "cloud", 3000, BUDGET_MONTH);
    site.burst = lab_burst(site.lab, "overflow", 50);
    site.route = lab_route(site.lab, "own-first");
    site.own = lab_tier(site.lab, site.route, "hpc/cpu k8s/ci edge");
    site.own->fill = 850000;
    site.cloud = lab_tier(site.lab, site.route, "aws");
    site.cloud->burst = site.burst->name;
    return site;
}

static void use_up(struct lab *lab, const char *place, int64_t free_cpus, int64_t waiting_ours)
{
    struct place_view *view = lab_view(lab, place);
    view->condition.free.cpus = free_cpus * CPU;
    view->condition.running = 16;
    view->condition.waiting = view->waiting_ours = waiting_ours;
    view->condition.waiting_cpus = -1;
    view->service_ms = HOUR;
}

static void fill_own(struct lab *lab, int64_t waiting_ours)
{
    use_up(lab, "hpc/cpu", 2, waiting_ours);
    use_up(lab, "k8s/ci", 3, waiting_ours);
    use_up(lab, "edge", 1, waiting_ours);
}

static void expect_row(struct lab *lab, const char *place, enum verdict verdict, const char *why)
{
    struct decision decision = lab_decide(lab);
    const struct verdict_row *row = lab_row(&decision, place);
    cr_assert_eq(row->verdict, verdict, "%s is %s (%s)", place, verdict_name(row->verdict),
                 row->why);
    cr_assert_str_eq(row->why, why);
    decision_fini(&decision);
}

static void expect_chosen(struct lab *lab, const char *place, const char *summary)
{
    struct decision decision = lab_decide(lab);
    cr_assert_str_eq(lab_chosen(&decision), place, "it went to '%s': %s", lab_chosen(&decision),
                     decision.summary);
    cr_assert_str_eq(decision.summary, summary);
    decision_fini(&decision);
}

/* ------------------------------------------------------------------------------------------ filters */

Test(decide, sentences_of_what_never_changes)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->clusters[2].mode = CLUSTER_OBSERVE;
    expect_row(lab, "edge", VERDICT_REMOVED, "edge is only observed");
    expect_row(lab, "hpc/gpu", VERDICT_REMOVED, "not in route own-first");
    lab->spec.is_protected = true;
    expect_row(lab, "aws/spot", VERDICT_NEVER, "the job is protected");
    lab->spec.is_protected = false;
    lab_labels(lab, &lab->places[0][0].labels, "country", "fr");
    lab_labels(lab, &lab->spec.where.require, "country", "de");
    expect_row(lab, "hpc/cpu", VERDICT_REMOVED, "the job requires country = de, here it is fr");
    expect_row(lab, "k8s/ci", VERDICT_REMOVED, "the job requires country = de, here it is not set");
    lab->spec.where.require.count = 0;
    lab_labels(lab, &lab->spec.where.forbid, "places", "k8s edge");
    expect_row(lab, "k8s/ci", VERDICT_REMOVED, "the job forbids places = k8s, edge");
    lab_destroy(lab);
}

Test(decide, nobodys_jobs_run_as_somebody_else_unasked)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->federation.own_user = (char *)"operator";
    lab->subject.owner = "alice";
    expect_row(lab, "edge", VERDICT_NEVER,
               "alice has no user at edge: only jobs of operator run there");
    lab->clusters[2].shared = true;
    expect_chosen(lab, "edge", "the only place of tier 1 that can take it now");
    lab->subject.owner = "operator";
    lab->clusters[2].shared = false;
    struct decision decision = lab_decide(lab);
    cr_assert_geq(decision.chosen, 0);
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, sentences_of_guards)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct guard *personal = lab_guard(lab, "personal-data");
    lab_labels(lab, &personal->match.labels, "data", "personal");
    lab_labels(lab, &personal->require, "kind", "owned reserved");
    site.lab->bursts[0].state = BURST_OPEN;
    fill_own(lab, 2);
    expect_chosen(lab, "aws/spot", "own places could not take it; burst overflow is open");
    lab_labels(lab, &lab->spec.labels, "data", "personal");
    expect_row(lab, "aws/spot", VERDICT_REMOVED,
               "guard 'personal-data' wants kind = owned or reserved, here it is spot");
    struct guard *forks = lab_guard(lab, "forks");
    lab_labels(lab, &forks->forbid, "places", "hpc edge");
    expect_row(lab, "edge", VERDICT_REMOVED, "guard 'forks' forbids places = hpc, edge");
    lab_destroy(lab);
}

Test(decide, a_guard_is_never_outweighed_by_money)
{
    struct own_first site = own_first();
    struct guard *guard = lab_guard(site.lab, "stay");
    lab_labels(site.lab, &guard->require, "places", "aws/on-demand");
    site.lab->bursts[0].state = BURST_OPEN;
    expect_chosen(site.lab, "aws/on-demand",
                  "own places could not take it; burst overflow is open");
    lab_destroy(site.lab);
}

Test(decide, sentences_of_amounts)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->places[0][0].max_cpus = 16 * CPU;
    lab->places[0][0].max_time = HOUR;
    lab_view(lab, "k8s/ci")->condition.largest = (struct resources){32 * CPU, 64 * GIB, 0};
    lab_job(lab, 24, 100, 30);
    expect_row(lab, "hpc/cpu", VERDICT_NEVER, "takes jobs of at most 16 CPUs, 24 needed");
    expect_row(lab, "k8s/ci", VERDICT_NEVER, "largest machine has 64GiB memory, 100GiB needed");
    expect_row(lab, "aws/spot", VERDICT_NEVER, "largest machine has 32GiB memory, 100GiB needed");
    lab_job(lab, 4, 4, 90);
    expect_row(lab, "hpc/cpu", VERDICT_NEVER, "takes jobs of at most 1h, the limit is 1h30m");
    lab_view(lab, "edge")->condition.max_time = HOUR;
    expect_row(lab, "edge", VERDICT_NEVER, "takes jobs of at most 1h, the limit is 1h30m");
    lab_destroy(lab);
}

Test(decide, sentences_of_gpus)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->spec.needs.gpus = 8 * CPU;
    expect_row(lab, "hpc/cpu", VERDICT_NEVER, "no GPU");
    expect_row(lab, "hpc/gpu", VERDICT_NEVER, "4 GPUs there in all, 8 needed");
    lab->spec.needs.gpus = 4 * CPU;
    expect_row(lab, "aws/on-demand", VERDICT_NEVER, "largest machine has 1 GPU (a10g), 4 needed");
    lab->spec.needs.gpu = lab_texts(lab, "h100 l40s");
    expect_row(lab, "hpc/gpu", VERDICT_NEVER, "a100-80 is not among h100, l40s");
    lab->spec.needs.gpu = lab_texts(lab, "h100 a100-80");
    expect_row(lab, "hpc/gpu", VERDICT_REMOVED, "not in route own-first");
    lab_destroy(lab);
}

Test(decide, sentences_of_the_moment)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct place_view *view = lab_view(lab, "hpc/cpu");
    view->age_ms = 3 * MINUTE;
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "last seen 3m ago, that is good for 1m");
    view->age_ms = 0;
    view->reachable = false;
    view->silent_ms = 432 * 1000;
    expect_row(lab, "hpc/cpu", VERDICT_REMOVED, "unreachable for 7m 12s");
    view->known = false;
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "not probed yet");
    view->drained = true;
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "drained");
    copy_text(view->drain_note, sizeof view->drain_note, "cooling works");
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "drained: cooling works");
    view->looking = true;
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "the broker has just started and lists its members");
    view->recovering = true;
    expect_row(lab, "hpc/cpu", VERDICT_LATER,
               "the store is older than the world: a person must look");
    view = lab_view(lab, "k8s/ci");
    view->condition.up = false;
    copy_text(view->condition.reason, sizeof view->condition.reason, "partition is DOWN");
    expect_row(lab, "k8s/ci", VERDICT_LATER, "closed there: partition is DOWN");
    lab_destroy(lab);
}

Test(decide, waiting_slots_are_for_what_does_not_fit)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct place_view *view = lab_view(lab, "hpc/cpu");
    site.own->fill = 0;
    view->waiting_ours = 10;
    lab->places[0][0].max_waiting = 10;
    expect_row(lab, "hpc/cpu", VERDICT_DEARER, ""); /* it fits, so slots do not matter */
    view->condition.free.cpus = 3 * CPU;
    expect_row(lab, "hpc/cpu", VERDICT_LATER,
               "3 CPUs free, 4 needed; our 10 waiting slots there are taken");
    view->condition.free.cpus = 10 * CPU;
    view->unseen.cpus = 7 * CPU; /* our own, that the board does not show yet */
    expect_row(lab, "hpc/cpu", VERDICT_LATER,
               "3 CPUs free, 4 needed; our 10 waiting slots there are taken");
    lab->places[0][0].max_waiting = 1;
    expect_row(lab, "hpc/cpu", VERDICT_LATER,
               "3 CPUs free, 4 needed; our waiting slot there is taken");
    lab_destroy(lab);
}

Test(decide, gpus_in_flight_are_counted_by_model)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct place_view *view = lab_view(lab, "hpc/gpu");
    site.own->places = lab_texts(lab, "hpc/gpu");
    site.own->fill = 0;
    lab_gpus(lab, "hpc/gpu", "h100", 4, 2);
    lab->spec.needs.gpus = 3 * CPU;
    lab->places[0][1].max_waiting = 0;
    expect_chosen(lab, "hpc/gpu", "the only place of tier 1 that can take it now");
    view->unseen_gpus[0] = 2 * CPU; /* a100-80: 2 left; h100: 2 */
    expect_row(lab, "hpc/gpu", VERDICT_LATER,
               "2 GPUs free, 3 needed; our 0 waiting slots there are taken");
    lab_destroy(lab);
}

Test(decide, a_member_that_refused_the_job_is_not_asked_again)
{
    struct own_first site = own_first();
    site.lab->subject.refused = lab_texts(site.lab, "hpc/cpu");
    expect_row(site.lab, "hpc/cpu", VERDICT_REMOVED, "hpc refused this job");
    lab_destroy(site.lab);
}

/* --------------------------------------------------------------------------------- rent and budgets */

Test(decide, rent_needs_a_budget_and_a_price)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct node_shape *shapes = lab->places[3][0].nodes.items;
    lab->bursts[0].state = BURST_OPEN;
    lab->rules.budgets.count = 0;
    expect_row(lab, "aws/spot", VERDICT_REMOVED, "rent needs a budget, none is set");
    lab->rules.budgets.count = 1;
    lab_match_any(&RULES_AT(lab->rules.budgets, struct budget_rule, 0)->match);
    RULES_AT(lab->rules.budgets, struct budget_rule, 0)->match.team = lab_texts(lab, "ml");
    expect_row(lab, "aws/spot", VERDICT_REMOVED, "rent needs a budget, none counts this job here");
    RULES_AT(lab->rules.budgets, struct budget_rule, 0)->match.team.count = 0;
    copy_text(shapes[0].price.currency, CURRENCY_SIZE, "CHF");
    copy_text(shapes[1].price.currency, CURRENCY_SIZE, "CHF");
    expect_row(lab, "aws/spot", VERDICT_REMOVED,
               "rent price in CHF has no rate in the policy: no rent there");
    shapes[0].price.currency[0] = shapes[1].price.currency[0] = '\0';
    expect_row(lab, "aws/spot", VERDICT_REMOVED, "no price is known");
    lab->places[3][0].nodes.count = 0;
    expect_row(lab, "aws/spot", VERDICT_REMOVED, "no price is known");
    lab_destroy(lab);
}

Test(decide, every_budget_that_counts_must_have_room)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->bursts[0].state = BURST_OPEN;
    lab_job(lab, 16, 32, 60 * 50); /* 50 h at 0.27416 EUR/h; no more than the limit is booked */
    lab->budgets[0] = (struct budget_view){2900 * MONEY_UNIT, 88 * MONEY_UNIT};
    expect_row(lab, "aws/spot", VERDICT_LATER, "budget cloud: 12 of 3000 EUR left, 13.71 needed");
    lab->budgets[0].settled = 0;
    struct budget_rule *large = lab_budget(lab, "large", 10, BUDGET_JOB);
    expect_row(lab, "aws/spot", VERDICT_REMOVED, "budget large: 10 EUR per job, 13.71 needed");
    large->limit.nano = 14 * MONEY_UNIT;
    fill_own(lab, 2);
    struct decision decision = lab_decide(lab);
    cr_assert_str_eq(lab_chosen(&decision), "aws/spot");
    cr_assert_eq(decision.budgets.count, 2);
    cr_assert_str_eq(decision.budgets.items[0], "cloud");
    cr_assert_str_eq(decision.budgets.items[1], "large");
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, a_burst_s_own_budget_counts_whatever_it_matches)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct budget_rule *cloud = RULES_AT(lab->rules.budgets, struct budget_rule, 0);
    lab->bursts[0].state = BURST_OPEN;
    cloud->match.team = lab_texts(lab, "ml");
    site.burst->budget = cloud->name;
    fill_own(lab, 2);
    expect_chosen(lab, "aws/spot", "own places could not take it; burst overflow is open");
    lab->budgets[0].booked = 3000 * MONEY_UNIT;
    struct decision decision = lab_decide(lab);
    cr_assert_eq(decision.chosen, -1);
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, bursts_and_places_limit_the_machines)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->bursts[0].state = BURST_OPEN;
    lab->bursts[0].jobs = 400;
    site.burst->at_most.jobs = 400;
    expect_row(lab, "aws/spot", VERDICT_LATER, "burst overflow: all of its 400 jobs are there");
    site.burst->at_most = (struct burst_limit){2, UNLIMITED};
    lab->bursts[0].nodes = 1751;
    expect_row(lab, "aws/spot", VERDICT_LATER, "burst overflow: all of its 2 machines are in use");
    lab->bursts[0].nodes = 1750;
    expect_row(lab, "aws/spot", VERDICT_DEARER, "");
    lab_view(lab, "aws/spot")->rented_nodes = 55900;
    expect_row(lab, "aws/spot", VERDICT_LATER, "our 56 machines there are in use");
    lab_destroy(lab);
}

/* ------------------------------------------------------------------------------------------- routes */

Test(decide, the_cheapest_of_the_first_open_tier)
{
    struct own_first site = own_first();
    expect_chosen(site.lab, "edge", "the cheapest of 3 in tier 1");
    expect_row(site.lab, "hpc/cpu", VERDICT_DEARER, "");
    expect_row(site.lab, "aws/spot", VERDICT_CLOSED, "burst overflow is closed");
    site.lab->bursts[0].state = BURST_OPEN;
    expect_row(site.lab, "aws/spot", VERDICT_DEARER, "");
    site.lab->places[2][0].power.cpu = 600000; /* then edge costs more than rent */
    site.own->places = lab_texts(site.lab, "edge");
    expect_row(site.lab, "aws/spot", VERDICT_CLOSED, "tier 1 serves first");
    lab_destroy(site.lab);
}

Test(decide, within_two_percent_the_order_of_the_tier_decides)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    for (size_t i = 0; i < 3; i++) {
        lab->by_index[i]->power.cpu = 4000;
        lab->by_index[i]->power.pue = 1000;
    }
    site.own->places = lab_texts(lab, "k8s hpc/cpu");
    expect_chosen(lab, "k8s/ci", "the cheapest of 2 in tier 1");
    site.own->places = lab_texts(lab, "hpc/cpu k8s");
    expect_chosen(lab, "hpc/cpu", "the cheapest of 2 in tier 1");
    site.own->places = lab_texts(lab, "*");
    expect_row(lab, "hpc/cpu", VERDICT_CHOSEN, "");
    lab_destroy(lab);
}

Test(decide, past_fill_the_next_open_tier_serves)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct burst_facts facts = {.pending = 62};
    lab->bursts[0] = (struct burst_view){
        .rule = site.burst, .state = BURST_OPEN, .facts = &facts, .why = "62 pending > 50"};
    fill_own(lab, 0);
    struct decision decision = lab_decide(lab);
    cr_assert_str_eq(lab_chosen(&decision), "aws/spot");
    cr_assert_str_eq(decision.summary,
                     "own places were past their limits; burst overflow is open (62 pending > 50)");
    cr_assert_str_eq(decision.burst, "overflow");
    cr_assert_eq(decision.tier, 2);
    cr_assert_eq(decision.can_now, 2);
    cr_assert_str_eq(lab_row(&decision, "hpc/cpu")->why, "97 % used > fill 85 %");
    cr_assert_str_eq(lab_row(&decision, "aws/on-demand")->why, "");
    cr_assert_eq(lab_row(&decision, "aws/on-demand")->verdict, VERDICT_DEARER);
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, fill_is_ignored_when_no_later_tier_could_take_it)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct burst_facts facts = {.pending = 12};
    lab->bursts[0].facts = &facts;
    fill_own(lab, 1);
    struct decision decision = lab_decide(lab);
    cr_assert_str_neq(lab_chosen(&decision), "");
    cr_assert_eq(decision.tier, 1);
    cr_assert_null(decision.burst);
    cr_assert_str_eq(
        decision.summary,
        "past its tier's fill or wait, but no later tier could take it: burst overflow "
        "is closed (12 pending, opens over 50)");
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, none_left_says_for_what_it_waits)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct burst_facts facts = {.pending = 12};
    lab->bursts[0].facts = &facts;
    site.own->places = lab_texts(lab, "hpc/cpu");
    fill_own(lab, 2);
    expect_chosen(lab, "",
                  "0 of 6 places can take it now, 3 later: our 2 waiting slots at hpc/cpu are "
                  "taken; burst overflow is closed (12 pending, opens over 50)");
    lab->bursts[0].facts = NULL;
    site.own->places = lab_texts(lab, "hpc/cpu k8s edge");
    lab_view(lab, "k8s/ci")->drained = true;
    lab->places[0][0].max_waiting = 1; /* the numbers differ, the reason does not */
    expect_chosen(lab, "",
                  "0 of 6 places can take it now, 5 later: our waiting slots at hpc/cpu, edge are "
                  "taken; burst overflow is closed; k8s/ci: drained");
    site.own->places = lab_texts(lab, "hpc/cpu");
    lab->bursts[0].state = BURST_CLOSING;
    lab_view(lab, "hpc/cpu")->drained = true;
    expect_chosen(lab, "",
                  "0 of 6 places can take it now, 3 later: hpc/cpu: drained; burst overflow is "
                  "closing");
    lab_destroy(lab);
}

Test(decide, no_candidate_at_all_is_a_reason)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->spec.needs.gpus = 8 * CPU;
    expect_chosen(lab, "",
                  "0 of 6 places can take it: hpc/cpu, k8s/ci, edge: no GPU; aws/spot, "
                  "aws/on-demand: largest machine has 1 GPU (a10g), 8 needed");
    lab->rules.routes.count = 0;
    expect_chosen(lab, "", "no route of the policy takes this job");
    lab_destroy(lab);
}

Test(decide, wait_sends_on_what_would_start_late_or_has_waited)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->bursts[0].state = BURST_OPEN;
    site.own->places = lab_texts(lab, "hpc/cpu");
    site.own->fill = 0;
    site.own->wait = 30 * MINUTE;
    use_up(lab, "hpc/cpu", 0, 1);
    lab_view(lab, "hpc/cpu")->condition.waiting = 15;
    expect_row(lab, "hpc/cpu", VERDICT_FULL, "starts in about 1h > wait 30m");
    lab_view(lab, "hpc/cpu")->condition.free.cpus = 64 * CPU;
    lab->subject.waited_ms = 31 * MINUTE;
    expect_row(lab, "hpc/cpu", VERDICT_FULL, "waited 31m > wait 30m");
    cr_assert_eq(decide_wait_step(&lab->view, &lab->subject), 1);
    /* a later tier counts from where the first one ended */
    site.cloud->wait = 10 * MINUTE;
    expect_row(lab, "aws/spot", VERDICT_CHOSEN, "");
    lab->subject.waited_ms = 41 * MINUTE;
    expect_row(lab, "aws/spot", VERDICT_FULL, "waited 41m > wait 40m");
    expect_row(lab, "hpc/cpu", VERDICT_CHOSEN, ""); /* now nobody is left: the first tier it is */
    cr_assert_eq(decide_wait_step(&lab->view, &lab->subject), 2);
    lab_destroy(lab);
}

Test(decide, leave_free_always_holds)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    site.own->places = lab_texts(lab, "hpc/cpu");
    site.own->leave_free = 250000;
    use_up(lab, "hpc/cpu", 20, 0);
    expect_row(lab, "hpc/cpu", VERDICT_CHOSEN, "");
    use_up(lab, "hpc/cpu", 19, 0);
    expect_row(lab, "hpc/cpu", VERDICT_LATER, "23 % would stay free < leave_free 25 %");
    struct decision decision = lab_decide(lab);
    cr_assert_eq(decision.chosen, -1);
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, a_place_in_two_tiers_gets_a_second_chance)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    site.own->places = lab_texts(lab, "hpc/cpu");
    use_up(lab, "hpc/cpu", 5, 0);
    struct tier *again = lab_tier(lab, site.route, "hpc/cpu");
    struct decision decision = lab_decide(lab);
    cr_assert_str_eq(lab_chosen(&decision), "hpc/cpu");
    cr_assert_eq(decision.tier, 3);
    decision_fini(&decision);
    again->leave_free = SHARE_ONE;
    decision = lab_decide(lab);
    cr_assert_eq(decision.tier, 1); /* relaxed */
    decision_fini(&decision);
    lab_destroy(lab);
}

Test(decide, the_first_route_that_matches_is_the_one)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct route *late = lab_route(lab, "late");
    (void)lab_tier(lab, late, "hpc/gpu");
    site.route->match.class_name = lab_texts(lab, "training");
    struct decision decision = lab_decide(lab);
    cr_assert_str_eq(decision.route->name, "late");
    cr_assert_str_eq(lab_chosen(&decision), "hpc/gpu");
    decision_fini(&decision);
    lab_destroy(lab);
}

/* ---------------------------------------------------------------------------------------- possible */

static void expect_impossible(struct lab *lab, const char *text, const char *pointer)
{
    struct error err = {0};
    cr_assert_eq(decide_possible(&lab->view, &lab->subject, &err), -1);
    cr_assert_eq(err.code, ERROR_IMPOSSIBLE);
    cr_assert_str_eq(err.text, text);
    cr_assert_str_eq(err.pointer, pointer);
}

Test(decide, impossible_needs_name_the_nearest_place)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    struct error err = {0};
    lab->spec.needs.gpus = 8 * CPU;
    expect_impossible(lab, "no place has 8 GPUs for one job; the nearest is hpc/gpu with 4",
                      "/needs/gpus");
    lab->spec.needs.gpus = 0;
    lab_job(lab, 256, 1, 20);
    cr_assert_eq(decide_possible(&lab->view, &lab->subject, &err), 0); /* hpc states no largest */
    for (size_t i = 0; i < 4; i++) {
        lab->by_index[i]->max_cpus = (int64_t)(32 + i) * CPU;
    }
    expect_impossible(lab, "no place has 256 CPUs for one job; the nearest is edge with 35",
                      "/needs/cpus");
    lab->views[0].known = false; /* never probed, and nothing configured: it may be able */
    lab->by_index[0]->max_cpus = 0;
    cr_assert_eq(decide_possible(&lab->view, &lab->subject, &err), 0);
    lab_destroy(lab);
}

/* Of a place that brings up machines, the largest of them counts, however much more was asked for. */
Test(decide, impossible_needs_look_at_the_machines_of_a_rented_place)
{
    struct lab *lab = lab_create();
    lab_place(lab, "onprem", PLACE_OWNED)->max_cpus = 4 * CPU;
    struct place *cloud = lab_place(lab, "cloud", PLACE_ON_DEMAND);
    cloud->capacity.cpus = 8 * CPU;
    lab_shape(lab, cloud, "small", 2, 8, 0, NULL, 100, "EUR", 4);
    lab_job(lab, 6, 1, 20);
    expect_impossible(lab, "no place has 6 CPUs for one job; the nearest is onprem with 4",
                      "/needs/cpus");
    lab_job(lab, 100, 1, 20);
    expect_impossible(lab, "no place has 100 CPUs for one job; the nearest is onprem with 4",
                      "/needs/cpus");
    RULES_AT(cloud->nodes, struct node_shape, 0)->cpus = 6 * CPU;
    expect_impossible(lab, "no place has 100 CPUs for one job; the nearest is cloud with 6",
                      "/needs/cpus");
    lab_job(lab, 7, 1, 20);
    expect_impossible(lab, "no place has 7 CPUs for one job; the nearest is cloud with 6",
                      "/needs/cpus");
    RULES_AT(cloud->nodes, struct node_shape, 0)->memory = 0; /* not stated: no cap */
    lab_job(lab, 6, 500, 20);
    struct error err = {0};
    cr_assert_eq(decide_possible(&lab->view, &lab->subject, &err), 0);
    lab_destroy(lab);
}

Test(decide, impossible_gpus)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->spec.needs.gpus = CPU;
    lab->spec.needs.gpu = lab_texts(lab, "h100");
    expect_impossible(lab, "no place could ever run this: hpc/gpu: a100-80 is not among h100", "");
    lab_view(lab, "hpc/gpu")->condition.gpu_count = 0;
    lab_view(lab, "hpc/gpu")->condition.total.gpus = 0;
    lab->places[3][0].nodes.count = lab->places[3][1].nodes.count = 0;
    lab_view(lab, "aws/spot")->condition.total.gpus = 0;
    lab_view(lab, "aws/on-demand")->condition.total.gpus = 0;
    expect_impossible(lab, "no place has any GPU", "/needs/gpus");
    lab->federation.place_count = 0;
    expect_impossible(lab, "no place is configured", "");
    lab_destroy(lab);
}

Test(decide, impossible_times_and_wishes)
{
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    for (size_t i = 0; i < lab->federation.place_count; i++) {
        lab->by_index[i]->max_time = (int64_t)(i + 1) * HOUR;
    }
    lab_job(lab, 1, 1, 24 * 60);
    expect_impossible(lab, "no place takes jobs of 1d; the nearest is aws/on-demand with 6h",
                      "/time/limit");
    lab_labels(lab, &lab->spec.where.require, "planet", "mars");
    expect_impossible(lab,
                      "no place could ever run this: hpc/cpu: the job requires planet = mars, here "
                      "it is not set",
                      "");
    lab_destroy(lab);
}

/* The figures of docs/deciding.md. */
Test(decide, the_worked_example_of_the_page)
{
    static const struct {
        const char *place;
        enum verdict verdict;
        int64_t terms[TERM_COUNT], sum;
    } rows[] = {
        {"aws/spot", VERDICT_CHOSEN, {22847, 0, 0, 228, 16}, 23092},
        {"aws/on-demand", VERDICT_DEARER, {59493, 0, 0, 0, 48}, 59541},
        {"hpc/cpu", VERDICT_FULL, {0, 2246, 1183, 0, 1645}, 5075},
        {"k8s/ci", VERDICT_FULL, {0, 1997, 0, 0, 1425}, 3422},
    };
    struct own_first site = own_first();
    struct lab *lab = site.lab;
    lab->bursts[0].state = BURST_OPEN;
    use_up(lab, "hpc/cpu", 2, 0);
    use_up(lab, "k8s/ci", 6, 0);
    use_up(lab, "edge", 8, 0);
    lab_view(lab, "hpc/cpu")->condition.waiting = 28;
    lab_view(lab, "aws/spot")->health = SHARE_ONE * 95 / 100;
    lab_view(lab, "aws/spot")->rented_nodes = 8000;
    struct decision decision = lab_decide(lab);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct verdict_row *row = lab_row(&decision, rows[i].place);
        cr_assert_eq(row->verdict, rows[i].verdict);
        for (int t = 0; t < TERM_COUNT; t++) {
            cr_assert_eq(scale_near(row->terms[t], 1, 1000), rows[i].terms[t], "%s %s: %ld",
                         rows[i].place, term_name((enum term_kind)t), (long)row->terms[t]);
        }
        cr_assert_eq(scale_near(row->sum, 1, 1000), rows[i].sum);
    }
    cr_assert_eq(scale_near(lab_row(&decision, "aws/spot")->booked, 1, 1000), 27416);
    decision_fini(&decision);
    lab_destroy(lab);
}

/* -------------------------------------------------------------------------------------------- record */

Test(decide, the_record_holds_integers_and_text_in_order)
{
    struct own_first site = own_first();
    site.lab->bursts[0].state = BURST_OPEN;
    fill_own(site.lab, 0);
    struct decision decision = lab_decide(site.lab);
    json_t *json = decision_to_json(&decision, &site.lab->view);
    char *text = json_dumps(json, JSON_COMPACT);
    cr_assert(strstr(text, "{\"policy\":\"9f31c2\",\"route\":\"own-first\",\"tier\":2,"
                           "\"chosen\":\"aws/spot\",\"summary\":") == text,
              "%s", text);
    cr_assert_not_null(strstr(text, "{\"place\":\"hpc/gpu\",\"tier\":0,\"verdict\":\"removed\","
                                    "\"why\":\"not in route own-first\"}"));
    cr_assert_not_null(strstr(text, "{\"place\":\"hpc/cpu\",\"tier\":1,\"verdict\":\"full\","
                                    "\"why\":\"97 % used > fill 85 %\",\"terms\":{\"rent\":0,"
                                    "\"power\":2246400,\"waiting\":"));
    cr_assert_not_null(strstr(text, "{\"what\":\"aws/spot price\",\"value\":\"0.298 USD/h\","
                                    "\"from\":\"c6i.4xlarge, configured\",\"age_ms\":null}"));
    cr_assert_not_null(strstr(text, "{\"what\":\"hpc/cpu free CPUs\",\"value\":\"2 of 64\","
                                    "\"from\":\"hpc\",\"age_ms\":0}"));
    cr_assert_null(strchr(text, '\n'));
    free(text);
    json_decref(json);
    decision_fini(&decision);
    lab_destroy(site.lab);
}

Test(decide, words_are_found_by_name)
{
    cr_assert_eq(burst_state_find("closing"), BURST_CLOSING);
    cr_assert_eq(burst_state_find("shut"), -1);
    cr_assert_str_eq(burst_state_name(BURST_OPENING), "opening");
    cr_assert_str_eq(term_name(TERM_POWER), "power");
    cr_assert(term_is_billed(TERM_RENT) && !term_is_billed(TERM_RISK));
}
