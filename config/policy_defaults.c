/* policy_defaults.c - what a policy leaves to us: classes, bursts, the one route.
 *
 * The classes inference, training and batch always exist; a policy changes them and adds others. Shares
 * that are not written divide what the written ones leave. Without routes: own places, then rented ones
 * while a burst is open. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT_MS (INT64_C(8) * 3600 * 1000)
#define DEFAULT_FOR_MS (INT64_C(10) * 60 * 1000)
#define DEFAULT_MEMORY (INT64_C(2) << 30)
#define DEFAULT_BURST "overflow"
#define PERCENT (SHARE_ONE / 100)
enum { DEFAULT_CPUS = 1000, DEFAULT_PENDING = 50, DEFAULT_NODES = 20, FIFTH = 5 };

struct class_standard {
    const char *name;
    int64_t order, weight; /* weight: its part of what no class claims */
    int64_t waiting;       /* millionths */
};
static const struct class_standard standards[] = {
    {"inference", 1, 70, 200 * PERCENT},
    {"training", 2, 20, 20 * PERCENT},
    {"batch", 3, 10, 1 * PERCENT},
};
enum { STANDARDS = sizeof standards / sizeof *standards };

/* Classes with other names are as batch where the policy is silent. */
static const struct class_standard *standard_of(const char *name)
{
    for (size_t i = 0; i < STANDARDS; i++) {
        if (strcmp(standards[i].name, name) == 0) {
            return &standards[i];
        }
    }
    return &standards[STANDARDS - 1];
}

/* A zeroed item at the end of a list. */
static void *append(struct list *list, size_t item_size)
{
    list->items = xrealloc(list->items, list->count + 1, item_size);
    void *item = (char *)list->items + list->count++ * item_size;
    memset(item, 0, item_size);
    return item;
}

static void share_rest(struct rules *rules)
{
    int64_t rest = SHARE_ONE, weights = 0;
    for (size_t i = 0; i < rules->classes.count; i++) {
        const struct class_rule *class = RULES_AT(rules->classes, struct class_rule, i);
        rest -= class->share;
        weights += class->share ? 0 : standard_of(class->name)->weight;
    }
    for (size_t i = 0; rest > 0 && weights > 0 && i < rules->classes.count; i++) {
        struct class_rule *class = RULES_AT(rules->classes, struct class_rule, i);
        if (class->share == 0) {
            class->share = rest * standard_of(class->name)->weight / weights;
        }
    }
}

static void fill_class(struct class_rule *class)
{
    const struct class_standard *standard = standard_of(class->name);
    struct worth *waiting = &class->waiting;
    class->order = class->order ? class->order : standard->order;
    if (!waiting->is_share && !waiting->money.currency[0]) {
        waiting->is_share = true;
        waiting->share = standard->waiting;
    }
    if (!class->time.has_limit) {
        class->time.limit = DEFAULT_LIMIT_MS;
    }
    if (!class->needs.has_cpus) {
        class->needs.cpus = DEFAULT_CPUS;
    }
    if (!class->needs.has_memory) {
        class->needs.memory = DEFAULT_MEMORY;
    }
}

static void fill_classes(struct rules *rules)
{
    for (size_t i = 0; i < STANDARDS; i++) {
        if (!rules_class(rules, standards[i].name)) {
            struct class_rule *class = append(&rules->classes, sizeof *class);
            class->name = xstrdup(standards[i].name);
        }
    }
    share_rest(rules);
    for (size_t i = 0; i < rules->classes.count; i++) {
        fill_class(RULES_AT(rules->classes, struct class_rule, i));
    }
}

static int64_t smaller(int64_t least, int64_t number)
{
    return number > 0 && (least == 0 || number < least) ? number : least;
}

static int64_t fifth(int64_t number)
{
    return number > 0 && number < FIFTH ? 1 : number / FIFTH;
}

/* Fewer than a fifth of what opens it soonest. */
static void fill_close(struct burst_rule *burst)
{
    struct burst_condition *close = &burst->close;
    if (close->pending || close->all_pending || close->wait || close->load) {
        return;
    }
    for (size_t i = 0; i < burst->open.count; i++) {
        const struct burst_condition *open = RULES_AT(burst->open, struct burst_condition, i);
        close->pending = smaller(close->pending, open->pending);
        close->all_pending = smaller(close->all_pending, open->all_pending);
    }
    close->pending = fifth(close->pending);
    close->all_pending = fifth(close->all_pending);
    close->for_ms = close->for_ms ? close->for_ms : DEFAULT_FOR_MS;
}

static void fill_burst(struct burst_rule *burst)
{
    struct burst_limit *limit = &burst->at_most;
    if (burst->open.count == 0) {
        struct burst_condition *open = append(&burst->open, sizeof *open);
        open->pending = DEFAULT_PENDING;
    }
    fill_close(burst);
    burst->has_close = true;
    if (!limit->nodes && !limit->jobs) {
        limit->nodes = DEFAULT_NODES;
    }
    limit->nodes = limit->nodes ? limit->nodes : UNLIMITED;
    limit->jobs = limit->jobs ? limit->jobs : UNLIMITED;
}

/* All places of one sort as a tier; none when there are none. */
static void add_tier(struct route *route, const struct federation *federation, bool rented,
                     const char *burst)
{
    struct texts places = {NULL, 0};
    for (size_t i = 0; i < federation->place_count; i++) {
        if (place_kind_is_rented(federation->places[i]->kind) == rented) {
            texts_add(&places, federation->places[i]->name);
        }
    }
    if (places.count) {
        struct tier *tier = append(&route->tiers, sizeof *tier);
        tier->places = places;
        tier->burst = xstrdup(burst);
    }
}

static void add_route(struct rules *rules, const struct federation *federation)
{
    if (rules->bursts.count == 0) {
        struct burst_rule *burst = append(&rules->bursts, sizeof *burst);
        burst->name = xstrdup(DEFAULT_BURST);
    }
    const struct burst_rule *burst = rules_burst(rules, DEFAULT_BURST);
    burst = burst ? burst : RULES_AT(rules->bursts, struct burst_rule, 0);
    struct route *route = append(&rules->routes, sizeof *route);
    route->name = xstrdup("own-first");
    route->match.needs.cpus.high = UNLIMITED;
    route->match.needs.gpus.high = UNLIMITED;
    route->match.needs.memory.high = UNLIMITED;
    add_tier(route, federation, false, NULL);
    add_tier(route, federation, true, burst->name);
}

void policy_fill(struct policy *policy)
{
    struct rules *rules = policy->rules;
    fill_classes(rules);
    if (rules->routes.count == 0 && !value_get(policy->root, "routes")) {
        add_route(rules, policy->federation);
    }
    for (size_t i = 0; i < rules->bursts.count; i++) {
        fill_burst(RULES_AT(rules->bursts, struct burst_rule, i));
    }
}
