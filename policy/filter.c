/* filter.c - what removes a place from a decision, each with its sentence: first what will not change
 * (the job's own word, guards, amounts), then the moment (health, age, drain, our waiting slots).
 * Filters are monotone: asking for less never removes a place. */
#include "policy/internal.h"
#include "policy/match.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_SIZE = 64 };

/* What the place is in the terms of a selector's key; NULL: not told. */
static const char *place_word(const struct place *place, const char *key)
{
    if (strcmp(key, "kind") == 0) {
        return place_kind_words[place->kind];
    }
    if (strcmp(key, "places") == 0 || strcmp(key, "adapter") == 0) {
        return NULL;
    }
    const char *has = labels_get(&place->labels, key);
    return has ? has : "not set";
}

/* "country = de, here it is fr" */
static void unselected_text(const struct place *place, const struct label *label, char *out,
                            size_t size)
{
    char words[WORDS_SIZE];
    const char *here = place_word(place, label->name);
    join_texts(&label->values, " or ", words, sizeof words);
    (void)snprintf(out, size, "%s = %s%s%s", label->name, words, here ? ", here it is " : "",
                   here ? here : "");
}

static void selector_text(const struct labels *selector, char *out, size_t size)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < selector->count && length + 1 < size; i++) {
        char words[WORDS_SIZE];
        join_texts(&selector->items[i].values, ", ", words, sizeof words);
        int n = snprintf(out + length, size - length, "%s%s = %s", i ? " and " : "",
                         selector->items[i].name, words);
        length += n > 0 ? (size_t)n : 0;
    }
}

/* Whether the place is what `require` and `forbid` ask for; if not, "wants ..." or "forbids ...". */
static bool place_allowed(const struct place *place, const struct labels *require,
                          const struct labels *forbid, const char *verbs[2], char *out, size_t size)
{
    char text[WHY_SIZE];
    const struct label *miss = require->count ? place_unselected(place, require) : NULL;
    if (miss) {
        unselected_text(place, miss, text, sizeof text);
        (void)snprintf(out, size, "%s %s", verbs[0], text);
        return false;
    }
    if (forbid->count && place_is_selected(place, forbid)) {
        selector_text(forbid, text, sizeof text);
        (void)snprintf(out, size, "%s %s", verbs[1], text);
        return false;
    }
    return true;
}

static bool guard_allows(const struct guard *guard, const struct place *place, char *out,
                         size_t size)
{
    static const char *verbs[2] = {"wants", "forbids"};
    char text[WHY_SIZE];
    if (place_allowed(place, &guard->require, &guard->forbid, verbs, text, sizeof text)) {
        return true;
    }
    (void)snprintf(out, size, "guard '%s' %s", guard->name ? guard->name : "", text);
    return false;
}

bool filter_job(struct option *option)
{
    static const char *verbs[2] = {"requires", "forbids"};
    const struct spec *spec = option->spec;
    const struct place *place = option->view->place;
    char text[WHY_SIZE];
    if (place->cluster->mode == CLUSTER_OBSERVE) {
        say(option->row, VERDICT_REMOVED, "%s is only observed", place->cluster->name);
        return false;
    }
    if (spec->skip) {
        say(option->row, VERDICT_REMOVED, "the job says skip");
        return false;
    }
    if (!place_allowed(place, &spec->where.require, &spec->where.forbid, verbs, text,
                       sizeof text)) {
        say(option->row, VERDICT_REMOVED, "the job %s", text);
        return false;
    }
    if (spec->is_protected && place->kind == PLACE_SPOT) {
        say(option->row, VERDICT_NEVER, "the job is protected");
        return false;
    }
    return true;
}

bool filter_owner(struct option *option, const struct federation *federation, const char *owner)
{
    const char *own = federation->own_user;
    const struct cluster *cluster = option->view->place->cluster;
    /* An expectation says nothing of its owner: whoever may run there is meant. */
    if (!own || !owner[0] || cluster->shared || strcmp(own, owner) == 0) {
        return true;
    }
    say(option->row, VERDICT_NEVER, "%s has no user at %s: only jobs of %s run there", owner,
        cluster->name, own);
    return false;
}

bool filter_guards(struct option *option, const struct deciding *deciding)
{
    const struct list *guards = &deciding->view->rules->guards;
    char text[WHY_SIZE];
    for (size_t i = 0; i < guards->count; i++) {
        const struct guard *guard = RULES_AT(*guards, struct guard, i);
        if (match_fits(&guard->match, deciding->subject->spec, deciding->subject->owner) &&
            !guard_allows(guard, option->view->place, text, sizeof text)) {
            say(option->row, VERDICT_REMOVED, "%s", text);
            return false;
        }
    }
    return true;
}

