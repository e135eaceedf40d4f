#include "broker/queue.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/map.h"
#include "broker/core/strbuf.h"

#include <stdlib.h>
#include <string.h>

struct turn { /* one class of the policy */
    char name[NAME_SIZE];
    int64_t order, share;
    int64_t owed; /* millionths of a start, while it waits */
    int64_t count;
};

struct queue {
    struct context *context;
    struct turn *turns;
    size_t turn_count;
    struct map shapes_by_key;
    struct shape *first, *last;
    int64_t count, shape_count;
    char **labels; /* names that the policy looks at */
    size_t label_count;
};

/* -------------------------------------------------------------------------------- the key of a shape */

static void note_labels(struct queue *queue, const struct labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        queue->labels = xrealloc(queue->labels, queue->label_count + 1, sizeof *queue->labels);
        queue->labels[queue->label_count++] = xstrdup(labels->items[i].name);
    }
}

static void note_policy_labels(struct queue *queue)
{
    const struct rules *rules = queue->context->rules;
    for (size_t i = 0; i < rules->guards.count; i++) {
        note_labels(queue, &RULES_AT(rules->guards, struct guard, i)->match.labels);
    }
    for (size_t i = 0; i < rules->routes.count; i++) {
        note_labels(queue, &RULES_AT(rules->routes, struct route, i)->match.labels);
    }
    for (size_t i = 0; i < rules->budgets.count; i++) {
        note_labels(queue, &RULES_AT(rules->budgets, struct budget_rule, i)->match.labels);
    }
}

static bool policy_matches_names(const struct rules *rules)
{
    for (size_t i = 0; i < rules->guards.count; i++) {
        if (RULES_AT(rules->guards, struct guard, i)->match.name.count) {
            return true;
        }
    }
    for (size_t i = 0; i < rules->routes.count; i++) {
        if (RULES_AT(rules->routes, struct route, i)->match.name.count) {
            return true;
        }
    }
    for (size_t i = 0; i < rules->budgets.count; i++) {
        if (RULES_AT(rules->budgets, struct budget_rule, i)->match.name.count) {
            return true;
        }
    }
    return false;
}

static void put_texts(struct strbuf *buf, const struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        strbuf_printf(buf, "%s,", texts->items[i]);
    }
    strbuf_puts(buf, "|");
}

static void put_labels(struct strbuf *buf, const struct labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        strbuf_printf(buf, "%s=", labels->items[i].name);
        put_texts(buf, &labels->items[i].values);
    }
    strbuf_puts(buf, "|");
}

static void put_override(struct strbuf *buf, const struct override *override)
{
    json_t *json = value_to_json(override->value);
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    strbuf_printf(buf, "%s:%s|", override->name, text);
    free(text);
    json_decref(json);
}

/* Everything that a decision looks at. Estimate and limit are exact: they are booked as money. */
static char *shape_key(const struct queue *queue, const struct job *job)
{
    const struct spec *spec = job->spec;
    struct strbuf buf;
    strbuf_init(&buf, LIMIT_JOB_BYTES);
    strbuf_printf(&buf, "%s|%s|%s|%lld|%d|", spec->class_name, spec->team ? spec->team : "",
                  job->owner, (long long)spec->priority, spec->is_protected);
    strbuf_printf(&buf, "%lld|%lld|%lld|%lld|%lld|", (long long)spec->needs.cpus,
                  (long long)spec->needs.memory, (long long)spec->needs.gpus,
                  (long long)spec->time.limit, (long long)spec->time.estimate);
    put_texts(&buf, &spec->needs.gpu);
    put_labels(&buf, &spec->where.require);
    put_labels(&buf, &spec->where.forbid);
    for (size_t i = 0; i < queue->label_count; i++) {
        const char *value = labels_get(&spec->labels, queue->labels[i]);
        strbuf_printf(&buf, "%s=%s|", queue->labels[i], value ? value : "");
    }
    if (policy_matches_names(queue->context->rules)) {
        strbuf_printf(&buf, "%s|", spec->name);
    }
    for (size_t i = 0; i < spec->at.count; i++) {
        put_override(&buf, &((const struct override *)spec->at.items)[i]);
    }
    for (int i = 0; i < job->attempt_count; i++) {
        if (job->attempts[i].outcome == OUTCOME_REJECTED) {
            strbuf_printf(&buf, "!%s|", job->attempts[i].place);
        }
    }
    if (queue->shape_count >= LIMIT_SHAPES) {
        strbuf_printf(&buf, "#%s", job->id);
    }
    return strbuf_take(&buf);
}

