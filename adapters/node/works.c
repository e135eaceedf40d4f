/* works.c - see works.h. */
#include "adapters/node/works.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

static void make_key(const char *job, int attempt, char out[WORK_KEY_SIZE])
{
    (void)snprintf(out, WORK_KEY_SIZE, "%.*s-%d", ID_SIZE - 1, job, attempt);
}

struct work *works_find(const struct works *works, const char *job, int attempt)
{
    char key[WORK_KEY_SIZE];
    make_key(job, attempt, key);
    return map_get(&works->by_key, key);
}

static struct work *find_by_record(const struct works *works, const json_t *record)
{
    return works_find(works, text_of(record, "job"), (int)number_of(record, "attempt"));
}

/* What it runs is only needed until it has started. */
static void drop_what(struct works *works, struct work *work)
{
    works->queued_bytes -= work->bytes;
    work->bytes = 0;
    json_decref(work->argv);
    json_decref(work->env);
    work->argv = work->env = NULL;
}

static size_t texts_bytes(const json_t *texts)
{
    size_t bytes = 0;
    size_t i;
    const json_t *text;
    json_array_foreach((json_t *)texts, i, text)
    {
        bytes += json_string_length(text) + 32;
    }
    return bytes;
}

static void apply_accept(struct works *works, const json_t *record)
{
    const json_t *from = json_object_get(record, "work");
    const char *job = text_of(from, "job");
    int attempt = (int)number_of(from, "attempt");
    if (works_find(works, job, attempt)) {
        return;
    }
    struct work *work = xcalloc(1, sizeof *work);
    make_key(job, attempt, work->key);
    copy_text(work->job, sizeof work->job, job);
    copy_text(work->name, sizeof work->name, text_of(from, "name"));
    copy_text(work->place, sizeof work->place, text_of(from, "place"));
    work->attempt = attempt;
    work->intent_ms = number_of(from, "intent_ms");
    work->cpus = number_of(from, "cpus");
    work->memory = number_of(from, "memory");
    work->limit_ms = number_of(from, "limit_ms");
    work->grace_ms = number_of(from, "grace_ms");
    work->argv = json_incref(json_object_get(from, "argv"));
    work->env = json_incref(json_object_get(from, "env"));
    work->bytes = texts_bytes(work->argv) + texts_bytes(work->env);
    works->queued_bytes += work->bytes;
    if (works->count == works->room) {
        works->room = works->room * 2 + 64;
        works->items = xrealloc(works->items, works->room, sizeof(struct work *));
    }
    works->items[works->count++] = work;
    map_put(&works->by_key, work->key, work);
}

static struct seen *seen_of(struct works *works, const char *job)
{
    struct seen *seen = map_get(&works->seen_by_job, job);
    if (seen) {
        return seen;
    }
    if (works->seen_count == works->seen_room) {
        works->seen_room = works->seen_room * 2 + 64;
        works->seen = xrealloc(works->seen, works->seen_room, sizeof(struct seen *));
    }
    seen = xcalloc(1, sizeof *seen);
    copy_text(seen->job, sizeof seen->job, job);
    works->seen[works->seen_count++] = seen;
    map_put(&works->seen_by_job, seen->job, seen);
    return seen;
}

static void work_destroy(struct works *works, struct work *work)
{
    drop_what(works, work);
    free(work);
}

static void remove_work(struct works *works, struct work *work)
{
    size_t i = 0;
    while (works->items[i] != work) {
        i++;
    }
    works->count--;
    memmove(&works->items[i], &works->items[i + 1], (works->count - i) * sizeof(struct work *));
    map_remove(&works->by_key, work->key);
    work_destroy(works, work);
}

