/* policy_keys.c - the keys of policy.yaml. */
#include "config/internal.h"
#include "config/policy_readers.h"

#include <stddef.h>

enum {
    CLASSES_MAX = 64,
    GUARDS_MAX = 1000,
    BUDGETS_MAX = 256,
    BURSTS_MAX = 64,
    OPEN_MAX = 8, /* conditions of one burst */
    ROUTES_MAX = 1000,
    TIERS_MAX = 64,
    EXPECTS_MAX = 1000,
    ORDER_MAX = 9,
    COUNT_MAX = 1000000
};

static const char *const per_words[] = {
    [BUDGET_JOB] = "job",     [BUDGET_DAY] = "day",   [BUDGET_WEEK] = "week",
    [BUDGET_MONTH] = "month", [BUDGET_YEAR] = "year", [BUDGET_YEAR + 1] = NULL};

static const struct key match_needs_keys[] = {
    {.name = "cpus",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct needs_match, cpus),
     .standard = "0..",
     .read = policy_read_counts,
     .type_words = "range",
     .help = "CPUs asked for"},
    {.name = "memory",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct needs_match, memory),
     .standard = "0B..",
     .read = policy_read_sizes,
     .type_words = "range of sizes",
     .help = "memory asked for: 8GiB.. is at least"},
    {.name = "gpus",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct needs_match, gpus),
     .standard = "0..",
     .read = policy_read_counts,
     .type_words = "range",
     .help = "GPUs asked for"},
    {.name = "gpu",
     .type = KEY_TEXTS,
     .offset = offsetof(struct needs_match, gpu),
     .help = "any of these models will do for the job"},
    {.name = NULL},
};
static const struct key match_keys[] = {
    {.name = "class",
     .type = KEY_TEXTS,
     .offset = offsetof(struct match, class_name),
     .help = "classes"},
    {.name = "team", .type = KEY_TEXTS, .offset = offsetof(struct match, team), .help = "teams"},
    {.name = "owner", .type = KEY_TEXTS, .offset = offsetof(struct match, owner), .help = "owners"},
    {.name = "name",
     .type = KEY_TEXTS,
     .offset = offsetof(struct match, name),
     .help = "names of jobs"},
    {.name = "labels",
     .type = KEY_LABELS,
     .offset = offsetof(struct match, labels),
     .help = "labels of the job; a list of values: any of them"},
    {.name = "needs",
     .type = KEY_SECTION,
     .offset = offsetof(struct match, needs),
     .rows = match_needs_keys,
     .help = "what the job asks for"},
    {.name = "protected",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct match, is_protected),
     .read = policy_read_tristate,
     .type_words = "true or false",
     .help = "whether the job is protected"},
    {.name = NULL},
};

static const struct key class_keys[] = {
    {.name = "order",
     .type = KEY_INTEGER,
     .offset = offsetof(struct class_rule, order),
     .low = 1,
     .high = ORDER_MAX,
     .help = "lower goes first. Default: inference 1, training 2, batch and others 3"},
    {.name = "share",
     .type = KEY_SHARE,
     .offset = offsetof(struct class_rule, share),
     .help = "least part of the starts when every class waits. Default: what the others leave, "
             "in the proportion inference 70, training 20, batch and others 10"},
    {.name = "waiting",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct class_rule, waiting),
     .read = policy_read_worth,
     .type_words = "share or money/h",
     .help = "worth of an hour's wait of one job; a share is of what the job costs per hour at the "
             "cheapest rented place. Default: inference 200%, training 20%, batch and others 1%"},
    {.name = "time",
     .type = KEY_SECTION,
     .offset = offsetof(struct class_rule, time),
     .rows = spec_time_keys,
     .help = "defaults for its jobs"},
    {.name = "needs",
     .type = KEY_SECTION,
     .offset = offsetof(struct class_rule, needs),
     .rows = spec_needs_keys,
     .help = "defaults for its jobs"},
    {.name = NULL},
};

#define MATCH_ROW(holder)                                                                          \
    {                                                                                              \
        .name = "match", .type = KEY_SECTION, .offset = offsetof(holder, match),                   \
        .rows = match_keys, .help = "which jobs; all keys must fit. Default: all jobs"             \
    }

static const struct key guard_keys[] = {
    {.name = "name",
     .type = KEY_NAME,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct guard, name),
     .help = "shown where it removes a place"},
    MATCH_ROW(struct guard),
    {.name = "require",
     .type = KEY_LABELS,
     .offset = offsetof(struct guard, require),
     .help = "what the place must be: `places`, `kind`, `adapter` or any label of it"},
    {.name = "forbid",
     .type = KEY_LABELS,
     .offset = offsetof(struct guard, forbid),
     .help = "what the place must not be"},
    {.name = NULL},
};

