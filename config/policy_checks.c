/* policy_checks.c - what no single key can say: sums, gaps, currencies, guards that nothing satisfies.
 * Also brings the limits of budgets into the policy's currency. */
#include "config/internal.h"

#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

static void add_error(const struct policy *policy, const struct error *err)
{
    findings_add(policy->findings, SEVERITY_ERROR, err);
}

/* About a whole item: its line is named, but not shown. */
static void add_whole(const struct policy *policy, enum severity severity, struct error *err)
{
    err->width = 0;
    findings_add(policy->findings, severity, err);
}

/* --------------------------------------------------------------------------------- classes */

static void check_shares(const struct policy *policy)
{
    const struct value *classes = value_get(policy->root, "classes");
    int64_t sum = 0;
    struct error err;
    char text[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < policy->rules->classes.count; i++) {
        const struct class_rule *class = RULES_AT(policy->rules->classes, struct class_rule, i);
        const struct value *at = value_get(value_get(classes, class->name), "share");
        sum += at ? class->share : 0;
        if (at && at->kind == VALUE_SCALAR && strcmp(at->text, "0%") == 0) {
            value_error(at, &err, ERROR_INVALID, "a class with a share of 0%% would starve");
            error_expect(&err, "at least 1%%");
            add_error(policy, &err);
        }
    }
    if (sum > SHARE_ONE) {
        value_key_error(classes, &err, ERROR_INVALID, "the shares add up to %s",
                        share_text(sum, text));
        error_expect(&err, "at most 100%% together");
        add_error(policy, &err);
        return;
    }
    for (size_t i = 0; i < policy->rules->classes.count; i++) {
        const struct class_rule *class = RULES_AT(policy->rules->classes, struct class_rule, i);
        if (class->share == 0 && sum == SHARE_ONE) {
            value_key_error(classes, &err, ERROR_INVALID,
                            "nothing is left for class '%s': its jobs can starve", class->name);
            error_expect(&err, "write less than 100%% together, or its share");
            findings_add(policy->findings, SEVERITY_WARNING, &err);
        }
    }
}

static void check_class_times(const struct policy *policy)
{
    const struct value *classes = value_get(policy->root, "classes");
    struct error err;
    char estimate[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < policy->rules->classes.count; i++) {
        const struct class_rule *class = RULES_AT(policy->rules->classes, struct class_rule, i);
        const struct value *time = value_get(value_get(classes, class->name), "time");
        if (class->time.estimate > class->time.limit && value_get(time, "estimate")) {
            value_error(value_get(time, "estimate"), &err, ERROR_INVALID,
                        "the estimate %s is longer than the limit %s",
                        duration_text(class->time.estimate, estimate),
                        duration_text(class->time.limit, limit));
            error_expect(&err, "an estimate within the limit");
            add_error(policy, &err);
        }
    }
}

/* ------------------------------------------------------------------------------ currencies */

static void refuse_currency(const struct policy *policy, const struct value *at,
                            const struct money *money)
{
    struct error err;
    value_error(at, &err, ERROR_INVALID, "no rate for %s", money->currency);
    error_expect(&err, "write rates: {%s: 0.92 %s} with the rate of the day", money->currency,
                 policy->rules->currency);
    add_error(policy, &err);
}

static bool can_exchange(const struct policy *policy, const struct money *money)
{
    int64_t nano;
    return rules_exchange(policy->rules, money, &nano) == 0;
}

static void check_rates(const struct policy *policy)
{
    const struct value *rates = value_get(policy->root, "rates");
    const struct rules *rules = policy->rules;
    struct error err;
    for (size_t i = 0; i < rules->rates.count; i++) {
        const struct rate_of_exchange *rate = RULES_AT(rules->rates, struct rate_of_exchange, i);
        const struct value *at = value_get(rates, rate->name);
        if (strcmp(rate->name, rules->currency) == 0) {
            value_key_error(at, &err, ERROR_INVALID, "%s is the policy's own currency", rate->name);
            error_expect(&err, "rates of the others only");
            add_error(policy, &err);
        } else if (rate->price.currency[0] && strcmp(rate->price.currency, rules->currency) != 0) {
            value_error(at, &err, ERROR_INVALID, "a rate in %s", rate->price.currency);
            error_expect(&err, "what one %s is worth in %s", rate->name, rules->currency);
            add_error(policy, &err);
        }
    }
}

