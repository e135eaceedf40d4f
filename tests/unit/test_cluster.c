/* Finding places, selecting them, and money in the policy's currency. */
#include "broker/core/rules.h"
#include "tests/unit/small_federation.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct place *place(const char *name)
{
    const struct place *found = federation_place(small_federation(), name);
    cr_assert_not_null(found, "%s", name);
    return found;
}

Test(cluster, places_are_found_by_name)
{
    const struct federation *federation = small_federation();
    cr_assert_str_eq(place("hpc/gpu")->name, "hpc/gpu");
    cr_assert_str_eq(place("edge")->name, "edge");
    static const char *const absent[] = {"hpc",       "hpc/", "hp", "hpc/gpu2",
                                         "edge/edge", "",     "/",  "x"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        cr_assert_null(federation_place(federation, absent[i]), "'%s'", absent[i]);
    }
    cr_assert_eq(federation_cluster(federation, "hpc")->place_count, 2);
    cr_assert_null(federation_cluster(federation, "hpc/gpu"));
    cr_assert_null(federation_cluster(federation, "hp"));
}

Test(cluster, patterns_name_places)
{
    cr_assert(place_is_named(place("hpc/gpu"), "hpc"));
    cr_assert(place_is_named(place("hpc/gpu"), "hpc/gpu"));
    cr_assert(place_is_named(place("hpc/gpu"), "*/gpu"));
    cr_assert(place_is_named(place("edge"), "e*"));
    cr_assert_not(place_is_named(place("hpc/gpu"), "hpc/cpu"));
    cr_assert_not(place_is_named(place("hpc/gpu"), "gpu"));
    cr_assert_not(place_is_named(place("hpc/gpu"), "hp"));
}

static bool fits(const char *name, const char *key, const char *value)
{
    char *values[] = {(char *)(uintptr_t)value};
    struct label label = {(char *)(uintptr_t)key, {values, 1}};
    return place_is_selected(place(name), &(struct labels){&label, 1});
}

Test(cluster, selectors_fit)
{
    cr_assert(fits("hpc/gpu", "places", "hpc"));
    cr_assert_not(fits("edge", "places", "hpc"));
    cr_assert(fits("hpc/gpu", "kind", "reserved"));
    cr_assert_not(fits("hpc/gpu", "kind", "owned"));
    cr_assert(fits("cloud/large", "kind", "on-*"));
    cr_assert(fits("edge", "adapter", "local"));
    cr_assert_not(fits("hpc/cpu", "adapter", "local"));
    cr_assert(fits("edge", "site", "par*"));
    cr_assert(fits("hpc/gpu", "disk", "hdd"), "any value of the place will do");
    cr_assert_not(fits("edge", "region", "*"), "what the place does not say fits nothing");
}

Test(cluster, all_keys_of_a_selector_must_fit)
{
    char *kinds[] = {"spot", "reserved"}, *sites[] = {"paris"};
    struct label keys[] = {{"kind", {kinds, 2}}, {"site", {sites, 1}}};
    struct labels selector = {keys, 2};
    cr_assert_eq(place_unselected(place("hpc/gpu"), &selector), &keys[1]);
    cr_assert_eq(place_unselected(place("edge"), &selector), &keys[0]);
    cr_assert_not(place_is_selected(place("hpc/gpu"), &selector));
    cr_assert(place_is_selected(place("hpc/gpu"), &(struct labels){keys, 1}));
    cr_assert(place_is_selected(place("edge"), &(struct labels){NULL, 0}), "none asks for nothing");
}

Test(cluster, nearest_name)
{
    const struct federation *federation = small_federation();
    cr_assert_str_eq(federation_nearest(federation, "hpc/gpus", false), "hpc/gpu");
    cr_assert_str_eq(federation_nearest(federation, "slurn", true), "slurm");
    cr_assert_null(federation_nearest(federation, "slurn", false));
}

Test(cluster, words_of_kinds_end)
{
    cr_assert_str_eq(place_kind_words[PLACE_SPOT], "spot");
    cr_assert_null(place_kind_words[PLACE_KIND_COUNT]);
    cr_assert(place_kind_is_rented(PLACE_SPOT) && place_kind_is_rented(PLACE_ON_DEMAND));
    cr_assert_not(place_kind_is_rented(PLACE_RESERVED));
}

Test(rules, money_is_exchanged)
{
    struct rate_of_exchange rates[] = {{"USD", {920000000, "EUR"}}, {"JPY", {5, "EUR"}}};
    struct rules rules = {.currency = "EUR", .rates = {rates, 2}};
    int64_t nano = -1;
    cr_assert_eq(rules_exchange(&rules, &(struct money){7, "EUR"}, &nano), 0);
    cr_assert_eq(nano, 7);
    cr_assert_eq(rules_exchange(&rules, &(struct money){8, ""}, &nano), 0);
    cr_assert_eq(nano, 8);
    cr_assert_eq(rules_exchange(&rules, &(struct money){MONEY_UNIT * 100, "USD"}, &nano), 0);
    cr_assert_eq(nano, MONEY_UNIT * 92);
    cr_assert_eq(rules_exchange(&rules, &(struct money){1, "USD"}, &nano), 0);
    cr_assert_eq(nano, 1, "0.92 is rounded");
    cr_assert_eq(rules_exchange(&rules, &(struct money){-1, "USD"}, &nano), 0);
    cr_assert_eq(nano, -1);
    cr_assert_eq(rules_exchange(&rules, &(struct money){100000000, "JPY"}, &nano), 0);
    cr_assert_eq(nano, 1, "half a nano-unit is rounded up");
    cr_assert_eq(rules_exchange(&rules, &(struct money){99999999, "JPY"}, &nano), 0);
    cr_assert_eq(nano, 0);
    nano = 42;
    cr_assert_eq(rules_exchange(&rules, &(struct money){1, "CHF"}, &nano), -1);
    cr_assert_eq(nano, 42, "untouched");
    rates[0].price.nano = INT64_MAX;
    cr_assert_eq(rules_exchange(&rules, &(struct money){INT64_MAX, "USD"}, &nano), 0);
    cr_assert_eq(nano, INT64_MAX);
}

Test(rules, things_are_found_by_name)
{
    struct class_rule classes[] = {{.name = "ci"}, {.name = "batch"}};
    struct budget_rule budgets[] = {{.name = "cloud"}};
    struct burst_rule bursts[] = {{.name = "overflow"}};
    struct rules rules = {.classes = {classes, 2}, .budgets = {budgets, 1}, .bursts = {bursts, 1}};
    cr_assert_eq(rules_class(&rules, "batch"), &classes[1]);
    cr_assert_null(rules_class(&rules, "bat"));
    cr_assert_eq(rules_budget(&rules, "cloud"), &budgets[0]);
    cr_assert_eq(rules_burst(&rules, "overflow"), &bursts[0]);
    cr_assert_null(rules_burst(&rules, "cloud"));
}
