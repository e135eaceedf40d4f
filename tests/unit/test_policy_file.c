/* policy.yaml: what it loads to, what is filled in where it is silent, and what is refused where. */
#include "tests/unit/config_lab.h"

#include "broker/core/alloc.h"
#include "broker/core/hash.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct rules *load(const char *text, const struct federation *federation)
{
    struct rules *rules = NULL;
    struct error err;
    cr_assert_eq(config_rules_parse(text, "policy.yaml", federation, &rules, &err), 0,
                 "%d:%d %s (%s)", err.line, err.column, err.text, err.expected);
    return rules;
}

static const struct class_rule *class(const struct rules *rules, const char *name)
{
    const struct class_rule *found = rules_class(rules, name);
    cr_assert_not_null(found, "%s", name);
    return found;
}

#define PERCENT (SHARE_ONE / 100)

Test(policy_file, the_built_in_policy)
{
    struct federation *site = lab_site();
    struct rules *rules = NULL;
    struct error err;
    cr_assert_eq(config_rules_load(NULL, site, &rules, &err), 0, "%s", err.text);
    cr_expect_str_eq(rules->currency, "EUR");
    cr_expect_str_eq(rules->default_class, "batch");
    cr_expect_eq(rules->classes.count, 3);
    cr_expect_eq(class(rules, "inference")->share, 70 * PERCENT);
    cr_expect_eq(class(rules, "training")->share, 20 * PERCENT);
    cr_expect_eq(class(rules, "batch")->share, 10 * PERCENT);
    cr_expect_eq(class(rules, "inference")->waiting.share, 200 * PERCENT);
    cr_expect_eq(class(rules, "training")->order, 2);
    cr_expect_eq(class(rules, "batch")->time.limit, INT64_C(8) * 3600 * 1000);
    cr_expect_eq(class(rules, "batch")->needs.cpus, 1000);
    cr_expect_eq(class(rules, "batch")->needs.memory, INT64_C(2) << 30);
    cr_expect_eq(rules->budgets.count, 0); /* so nothing is ever rented */
    cr_assert_eq(rules->bursts.count, 1);
    const struct burst_rule *burst = rules->bursts.items;
    cr_expect_str_eq(burst->name, "overflow");
    cr_expect_eq(RULES_AT(burst->open, struct burst_condition, 0)->pending, 50);
    cr_expect(burst->has_close && burst->close.pending == 10);
    cr_expect_eq(burst->close.for_ms, 10 * 60 * 1000);
    cr_expect(burst->at_most.nodes == 20 && burst->at_most.jobs == UNLIMITED);
    cr_assert_eq(rules->routes.count, 1);
    const struct route *route = rules->routes.items;
    cr_assert_eq(route->tiers.count, 2);
    const struct tier *tiers = route->tiers.items;
    cr_expect_eq(tiers[0].places.count, 6);
    cr_expect_null(tiers[0].burst);
    cr_expect_eq(tiers[1].places.count, 2);
    cr_expect_str_eq(tiers[1].burst, "overflow");
    cr_expect_eq(route->match.needs.gpus.high, UNLIMITED);
    rules_destroy(rules);
    federation_destroy(site);
}

Test(policy_file, the_full_one)
{
    struct federation *site = lab_site();
    char *text = lab_text("policy/full.yaml"), hash[SHA256_TEXT_SIZE];
    struct rules *rules = load(text, site);
    cr_expect_str_eq(rules->hash, sha256_text(text, strlen(text), hash));
    cr_expect_str_eq(rules->text, text);
    free(text);
    cr_expect_eq(rules->classes.count, 4);
    const struct class_rule *ci = class(rules, "ci");
    cr_expect(!ci->waiting.is_share && ci->waiting.money.nano == 4 * MONEY_UNIT);
    cr_expect_eq(ci->time.estimate, 10 * 60 * 1000);
    cr_expect_eq(ci->needs.cpus, 2000);
    const struct guard *guards = rules->guards.items;
    cr_expect_str_eq(labels_get(&guards[0].match.labels, "data"), "personal");
    cr_expect_eq(guards[0].require.items[1].values.count, 2);
    cr_expect_eq(guards[2].line, 15);
    cr_expect_eq(guards[0].match.needs.memory.high, UNLIMITED);
    const struct budget_rule *ml = rules_budget(rules, "ml");
    cr_expect(ml->limit.nano == 1200 * MONEY_UNIT && ml->per == BUDGET_MONTH);
    cr_expect_str_eq(ml->match.team.items[0], "ml");
    const struct burst_rule *overflow = rules_burst(rules, "overflow");
    cr_expect_eq(overflow->open.count, 3);
    cr_expect_eq(overflow->at_most.jobs, 400);
    cr_expect_eq(overflow->line, 25);
    const struct route *routes = rules->routes.items;
    cr_expect_eq(rules->routes.count, 6);
    cr_expect(routes[2].match.needs.gpus.low == 4000 &&
              routes[2].match.needs.gpus.high == UNLIMITED);
    cr_expect_eq(routes[3].match.is_protected, YES);
    cr_expect_eq(routes[0].match.is_protected, ANY);
    cr_expect(routes[4].match.needs.gpus.low == 1000 && routes[4].match.needs.gpus.high == 3000);
    const struct tier *tiers = routes[4].tiers.items;
    cr_expect_eq(tiers[1].leave_free, 25 * PERCENT);
    cr_expect_eq(tiers[1].wait, 30 * 60 * 1000);
    cr_expect_eq(rules->expects.count, 5);
    rules_destroy(rules);
    federation_destroy(site);
}