static void exchange_budgets(const struct policy *policy)
{
    const struct value *budgets = value_get(policy->root, "budgets");
    struct rules *rules = policy->rules;
    for (size_t i = 0; i < rules->budgets.count; i++) {
        struct budget_rule *budget = RULES_AT(rules->budgets, struct budget_rule, i);
        struct money *limit = &budget->limit;
        if (!limit->currency[0]) {
            continue; /* it was wrong, and said so */
        }
        if (rules_exchange(rules, limit, &limit->nano) != 0) {
            refuse_currency(policy, value_get(value_get(budgets, budget->name), "limit"), limit);
            continue;
        }
        copy_text(limit->currency, sizeof limit->currency, rules->currency);
    }
}

static void check_worths(const struct policy *policy)
{
    const struct value *classes = value_get(policy->root, "classes");
    const struct value *reference = value_get(policy->root, "reference");
    const struct rules *rules = policy->rules;
    for (size_t i = 0; i < rules->classes.count; i++) {
        const struct class_rule *class = RULES_AT(rules->classes, struct class_rule, i);
        if (!class->waiting.is_share && !can_exchange(policy, &class->waiting.money)) {
            refuse_currency(policy, value_get(value_get(classes, class->name), "waiting"),
                            &class->waiting.money);
        }
    }
    if (!can_exchange(policy, &rules->reference.cpu)) {
        refuse_currency(policy, value_get(reference, "cpu"), &rules->reference.cpu);
    }
    for (size_t i = 0; i < rules->reference.gpus.count; i++) {
        const struct gpu_price *gpu = RULES_AT(rules->reference.gpus, struct gpu_price, i);
        if (!can_exchange(policy, &gpu->price)) {
            refuse_currency(policy, value_get(reference, gpu->name), &gpu->price);
        }
    }
}

/* A price without a rate is unknown, and so no rent is paid there. */
static bool warn_price(const struct policy *policy, const struct place *place,
                       const struct money *price)
{
    const struct value *rates = value_get(policy->root, "rates");
    struct error err;
    if (can_exchange(policy, price)) {
        return false;
    }
    error_set(&err, ERROR_INVALID, "no rate for %s, in which %s has its price: no rent there",
              price->currency, place->name);
    err.line = rates ? rates->key_line : 1;
    err.column = rates ? rates->key_column : 1;
    error_expect(&err, "write rates: {%s: 0.92 %s} with the rate of the day", price->currency,
                 policy->rules->currency);
    findings_add(policy->findings, SEVERITY_WARNING, &err);
    return true;
}

static void check_prices(const struct policy *policy)
{
    for (size_t i = 0; i < policy->federation->place_count; i++) {
        const struct place *place = policy->federation->places[i];
        bool warned = !place_kind_is_rented(place->kind);
        for (size_t n = 0; !warned && n < place->nodes.count; n++) {
            const struct node_shape *node = RULES_AT(place->nodes, struct node_shape, n);
            warned = warn_price(policy, place, &node->price);
        }
    }
}

/* ---------------------------------------------------------------------------------- bursts */

static bool asks_nothing(const struct burst_condition *condition)
{
    return !condition->pending && !condition->all_pending && !condition->wait && !condition->load;
}

static void refuse_nothing(const struct policy *policy, const struct value *at, const char *what)
{
    struct error err;
    value_error(at, &err, ERROR_INVALID, "this %s asks nothing", what);
    error_expect(&err, "one of pending, all_pending, wait, load");
    add_error(policy, &err);
}