/* What one job may have at most by configuration. */
static int64_t configured_cap(const struct place *place, enum amount amount)
{
    int64_t cap = 0;
    switch (amount) {
    case AMOUNT_CPUS: cap = place->max_cpus ? place->max_cpus : place->capacity.cpus; break;
    case AMOUNT_MEMORY: cap = place->max_memory ? place->max_memory : place->capacity.memory; break;
    case AMOUNT_GPUS: cap = place->max_gpus; break;
    default: cap = place->max_time; break;
    }
    return cap > 0 ? cap : UNLIMITED;
}

/* The same as the member stated it. A place that is down states no machines. */
static int64_t stated_cap(const struct place_view *view, enum amount amount)
{
    const struct condition *now = &view->condition;
    int64_t cap = 0;
    if (view->known && now->up) {
        switch (amount) {
        case AMOUNT_CPUS: cap = now->largest.cpus; break;
        case AMOUNT_MEMORY: cap = now->largest.memory; break;
        case AMOUNT_GPUS: cap = now->largest.gpus; break;
        default: cap = now->max_time; break;
        }
    }
    return cap > 0 ? cap : UNLIMITED;
}

static int64_t shape_amount(const struct node_shape *shape, enum amount amount)
{
    switch (amount) {
    case AMOUNT_CPUS: return shape->cpus;
    case AMOUNT_MEMORY: return shape->memory > 0 ? shape->memory : UNLIMITED; /* not stated */
    default: return shape->gpus;
    }
}

/* The machine with most of one resource; of GPUs only those of a model that will do. NULL: none. */
static const struct node_shape *shape_most(const struct list *nodes, const struct needs *needs,
                                           enum amount amount)
{
    const struct node_shape *most = NULL;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node_shape *shape = RULES_AT(*nodes, struct node_shape, i);
        bool counts = amount != AMOUNT_GPUS || needs->gpu.count == 0 ||
                      (shape->gpu && gpu_is_wanted(needs, shape->gpu));
        if (counts && (!most || shape_amount(shape, amount) > shape_amount(most, amount))) {
            most = shape;
        }
    }
    return most;
}

/* The largest machine that the place can bring up caps a job too; model gets that of its GPUs. */
static int64_t shape_cap(const struct option *option, enum amount amount, const char **model)
{
    const struct list *nodes = &option->view->place->nodes;
    if (nodes->count == 0 || amount == AMOUNT_TIME) {
        return UNLIMITED;
    }
    const struct node_shape *most = shape_most(nodes, &option->spec->needs, amount);
    int64_t cap = most ? shape_amount(most, amount) : 0;
    *model = amount == AMOUNT_GPUS && cap > 0 ? most->gpu : NULL;
    return cap;
}

static bool filter_amount(struct option *option, enum amount amount, struct shortage *shortage)
{
    const char *model = NULL;
    int64_t need = option_need(option, amount);
    int64_t configured = configured_cap(option->view->place, amount);
    int64_t stated = stated_cap(option->view, amount);
    int64_t shaped = shape_cap(option, amount, &model);
    int64_t machine = shaped <= stated ? shaped : stated;
    int64_t cap = configured <= machine ? configured : machine;
    char have[AMOUNT_TEXT_SIZE], figure[AMOUNT_TEXT_SIZE];
    if (need <= cap) {
        return true;
    }
    *shortage = (struct shortage){true, amount, cap, need};
    amount_figure(amount, need, figure);
    if (amount == AMOUNT_TIME) {
        say(option->row, VERDICT_NEVER, "takes jobs of at most %s, the limit is %s",
            amount_figure(amount, cap, have), figure);
    } else if (configured <= machine) {
        say(option->row, VERDICT_NEVER, "takes jobs of at most %s, %s needed",
            amount_text(amount, cap, have), figure);
    } else {
        bool named = model && shaped <= stated;
        say(option->row, VERDICT_NEVER, "largest machine has %s%s%s%s, %s needed",
            amount_text(amount, cap, have), named ? " (" : "", named ? model : "", named ? ")" : "",
            figure);
    }
    return false;
}

static bool any_shape_fits(const struct list *nodes, const struct needs *needs)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (shape_fits(RULES_AT(*nodes, struct node_shape, i), needs)) {
            return true;
        }
    }
    return false;
}

