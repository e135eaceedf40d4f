/* policy_keys.c - the keys of policy.yaml, and the readers of those with a shape of their own. */
#include "config/internal.h"

#include "broker/core/alloc.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
    COUNT_MAX = 1000000,
    SIZE_TEXT_MAX = 40
};

/* -------------------------------------------------------------------------------- readers */

static int wants_text(const struct value *value, const char *expected, struct error *err)
{
    if (value->kind == VALUE_SCALAR && value_meaning(value) != VALUE_MEANS_NULL) {
        return 0;
    }
    value_error(value, err, ERROR_INVALID, "a single value must stand here");
    return error_expect(err, "%s", expected);
}

static bool is_currency(const char *text)
{
    return strlen(text) == CURRENCY_SIZE - 1 &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == CURRENCY_SIZE - 1;
}

static int read_currency(const struct value *value, void *field,
                         const struct keys_context *context, struct error *err)
{
    (void)context;
    if (wants_text(value, "a code like EUR", err) != 0) {
        return -1;
    }
    if (!is_currency(value->text)) {
        value_error(value, err, ERROR_INVALID, "'%.40s' is not a currency", value->text);
        return error_expect(err, "three capital letters, like EUR");
    }
    copy_text(field, CURRENCY_SIZE, value->text);
    return 0;
}

static const struct key rate_row = {.name = "rates",
                                    .type = KEY_MONEY,
                                    .offset = offsetof(struct rate_of_exchange, price)};

static int read_rates(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct list *list = field;
    if (pairs_read(value, list, sizeof(struct rate_of_exchange), &rate_row, context, err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!is_currency(RULES_AT(*list, struct rate_of_exchange, i)->name)) {
            value_key_error(value->items[i], err, ERROR_INVALID, "'%.40s' is not a currency",
                            value->items[i]->key);
            return error_expect(err, "three capital letters: {USD: 0.92 EUR}");
        }
    }
    return 0;
}

static void free_rates(void *field)
{
    pairs_free(field, sizeof(struct rate_of_exchange), &rate_row);
}

/* "20%" of the reference, or "4 EUR/h". */
static int read_worth(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct worth worth = {.is_share = false};
    (void)context;
    if (wants_text(value, "a share like 20%, or money like 4 EUR/h", err) != 0) {
        return -1;
    }
    const char *text = value->text;
    worth.is_share = *text && text[strlen(text) - 1] == '%';
    int status = worth.is_share ? share_parse(text, &worth.share, err)
                                : price_parse(text, PRICE_PER_HOUR, &worth.money, err);
    if (status != 0) {
        return value_locate(value, err);
    }
    *(struct worth *)field = worth;
    return 0;
}

static int read_tristate(const struct value *value, void *field,
                         const struct keys_context *context, struct error *err)
{
    const struct key row = {.name = "protected", .type = KEY_BOOL};
    bool read = false;
    if (keys_read_one(&row, value, &read, context, err) != 0) {
        return -1;
    }
    *(enum tristate *)field = read ? YES : NO;
    return 0;
}

/* One end of a range of sizes; "" is open. */
static int read_end(const char *text, size_t length, int64_t open, int64_t *out, struct error *err)
{
    char end[SIZE_TEXT_MAX];
    if (length == 0) {
        *out = open;
        return 0;
    }
    copy_text(end, length < sizeof end ? length + 1 : sizeof end, text);
    return size_parse(end, out, err);
}