Test(policy_file, classes_add_to_the_built_in_ones)
{
    struct federation *site = lab_site();
    struct rules *rules = load("classes: {ci: {share: 50%}, batch: {waiting: 2 EUR/h}}", site);
    cr_expect_eq(rules->classes.count, 4);
    cr_expect_eq(class(rules, "ci")->share, 50 * PERCENT);
    cr_expect_eq(class(rules, "ci")->order, 3);
    cr_expect_eq(class(rules, "ci")->waiting.share, PERCENT);
    /* what ci leaves, as 70 : 20 : 10 */
    cr_expect_eq(class(rules, "inference")->share, 35 * PERCENT);
    cr_expect_eq(class(rules, "training")->share, 10 * PERCENT);
    cr_expect_eq(class(rules, "batch")->share, 5 * PERCENT);
    cr_expect_eq(class(rules, "batch")->order, 3);
    cr_expect_eq(class(rules, "batch")->waiting.money.nano, 2 * MONEY_UNIT);
    rules_destroy(rules);
    federation_destroy(site);
}

Test(policy_file, money_is_brought_into_the_currency)
{
    struct federation *site = lab_site();
    struct rules *rules =
        load("currency: USD\n"
             "rates: {EUR: 1.1 USD}\n"
             "reference: {cpu: 0.05 EUR/h, h100: 3 USD/h}\n"
             "budgets: {a: {limit: 100 EUR, per: day}, b: {limit: 7 USD, per: job}}",
             site);
    cr_expect_eq(rules_budget(rules, "a")->limit.nano, 110 * MONEY_UNIT);
    cr_expect_str_eq(rules_budget(rules, "a")->limit.currency, "USD");
    cr_expect_eq(rules_budget(rules, "b")->limit.nano, 7 * MONEY_UNIT);
    cr_expect_eq(rules->reference.cpu.nano, 50000000);
    cr_assert_eq(rules->reference.gpus.count, 1);
    cr_expect_str_eq(RULES_AT(rules->reference.gpus, struct gpu_price, 0)->name, "h100");
    rules_destroy(rules);
    federation_destroy(site);
}

Test(policy_file, defaults_of_a_burst)
{
    struct federation *site = lab_site();
    struct rules *rules =
        load("budgets: {c: {limit: 5 EUR, per: day}}\n"
             "bursts:\n"
             "  a: {open: [{pending: 100, for: 5m}, {pending: 4}], budget: c}\n"
             "  b: {open: {all_pending: 70}, close: {for: 3m}, at_most: {jobs: 7}, budget: c}\n"
             "  d: {open: {wait: 1h}, close: {wait: 10m}, budget: c}\n",
             site);
    const struct burst_rule *bursts = rules->bursts.items;
    cr_expect(bursts[0].close.pending == 1 && bursts[0].close.for_ms == 600000);
    cr_expect(bursts[1].close.all_pending == 14 && bursts[1].close.pending == 0);
    cr_expect(bursts[1].close.for_ms == 180000);
    cr_expect(bursts[1].at_most.jobs == 7 && bursts[1].at_most.nodes == UNLIMITED);
    cr_expect(bursts[2].close.wait == 600000 && bursts[2].close.for_ms == 600000);
    /* no burst is called overflow: the first one opens the rented tier */
    const struct route *route = rules->routes.items;
    cr_expect_str_eq(RULES_AT(route->tiers, struct tier, 1)->burst, "a");
    rules_destroy(rules);
    federation_destroy(site);
}