/* FNV-1a; never 0. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *key; key++) {
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    }
    return hash ? hash : 1;
}

uint64_t queue_shape_hash(const struct queue *queue, struct entry *entry)
{
    if (!entry->shape_hash) {
        char *key = shape_key(queue, entry->job);
        entry->shape_hash = hash_of(key);
        free(key);
    }
    return entry->shape_hash;
}

/* ------------------------------------------------------------------------------------------ shapes */

static int turn_index(const struct queue *queue, const char *class_name)
{
    for (size_t i = 0; i < queue->turn_count; i++) {
        if (strcmp(queue->turns[i].name, class_name) == 0) {
            return (int)i;
        }
    }
    return (int)queue->turn_count - 1; /* the last turn: classes that the policy no longer has */
}

static struct shape *shape_of(struct queue *queue, const struct job *job)
{
    char *key = shape_key(queue, job);
    struct shape *shape = map_get(&queue->shapes_by_key, key);
    if (shape) {
        free(key);
        return shape;
    }
    shape = xcalloc(1, sizeof *shape);
    shape->key = key;
    shape->hash = hash_of(key);
    shape->class_index = turn_index(queue, job->spec->class_name);
    shape->prev = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = shape;
    queue->last = shape;
    queue->shape_count++;
    map_put(&queue->shapes_by_key, shape->key, shape);
    return shape;
}

static void shape_drop(struct queue *queue, struct shape *shape)
{
    map_remove(&queue->shapes_by_key, shape->key);
    *(shape->prev ? &shape->prev->next : &queue->first) = shape->next;
    *(shape->next ? &shape->next->prev : &queue->last) = shape->prev;
    queue->shape_count--;
    free(shape->key);
    free(shape->had_room);
    free(shape);
}

void queue_add(struct queue *queue, struct entry *entry)
{
    struct shape *shape = shape_of(queue, entry->job);
    /* Ids sort by time: a new job goes to the end, one that comes back near the front. */
    struct entry *after = shape->last;
    if (shape->first && strcmp(entry->job->id, shape->first->job->id) < 0) {
        after = NULL;
    }
    while (after && strcmp(after->job->id, entry->job->id) > 0) {
        after = after->queue_prev;
    }
    entry->shape = shape;
    entry->shape_hash = shape->hash;
    entry->queue_prev = after;
    entry->queue_next = after ? after->queue_next : shape->first;
    *(after ? &after->queue_next : &shape->first) = entry;
    *(entry->queue_next ? &entry->queue_next->queue_prev : &shape->last) = entry;
    shape->count++;
    queue->count++;
    queue->turns[shape->class_index].count++;
}

void queue_remove(struct queue *queue, struct entry *entry)
{
    struct shape *shape = entry->shape;
    if (!shape) {
        return;
    }
    *(entry->queue_prev ? &entry->queue_prev->queue_next : &shape->first) = entry->queue_next;
    *(entry->queue_next ? &entry->queue_next->queue_prev : &shape->last) = entry->queue_prev;
    entry->queue_prev = entry->queue_next = NULL;
    entry->shape = NULL;
    queue->count--;
    struct turn *turn = &queue->turns[shape->class_index];
    turn->count--;
    turn->owed = turn->count ? turn->owed : 0;
    if (--shape->count == 0) {
        shape_drop(queue, shape);
    }
}

/* ------------------------------------------------------------------------------------------- turns */

static const char *team_of(const struct shape *shape)
{
    const char *team = shape->first->job->spec->team;
    return team ? team : "";
}

static bool is_older(const struct shape *a, const struct shape *b)
{
    return strcmp(a->first->job->id, b->first->job->id) < 0;
}

static bool may_go(const struct shape *shape, size_t class_index)
{
    return (size_t)shape->class_index == class_index && !shape->aside;
}

/* Of one class: the team whose oldest job is oldest, and its best shape. A shape is never empty. */
static struct shape *class_next(struct queue *queue, size_t class_index)
{
    struct shape *oldest = NULL;
    for (struct shape *shape = queue->first; shape; shape = shape->next) {
        if (may_go(shape, class_index) && (!oldest || is_older(shape, oldest))) {
            oldest = shape;
        }
    }
    struct shape *best = oldest;
    for (struct shape *shape = queue->first; oldest && shape; shape = shape->next) {
        if (!may_go(shape, class_index) || strcmp(team_of(shape), team_of(oldest)) != 0) {
            continue;
        }
        int64_t mine = shape->first->job->spec->priority;
        int64_t theirs = best->first->job->spec->priority;
        if (mine > theirs || (mine == theirs && is_older(shape, best))) {
            best = shape;
        }
    }
    return best;
}

