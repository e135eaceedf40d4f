/* decide.c - one decision from first filter to summary, and whether a job is possible at all. */
#include "policy/decide.h"

#include "policy/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>
#include <string.h>

/* Filters and prices one place; a place that is not priced has its verdict. */
static void consider(struct deciding *deciding, struct option *option)
{
    const struct route *route = deciding->out->route;
    struct shortage shortage;
    if (!filter_job(option) || !filter_guards(option, deciding) ||
        !filter_able(option, deciding->view->federation, &shortage)) {
        if (route) {
            (void)route_has(route, option);
        }
        return;
    }
    if (!route) {
        say(option->row, VERDICT_REMOVED, "no route of the policy takes this job");
        return;
    }
    if (!route_has(route, option)) {
        say(option->row, VERDICT_REMOVED, "not in route %s", route->name);
        return;
    }
    if (filter_refused(option, deciding->subject) && rent_price(option, deciding) &&
        filter_moment(option) && rent_machines(option) && filter_slots(option)) {
        terms_price(option, deciding);
    }
}

void decide(const struct view *view, const struct subject *subject, struct decision *out)
{
    size_t count = view->federation->place_count;
    struct deciding deciding = {.view = view, .subject = subject, .out = out};
    out->chosen = -1;
    out->rows = xcalloc(count ? count : 1, sizeof *out->rows);
    out->row_count = count;
    out->route = route_find(view->rules, subject->spec, subject->owner);
    deciding.options = xcalloc(count ? count : 1, sizeof *deciding.options);
    terms_reference(&deciding);
    for (size_t i = 0; i < count; i++) {
        option_init(&deciding.options[i], view->federation, &view->places[i], subject,
                    &out->rows[i]);
        consider(&deciding, &deciding.options[i]);
    }
    if (out->route) {
        route_choose(&deciding);
    }
    summary_write(&deciding);
    for (size_t i = 0; i < count; i++) {
        option_fini(&deciding.options[i]);
    }
    free(deciding.options);
}

void decision_fini(struct decision *decision)
{
    free(decision->rows);
    texts_fini(&decision->budgets);
    memset(decision, 0, sizeof *decision);
    decision->chosen = -1;
}

/* have/need as millionths: how near a place came. */
static int64_t nearness(const struct shortage *shortage)
{
    return scale_down(shortage->have, SHARE_ONE, shortage->need);
}

static int impossible_amount(const struct shortage *nearest, const char *place, struct error *err)
{
    static const char *const pointers[] = {"/needs/cpus", "/needs/memory", "/needs/gpus",
                                           "/time/limit"};
    char need[AMOUNT_TEXT_SIZE], have[AMOUNT_TEXT_SIZE];
    amount_figure(nearest->amount, nearest->have, have);
    if (nearest->amount == AMOUNT_TIME) {
        error_set(err, ERROR_IMPOSSIBLE, "no place takes jobs of %s; the nearest is %s with %s",
                  amount_figure(nearest->amount, nearest->need, need), place, have);
    } else {
        error_set(err, ERROR_IMPOSSIBLE, "no place has %s for one job; the nearest is %s with %s",
                  amount_text(nearest->amount, nearest->need, need), place, have);
    }
    copy_text(err->pointer, sizeof err->pointer, pointers[nearest->amount]);
    return -1;
}

int decide_possible(const struct view *view, const struct subject *subject, struct error *err)
{
    struct shortage nearest = {0}, shortage;
    const struct place *nearest_place = NULL, *first = NULL;
    char why[WHY_SIZE] = "no place is configured";
    for (size_t i = 0; i < view->federation->place_count; i++) {
        struct verdict_row row = {0};
        struct option option;
        bool able;
        option_init(&option, view->federation, &view->places[i], subject, &row);
        shortage = (struct shortage){0};
        able = filter_job(&option) && filter_able(&option, view->federation, &shortage);
        option_fini(&option);
        if (able) {
            return 0;
        }
        if (!first) {
            first = row.place;
            copy_text(why, sizeof why, row.why);
        }
        if (shortage.is_amount && (!nearest_place || nearness(&shortage) > nearness(&nearest))) {
            nearest = shortage;
            nearest_place = row.place;
        }
    }
    if (nearest_place) {
        return impossible_amount(&nearest, nearest_place->name, err);
    }
    return error_set(err, ERROR_IMPOSSIBLE, "no place could ever run this: %s%s%s",
                     first ? first->name : "", first ? ": " : "", why);
}

int decide_wait_step(const struct view *view, const struct subject *subject)
{
    const struct route *route = route_find(view->rules, subject->spec, subject->owner);
    int64_t outlived = 0;
    int steps = 0;
    for (size_t t = 0; route && t < route->tiers.count; t++) {
        const struct tier *tier = RULES_AT(route->tiers, struct tier, t);
        outlived = add_capped(outlived, tier->wait);
        steps += tier->wait > 0 && subject->waited_ms > outlived;
    }
    return steps;
}