/* Figures of close and open, where both ask the same; text prints one of them. */
static void check_gap(const struct policy *policy, const struct value *at, int64_t close,
                      int64_t open, const char *what,
                      char *(*text)(int64_t figure, char out[UNITS_TEXT_SIZE]))
{
    char closes[UNITS_TEXT_SIZE], opens[UNITS_TEXT_SIZE];
    struct error err;
    if (close == 0 || open == 0 || close <= open) {
        return;
    }
    value_key_error(at, &err, ERROR_INVALID,
                    "close at %s%s lies above open at %s: the burst would flap",
                    text(close, closes), what, text(open, opens));
    add_whole(policy, SEVERITY_ERROR, &err);
}

static char *count_text(int64_t count, char out[UNITS_TEXT_SIZE])
{
    (void)snprintf(out, UNITS_TEXT_SIZE, "%lld", (long long)count);
    return out;
}

static int64_t smallest(const struct list *open, size_t offset)
{
    int64_t least = 0;
    for (size_t i = 0; i < open->count; i++) {
        int64_t figure;
        memcpy(&figure, (const char *)open->items + i * sizeof(struct burst_condition) + offset,
               sizeof figure);
        least = figure && (least == 0 || figure < least) ? figure : least;
    }
    return least;
}

static void check_close(const struct policy *policy, const struct burst_rule *burst,
                        const struct value *at)
{
    const struct burst_condition *close = &burst->close;
    const struct value *value = value_get(at, "close");
    const struct list *open = &burst->open;
    struct error err;
    if (!value && asks_nothing(close)) {
        value_key_error(at, &err, ERROR_INVALID, "burst '%s' does not say when it closes",
                        burst->name);
        error_expect(&err, "write `close`: no `pending` in `open` to take a fifth of");
        add_error(policy, &err);
        return;
    }
    if (value && value->kind == VALUE_MAP && asks_nothing(close)) {
        refuse_nothing(policy, value, "`close`");
    }
    if (!value) {
        return;
    }
    check_gap(policy, value, close->pending,
              smallest(open, offsetof(struct burst_condition, pending)), " pending", count_text);
    check_gap(policy, value, close->all_pending,
              smallest(open, offsetof(struct burst_condition, all_pending)), " pending in all",
              count_text);
    check_gap(policy, value, close->wait, smallest(open, offsetof(struct burst_condition, wait)),
              " wait", duration_text);
    check_gap(policy, value, close->load, smallest(open, offsetof(struct burst_condition, load)),
              " load", share_text);
}

static void check_bursts(const struct policy *policy)
{
    const struct value *bursts = value_get(policy->root, "bursts");
    for (size_t i = 0; bursts && i < policy->rules->bursts.count; i++) {
        const struct burst_rule *burst = RULES_AT(policy->rules->bursts, struct burst_rule, i);
        const struct value *at = value_get(bursts, burst->name);
        const struct value *open = value_get(at, "open");
        for (size_t c = 0; c < value_item_count(open) && c < burst->open.count; c++) {
            const struct value *item = value_item(open, c);
            /* a figure that was wrong is not one that is missing */
            bool bare = item->kind == VALUE_MAP && !value_get(item, "pending") &&
                        !value_get(item, "all_pending") && !value_get(item, "wait") &&
                        !value_get(item, "load");
            if (bare) {
                refuse_nothing(policy, item, "condition of `open`");
            }
        }
        check_close(policy, burst, at);
    }
}

/* ----------------------------------------------------------------------- guards and routes */

static void refuse_twice(const struct policy *policy, const struct value *list, size_t index,
                         const char *what)
{
    const struct value *name = value_get(value_item(list, index), "name");
    for (size_t i = 0; name && name->kind == VALUE_SCALAR && i < index; i++) {
        const struct value *other = value_get(value_item(list, i), "name");
        if (other && other->kind == VALUE_SCALAR && strcmp(other->text, name->text) == 0) {
            struct error err;
            value_error(name, &err, ERROR_INVALID, "a second %s '%.63s'", what, name->text);
            error_expect(&err, "another name: the first is in line %d", other->line);
            add_error(policy, &err);
            return;
        }
    }
}

static bool guard_admits(const struct guard *guard, const struct federation *federation)
{
    for (size_t i = 0; i < federation->place_count; i++) {
        const struct place *place = federation->places[i];
        bool forbidden = guard->forbid.count && place_is_selected(place, &guard->forbid);
        if (place_is_selected(place, &guard->require) && !forbidden) {
            return true;
        }
    }
    return false;
}