/* ----------------------------------------------------------------------------------- refused */

static void refuse(const struct federation *site, const char *text, int line, int column,
                   const char *words, const char *expected)
{
    struct error err;
    cr_assert_eq(lab_policy(text, site, &err), -1, "accepted: %s", text);
    cr_expect(strstr(err.text, words), "%s: '%s' does not say '%s'", text, err.text, words);
    cr_expect(strstr(err.expected, expected), "%s: '%s' does not say '%s'", text, err.expected,
              expected);
    cr_expect(err.line == line && err.column == column, "%s: at %d:%d, not %d:%d (%s)", text,
              err.line, err.column, line, column, err.text);
    cr_expect_str_eq(err.file, "policy.yaml");
}

#define BUDGET "budgets: {c: {limit: 5 EUR, per: day}}\n"

Test(policy_file, names_that_nothing_has)
{
    struct federation *site = lab_site();
    refuse(site, "default_class: bach", 1, 16, "no class 'bach'", "did you mean 'batch'?");
    refuse(site, "routes: [{name: r, tiers: {places: hpc/gpus}}]", 1, 36, "no place 'hpc/gpus'",
           "did you mean 'hpc/gpu'? hpc has: cpu, gpu");
    refuse(site, "routes: [{name: r, tiers: {places: [hpc, zzz]}}]", 1, 42, "no place 'zzz'",
           "there are: hpc, k8s, aws, edge");
    refuse(site, "routes: [{name: r, tiers: {places: aws, burst: overflow}}]", 1, 48,
           "no burst 'overflow'", "there are no bursts");
    refuse(site, "bursts: {o: {budget: cloud}}", 1, 22, "no budget 'cloud'",
           "there are no budgets");
    refuse(site, BUDGET "bursts: {o: {open: {pending: 5}}}", 2, 13, "'budget' is missing", "");
    refuse(site, "guards: [{name: g, match: {class: bacth}, forbid: {kind: spot}}]", 1, 35,
           "no class 'bacth'", "'batch'");
    refuse(site, "guards: [{name: g, require: {kind: ownd}}]", 1, 36, "no kind 'ownd'", "'owned'");
    refuse(site, "guards: [{name: g, require: {adapter: kubernetes}}]", 1, 39,
           "no adapter 'kubernetes'", "slurm, local");
    refuse(site, "budgets: {b: {limit: 1 EUR, per: day, places: azure}}", 1, 47, "no place 'azure'",
           "");
    refuse(site, "expect: {job: {class: nope}, waits: true}", 1, 23, "no class 'nope'", "");
    refuse(site, "expect: {job: {lables: {}}, waits: true}", 1, 16, "unknown key 'lables'",
           "'labels'");
    refuse(site, "expect: {job: {}, given: {open: x}, waits: true}", 1, 33, "no burst 'x'",
           "overflow");
    refuse(site, "expect: {job: {}, given: {spent: x}, waits: true}", 1, 34, "no budget 'x'", "");
    refuse(site, "expect: {job: {}, never: x}", 1, 26, "no place 'x'", "");
    refuse(site, "reference: {h1000: 3 EUR/h}", 1, 13, "no GPU model 'h1000'", "h100");
    federation_destroy(site);
}

