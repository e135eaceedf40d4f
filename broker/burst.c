/* burst.c - what is asked of the queue is the same for all jobs of a shape, and hardly changes: it is
 * remembered by shape for a while, so that a long queue costs no more than its shapes. */
#include "broker/burst.h"

#include "broker/core/alloc.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "broker/subject.h"
#include "policy/burst.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 1000, BURSTS_MAX = 64, MEMOS = 4096, MEMO_MS = 10000 };

struct memo { /* whether a burst could run jobs of a shape, and as of when */
    uint64_t key;
    int64_t at_ms; /* monotonic */
    bool could;
};
struct change { /* of one burst, on its way to the disk */
    struct burst *burst;
    char name[NAME_SIZE];
    struct burst_memory next;
    struct change *more;
};

struct burst {
    struct context *context;
    void (*changed)(void *arg);
    void *arg;
    struct timer *timer;
    struct change *changes;
    struct memo *memos;        /* by key; a newer one takes the slot */
    const struct rules *rules; /* for which the memos hold */
};

/* Whether a place stands in a tier that this burst opens. */
static bool is_of_burst(const struct rules *rules, const char *name, const struct place *place)
{
    for (size_t i = 0; i < rules->routes.count; i++) {
        const struct list *tiers = &RULES_AT(rules->routes, struct route, i)->tiers;
        for (size_t t = 0; t < tiers->count; t++) {
            const struct tier *tier = RULES_AT(*tiers, struct tier, t);
            for (size_t p = 0;
                 tier->burst && strcmp(tier->burst, name) == 0 && p < tier->places.count; p++) {
                if (place_is_named(place, tier->places.items[p])) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Whether a place of the burst could run this job, were it open: nothing but its being shut, full or
 * out of money stands in the way. */
static bool could_run(struct burst *burst, const struct burst_rule *rule, const struct job *job)
{
    struct context *context = burst->context;
    struct subject subject;
    struct decision decision;
    bool could = false;
    memset(&decision, 0, sizeof decision);
    subject_init(&subject, job, clock_wall_ms(context->clock));
    subject.silent = true;
    decide(picture_view(context->picture), &subject, &decision);
    for (size_t i = 0; i < decision.row_count && !could; i++) {
        const struct verdict_row *row = &decision.rows[i];
        could = row->verdict != VERDICT_NEVER && row->verdict != VERDICT_REMOVED && row->tier > 0 &&
                is_of_burst(context->rules, rule->name, row->place);
    }
    decision_fini(&decision);
    subject_fini(&subject);
    return could;
}

/* The same, as remembered for the shape of the entry. */
static bool could_run_entry(struct burst *burst, const struct burst_rule *rule, struct entry *entry)
{
    const struct list *bursts = &burst->context->rules->bursts;
    uint64_t index = (uint64_t)(rule - RULES_AT(*bursts, struct burst_rule, 0));
    uint64_t key = queue_shape_hash(burst->context->queue, entry) + index;
    struct memo *memo = &burst->memos[key % MEMOS];
    int64_t now = clock_mono_ms(burst->context->clock);
    if (memo->key != key || now - memo->at_ms >= MEMO_MS) {
        *memo = (struct memo){key, now, could_run(burst, rule, entry->job)};
    }
    return memo->could;
}

static void count_queue(struct burst *burst, const struct burst_rule *rule,
                        struct burst_facts *facts)
{
    int64_t now = clock_wall_ms(burst->context->clock);
    for (struct shape *shape = queue_shapes(burst->context->queue); shape; shape = shape->next) {
        const struct job *job = shape->first->job;
        if (!could_run_entry(burst, rule, shape->first)) {
            continue;
        }
        facts->pending += shape->count;
        int64_t waited = now - job->queued_ms;
        facts->wait_ms = waited > facts->wait_ms ? waited : facts->wait_ms;
    }
}

/* Of the own places: ours that wait there, all that waits there, and how much is in use. */
static void count_home(struct burst *burst, const struct burst_rule *rule,
                       struct burst_facts *facts)
{
    struct picture *picture = burst->context->picture;
    const struct view *view = picture_view(picture);
    int64_t total = 0, used = 0;
    for (size_t i = 0; i < burst->context->federation->place_count; i++) {
        const struct place_view *place = &view->places[i];
        if (place_kind_is_rented(place->place->kind) || !place->known) {
            continue;
        }
        for (struct entry *entry = picture_bookings(picture, (int)i); entry;
             entry = entry->booking.next) {
            /* What was sent a moment ago may start at once: only what a listing shows to wait counts. */
            bool waits = !entry->booking.running && entry->waits == entry->job->attempt_count;
            facts->pending += waits && could_run_entry(burst, rule, entry) ? 1 : 0;
        }
        facts->all_pending += place->condition.waiting > 0 ? place->condition.waiting : 0;
        total += place->condition.total.cpus;
        used += place->condition.total.cpus - place->condition.free.cpus + place->unseen.cpus;
    }
    facts->all_pending += queue_count(burst->context->queue);
    facts->load = total > 0 ? (int64_t)((double)used / (double)total * (double)SHARE_ONE) : 0;
}

static json_t *state_to_json(const struct burst_memory *memory, const char *name, int64_t pending,
                             int64_t now_ms)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I}", "name", name, "state",
                     burst_state_name(memory->state), "why", memory->why, "pending",
                     (json_int_t)pending, "since", (json_int_t)now_ms);
}

static int burst_by_name(const struct rules *rules, const char *name)
{
    for (size_t i = 0; i < rules->bursts.count; i++) {
        if (strcmp(RULES_AT(rules->bursts, struct burst_rule, i)->name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_changing(const struct burst *burst, const char *name)
{
    for (const struct change *change = burst->changes; change; change = change->more) {
        if (strcmp(change->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void change_drop(struct change *change)
{
    struct change **link = &change->burst->changes;
    while (*link != change) {
        link = &(*link)->more;
    }
    *link = change->more;
    free(change);
}

/* On disk; or it failed, and is stepped again from the old state. A reload may have come between. */
static void changed_done(void *arg, const struct event *event, const struct error *err)
{
    struct change *change = arg;
    struct burst *burst = change->burst;
    int index = burst_by_name(burst->context->rules, change->name);
    if (index >= 0 && !err->code) {
        *picture_burst(burst->context->picture, index) = change->next;
        picture_burst_set_since(burst->context->picture, index, event->at_ms);
        context_log(burst->context, "info", "burst %s is %s: %s", change->name,
                    burst_state_name(change->next.state), change->next.why);
        burst->changed(burst->arg);
    }
    change_drop(change);
}

static void post_change(struct burst *burst, const char *name, const struct burst_memory *next,
                        int64_t pending)
{
    int64_t now = clock_wall_ms(burst->context->clock);
    struct change *change = xcalloc(1, sizeof *change);
    struct error err;
    char doc_id[EVENT_ID_SIZE];
    *change = (struct change){.burst = burst, .next = *next, .more = burst->changes};
    copy_text(change->name, sizeof change->name, name);
    burst->changes = change;
    (void)snprintf(doc_id, sizeof doc_id, "burst:%s", name);
    struct store_doc *doc =
        store_doc_create(STORE_META, doc_id, now, state_to_json(next, name, pending, now));
    if (journal_post_other(burst->context->journal, EVENT_BURST_STATE, name,
                           state_to_json(next, name, pending, now), doc, changed_done, change,
                           &err) < 0) {
        change_drop(change); /* stepped again */
    }
}

static void look(struct burst *burst, size_t index)
{
    struct context *context = burst->context;
    const struct burst_rule *rule = RULES_AT(context->rules->bursts, struct burst_rule, index);
    struct burst_facts facts = {.now_ms = clock_mono_ms(context->clock)};
    count_queue(burst, rule, &facts);
    count_home(burst, rule, &facts);
    picture_burst_facts(context->picture, (int)index, &facts);
    struct burst_memory next = *picture_burst(context->picture, (int)index);
    enum burst_state before = next.state;
    if (!burst_step(rule, &facts, &next) || next.state == before) {
        *picture_burst(context->picture, (int)index) = next; /* only its timers moved */
        return;
    }
    post_change(burst, rule->name, &next, facts.pending);
}

static void look_cb(void *arg)
{
    struct burst *burst = arg;
    const struct list *bursts = &burst->context->rules->bursts;
    if (burst->rules != burst->context->rules) {
        burst->rules = burst->context->rules;
        memset(burst->memos, 0, MEMOS * sizeof *burst->memos);
    }
    for (size_t i = 0; i < bursts->count && i < BURSTS_MAX; i++) {
        if (!is_changing(burst, RULES_AT(*bursts, struct burst_rule, i)->name)) {
            look(burst, i);
        }
    }
    timer_start(burst->timer, LOOK_EVERY_MS);
}

void burst_load(struct burst *burst, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *state = json_string_value(json_object_get(json, "state"));
    int index = name ? burst_by_name(burst->context->rules, name) : -1;
    int value = state ? burst_state_find(state) : -1;
    if (index < 0 || value < 0) {
        return; /* the policy no longer has it */
    }
    struct burst_memory *memory = picture_burst(burst->context->picture, index);
    memory->state = (enum burst_state)value;
    copy_text(memory->why, sizeof memory->why, json_string_value(json_object_get(json, "why")));
    picture_burst_set_since(burst->context->picture, index,
                            json_integer_value(json_object_get(json, "since")));
}

void burst_start(struct burst *burst)
{
    timer_start(burst->timer, LOOK_EVERY_MS);
}

void burst_stop(struct burst *burst)
{
    timer_stop(burst->timer);
}

struct burst *burst_create(struct context *context, void (*changed)(void *arg), void *arg)
{
    struct burst *burst = xcalloc(1, sizeof *burst);
    burst->context = context;
    burst->memos = xcalloc(MEMOS, sizeof *burst->memos);
    burst->changed = changed;
    burst->arg = arg;
    burst->timer = clock_timer(context->clock, look_cb, burst);
    return burst;
}

void burst_destroy(struct burst *burst)
{
    if (burst) {
        timer_destroy(burst->timer);
        free(burst->memos);
        free(burst);
    }
}