static void seen_set(struct works *works, const char *job, uint32_t attempts, int64_t at_ms)
{
    struct seen *seen = seen_of(works, job);
    seen->attempts |= attempts;
    seen->at_ms = at_ms;
    if (works->seen_count > WORKS_SEEN_MAX) {
        int64_t oldest = works->seen[0]->at_ms;
        for (size_t i = 1; i < works->seen_count; i++) {
            oldest = works->seen[i]->at_ms < oldest ? works->seen[i]->at_ms : oldest;
        }
        works_prune(works, oldest + 1);
    }
}

static void apply_end(struct works *works, struct work *work, const json_t *record)
{
    if (keeper_exit_from_json(json_object_get(record, "exit"), &work->end)) {
        work->end.outcome = OUTCOME_OUTCOME_UNKNOWN; /* a word of a later release */
    }
    work->state = WORK_ENDED;
    drop_what(works, work);
}

void works_apply(struct works *works, const json_t *record)
{
    const char *kind = text_of(record, "k");
    struct work *work = find_by_record(works, record);
    if (strcmp(kind, "accept") == 0) {
        apply_accept(works, record);
    } else if (strcmp(kind, "seen") == 0) {
        seen_set(works, text_of(record, "job"), (uint32_t)number_of(record, "attempts"),
                 number_of(record, "at_ms"));
    } else if (!work) {
        return;
    } else if (strcmp(kind, "start") == 0) {
        work->state = WORK_STARTED;
        work->started_ms = number_of(record, "at_ms");
        copy_text(work->boot, sizeof work->boot, text_of(record, "boot"));
    } else if (strcmp(kind, "unstart") == 0) {
        work->state = WORK_QUEUED;
        work->started_ms = 0;
    } else if (strcmp(kind, "cancel") == 0) {
        work->cancelled = true;
    } else if (strcmp(kind, "end") == 0) {
        apply_end(works, work, record);
    } else if (strcmp(kind, "forget") == 0) {
        seen_set(works, work->job, UINT32_C(1) << (work->attempt - 1), number_of(record, "at_ms"));
        remove_work(works, work);
    }
}

bool works_was_seen(const struct works *works, const char *job, int attempt)
{
    const struct seen *seen = map_get(&works->seen_by_job, job);
    return seen && attempt >= 1 && attempt <= LIMIT_ATTEMPTS &&
           (seen->attempts >> (attempt - 1) & 1U);
}

struct slots *works_place(struct works *works, const char *name)
{
    for (size_t i = 0; i < works->place_count; i++) {
        if (strcmp(works->places[i].name, name) == 0) {
            return &works->places[i];
        }
    }
    return NULL;
}

