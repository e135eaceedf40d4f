#include "broker/burst.h"

#include "broker/core/alloc.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "broker/subject.h"
#include "policy/burst.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 1000, BURSTS_MAX = 64 };

struct burst {
    struct context *context;
    void (*changed)(void *arg);
    void *arg;
    struct timer *timer;
    bool busy[BURSTS_MAX]; /* its change is on the way to the disk */
    struct burst_memory next[BURSTS_MAX];
};

/* Whether a place stands in a tier that this burst opens. */
static bool is_of_burst(const struct rules *rules, const char *name, const struct place *place)
{
    for (size_t i = 0; i < rules->routes.count; i++) {
        const struct list *tiers = &RULES_AT(rules->routes, struct route, i)->tiers;
        for (size_t t = 0; t < tiers->count; t++) {
            const struct tier *tier = RULES_AT(*tiers, struct tier, t);
            for (size_t p = 0; tier->burst && strcmp(tier->burst, name) == 0 && p < tier->places.count;
                 p++) {
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

static void count_queue(struct burst *burst, const struct burst_rule *rule, struct burst_facts *facts)
{
    int64_t now = clock_wall_ms(burst->context->clock);
    for (struct shape *shape = queue_shapes(burst->context->queue); shape; shape = shape->next) {
        const struct job *job = shape->first->job;
        if (!could_run(burst, rule, job)) {
            continue;
        }
        facts->pending += shape->count;
        int64_t waited = now - job->queued_ms;
        facts->wait_ms = waited > facts->wait_ms ? waited : facts->wait_ms;
    }
}

/* Of the own places: ours that wait there, all that waits there, and how much is in use. */
static void count_home(struct burst *burst, const struct burst_rule *rule, struct burst_facts *facts)
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
            bool waits = !entry->booking.running && entry->job->attempt_count > 0;
            facts->pending += waits && could_run(burst, rule, entry->job) ? 1 : 0;
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

static void changed_done(void *arg, const struct event *event, const struct error *err)
{
    struct burst *burst = arg;
    int index = burst_by_name(burst->context->rules, event->id);
    if (index < 0 || index >= BURSTS_MAX) {
        return;
    }
    burst->busy[index] = false;
    if (err->code) {
        return; /* stepped again from the old state */
    }
    *picture_burst(burst->context->picture, index) = burst->next[index];
    picture_burst_set_since(burst->context->picture, index, event->at_ms);
    context_log(burst->context, "info", "burst %s is %s: %s", event->id,
                burst_state_name(burst->next[index].state), burst->next[index].why);
    burst->changed(burst->arg);
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
    int64_t now = clock_wall_ms(context->clock);
    struct error err;
    char doc_id[EVENT_ID_SIZE];
    (void)snprintf(doc_id, sizeof doc_id, "burst:%s", rule->name);
    struct store_doc *doc =
        store_doc_create(STORE_META, doc_id, now, state_to_json(&next, rule->name, facts.pending, now));
    burst->next[index] = next;
    burst->busy[index] =
        journal_post_other(context->journal, EVENT_BURST_STATE, rule->name,
                           state_to_json(&next, rule->name, facts.pending, now), doc, changed_done,
                           burst, &err) == 0;
}

static void look_cb(void *arg)
{
    struct burst *burst = arg;
    size_t count = burst->context->rules->bursts.count;
    for (size_t i = 0; i < count && i < BURSTS_MAX; i++) {
        if (!burst->busy[i]) {
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
    burst->changed = changed;
    burst->arg = arg;
    burst->timer = clock_timer(context->clock, look_cb, burst);
    return burst;
}

void burst_destroy(struct burst *burst)
{
    if (burst) {
        timer_destroy(burst->timer);
        free(burst);
    }
}
