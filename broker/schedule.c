/* schedule.c - from QUEUED to PLACE.
 *
 * A pass walks the queue in turn. Each job is decided on the picture of this moment, in which all
 * earlier placements of the pass are booked already. A shape that has no place now is set aside for the
 * rest of the pass, and its decision is stored once, so that explain can show it. A pass yields to the
 * loop after a slice of LIMIT_SLICE_US; facts that come in meanwhile count for the rest of it.
 *
 * A pass tries again only those shapes for which something has changed since they found no place: room or
 * a waiting slot somewhere where there was none, or the picture's epoch. */
#include "broker/schedule.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "broker/subject.h"
#include "policy/decide.h"

#include <stdlib.h>
#include <string.h>

enum {
    PASS_EVERY_MS = 5000, /* nothing happened: time itself opens tiers (`wait`) */
    RETRY_MS = 1000,      /* the store was full */
    TRY_EVERY_MS = 30000  /* a shape without a place, even though nothing seems to have changed */
};

struct schedule {
    struct context *context;
    struct timer *timer;  /* the next slice */
    struct timer *ticker; /* PASS_EVERY_MS */
    bool running;         /* between two slices of a pass */
    bool again;           /* something changed during the pass */
    int64_t passes, decisions, slice_ms;
};

/* One decision is stored for a shape in a pass, and one more when another place is chosen. */
static const char *stored_decision(struct schedule *schedule, struct shape *shape,
                                   const struct decision *decision)
{
    struct context *context = schedule->context;
    if (shape->seen == schedule->passes && shape->chosen == decision->chosen) {
        return shape->decision;
    }
    shape->seen = schedule->passes;
    shape->chosen = decision->chosen;
    id_make(context->clock, 'd', shape->decision);
    json_t *json = decision_to_json(decision, picture_view(context->picture));
    json_object_set_new(json, "at", json_integer(clock_wall_ms(context->clock)));
    journal_put(context->journal, STORE_DECISIONS, shape->decision, json);
    return shape->decision;
}

static void note_room(struct schedule *schedule, struct shape *shape, const struct spec *spec)
{
    const struct context *context = schedule->context;
    size_t count = context->federation->place_count;
    free(shape->had_room);
    shape->had_room = xcalloc(count / 8 + 1, 1);
    for (size_t i = 0; i < count; i++) {
        bool room = picture_has_room(context->picture, (int)i, &spec->needs);
        shape->had_room[i / 8] |= (unsigned char)(room << i % 8);
    }
}

/* The shape has no place now. */
static void set_aside(struct schedule *schedule, struct shape *shape,
                      const struct decision *decision)
{
    const struct context *context = schedule->context;
    shape->aside = true;
    shape->tried_epoch = picture_epoch(context->picture);
    shape->tried_ms = clock_mono_ms(context->clock);
    note_room(schedule, shape, shape->first->job->spec);
    if (decision->summary[0]) {
        copy_text(shape->why, sizeof shape->why, decision->summary);
        shape->why_ms = shape->tried_ms;
    }
}

/* What a decision weighs that picture_has_room does not see: then every pass decides. */
static bool is_simple(const struct context *context, const struct spec *spec)
{
    const struct list *routes = &context->rules->routes;
    for (size_t r = 0; r < routes->count; r++) {
        const struct list *tiers = &RULES_AT(*routes, struct route, r)->tiers;
        for (size_t t = 0; t < tiers->count; t++) {
            if (RULES_AT(*tiers, struct tier, t)->leave_free > 0) {
                return false;
            }
        }
    }
    return spec->at.count == 0 && spec->needs.gpus == 0;
}

static bool is_worth_a_try(const struct schedule *schedule, const struct shape *shape)
{
    const struct context *context = schedule->context;
    const struct spec *spec = shape->first->job->spec;
    if (!shape->had_room || shape->tried_epoch != picture_epoch(context->picture) ||
        clock_mono_ms(context->clock) - shape->tried_ms >= TRY_EVERY_MS ||
        !is_simple(context, spec)) {
        return true;
    }
    for (size_t i = 0; i < context->federation->place_count; i++) {
        if (!(shape->had_room[i / 8] >> i % 8 & 1) &&
            picture_has_room(context->picture, (int)i, &spec->needs)) {
            return true;
        }
    }
    return false;
}

static void begin_pass(struct schedule *schedule)
{
    struct context *context = schedule->context;
    schedule->running = true;
    schedule->passes++;
    picture_budget_periods(context->picture);
    for (struct shape *shape = queue_shapes(context->queue); shape; shape = shape->next) {
        shape->aside = !is_worth_a_try(schedule, shape);
    }
}

/* A placement may have taken the room for which others were to be tried. */
static void trim_pass(struct schedule *schedule)
{
    struct shape *shape = queue_shapes(schedule->context->queue);
    for (; shape; shape = shape->next) {
        shape->aside = shape->aside || !is_worth_a_try(schedule, shape);
    }
}

static json_t *place_data(const struct decision *decision, const struct verdict_row *row,
                          const char *decision_id)
{
    json_t *terms = json_object();
    for (int i = 0; i < TERM_COUNT; i++) {
        json_object_set_new(terms, term_name((enum term_kind)i), json_integer(row->terms[i]));
    }
    json_t *budgets = json_array();
    for (size_t i = 0; i < decision->budgets.count; i++) {
        json_array_append_new(budgets, json_string(decision->budgets.items[i]));
    }
    json_t *data = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:o}", "place", row->place->name,
                             "decision", decision_id, "terms", terms, "rent_expected",
                             (json_int_t)row->rent_expected, "booked", (json_int_t)row->booked,
                             "price_hour", (json_int_t)row->price_hour, "budgets", budgets);
    if (decision->burst) {
        json_object_set_new(data, "burst", json_string(decision->burst));
    }
    json_object_set_new(data, "nodes", json_integer(row->nodes));
    json_object_set_new(data, "reason", json_string(decision->summary));
    return data;
}

