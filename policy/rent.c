/* rent.c - what a rented place costs: the cheapest machine that fits, the job's part of it, and whether
 * the budgets have room for the booking. Rent is never paid without a price and a budget. */
#include "policy/budget.h"
#include "policy/internal.h"

#include "broker/core/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE = 1000 /* a machine, in thousandths */ };

static const struct budget_view budget_empty;

bool shape_fits(const struct node_shape *shape, const struct needs *needs)
{
    if (shape->cpus < needs->cpus || (shape->memory > 0 && shape->memory < needs->memory)) {
        return false;
    }
    return needs->gpus <= 0 ||
           (shape->gpus >= needs->gpus &&
            (needs->gpu.count == 0 || (shape->gpu && gpu_is_wanted(needs, shape->gpu))));
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* unit x the largest of need/size over the resources of the machine, rounded up. */
static int64_t shape_part(const struct node_shape *shape, const struct needs *needs, int64_t unit)
{
    int64_t part = shape->cpus > 0 ? scale_up(unit, needs->cpus, shape->cpus) : unit;
    if (shape->memory > 0) {
        part = larger(part, scale_up(unit, needs->memory, shape->memory));
    }
    if (shape->gpus > 0) {
        part = larger(part, scale_up(unit, needs->gpus, shape->gpus));
    }
    return part;
}

int64_t shape_share(const struct node_shape *shape, const struct needs *needs)
{
    return shape_part(shape, needs, WHOLE);
}

/* The cheapest machine that fits; ties: as listed. unknown gets a currency without a rate. */
static const struct node_shape *shape_cheapest(const struct option *option,
                                               const struct rules *rules, int64_t *price,
                                               const char **unknown)
{
    const struct list *nodes = &option->view->place->nodes;
    const struct node_shape *best = NULL;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node_shape *shape = RULES_AT(*nodes, struct node_shape, i);
        int64_t hour;
        if (!shape->price.currency[0] || !shape_fits(shape, &option->spec->needs)) {
            continue;
        }
        if (rules_exchange(rules, &shape->price, &hour) < 0) {
            *unknown = shape->price.currency;
            continue;
        }
        hour = shape_part(shape, &option->spec->needs, hour);
        if (!best || hour < *price) {
            best = shape;
            *price = hour;
        }
    }
    return best;
}

/* 1.2 times what is expected, but no more than the limit allows to be spent. */
static int64_t booking(int64_t expected, int64_t price_hour, int64_t limit_ms)
{
    int64_t booked = scale_up(expected, 6, 5), most = budget_rent(price_hour, limit_ms);
    if (booked > most) {
        booked = most;
    }
    return larger(booked, expected);
}

bool rent_price(struct option *option, const struct deciding *deciding)
{
    const struct rules *rules = deciding->view->rules;
    struct verdict_row *row = option->row;
    const char *unknown = NULL;
    if (!place_kind_is_rented(option->view->place->kind)) {
        return true;
    }
    if (rules->budgets.count == 0) {
        say(row, VERDICT_REMOVED, "rent needs a budget, none is set");
        return false;
    }
    option->shape = shape_cheapest(option, rules, &row->price_hour, &unknown);
    if (!option->shape && unknown) {
        say(row, VERDICT_REMOVED, "rent price in %s has no rate in the policy: no rent there",
            unknown);
        return false;
    }
    if (!option->shape) {
        say(row, VERDICT_REMOVED, "no price is known");
        return false;
    }
    row->nodes = shape_share(option->shape, &option->spec->needs);
    row->rent_expected = budget_rent(row->price_hour, option->spec->time.estimate);
    row->booked = booking(row->rent_expected, row->price_hour, option->spec->time.limit);
    return true;
}

bool rent_machines(struct option *option)
{
    int64_t machines = option_machines(option);
    if (!option->shape || machines == 0 ||
        add_capped(option->view->rented_nodes, option->row->nodes) <= machines) {
        return true;
    }
    say(option->row, VERDICT_LATER, "our %" PRId64 " machines there are in use", machines / WHOLE);
    return false;
}

static bool budget_has_room(struct option *option, const struct budget_rule *budget,
                            const struct budget_view *now)
{
    struct verdict_row *row = option->row;
    char left[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE], need[UNITS_TEXT_SIZE];
    int64_t rest = budget->limit.nano;
    money_short(budget->limit.nano, limit);
    money_short(row->booked, need);
    if (budget->per == BUDGET_JOB) {
        if (row->booked <= rest) {
            return true;
        }
        say(row, VERDICT_REMOVED, "budget %s: %s %s per job, %s needed", budget->name, limit,
            budget->limit.currency, need);
        return false;
    }
    rest = add_capped(add_capped(rest, -now->settled), -now->booked);
    if (row->booked <= rest) {
        return true;
    }
    say(row, VERDICT_LATER, "budget %s: %s of %s %s left, %s needed", budget->name,
        money_short(rest < 0 ? 0 : rest, left), limit, budget->limit.currency, need);
    return false;
}

bool rent_budgets(struct option *option, const struct deciding *deciding,
                  const struct burst_rule *burst, struct texts *names)
{
    const struct view *view = deciding->view;
    const struct list *budgets = &view->rules->budgets;
    const struct place *place = option->view->place;
    size_t counting = 0;
    if (!place_kind_is_rented(place->kind)) {
        return true;
    }
    for (size_t i = 0; i < budgets->count; i++) {
        const struct budget_rule *budget = RULES_AT(*budgets, struct budget_rule, i);
        bool of_burst = burst && burst->budget && strcmp(burst->budget, budget->name) == 0;
        if (!of_burst &&
            !budget_counts(budget, deciding->subject->spec, deciding->subject->owner, place)) {
            continue;
        }
        counting++;
        if (!budget_has_room(option, budget, view->budgets ? &view->budgets[i] : &budget_empty)) {
            return false;
        }
        if (names) {
            texts_add(names, budget->name);
        }
    }
    if (counting == 0) {
        say(option->row, VERDICT_REMOVED, "rent needs a budget, none counts this job here");
    }
    return counting > 0;
}