int works_places(struct works *works, const json_t *places, struct error *err)
{
    size_t count = json_array_size(places);
    if (count == 0 || count > WORKS_PLACES_MAX) {
        return error_set(err, ERROR_INVALID, "%zu places, 1 to %d are possible", count,
                         WORKS_PLACES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *from = json_array_get(places, i);
        struct slots *place = &works->places[i];
        memset(place, 0, sizeof *place);
        copy_text(place->name, sizeof place->name, text_of(from, "name"));
        place->cpus = number_of(from, "cpus");
        place->memory = number_of(from, "memory");
    }
    works->place_count = count;
    return 0;
}

static bool are_texts(const json_t *array, size_t at_least)
{
    size_t i;
    const json_t *text;
    json_array_foreach((json_t *)array, i, text)
    {
        if (!json_is_string(text)) {
            return false;
        }
    }
    return json_is_array(array) && json_array_size(array) >= at_least;
}

static int check_shape(const json_t *submit, struct error *err)
{
    const char *bad = NULL;
    int64_t attempt = number_of(submit, "attempt");
    if (!id_is_valid(text_of(submit, "job"))) {
        bad = "job";
    } else if (attempt < 1 || attempt > LIMIT_ATTEMPTS) {
        bad = "attempt";
    } else if (!are_texts(json_object_get(submit, "argv"), 1)) {
        bad = "argv";
    } else if (!are_texts(json_object_get(submit, "env"), 0)) {
        bad = "env";
    } else if (number_of(submit, "cpus") < 0 || number_of(submit, "memory") < 0) {
        bad = "cpus or memory";
    } else if (number_of(submit, "limit_ms") <= 0 || number_of(submit, "grace_ms") < 0) {
        bad = "limit_ms or grace_ms";
    }
    return bad ? error_set(err, ERROR_INVALID, "the submit has no usable '%s'", bad) : 0;
}

/* The attempt numbers of a job only grow; a lower one is a late message. */
static int check_order(const struct works *works, const json_t *submit, struct error *err)
{
    const char *job = text_of(submit, "job");
    int attempt = (int)number_of(submit, "attempt");
    for (int i = attempt; i <= LIMIT_ATTEMPTS; i++) {
        if (works_was_seen(works, job, i) || (i > attempt && works_find(works, job, i))) {
            return error_set(err, ERROR_CONFLICT,
                             "attempt %d of %s comes late: attempt %d was here", attempt, job, i);
        }
    }
    return 0;
}

static int check_room(struct works *works, const json_t *submit, struct error *err)
{
    const char *name = text_of(submit, "place");
    const struct slots *place = works_place(works, name);
    if (!place) {
        return error_set(err, ERROR_NOT_FOUND, "this member has no place '%s'", name);
    }
    char want[UNITS_TEXT_SIZE];
    char have[UNITS_TEXT_SIZE];
    int64_t cpus = number_of(submit, "cpus");
    int64_t memory = number_of(submit, "memory");
    if (cpus > place->cpus) {
        return error_set(err, ERROR_IMPOSSIBLE, "it needs %s CPUs, '%s' gives away %s",
                         thousandths_text(cpus, want), name, thousandths_text(place->cpus, have));
    }
    if (memory > place->memory) {
        return error_set(err, ERROR_IMPOSSIBLE, "it needs %s of memory, '%s' gives away %s",
                         size_text(memory, want), name, size_text(place->memory, have));
    }
    if (works->count >= WORKS_MAX || works->queued_bytes >= WORKS_QUEUED_BYTES) {
        return error_set(err, ERROR_TOO_MANY, "this member holds %zu attempts already",
                         works->count);
    }
    return 0;
}

int works_admit(struct works *works, const json_t *submit, struct error *err)
{
    if (check_shape(submit, err)) {
        return -1;
    }
    const struct work *old = find_by_record(works, submit);
    if (!old) {
        return check_order(works, submit, err) || check_room(works, submit, err) ? -1 : 1;
    }
    if (strcmp(old->name, text_of(submit, "name")) != 0 ||
        old->intent_ms != number_of(submit, "intent_ms")) {
        return error_set(err, ERROR_CONFLICT,
                         "attempt %d of %s is here as another one, '%s' of %" PRId64, old->attempt,
                         old->job, old->name, old->intent_ms);
    }
    return 0;
}

void works_count(struct works *works)
{
    for (size_t i = 0; i < works->place_count; i++) {
        struct slots *place = &works->places[i];
        place->used_cpus = place->used_memory = 0;
        place->running = place->waiting = place->waiting_cpus = 0;
        place->blocked = false;
    }
    for (size_t i = 0; i < works->count; i++) {
        const struct work *work = works->items[i];
        struct slots *place = works_place(works, work->place);
        if (!place || work->state == WORK_ENDED) {
            continue;
        }
        if (work->state == WORK_QUEUED) {
            place->waiting++;
            place->waiting_cpus += work->cpus;
        } else {
            place->running++;
            place->used_cpus += work->cpus;
            place->used_memory += work->memory;
        }
    }
}

void works_started(struct works *works, struct work *work)
{
    drop_what(works, work);
}

static bool take_slot(struct slots *place, const struct work *work)
{
    if (!place || place->blocked) {
        return false;
    }
    if (place->used_cpus + work->cpus > place->cpus ||
        place->used_memory + work->memory > place->memory) {
        place->blocked = true;
        return false;
    }
    place->used_cpus += work->cpus;
    place->used_memory += work->memory;
    place->running++;
    place->waiting--;
    place->waiting_cpus -= work->cpus;
    return true;
}

void works_schedule(struct works *works, void (*start)(void *arg, struct work *work), void *arg)
{
    works_count(works);
    for (size_t i = 0; i < works->count; i++) {
        struct work *work = works->items[i];
        if (work->state == WORK_QUEUED && take_slot(works_place(works, work->place), work)) {
            start(arg, work);
        }
    }
}

void works_prune(struct works *works, int64_t before_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < works->seen_count; i++) {
        struct seen *seen = works->seen[i];
        if (seen->at_ms >= before_ms) {
            works->seen[kept++] = seen;
        } else {
            map_remove(&works->seen_by_job, seen->job);
            free(seen);
        }
    }
    works->seen_count = kept;
}