/* Books, then appends. The booking is confirmed by the event, or undone by schedule_undo. */
static int place(struct schedule *schedule, struct entry *entry, const struct decision *decision)
{
    struct context *context = schedule->context;
    const struct verdict_row *row = &decision->rows[decision->chosen];
    const char *id = stored_decision(schedule, entry->shape, decision);
    picture_book(context->picture, entry, row, decision);
    struct error err;
    if (journal_post(context->journal, entry, EVENT_PLACE, entry->job->attempt_count + 1,
                     place_data(decision, row, id), NULL, &err) < 0) {
        picture_release(context->picture, entry);
        context_log(context, "warn", "job %s was not placed: %s", entry->job->id, err.text);
        return -1;
    }
    queue_take(context->queue, entry);
    return 0;
}

/* Most shapes that wait go on waiting: they are asked without words as long as their sentence is fresh. */
static void decide_entry(struct schedule *schedule, const struct entry *entry,
                         struct subject *subject, struct decision *out)
{
    struct context *context = schedule->context;
    const struct shape *shape = entry->shape;
    memset(out, 0, sizeof *out);
    schedule->decisions++;
    subject->silent =
        shape->why[0] != '\0' && clock_mono_ms(context->clock) - shape->why_ms < TRY_EVERY_MS;
    decide(picture_view(context->picture), subject, out);
    if (subject->silent && out->chosen >= 0) {
        decision_fini(out);
        subject->silent = false;
        decide(picture_view(context->picture), subject, out);
    }
}

/* Decides the next job. Returns false when there is none left to try, or the store takes no more. */
static bool decide_next(struct schedule *schedule)
{
    struct context *context = schedule->context;
    struct entry *entry = queue_next(context->queue);
    if (!entry) {
        return false;
    }
    if (entry->op != OP_NONE) { /* its cancel is on the way to the disk */
        entry->shape->aside = true;
        return true;
    }
    struct subject subject;
    struct decision decision;
    subject_init(&subject, entry->job, clock_wall_ms(context->clock));
    decide_entry(schedule, entry, &subject, &decision);
    bool go_on = true;
    if (decision.chosen < 0) {
        set_aside(schedule, entry->shape, &decision);
    } else if (place(schedule, entry, &decision) < 0) {
        timer_start(schedule->timer, RETRY_MS);
        go_on = false;
    } else {
        trim_pass(schedule);
    }
    decision_fini(&decision);
    subject_fini(&subject);
    return go_on;
}

static bool store_is_tight(const struct schedule *schedule)
{
    return journal_pending(schedule->context->journal) >= LIMIT_APPENDS - LIMIT_APPENDS_RESERVED;
}

static void slice_cb(void *arg)
{
    struct schedule *schedule = arg;
    struct context *context = schedule->context;
    if (!schedule->running) {
        schedule->again = false;
        begin_pass(schedule);
    }
    int64_t start = clock_mono_ms(context->clock);
    while (!store_is_tight(schedule)) {
        if (!decide_next(schedule)) {
            schedule->running = false;
            if (schedule->again) { /* something changed during the pass: another one */
                timer_start(schedule->timer, 0);
            }
            break;
        }
        if (clock_mono_ms(context->clock) - start >= LIMIT_SLICE_US / 1000) {
            timer_start(schedule->timer, 0);
            break;
        }
    }
    int64_t took = clock_mono_ms(context->clock) - start;
    schedule->slice_ms = took > schedule->slice_ms ? took : schedule->slice_ms;
    if (store_is_tight(schedule)) {
        schedule->running = false;
        timer_start(schedule->timer, RETRY_MS);
    }
}

void schedule_kick(struct schedule *schedule)
{
    if (!schedule->again) {
        schedule->again = true; /* a pass under way goes to its end first: its last shapes too */
        timer_start(schedule->timer, 0);
    }
}

static void ticker_cb(void *arg)
{
    struct schedule *schedule = arg;
    schedule_kick(schedule);
    timer_start(schedule->ticker, PASS_EVERY_MS);
}

void schedule_queued(struct schedule *schedule, struct entry *entry)
{
    queue_add(schedule->context->queue, entry);
    schedule_kick(schedule);
}

void schedule_removed(struct schedule *schedule, struct entry *entry)
{
    queue_remove(schedule->context->queue, entry);
}

void schedule_undo(struct schedule *schedule, struct entry *entry)
{
    picture_release(schedule->context->picture, entry);
    queue_add(schedule->context->queue, entry);
    if (!schedule->again) {
        timer_start(schedule->timer, RETRY_MS);
    }
}

void schedule_stats(const struct schedule *schedule, int64_t *passes, int64_t *decisions,
                    int64_t *slice_ms)
{
    *passes = schedule->passes;
    *decisions = schedule->decisions;
    *slice_ms = schedule->slice_ms;
}

struct schedule *schedule_create(struct context *context)
{
    struct schedule *schedule = xcalloc(1, sizeof *schedule);
    schedule->context = context;
    schedule->timer = clock_timer(context->clock, slice_cb, schedule);
    schedule->ticker = clock_timer(context->clock, ticker_cb, schedule);
    timer_start(schedule->ticker, PASS_EVERY_MS);
    return schedule;
}

void schedule_destroy(struct schedule *schedule)
{
    if (!schedule) {
        return;
    }
    timer_destroy(schedule->timer);
    timer_destroy(schedule->ticker);
    free(schedule);
}
