/* route.c - the first route that fits, its tiers in order, and the choice in the first that serves.
 *
 * A tier serves when one of its places can take the job within the tier's fill and wait. When none does,
 * fill and wait of the first tier that has such places are ignored: own queues are never left empty for
 * a tier that is shut. leave_free, budgets and the burst's at_most always hold. */
#include "policy/internal.h"
#include "policy/match.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct route *route_find(const struct rules *rules, const struct spec *spec,
                               const char *owner)
{
    for (size_t i = 0; i < rules->routes.count; i++) {
        const struct route *route = RULES_AT(rules->routes, struct route, i);
        if (match_fits(&route->match, spec, owner)) {
            return route;
        }
    }
    return NULL;
}

int burst_index(const struct rules *rules, const char *name)
{
    for (size_t i = 0; name && i < rules->bursts.count; i++) {
        if (strcmp(RULES_AT(rules->bursts, struct burst_rule, i)->name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Which pattern of the tier names the place; -1: none. */
static int tier_rank(const struct tier *tier, const struct place *place)
{
    for (size_t i = 0; i < tier->places.count; i++) {
        if (place_is_named(place, tier->places.items[i])) {
            return (int)i;
        }
    }
    return -1;
}

/* Share that would stay free of the resource that has least left after the job. */
static int64_t stays_free(const struct option *option)
{
    int64_t least = SHARE_ONE;
    for (int i = 0; i < option->load_count; i++) {
        int64_t left = SHARE_ONE - option->loads[i].used - option->loads[i].takes;
        least = left < least ? left : least;
    }
    return least;
}

static bool tier_leaves_free(const struct tier *tier, struct option *option)
{
    int64_t left = stays_free(option);
    if (tier->leave_free <= 0 || left >= tier->leave_free) {
        return true;
    }
    say(option->row, VERDICT_LATER, "%" PRId64 " %% would stay free < leave_free %" PRId64 " %%",
        left < 0 ? 0 : percent(left), percent(tier->leave_free));
    return false;
}

/* Whether the burst that opens the tier lets this job in. index -1: the tier is always open. */
static bool burst_admits(struct option *option, const struct deciding *deciding, int index)
{
    const struct burst_rule *burst;
    const struct burst_view *now;
    char text[WHY_SIZE];
    if (index < 0) {
        return true;
    }
    burst = RULES_AT(deciding->view->rules->bursts, struct burst_rule, index);
    now = &deciding->view->bursts[index];
    if (now->state != BURST_OPEN) {
        burst_sentence(deciding->view, index, text, sizeof text);
        say(option->row, VERDICT_CLOSED, "%s", text);
    } else if (now->jobs >= burst->at_most.jobs) {
        say(option->row, VERDICT_LATER, "burst %s: all of its %" PRId64 " jobs are there",
            burst->name, burst->at_most.jobs);
    } else if (add_capped(now->nodes, option->row->nodes) >
               scale_down(burst->at_most.nodes, 1000, 1)) {
        say(option->row, VERDICT_LATER, "burst %s: all of its %" PRId64 " machines are in use",
            burst->name, burst->at_most.nodes);
    } else {
        return true;
    }
    return false;
}

/* Whether the place is within fill and wait of its tier. outlived: cumulative wait of the tiers so far. */
static bool tier_has_ease(const struct tier *tier, struct option *option, int64_t waited_ms,
                          int64_t outlived)
{
    char span[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE];
    if (tier->fill > 0 && option->used > tier->fill) {
        say(option->row, VERDICT_FULL, "%" PRId64 " %% used > fill %" PRId64 " %%",
            percent(option->used), percent(tier->fill));
    } else if (tier->wait > 0 && option->row->wait_ms > tier->wait) {
        say(option->row, VERDICT_FULL, "starts in about %s > wait %s",
            duration_short(option->row->wait_ms, span), duration_short(tier->wait, limit));
    } else if (tier->wait > 0 && waited_ms > outlived) {
        say(option->row, VERDICT_FULL, "waited %s > wait %s", duration_short(waited_ms, span),
            duration_short(outlived, limit));
    } else {
        return true;
    }
    return false;
}

static enum option_state tier_ask(const struct tier *tier, struct option *option,
                                  const struct deciding *deciding, int64_t outlived)
{
    int index = burst_index(deciding->view->rules, tier->burst);
    const struct burst_rule *burst =
        index < 0 ? NULL : RULES_AT(deciding->view->rules->bursts, struct burst_rule, index);
    if (!rent_budgets(option, deciding, burst, NULL) || !burst_admits(option, deciding, index) ||
        !tier_leaves_free(tier, option)) {
        return OPTION_OUT;
    }
    return tier_has_ease(tier, option, deciding->subject->waited_ms, outlived) ? OPTION_CAN
                                                                               : OPTION_FULL;
}

/* A place in two tiers keeps the answer of the first, unless a later one is better. */
static void tier_offer(const struct tier *tier, int number, struct option *option, int rank,
                       const struct deciding *deciding, int64_t outlived)
{
    struct verdict_row before = *option->row;
    enum option_state state = tier_ask(tier, option, deciding, outlived);
    if (option->tier && state <= option->state) {
        *option->row = before;
        return;
    }
    option->state = state;
    option->tier = option->row->tier = number;
    option->rank = rank;
    if (state == OPTION_CAN) {
        option->row->why[0] = '\0';
    }
}

bool route_has(const struct route *route, struct option *option)
{
    for (size_t t = 0; t < route->tiers.count; t++) {
        if (tier_rank(RULES_AT(route->tiers, struct tier, t), option->view->place) >= 0) {
            option->row->tier = (int)t + 1;
            return true;
        }
    }
    return false;
}

static void walk_tiers(const struct route *route, struct deciding *deciding)
{
    int64_t outlived = 0;
    for (size_t t = 0; t < route->tiers.count; t++) {
        const struct tier *tier = RULES_AT(route->tiers, struct tier, t);
        outlived = add_capped(outlived, tier->wait);
        for (size_t i = 0; i < deciding->out->row_count; i++) {
            struct option *option = &deciding->options[i];
            int rank = tier_rank(tier, option->view->place);
            if (rank >= 0 && option->row->priced && option->state != OPTION_CAN) {
                tier_offer(tier, (int)t + 1, option, rank, deciding, outlived);
            }
        }
    }
}

/* The first tier with an option in this state; 0: none. */
static int first_tier(const struct deciding *deciding, enum option_state state)
{
    int first = 0;
    for (size_t i = 0; i < deciding->out->row_count; i++) {
        const struct option *option = &deciding->options[i];
        if (option->state == state && (first == 0 || option->tier < first)) {
            first = option->tier;
        }
    }
    return first;
}

static bool is_cheaper(const struct option *a, const struct option *b, int64_t reference)
{
    int64_t bin_a = cost_bin(a->row->sum, reference), bin_b = cost_bin(b->row->sum, reference);
    if (bin_a != bin_b) {
        return bin_a < bin_b;
    }
    return a->rank != b->rank ? a->rank < b->rank : a->view->place->index < b->view->place->index;
}

static struct option *cheapest(const struct deciding *deciding, int tier, enum option_state state)
{
    struct option *best = NULL;
    for (size_t i = 0; i < deciding->out->row_count; i++) {
        struct option *option = &deciding->options[i];
        if (option->state == state && option->tier == tier &&
            (!best || is_cheaper(option, best, deciding->reference))) {
            best = option;
        }
    }
    return best;
}

/* What became of the others that could have taken it. */
static void judge_others(struct deciding *deciding, const struct option *chosen)
{
    for (size_t i = 0; i < deciding->out->row_count; i++) {
        struct option *option = &deciding->options[i];
        if (option == chosen ||
            (option->state != OPTION_CAN && !(deciding->relaxed && option->state == OPTION_FULL &&
                                              option->tier == chosen->tier))) {
            continue;
        }
        if (option->tier == chosen->tier || option->row->sum > chosen->row->sum) {
            say(option->row, VERDICT_DEARER, "%s", "");
        } else {
            say(option->row, VERDICT_CLOSED, "tier %d serves first", chosen->tier);
        }
    }
}

static void take(struct deciding *deciding, struct option *chosen)
{
    struct decision *out = deciding->out;
    const struct tier *tier = RULES_AT(out->route->tiers, struct tier, chosen->tier - 1);
    int burst = burst_index(deciding->view->rules, tier->burst);
    out->chosen = (int)(chosen->row - out->rows);
    out->tier = chosen->tier;
    const struct burst_rule *rule =
        burst < 0 ? NULL : RULES_AT(deciding->view->rules->bursts, struct burst_rule, burst);
    out->burst = rule ? rule->name : NULL;
    (void)rent_budgets(chosen, deciding, rule, &out->budgets);
    say(chosen->row, VERDICT_CHOSEN, "%s", "");
    judge_others(deciding, chosen);
}

void route_choose(struct deciding *deciding)
{
    const struct route *route = deciding->out->route;
    int tier;
    walk_tiers(route, deciding);
    tier = first_tier(deciding, OPTION_CAN);
    if (tier) {
        take(deciding, cheapest(deciding, tier, OPTION_CAN));
        return;
    }
    tier = first_tier(deciding, OPTION_FULL);
    if (tier) {
        deciding->relaxed = true;
        take(deciding, cheapest(deciding, tier, OPTION_FULL));
    }
}