static const struct key budget_keys[] = {
    {.name = "limit",
     .type = KEY_MONEY,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct budget_rule, limit),
     .help = "rent within one period"},
    {.name = "per",
     .type = KEY_ENUM,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct budget_rule, per),
     .words = per_words,
     .help = "the period, in the federation's time zone"},
    MATCH_ROW(struct budget_rule),
    {.name = "places",
     .type = KEY_TEXTS,
     .offset = offsetof(struct budget_rule, places),
     .help = "where it counts. Default: all rented places"},
    {.name = NULL},
};

#define CONDITION_ROWS                                                                             \
    {.name = "pending",                                                                            \
     .type = KEY_INTEGER,                                                                          \
     .offset = offsetof(struct burst_condition, pending),                                          \
     .low = 1,                                                                                     \
     .high = COUNT_MAX,                                                                            \
     .help = "jobs of ours that wait and that the burst's places could run"},                      \
        {.name = "all_pending",                                                                    \
         .type = KEY_INTEGER,                                                                      \
         .offset = offsetof(struct burst_condition, all_pending),                                  \
         .low = 1,                                                                                 \
         .high = COUNT_MAX,                                                                        \
         .help = "everything that waits at home, ours and others'"},                               \
        {.name = "wait",                                                                           \
         .type = KEY_DURATION,                                                                     \
         .offset = offsetof(struct burst_condition, wait),                                         \
         .help = "longest wait of ours"},                                                          \
    {                                                                                              \
        .name = "load", .type = KEY_SHARE, .offset = offsetof(struct burst_condition, load),       \
        .help = "of the own places in use"                                                         \
    }

static const struct key open_keys[] = {
    CONDITION_ROWS,
    {.name = "for",
     .type = KEY_DURATION,
     .offset = offsetof(struct burst_condition, for_ms),
     .help = "and so long without a break. Default: at once"},
    {.name = NULL},
};
static const struct key close_keys[] = {
    CONDITION_ROWS,
    {.name = "for",
     .type = KEY_DURATION,
     .offset = offsetof(struct burst_condition, for_ms),
     .standard = "10m",
     .help = "and so long without a break"},
    {.name = NULL},
};
static const struct key limit_keys[] = {
    {.name = "nodes",
     .type = KEY_INTEGER,
     .offset = offsetof(struct burst_limit, nodes),
     .low = 1,
     .high = COUNT_MAX,
     .help = "machines, those that still boot included"},
    {.name = "jobs",
     .type = KEY_INTEGER,
     .offset = offsetof(struct burst_limit, jobs),
     .low = 1,
     .high = COUNT_MAX,
     .help = "jobs"},
    {.name = NULL},
};
static const struct key burst_keys[] = {
    {.name = "open",
     .type = KEY_ITEMS,
     .offset = offsetof(struct burst_rule, open),
     .rows = open_keys,
     .item_size = sizeof(struct burst_condition),
     .max_items = OPEN_MAX,
     .help = "any of these opens: more than. Default: `pending: 50`"},
    {.name = "close",
     .type = KEY_SECTION,
     .offset = offsetof(struct burst_rule, close),
     .rows = close_keys,
     .given = offsetof(struct burst_rule, has_close) + 1,
     .help =
         "all of this closes: fewer than. Default: a fifth of the smallest `pending` of `open`"},
    {.name = "at_most",
     .type = KEY_SECTION,
     .offset = offsetof(struct burst_rule, at_most),
     .rows = limit_keys,
     .help = "what it may hold at once. Default: 20 nodes"},
    {.name = "budget",
     .type = KEY_NAME,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct burst_rule, budget),
     .help = "name in `budgets` that pays"},
    {.name = NULL},
};

static const struct key tier_keys[] = {
    {.name = "places",
     .type = KEY_TEXTS,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct tier, places),
     .help = "clusters or places; `*` is a wildcard"},
    {.name = "fill",
     .type = KEY_SHARE,
     .offset = offsetof(struct tier, fill),
     .help = "places fuller than this are passed over for the next open tier"},
    {.name = "wait",
     .type = KEY_DURATION,
     .offset = offsetof(struct tier, wait),
     .help = "so are those where the start is further away, or after so long a wait here"},
    {.name = "leave_free",
     .type = KEY_SHARE,
     .offset = offsetof(struct tier, leave_free),
     .help = "so much of the place always stays free for other routes"},
    {.name = "burst",
     .type = KEY_NAME,
     .offset = offsetof(struct tier, burst),
     .help = "open only while this burst is"},
    {.name = NULL},
};
static const struct key route_keys[] = {
    {.name = "name",
     .type = KEY_NAME,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct route, name),
     .help = "shown in reasons"},
    MATCH_ROW(struct route),
    {.name = "tiers",
     .type = KEY_ITEMS,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct route, tiers),
     .rows = tier_keys,
     .item_size = sizeof(struct tier),
     .max_items = TIERS_MAX,
     .help = "places, in the order in which they are tried"},
    {.name = NULL},
};