Test(policy_file, values_that_make_no_sense)
{
    struct federation *site = lab_site();
    refuse(site, "classes: {ci: {share: 80%}, batch: {share: 30%}}", 1, 1, "add up to 110%",
           "100%");
    refuse(site, "classes: {ci: {share: 0%}}", 1, 23, "would starve", "1%");
    refuse(site, "classes: {ci: {waiting: 5}}", 1, 25, "", "5 EUR/h");
    refuse(site, "classes: {ci: {time: {limit: 1h, estimate: 2h}}}", 1, 44, "longer than",
           "within");
    refuse(site, BUDGET "bursts: {o: {close: {pending: 60}, budget: c}}", 2, 14,
           "close at 60 pending lies above open at 50: the burst would flap", "");
    refuse(site, BUDGET "bursts: {o: {open: {wait: 1h}, budget: c}}", 2, 10,
           "does not say when it closes", "write `close`");
    refuse(site, BUDGET "bursts: {o: {open: [{for: 5m}], budget: c}}", 2, 21, "asks nothing",
           "pending");
    refuse(site, "budgets: {c: {limit: 5 GBP, per: day}}", 1, 22, "no rate for GBP",
           "rates: {GBP: 0.92 EUR}");
    refuse(site, "classes: {ci: {waiting: 5 GBP/h}}", 1, 25, "no rate for GBP", "");
    refuse(site, "rates: {EUR: 1 EUR}", 1, 9, "own currency", "");
    refuse(site, "rates: {USD: 1 GBP}", 1, 14, "a rate in GBP", "in EUR");
    refuse(site, "currency: euro", 1, 11, "not a currency", "EUR");
    refuse(site, "routes: []", 1, 9, "no route", "");
    refuse(site, "routes: [{name: r, tiers: []}]", 1, 27, "has no tiers", "");
    refuse(site, "routes: [{name: r, tiers: [{places: []}]}]", 1, 37, "without places", "");
    refuse(site, "routes: [{name: r, tiers: {places: hpc, fill: 120%}}]", 1, 47, "over 100%", "");
    refuse(site, "routes: [{name: r, tiers: {places: hpc, leave_free: 100%}}]", 1, 53,
           "nothing could ever start", "");
    refuse(site, "routes: [{name: r, tiers: {places: hpc}}, {name: r, tiers: {places: hpc}}]", 1,
           50, "a second route 'r'", "line 1");
    refuse(site, "guards: [{name: g}]", 1, 10, "neither requires nor forbids", "");
    refuse(site, "expect: {job: {}}", 1, 9, "expects nothing", "goes_to");
    refuse(site, "routes: [{name: r, match: {needs: {gpus: \">= 4\"}}, tiers: {places: hpc}}]", 1,
           42, "", "4..");
    refuse(site, "guards: {name: g, match: {needs: {memory: 8}}, forbid: {kind: spot}}", 1, 43, "",
           "GiB");
    federation_destroy(site);
}

/* What is not built yet is refused like any unknown key, with its place. */
Test(policy_file, not_yet_built)
{
    static const struct {
        const char *text, *key;
        int column;
    } keys[] = {
        {"fair_share: {by: team}", "fair_share", 1},
        {"limits: []", "limits", 1},
        {"shifts: []", "shifts", 1},
        {"maintenance: []", "maintenance", 1},
        {"outages: {}", "outages", 1},
        {"assume: {}", "assume", 1},
        {"carbon_price: 50 EUR", "carbon_price", 1},
        {"safety: {unpriced: never}", "safety", 1},
        {"budgets: {c: {limit: 1 EUR, per: day, warn: 80%}}", "warn", 39},
        {"budgets: {c: {limit: 1 EUR, per: day, at_limit: stop}}", "at_limit", 39},
        {"budgets: {c: {limit: 1 EUR, per: day, counts: all}}", "counts", 39},
        {"bursts: {o: {prelaunch: 25%, budget: c}}", "prelaunch", 14},
        {"bursts: {o: {idle: 10m, budget: c}}", "idle", 14},
        {"bursts: {o: {scale: adapter, budget: c}}", "scale", 14},
        {"bursts: {o: {hours: {}, budget: c}}", "hours", 14},
        {"routes: [{name: r, weights: {run: 2}, tiers: {places: hpc}}]", "weights", 20},
        {"routes: [{name: r, max_rtt: 40ms, tiers: {places: hpc}}]", "max_rtt", 20},
        {"routes: [{name: r, tiers: {places: hpc, reclaims: 3}}]", "reclaims", 41},
        {"routes: [{name: r, match: {checkpoint: true}, tiers: {places: hpc}}]", "checkpoint", 28},
        {"routes: [{name: r, match: {data: x}, tiers: {places: hpc}}]", "data", 28},
        {"routes: [{name: r, match: {time: {}}, tiers: {places: hpc}}]", "time", 28},
        {"routes: [{name: r, match: {adopted: true}, tiers: {places: hpc}}]", "adopted", 28},
        {"guards: [{name: g, max_rtt: 5ms, forbid: {kind: spot}}]", "max_rtt", 20},
        {"classes: {ci: {needs: {disk: 1GiB}}}", "disk", 24},
        {"classes: {ci: {time: {deadline: 1h}}}", "deadline", 23},
    };
    struct federation *site = lab_site();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *words = xasprintf("unknown key '%s'", keys[i].key);
        refuse(site, keys[i].text, 1, keys[i].column, words, "");
        free(words);
    }
    federation_destroy(site);
}

Test(policy_file, extensions_are_ignored)
{
    struct federation *site = lab_site();
    struct error err;
    cr_expect_eq(lab_policy("x-note: {a: b}\nroutes: [{name: r, x-why: z, tiers: {places: '*'}}]",
                            site, &err),
                 0, "%s", err.text);
    federation_destroy(site);
}