/* The class that is owed a whole start, most owed first; else the lowest order. */
static bool goes_before(const struct turn *turn, const struct turn *other)
{
    bool owed = turn->owed >= SHARE_ONE, other_owed = other->owed >= SHARE_ONE;
    return owed ? !other_owed || turn->owed > other->owed
                : !other_owed && turn->order < other->order;
}

struct entry *queue_next(struct queue *queue)
{
    const struct turn *first = NULL;
    struct shape *best = NULL;
    for (size_t i = 0; i < queue->turn_count; i++) {
        const struct turn *turn = &queue->turns[i];
        struct shape *shape = turn->count ? class_next(queue, i) : NULL;
        if (shape && (!first || goes_before(turn, first))) {
            first = turn;
            best = shape;
        }
    }
    return best ? best->first : NULL;
}

void queue_take(struct queue *queue, struct entry *entry)
{
    int taken = entry->shape->class_index;
    for (size_t i = 0; i < queue->turn_count; i++) {
        struct turn *turn = &queue->turns[i];
        if (turn->count > 0 && (int)i != taken) {
            turn->owed += turn->share;
            /* A class that can take nothing does not save up more than one turn for later. */
            turn->owed = turn->owed > 2 * SHARE_ONE ? 2 * SHARE_ONE : turn->owed;
        }
    }
    struct turn *turn = &queue->turns[taken];
    turn->owed += turn->share - SHARE_ONE;
    turn->owed = turn->owed < 0 ? 0 : turn->owed;
    queue_remove(queue, entry);
}

struct shape *queue_shapes(struct queue *queue)
{
    return queue->first;
}

void queue_position(const struct queue *queue, const struct entry *entry, int64_t *before,
                    int64_t *of)
{
    *before = 0;
    *of = 0;
    for (const struct shape *shape = queue->first; entry->shape && shape; shape = shape->next) {
        if (shape->class_index != entry->shape->class_index) {
            continue;
        }
        *of += shape->count;
        for (const struct entry *other = shape->first;
             other && strcmp(other->job->id, entry->job->id) < 0; other = other->queue_next) {
            *before += 1;
        }
    }
}

int64_t queue_count(const struct queue *queue)
{
    return queue->count;
}

int64_t queue_class_count(const struct queue *queue, const char *class_name)
{
    int index = turn_index(queue, class_name);
    return strcmp(queue->turns[index].name, class_name) == 0 ? queue->turns[index].count : 0;
}

static void make_turns(struct queue *queue)
{
    const struct list *classes = &queue->context->rules->classes;
    free(queue->turns);
    queue->turn_count = classes->count + 1;
    queue->turns = xcalloc(queue->turn_count, sizeof *queue->turns);
    for (size_t i = 0; i < classes->count; i++) {
        const struct class_rule *rule = RULES_AT(*classes, struct class_rule, i);
        copy_text(queue->turns[i].name, sizeof queue->turns[i].name, rule->name);
        queue->turns[i].order = rule->order;
        queue->turns[i].share = rule->share;
    }
    queue->turns[classes->count].order = INT64_MAX;
}

static void drop_labels(struct queue *queue)
{
    for (size_t i = 0; i < queue->label_count; i++) {
        free(queue->labels[i]);
    }
    free(queue->labels);
    queue->labels = NULL;
    queue->label_count = 0;
}

void queue_rules_changed(struct queue *queue)
{
    struct entry *waiting = NULL;
    while (queue->first) {
        struct entry *entry = queue->first->first;
        queue_remove(queue, entry);
        entry->line_next = waiting;
        waiting = entry;
    }
    make_turns(queue);
    drop_labels(queue);
    note_policy_labels(queue);
    for (struct entry *entry = journal_first(queue->context->journal); entry; entry = entry->next) {
        entry->shape_hash = 0;
    }
    while (waiting) {
        struct entry *entry = waiting;
        waiting = entry->line_next;
        entry->line_next = NULL;
        queue_add(queue, entry);
    }
}

struct queue *queue_create(struct context *context)
{
    struct queue *queue = xcalloc(1, sizeof *queue);
    queue->context = context;
    map_init(&queue->shapes_by_key);
    make_turns(queue);
    note_policy_labels(queue);
    return queue;
}

void queue_destroy(struct queue *queue)
{
    if (!queue) {
        return;
    }
    while (queue->first) {
        queue_remove(queue, queue->first->first);
    }
    map_fini(&queue->shapes_by_key);
    drop_labels(queue);
    free(queue->turns);
    free(queue);
}