static const struct key given_keys[] = {
    {.name = "full",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expect_given, full),
     .help = "places without room and with all their `max_waiting` taken"},
    {.name = "down",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expect_given, down),
     .help = "places that are not reachable"},
    {.name = "drained",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expect_given, drained),
     .help = "places that take nothing new"},
    {.name = "open",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expect_given, open),
     .help = "bursts"},
    {.name = "spent",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expect_given, spent),
     .help = "budgets"},
    {.name = NULL},
};
static const struct key expect_keys[] = {
    {.name = "job",
     .type = KEY_CUSTOM,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct expectation, job),
     .read = policy_read_job,
     .free = policy_free_job,
     .type_words = "a job",
     .help = "a job, without what it runs"},
    {.name = "given",
     .type = KEY_SECTION,
     .offset = offsetof(struct expectation, given),
     .rows = given_keys,
     .help = "what is not as usual; all else is idle and healthy"},
    {.name = "goes_to",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expectation, goes_to),
     .help = "it goes to one of these"},
    {.name = "never",
     .type = KEY_TEXTS,
     .offset = offsetof(struct expectation, never),
     .help = "it goes to none of these"},
    {.name = "waits",
     .type = KEY_BOOL,
     .offset = offsetof(struct expectation, waits),
     .given = offsetof(struct expectation, has_waits) + 1,
     .help = "whether it has to wait"},
    {.name = NULL},
};

const struct key policy_keys[] = {
    {.name = "version",
     .type = KEY_INTEGER,
     .offset = offsetof(struct rules, version),
     .standard = "1",
     .low = 1,
     .high = 1,
     .help = "of this language"},
    {.name = "currency",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct rules, currency),
     .standard = "EUR",
     .read = policy_read_currency,
     .type_words = "code",
     .help = "all sums are shown in it"},
    {.name = "rates",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct rules, rates),
     .read = policy_read_rates,
     .free = policy_free_rates,
     .type_words = "map of money",
     .help = "one unit of other currencies: {USD: 0.92 EUR}"},
    {.name = "default_class",
     .type = KEY_NAME,
     .offset = offsetof(struct rules, default_class),
     .standard = "batch",
     .help = "of jobs that say none"},
    {.name = "classes",
     .type = KEY_NAMED,
     .offset = offsetof(struct rules, classes),
     .rows = class_keys,
     .item_size = sizeof(struct class_rule),
     .max_items = CLASSES_MAX,
     .help = "changes inference, training and batch, or adds to them"},
    {.name = "guards",
     .type = KEY_ITEMS,
     .offset = offsetof(struct rules, guards),
     .rows = guard_keys,
     .item_size = sizeof(struct guard),
     .max_items = GUARDS_MAX,
     .help = "what must and must not be; all that match apply"},
    {.name = "budgets",
     .type = KEY_NAMED,
     .offset = offsetof(struct rules, budgets),
     .rows = budget_keys,
     .item_size = sizeof(struct budget_rule),
     .max_items = BUDGETS_MAX,
     .help = "rent; every budget that counts a job must have room for it"},
    {.name = "bursts",
     .type = KEY_NAMED,
     .offset = offsetof(struct rules, bursts),
     .rows = burst_keys,
     .item_size = sizeof(struct burst_rule),
     .max_items = BURSTS_MAX,
     .help = "when rented tiers open and close"},
    {.name = "routes",
     .type = KEY_ITEMS,
     .offset = offsetof(struct rules, routes),
     .rows = route_keys,
     .item_size = sizeof(struct route),
     .max_items = ROUTES_MAX,
     .help = "where jobs go: the first that matches. Default: own places, then rented ones while "
             "the burst `overflow` is open"},
    {.name = "reference",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct rules, reference),
     .read = policy_read_reference,
     .free = policy_free_reference,
     .type_words = "map of money/h",
     .help = "what a share in `waiting` is of, per `cpu` and model of GPU. Default: the cheapest "
             "rented place, else 0.04 EUR/h and 2 EUR/h"},
    {.name = "expect",
     .type = KEY_ITEMS,
     .offset = offsetof(struct rules, expects),
     .rows = expect_keys,
     .item_size = sizeof(struct expectation),
     .max_items = EXPECTS_MAX,
     .help = "tests of the policy itself, run by `tieline policy check`"},
    {.name = NULL},
};