/* Whether any machine that the place can bring up has enough of everything at once. */
static bool filter_shapes(struct option *option)
{
    const struct list *nodes = &option->view->place->nodes;
    const struct needs *needs = &option->spec->needs;
    char have[AMOUNT_TEXT_SIZE], need[AMOUNT_TEXT_SIZE];
    if (any_shape_fits(nodes, needs)) {
        return true;
    }
    say(option->row, VERDICT_NEVER, "no machine there has all of it: %s, %s",
        amount_text(AMOUNT_CPUS, needs->cpus, have),
        amount_text(AMOUNT_MEMORY, needs->memory, need));
    return false;
}

bool filter_able(struct option *option, const struct federation *federation,
                 struct shortage *shortage)
{
    *shortage = (struct shortage){0};
    if (!filter_gpus(option, federation, shortage)) {
        return false;
    }
    for (int amount = AMOUNT_COUNT - 1; amount >= 0; amount--) {
        if (!filter_amount(option, (enum amount)amount, shortage)) {
            return false;
        }
    }
    return option->view->place->nodes.count == 0 || filter_shapes(option);
}

bool filter_refused(struct option *option, const struct subject *subject)
{
    if (!texts_contain(&subject->refused, option->view->place->name)) {
        return true;
    }
    say(option->row, VERDICT_REMOVED, "%s refused this job", option->view->place->cluster->name);
    return false;
}

bool filter_moment(struct option *option)
{
    const struct place_view *view = option->view;
    char span[UNITS_TEXT_SIZE], good[UNITS_TEXT_SIZE];
    if (view->recovering) {
        say(option->row, VERDICT_LATER, "the store is older than the world: a person must look");
    } else if (view->looking) {
        say(option->row, VERDICT_LATER, "the broker has just started and lists its members");
    } else if (view->drained) {
        say(option->row, VERDICT_LATER, "drained%s%s", view->drain_note[0] ? ": " : "",
            view->drain_note);
    } else if (!view->known) {
        say(option->row, VERDICT_LATER, "not probed yet");
    } else if (!view->reachable) {
        say(option->row, VERDICT_REMOVED, "unreachable for %s",
            duration_short(view->silent_ms, span));
    } else if (view->age_ms > view->good_for_ms) {
        say(option->row, VERDICT_LATER, "last seen %s ago, that is good for %s",
            duration_short(view->age_ms, span), duration_short(view->good_for_ms, good));
    } else if (!view->condition.up) {
        say(option->row, VERDICT_LATER, "closed there%s%s", view->condition.reason[0] ? ": " : "",
            view->condition.reason);
    } else {
        return true;
    }
    return false;
}

/* "5 GPUs free, 8 needed; ": the scarcest kind of resource that is short, or nothing. */
static void short_text(const struct option *option, char *out, size_t size)
{
    static const enum amount order[ROOM_COUNT] = {AMOUNT_GPUS, AMOUNT_CPUS, AMOUNT_MEMORY};
    char have[AMOUNT_TEXT_SIZE], need[AMOUNT_TEXT_SIZE];
    out[0] = '\0';
    for (int i = 0; i < ROOM_COUNT; i++) {
        const struct room *room = &option->rooms[order[i]];
        if (room->stated && room->free_stated && room->free < room->need) {
            (void)snprintf(out, size, "%s free, %s needed; ",
                           amount_text(order[i], room->free < 0 ? 0 : room->free, have),
                           amount_figure(order[i], room->need, need));
            return;
        }
    }
}

bool filter_slots(struct option *option)
{
    const struct place *place = option->view->place;
    char text[WHY_SIZE];
    if (option->fits || option->view->waiting_ours < place->max_waiting) {
        return true;
    }
    if (option->row->silent) {
        option->row->verdict = VERDICT_LATER;
        return false;
    }
    short_text(option, text, sizeof text);
    if (place->max_waiting == 1) {
        say(option->row, VERDICT_LATER, "%sour waiting slot there is taken", text);
    } else {
        say(option->row, VERDICT_LATER, "%sour %" PRId64 " waiting slots there are taken", text,
            place->max_waiting);
    }
    return false;
}

void guard_near_miss(const struct rules *rules, const struct spec *spec, const char *owner,
                     const struct place *place, char *out, size_t size)
{
    char miss[WHY_SIZE], text[WHY_SIZE];
    out[0] = '\0';
    for (size_t i = 0; i < rules->guards.count; i++) {
        const struct guard *guard = RULES_AT(rules->guards, struct guard, i);
        if (match_is_near(&guard->match, spec, owner, miss, sizeof miss) &&
            !guard_allows(guard, place, text, sizeof text)) {
            (void)snprintf(out, size, "guard '%s' %s", guard->name ? guard->name : "", miss);
            return;
        }
    }
}
