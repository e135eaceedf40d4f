/* policy_names.c - everything in a policy that names something else: places, classes, bursts, budgets,
 * labels, models of GPU. The document is walked, not the rules: so each word is found where it stands. */
#include "config/internal.h"

#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

struct names {
    const char **items;
    size_t count;
    const char *one, *many; /* "class", "classes" */
};

/* Names of a list whose items begin with `char *name`. */
static struct names names_of(const struct list *list, size_t item_size, const char *one,
                             const char *many)
{
    struct names names = {xcalloc(list->count, sizeof *names.items), list->count, one, many};
    for (size_t i = 0; i < list->count; i++) {
        memcpy(&names.items[i], (const char *)list->items + i * item_size, sizeof *names.items);
    }
    return names;
}

static bool is_among(const struct names *names, const char *word)
{
    for (size_t i = 0; i < names->count; i++) {
        if (glob_match(word, names->items[i])) {
            return true;
        }
    }
    return false;
}

/* Each text must name one of these. */
static void check_words(const struct value *texts, const struct names *names,
                        struct findings *findings)
{
    for (size_t i = 0; i < value_item_count(texts); i++) {
        const struct value *item = value_item(texts, i);
        struct error err;
        if (item->kind == VALUE_SCALAR && !is_among(names, item->text)) {
            value_error(item, &err, ERROR_INVALID, "no %s '%.63s'", names->one, item->text);
            expect_names(&err, item->text, names->items, names->count, names->many);
            findings_add(findings, SEVERITY_ERROR, &err);
        }
    }
}

/* ---------------------------------------------------------------------------- guards, match */

static bool label_exists(const struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->place_count; i++) {
        if (labels_get(&federation->places[i]->labels, name)) {
            return true;
        }
    }
    return false;
}

/* Labels that any place has, each once. */
static struct names label_names(const struct federation *federation)
{
    struct names names = {NULL, 0, "label", "labels"};
    for (size_t i = 0; i < federation->place_count; i++) {
        const struct labels *labels = &federation->places[i]->labels;
        for (size_t j = 0; j < labels->count; j++) {
            const char *name = labels->items[j].name;
            bool known = false;
            for (size_t k = 0; k < names.count && !known; k++) {
                known = strcmp(names.items[k], name) == 0;
            }
            if (!known) {
                names.items = xrealloc(names.items, names.count + 1, sizeof *names.items);
                names.items[names.count++] = name;
            }
        }
    }
    return names;
}

static void warn_label(const struct value *item, const struct policy *policy)
{
    struct names names = label_names(policy->federation);
    struct error err;
    value_key_error(item, &err, ERROR_INVALID, "no place has a label '%.63s'", item->key);
    expect_names(&err, item->key, names.items, names.count, "labels of places");
    findings_add(policy->findings, SEVERITY_WARNING, &err);
    free(names.items);
}

static struct names adapter_names(const struct federation *federation)
{
    struct names names = {xcalloc(federation->cluster_count, sizeof *names.items), 0, "adapter",
                          "adapters of clusters"};
    for (size_t i = 0; i < federation->cluster_count; i++) {
        const char *name = federation->clusters[i].adapter->name;
        if (!is_among(&names, name)) {
            names.items[names.count++] = name;
        }
    }
    return names;
}

static void check_selector(const struct value *selector, const struct policy *policy)
{
    const char *kinds[PLACE_KIND_COUNT];
    for (size_t i = 0; i < PLACE_KIND_COUNT; i++) {
        kinds[i] = place_kind_words[i];
    }
    struct names kind = {kinds, PLACE_KIND_COUNT, "kind", "kinds"};
    for (size_t i = 0; selector && selector->kind == VALUE_MAP && i < selector->count; i++) {
        const struct value *item = selector->items[i];
        if (strcmp(item->key, "places") == 0) {
            check_places(item, policy->federation, policy->findings);
        } else if (strcmp(item->key, "kind") == 0) {
            check_words(item, &kind, policy->findings);
        } else if (strcmp(item->key, "adapter") == 0) {
            struct names names = adapter_names(policy->federation);
            check_words(item, &names, policy->findings);
            free(names.items);
        } else if (!label_exists(policy->federation, item->key)) {
            warn_label(item, policy);
        }
    }
}

static void check_gpus(const struct value *texts, const struct policy *policy)
{
    for (size_t i = 0; i < value_item_count(texts); i++) {
        const struct value *item = value_item(texts, i);
        struct error err;
        if (item->kind == VALUE_SCALAR && !strchr(item->text, '*') &&
            !gpu_find(policy->federation, item->text)) {
            gpu_unknown(policy->federation, item, item->text, false, &err);
            findings_add(policy->findings, SEVERITY_ERROR, &err);
        }
    }
}

static void check_match(const struct value *match, const struct policy *policy)
{
    struct names names =
        names_of(&policy->rules->classes, sizeof(struct class_rule), "class", "classes");
    check_words(value_get(match, "class"), &names, policy->findings);
    free(names.items);
    check_gpus(value_get(value_get(match, "needs"), "gpu"), policy);
}