static void check_guards(const struct policy *policy)
{
    const struct value *guards = value_get(policy->root, "guards");
    struct error err;
    for (size_t i = 0; i < policy->rules->guards.count; i++) {
        const struct guard *guard = RULES_AT(policy->rules->guards, struct guard, i);
        const struct value *at = value_item(guards, i);
        refuse_twice(policy, guards, i, "guard");
        if (at->kind == VALUE_MAP && !value_get(at, "require") && !value_get(at, "forbid")) {
            value_error(at, &err, ERROR_INVALID, "guard '%s' neither requires nor forbids",
                        guard->name);
            error_expect(&err, "require: {kind: owned}, or forbid: {places: NAME}");
            add_error(policy, &err);
        } else if (!guard_admits(guard, policy->federation)) {
            value_error(at, &err, ERROR_INVALID,
                        "no place satisfies guard '%s': the jobs that it matches never run",
                        guard->name);
            add_whole(policy, SEVERITY_WARNING, &err);
        }
    }
}

static void check_tier(const struct policy *policy, const struct tier *tier, const struct value *at)
{
    const struct value *places = value_get(at, "places");
    struct error err;
    if (places && places->kind == VALUE_LIST && places->count == 0) {
        value_error(places, &err, ERROR_INVALID, "a tier without places");
        error_expect(&err, "at least one, or leave the tier out");
        add_error(policy, &err);
    }
    if (tier->fill > SHARE_ONE) {
        value_error(value_get(at, "fill"), &err, ERROR_INVALID, "a place is never over 100%% full");
        error_expect(&err, "less than 100%%");
        add_error(policy, &err);
    }
    if (tier->leave_free >= SHARE_ONE) {
        value_error(value_get(at, "leave_free"), &err, ERROR_INVALID,
                    "nothing could ever start in this tier");
        error_expect(&err, "less than 100%%");
        add_error(policy, &err);
    }
}

static void check_routes(const struct policy *policy)
{
    const struct value *routes = value_get(policy->root, "routes");
    struct error err;
    if (routes && routes->kind == VALUE_LIST && routes->count == 0) {
        value_error(routes, &err, ERROR_INVALID, "no route: no job could go anywhere");
        error_expect(&err, "at least one, or leave `routes` out");
        add_error(policy, &err);
    }
    for (size_t i = 0; routes && i < policy->rules->routes.count; i++) {
        const struct route *route = RULES_AT(policy->rules->routes, struct route, i);
        const struct value *tiers = value_get(value_item(routes, i), "tiers");
        refuse_twice(policy, routes, i, "route");
        if (tiers && tiers->kind == VALUE_LIST && tiers->count == 0) {
            value_error(tiers, &err, ERROR_INVALID, "route '%s' has no tiers", route->name);
            error_expect(&err, "tiers: [{places: NAME}]");
            add_error(policy, &err);
        }
        for (size_t t = 0; t < route->tiers.count; t++) {
            check_tier(policy, RULES_AT(route->tiers, struct tier, t), value_item(tiers, t));
        }
    }
}

static void check_expects(const struct policy *policy)
{
    const struct value *expects = value_get(policy->root, "expect");
    for (size_t i = 0; i < value_item_count(expects); i++) {
        const struct value *at = value_item(expects, i);
        if (at->kind == VALUE_MAP && !value_get(at, "goes_to") && !value_get(at, "never") &&
            !value_get(at, "waits")) {
            struct error err;
            value_error(at, &err, ERROR_INVALID, "this expects nothing");
            error_expect(&err, "one of goes_to, never, waits");
            add_error(policy, &err);
        }
    }
}

void policy_check_sense(struct policy *policy)
{
    check_shares(policy);
    check_class_times(policy);
    check_rates(policy);
    exchange_budgets(policy);
    check_worths(policy);
    check_prices(policy);
    check_bursts(policy);
    check_guards(policy);
    check_routes(policy);
    check_expects(policy);
}