/* "8GiB" (exactly), "8GiB..", "..8GiB", "8GiB..16GiB". */
static int read_sizes(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct range range = {0, UNLIMITED};
    (void)context;
    if (wants_text(value, "a range of sizes like 8GiB.. or 8GiB..16GiB", err) != 0) {
        return -1;
    }
    const char *text = value->text, *dots = strstr(text, "..");
    int status;
    if (dots) {
        status = read_end(text, (size_t)(dots - text), 0, &range.low, err);
        if (status == 0) {
            status = read_end(dots + 2, strlen(dots + 2), UNLIMITED, &range.high, err);
        }
    } else {
        status = size_parse(text, &range.low, err);
        range.high = range.low;
    }
    if (status != 0) {
        return value_locate(value, err);
    }
    if (range.low > range.high || (dots && strlen(text) == 2)) {
        value_error(value, err, ERROR_INVALID, "'%.40s' is an empty range", text);
        return error_expect(err, "the smaller size first, like 8GiB..16GiB");
    }
    *(struct range *)field = range;
    return 0;
}

static const struct key price_row = {.name = "reference",
                                     .type = KEY_PRICE_HOUR,
                                     .offset = offsetof(struct gpu_price, price)};

/* {cpu: 0.04 EUR/h, h100: 2 EUR/h}: `cpu` is no GPU. */
static int read_reference(const struct value *value, void *field,
                          const struct keys_context *context, struct error *err)
{
    struct reference *reference = field;
    struct list *gpus = &reference->gpus;
    if (pairs_read(value, gpus, sizeof(struct gpu_price), &price_row, context, err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_price *price = RULES_AT(*gpus, struct gpu_price, i);
        if (strcmp(price->name, "cpu") != 0) {
            continue;
        }
        reference->cpu = price->price;
        free(price->name);
        memmove(price, price + 1, (gpus->count - i - 1) * sizeof *price);
        gpus->count--;
        break;
    }
    return 0;
}

static void free_reference(void *field)
{
    struct reference *reference = field;
    pairs_free(&reference->gpus, sizeof(struct gpu_price), &price_row);
}

static int read_job(const struct value *value, void *field, const struct keys_context *context,
                    struct error *err)
{
    (void)context;
    if (value->kind != VALUE_MAP) {
        value_error(value, err, ERROR_INVALID, "'job' must be a map");
        return error_expect(err, "a job without what it runs: {class: batch, team: web}");
    }
    *(struct value **)field = value_clone(value);
    return 0;
}

static void free_job(void *field)
{
    value_destroy(*(struct value **)field);
    *(struct value **)field = NULL;
}

/* ---------------------------------------------------------------------------------- tables */

static const char *const per_words[] = {
    [BUDGET_JOB] = "job",     [BUDGET_DAY] = "day",   [BUDGET_WEEK] = "week",
    [BUDGET_MONTH] = "month", [BUDGET_YEAR] = "year", [BUDGET_YEAR + 1] = NULL};

static const struct key match_needs_keys[] = {
    {.name = "cpus",
     .type = KEY_RANGE,
     .offset = offsetof(struct needs_match, cpus),
     .standard = "0..",
     .help = "CPUs asked for"},
    {.name = "memory",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct needs_match, memory),
     .standard = "0B..",
     .read = read_sizes,
     .type_words = "range of sizes",
     .help = "memory asked for: 8GiB.. is at least"},
    {.name = "gpus",
     .type = KEY_RANGE,
     .offset = offsetof(struct needs_match, gpus),
     .standard = "0..",
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
    {.name = "owner",
     .type = KEY_TEXTS,
     .offset = offsetof(struct match, owner),
     .help = "owners"},
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
     .read = read_tristate,
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
     .read = read_worth,
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
    {.name = "match",                                                                              \
     .type = KEY_SECTION,                                                                          \
     .offset = offsetof(holder, match),                                                            \
     .rows = match_keys,                                                                           \
     .help = "which jobs; all keys must fit. Default: all jobs"}

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
     .help = "all of this closes: fewer than. Default: a fifth of the smallest `pending` of `open`"},
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
     .read = read_job,
     .free = free_job,
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
     .read = read_currency,
     .type_words = "code",
     .help = "all sums are shown in it"},
    {.name = "rates",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct rules, rates),
     .read = read_rates,
     .free = free_rates,
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
     .read = read_reference,
     .free = free_reference,
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