json_t *work_report(const struct work *work)
{
    const char *state = work->state == WORK_QUEUED  ? "pending"
                        : work->state == WORK_ENDED ? "ended"
                                                    : "running";
    json_t *json = json_pack("{s:s, s:i, s:s, s:s}", "job", work->job, "attempt", work->attempt,
                             "native", work->name, "state", state);
    if (work->state == WORK_ENDED) {
        json_object_set_new(json, "exit", keeper_exit_to_json(&work->end));
    } else {
        json_object_set_new(json, "started_ms", json_integer(work->started_ms));
    }
    return json;
}

json_t *work_record(const char *kind, const struct work *work)
{
    return json_pack("{s:s, s:s, s:i}", "k", kind, "job", work->job, "attempt", work->attempt);
}

static json_t *accept_record(const struct work *work)
{
    json_t *from = json_pack("{s:s, s:i, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "job", work->job,
                             "attempt", work->attempt, "name", work->name, "place", work->place,
                             "intent_ms", (json_int_t)work->intent_ms, "cpus",
                             (json_int_t)work->cpus, "memory", (json_int_t)work->memory, "limit_ms",
                             (json_int_t)work->limit_ms, "grace_ms", (json_int_t)work->grace_ms);
    if (work->argv) {
        json_object_set(from, "argv", work->argv);
        json_object_set(from, "env", work->env);
    }
    return json_pack("{s:s, s:o}", "k", "accept", "work", from);
}

static void add_work(json_t *records, const struct work *work)
{
    json_array_append_new(records, accept_record(work));
    if (work->started_ms) {
        json_t *record = work_record("start", work);
        json_object_set_new(record, "boot", json_string(work->boot));
        json_object_set_new(record, "at_ms", json_integer(work->started_ms));
        json_array_append_new(records, record);
    }
    if (work->cancelled) {
        json_array_append_new(records, work_record("cancel", work));
    }
    if (work->state == WORK_ENDED) {
        json_t *record = work_record("end", work);
        json_object_set_new(record, "exit", keeper_exit_to_json(&work->end));
        json_array_append_new(records, record);
    }
}

json_t *works_records(const struct works *works)
{
    json_t *records = json_array();
    for (size_t i = 0; i < works->seen_count; i++) {
        const struct seen *seen = works->seen[i];
        json_array_append_new(records, json_pack("{s:s, s:s, s:I, s:I}", "k", "seen", "job",
                                                 seen->job, "attempts", (json_int_t)seen->attempts,
                                                 "at_ms", (json_int_t)seen->at_ms));
    }
    for (size_t i = 0; i < works->count; i++) {
        add_work(records, works->items[i]);
    }
    return records;
}

void works_init(struct works *works)
{
    memset(works, 0, sizeof *works);
    map_init(&works->by_key);
    map_init(&works->seen_by_job);
}

void works_fini(struct works *works)
{
    for (size_t i = 0; i < works->count; i++) {
        work_destroy(works, works->items[i]);
    }
    works_prune(works, INT64_MAX);
    free(works->items);
    free(works->seen);
    map_fini(&works->by_key);
    map_fini(&works->seen_by_job);
}
