/* policy.c - policy.yaml into rules: parse, read by the table, fill, check.
 *
 * policy_read() always gives rules, however wrong the text: so that one check finds all mistakes, and
 * can still run the expectations. Only rules without a finding are ever used. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/hash.h"
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>

#define BUILTIN "builtin:"

static void add_error(void *arg, const struct error *err)
{
    findings_add(arg, SEVERITY_ERROR, err);
}

static bool has_name(const void *item)
{
    const char *name;
    memcpy(&name, item, sizeof name);
    return name != NULL;
}

/* Takes out what has no name, since its name was wrong. */
static void prune_list(const struct key *row, struct list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        char *item = (char *)list->items + i * row->item_size;
        if (has_name(item)) {
            memmove((char *)list->items + kept++ * row->item_size, item, row->item_size);
        } else {
            keys_free(row->rows, item);
        }
    }
    list->count = kept;
}

static void name_items(struct policy *policy)
{
    struct rules *rules = policy->rules;
    const struct value *guards = value_get(policy->root, "guards");
    const struct value *routes = value_get(policy->root, "routes");
    for (size_t i = 0; i < rules->guards.count; i++) {
        struct guard *guard = RULES_AT(rules->guards, struct guard, i);
        guard->line = value_item(guards, i)->line;
        guard->name = guard->name ? guard->name : xasprintf("%zu", i + 1);
    }
    for (size_t i = 0; i < rules->routes.count; i++) {
        struct route *route = RULES_AT(rules->routes, struct route, i);
        const struct value *at = value_item(routes, i);
        route->line = at->line;
        route->name = route->name ? route->name : xasprintf("%zu", i + 1);
        for (size_t t = 0; t < route->tiers.count; t++) {
            RULES_AT(route->tiers, struct tier, t)->line =
                value_item(value_get(at, "tiers"), t)->line;
        }
    }
}

static void mark_lines(struct policy *policy)
{
    struct rules *rules = policy->rules;
    const struct value *bursts = value_get(policy->root, "bursts");
    const struct value *budgets = value_get(policy->root, "budgets");
    const struct value *expects = value_get(policy->root, "expect");
    for (size_t i = 0; i < rules->bursts.count; i++) {
        struct burst_rule *burst = RULES_AT(rules->bursts, struct burst_rule, i);
        burst->line = value_get(bursts, burst->name)->key_line;
    }
    for (size_t i = 0; i < rules->budgets.count; i++) {
        struct budget_rule *budget = RULES_AT(rules->budgets, struct budget_rule, i);
        budget->line = value_get(budgets, budget->name)->key_line;
    }
    for (size_t i = 0; i < rules->expects.count; i++) {
        struct expectation *expectation = RULES_AT(rules->expects, struct expectation, i);
        expectation->line = value_item(expects, i)->line;
        if (!expectation->job) {
            expectation->job = value_create(VALUE_MAP);
        }
    }
}

/* After errors: makes what is left whole enough to be looked at. */
static void prune(struct policy *policy)
{
    struct rules *rules = policy->rules;
    for (const struct key *row = policy_keys; row->name; row++) {
        if (row->type == KEY_NAMED) {
            prune_list(row, (struct list *)(void *)((char *)rules + row->offset));
        }
    }
    if (!rules->currency[0]) {
        copy_text(rules->currency, sizeof rules->currency, "EUR");
    }
    if (!rules->default_class) {
        rules->default_class = xstrdup("batch");
    }
}

struct rules *policy_read(const char *text, const struct value *root,
                          const struct federation *federation, struct findings *findings)
{
    struct rules *rules = xcalloc(1, sizeof *rules);
    const struct keys_context context = {federation->timezone, NULL};
    struct policy policy = {root && root->kind != VALUE_NULL ? root : NULL, federation, rules,
                            findings};
    rules->text = xstrdup(text);
    sha256_text(text, strlen(text), rules->hash);
    (void)keys_read_all(policy_keys, policy.root, rules, &context, add_error, findings);
    prune(&policy);
    name_items(&policy);
    mark_lines(&policy);
    policy_fill(&policy);
    policy_check_names(&policy);
    policy_check_sense(&policy);
    return rules;
}

/* ------------------------------------------------------------------------------ one mistake */

struct first {
    struct error *err;
    bool found;
};

static void keep_first(void *arg, enum severity severity, const struct error *err)
{
    struct first *first = arg;
    if (severity == SEVERITY_ERROR && !first->found) {
        *first->err = *err;
        first->found = true;
    }
}

int config_rules_parse(const char *text, const char *file, const struct federation *federation,
                       struct rules **out, struct error *err)
{
    struct first first = {err, false};
    struct findings findings = {.found = keep_first, .arg = &first};
    struct value *root = NULL;
    struct rules *rules = NULL;
    int status = yaml_parse(text, strlen(text), &root, err);
    if (status == 0) {
        rules = policy_read(text, root, federation, &findings);
        status = findings.errors ? -1 : 0;
    }
    value_destroy(root);
    if (status != 0) {
        copy_text(err->file, sizeof err->file, file);
        rules_destroy(rules);
        return -1;
    }
    *out = rules;
    return 0;
}

static int load_embedded(const char *path, const struct federation *federation, struct rules **out,
                         struct error *err)
{
    const char *text = embedded_policy(path ? path + strlen(BUILTIN) : NULL);
    if (!text) {
        error_set(err, ERROR_INVALID, "no built-in policy '%.60s'", path + strlen(BUILTIN));
        return error_expect(err, "builtin:own or builtin:tour, or the path of a file");
    }
    return config_rules_parse(text, path ? path : BUILTIN "own", federation, out, err);
}

int config_rules_load(const char *path, const struct federation *federation, struct rules **out,
                      struct error *err)
{
    char *text = NULL;
    size_t length = 0;
    if (!path || strncmp(path, BUILTIN, strlen(BUILTIN)) == 0) {
        return load_embedded(path, federation, out, err);
    }
    if (config_file_read(path, &text, &length, err) != 0) {
        return -1;
    }
    int status = strlen(text) == length
                     ? config_rules_parse(text, path, federation, out, err)
                     : error_set(err, ERROR_MALFORMED, "%.200s holds a NUL", path);
    free(text);
    return status;
}

void rules_destroy(struct rules *rules)
{
    if (!rules) {
        return;
    }
    keys_free(policy_keys, rules);
    free(rules->text);
    free(rules);
}
