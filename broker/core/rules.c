/* rules.c - looking things up in the policy, and money in its currency. */
#include "broker/core/rules.h"

#include <string.h>

/* Wide enough for a sum of money times a rate. */
__extension__ typedef __int128 wide;

/* The items of these lists begin with their name. */
static const void *find_named(const struct list *list, size_t item_size, const char *name)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *item = (const char *)list->items + i * item_size;
        const char *own;
        memcpy(&own, item, sizeof own);
        if (strcmp(own, name) == 0) {
            return item;
        }
    }
    return NULL;
}

/* Half a nano-unit is rounded away from zero. */
static int64_t convert(int64_t nano, int64_t rate)
{
    wide product = (wide)nano * rate;
    wide half = product < 0 ? -(wide)MONEY_UNIT / 2 : (wide)MONEY_UNIT / 2;
    wide result = (product + half) / MONEY_UNIT;
    return result > INT64_MAX ? INT64_MAX : result < INT64_MIN ? INT64_MIN : (int64_t)result;
}

const struct class_rule *rules_class(const struct rules *rules, const char *name)
{
    return find_named(&rules->classes, sizeof(struct class_rule), name);
}

const struct burst_rule *rules_burst(const struct rules *rules, const char *name)
{
    return find_named(&rules->bursts, sizeof(struct burst_rule), name);
}

const struct budget_rule *rules_budget(const struct rules *rules, const char *name)
{
    return find_named(&rules->budgets, sizeof(struct budget_rule), name);
}

int rules_exchange(const struct rules *rules, const struct money *money, int64_t *nano)
{
    if (!money->currency[0] || strcmp(money->currency, rules->currency) == 0) {
        *nano = money->nano;
        return 0;
    }
    const struct rate_of_exchange *rate =
        find_named(&rules->rates, sizeof(struct rate_of_exchange), money->currency);
    if (!rate) {
        return -1;
    }
    *nano = convert(money->nano, rate->price.nano);
    return 0;
}