static void check_guards(const struct policy *policy)
{
    const struct value *guards = value_get(policy->root, "guards");
    for (size_t i = 0; i < value_item_count(guards); i++) {
        const struct value *guard = value_item(guards, i);
        check_match(value_get(guard, "match"), policy);
        check_selector(value_get(guard, "require"), policy);
        check_selector(value_get(guard, "forbid"), policy);
    }
}

/* ------------------------------------------------------------------- budgets, bursts, routes */

static void check_money(const struct policy *policy)
{
    const struct value *budgets = value_get(policy->root, "budgets");
    const struct value *bursts = value_get(policy->root, "bursts");
    struct names names =
        names_of(&policy->rules->budgets, sizeof(struct budget_rule), "budget", "budgets");
    for (size_t i = 0; budgets && i < budgets->count; i++) {
        check_match(value_get(budgets->items[i], "match"), policy);
        check_places(value_get(budgets->items[i], "places"), policy->federation, policy->findings);
    }
    for (size_t i = 0; bursts && i < bursts->count; i++) {
        check_words(value_get(bursts->items[i], "budget"), &names, policy->findings);
    }
    free(names.items);
}

static void check_routes(const struct policy *policy)
{
    const struct value *routes = value_get(policy->root, "routes");
    struct names names =
        names_of(&policy->rules->bursts, sizeof(struct burst_rule), "burst", "bursts");
    for (size_t i = 0; i < value_item_count(routes); i++) {
        const struct value *route = value_item(routes, i), *tiers = value_get(route, "tiers");
        check_match(value_get(route, "match"), policy);
        for (size_t t = 0; t < value_item_count(tiers); t++) {
            const struct value *tier = value_item(tiers, t);
            check_places(value_get(tier, "places"), policy->federation, policy->findings);
            check_words(value_get(tier, "burst"), &names, policy->findings);
        }
    }
    free(names.items);
}

static void check_reference(const struct policy *policy)
{
    const struct value *map = value_get(policy->root, "reference");
    for (size_t i = 0; map && map->kind == VALUE_MAP && i < map->count; i++) {
        const struct value *item = map->items[i];
        struct error err;
        if (strcmp(item->key, "cpu") != 0 && !gpu_find(policy->federation, item->key)) {
            gpu_unknown(policy->federation, item, item->key, true, &err);
            findings_add(policy->findings, SEVERITY_ERROR, &err);
        }
    }
}

/* ---------------------------------------------------------------------------- expectations */

/* A job of an expectation may leave out what it runs; all else must be a job's. */
static void check_job(const struct value *job, const struct policy *policy)
{
    struct error err;
    struct spec *spec = NULL;
    if (!job || job->kind != VALUE_MAP) {
        return;
    }
    struct value *whole = value_clone(job);
    if (!value_get(job, "run") && !value_get(job, "command")) {
        struct value *run = value_create(VALUE_SCALAR);
        run->style = VALUE_QUOTED;
        run->text = xstrdup("true");
        value_add_take(whole, "run", run);
    }
    if (spec_parse(whole, policy->rules, policy->federation, &spec, &err) != 0) {
        if (err.line == 0) {
            err.line = job->line;
            err.column = job->column;
        }
        findings_add(policy->findings, SEVERITY_ERROR, &err);
    }
    spec_unref(spec);
    value_destroy(whole);
}

static void check_expects(const struct policy *policy)
{
    static const char *const places[] = {"full", "down", "drained"};
    const struct value *expects = value_get(policy->root, "expect");
    const struct rules *rules = policy->rules;
    struct names bursts = names_of(&rules->bursts, sizeof(struct burst_rule), "burst", "bursts");
    struct names budgets =
        names_of(&rules->budgets, sizeof(struct budget_rule), "budget", "budgets");
    for (size_t i = 0; i < value_item_count(expects); i++) {
        const struct value *expect = value_item(expects, i), *given = value_get(expect, "given");
        check_job(value_get(expect, "job"), policy);
        check_places(value_get(expect, "goes_to"), policy->federation, policy->findings);
        check_places(value_get(expect, "never"), policy->federation, policy->findings);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            check_places(value_get(given, places[p]), policy->federation, policy->findings);
        }
        check_words(value_get(given, "open"), &bursts, policy->findings);
        check_words(value_get(given, "spent"), &budgets, policy->findings);
    }
    free(bursts.items);
    free(budgets.items);
}

static void check_default_class(const struct policy *policy)
{
    struct rules *rules = policy->rules;
    struct names names = names_of(&rules->classes, sizeof(struct class_rule), "class", "classes");
    if (!rules_class(rules, rules->default_class)) {
        check_words(value_get(policy->root, "default_class"), &names, policy->findings);
        free(rules->default_class);
        rules->default_class = xstrdup("batch"); /* which always exists */
    }
    free(names.items);
}

void policy_check_names(struct policy *policy)
{
    check_default_class(policy);
    check_guards(policy);
    check_money(policy);
    check_routes(policy);
    check_reference(policy);
    check_expects(policy);
}
