/* decision.c - one decision from first filter to summary (decide.h), and whether a job is possible. */
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
    if (!filter_job(option) ||
        !filter_owner(option, deciding->view->federation, deciding->subject->owner) ||
        !filter_guards(option, deciding) ||
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

static const char *const pointers[AMOUNT_COUNT] = {"/needs/cpus", "/needs/memory", "/needs/gpus",
                                                   "/time/limit"};

/* have/need as millionths: how near a place came. */
static int64_t nearness(const struct shortage *shortage)
{
    return scale_down(shortage->have, SHARE_ONE, shortage->need);
}

static int impossible_amount(const struct shortage *nearest, const char *place, struct error *err)
{
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

struct reasons { /* why no place could run it */
    struct shortage nearest;
    const struct place *place; /* of it; NULL: no place lacks an amount alone */
    const struct place *other; /* the first that says no for another reason */
    char why[WHY_SIZE];
};

static void reasons_add(struct reasons *reasons, const struct verdict_row *row,
                        const struct shortage *shortage)
{
    if (!shortage->is_amount && !reasons->other) {
        reasons->other = row->place;
        copy_text(reasons->why, sizeof reasons->why, row->why);
    }
    if (shortage->is_amount &&
        (!reasons->place || nearness(shortage) > nearness(&reasons->nearest))) {
        reasons->nearest = *shortage;
        reasons->place = row->place;
    }
}

/* A figure helps most; a place that has nothing of it says less than any other reason. */
static int reasons_tell(const struct reasons *reasons, struct error *err)
{
    if (reasons->place && reasons->nearest.have > 0) {
        return impossible_amount(&reasons->nearest, reasons->place->name, err);
    }
    if (reasons->other) {
        return error_set(err, ERROR_IMPOSSIBLE, "no place could ever run this: %s: %s",
                         reasons->other->name, reasons->why);
    }
    if (reasons->place) {
        error_set(err, ERROR_IMPOSSIBLE, "no place has any %s",
                  amount_noun(reasons->nearest.amount, 1000));
        copy_text(err->pointer, sizeof err->pointer, pointers[reasons->nearest.amount]);
        return -1;
    }
    return error_set(err, ERROR_IMPOSSIBLE, "no place is configured");
}

int decide_possible(const struct view *view, const struct subject *subject, struct error *err)
{
    struct reasons reasons = {0};
    for (size_t i = 0; i < view->federation->place_count; i++) {
        struct verdict_row row = {0};
        struct shortage shortage = {0};
        struct option option;
        option_init(&option, view->federation, &view->places[i], subject, &row);
        bool able =
            filter_job(&option) && filter_owner(&option, view->federation, subject->owner) &&
            filter_able(&option, view->federation, &shortage) && filter_refused(&option, subject);
        option_fini(&option);
        if (able) {
            return 0;
        }
        reasons_add(&reasons, &row, &shortage);
    }
    return reasons_tell(&reasons, err);
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
