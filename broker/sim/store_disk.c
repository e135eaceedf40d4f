/* store_disk.c - tables in memory with the meaning of the SQLite ones (store_sql_schema.c).
 *
 * Vectors hold the order, maps only find: nothing iterates over a map. */
#include "broker/sim/store_disk.h"

#include "broker/core/alloc.h"
#include "broker/core/map.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vector {
    void **items;
    size_t count, room;
};

struct disk_event {
    int64_t seq, at_ms;
    enum event_kind kind;
    int attempt;
    char id[EVENT_ID_SIZE];
    char *data;
};
struct disk_key {
    char *name; /* scope and key */
    char *fingerprint;
    char job_id[ID_SIZE];
    int64_t expires_ms;
    bool orphan; /* its job is gone, or never was */
};
struct disk_job {
    char id[ID_SIZE];
    char *owner, *team, *class_name, *name, *state, *place, *row;
    int attempt;
    int64_t submitted_ms, finished_ms, submit_seq;
    struct disk_key *key;
};
struct disk_doc {
    char id[EVENT_ID_SIZE];
    int64_t at_ms;
    char *text;
};
struct disk_tomb {
    char id[EVENT_ID_SIZE];
    int64_t seq;
};

struct disk {
    bool is_open;
    uint64_t generation;
    int64_t last_seq;
    struct vector events; /* by seq */
    struct vector jobs;   /* by id */
    struct vector keys;
    struct vector docs[STORE_TABLE_COUNT]; /* as written */
    struct vector tombs;                   /* by seq */
    struct map jobs_by_id, keys_by_name, docs_by_id[STORE_TABLE_COUNT];
};

static void vector_insert(struct vector *vector, size_t at, void *item)
{
    if (vector->count == vector->room) {
        vector->room = vector->room ? vector->room * 2 : 64;
        vector->items = xrealloc(vector->items, vector->room, sizeof *vector->items);
    }
    memmove(vector->items + at + 1, vector->items + at,
            (vector->count - at) * sizeof *vector->items);
    vector->items[at] = item;
    vector->count++;
}

static void vector_add(struct vector *vector, void *item)
{
    vector_insert(vector, vector->count, item);
}

static void vector_remove(struct vector *vector, const void *item)
{
    size_t at = 0;
    while (vector->items[at] != item) {
        at++;
    }
    vector->count--;
    memmove(vector->items + at, vector->items + at + 1,
            (vector->count - at) * sizeof *vector->items);
}

static void event_free(void *item)
{
    struct disk_event *event = item;
    free(event->data);
    free(event);
}

static void key_free(void *item)
{
    struct disk_key *key = item;
    free(key->name);
    free(key->fingerprint);
    free(key);
}

static void job_free(void *item)
{
    struct disk_job *job = item;
    free(job->owner);
    free(job->team);
    free(job->class_name);
    free(job->name);
    free(job->state);
    free(job->place);
    free(job->row);
    free(job);
}

static void doc_free(void *item)
{
    struct disk_doc *doc = item;
    free(doc->text);
    free(doc);
}

/* Index of the first job whose id is not below. */
static size_t job_place(const struct disk *disk, const char *id)
{
    size_t low = 0, high = disk->jobs.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct disk_job *job = disk->jobs.items[middle];
        if (strcmp(job->id, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Index of the first event with a higher seq. */
static size_t event_place(const struct disk *disk, int64_t after_seq)
{
    size_t low = 0, high = disk->events.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct disk_event *event = disk->events.items[middle];
        if (event->seq <= after_seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static const struct disk_event *event_at(const struct disk *disk, int64_t seq)
{
    size_t at = event_place(disk, seq - 1);
    const struct disk_event *event = at < disk->events.count ? disk->events.items[at] : NULL;
    return event && event->seq == seq ? event : NULL;
}

/* Writing. */

static void set_text(char **out, const char *text)
{
    free(*out);
    *out = xstrdup(text ? text : "");
}

static struct disk_key *key_find(const struct disk *disk, const struct store_item *item)
{
    char *name = xasprintf("%s\n%s", item->key->scope, item->key->key);
    struct disk_key *key = map_get(&disk->keys_by_name, name);
    free(name);
    return key;
}

static bool key_in_force(const struct disk_key *key, const struct store_item *item)
{
    return key && (!key->orphan || key->expires_ms > store_item_now(item));
}

/* false: the key is in force and the item has its result. */
static bool write_key(struct disk *disk, struct store_item *item, struct disk_key **out)
{
    struct disk_key *key = key_find(disk, item);
    if (key_in_force(key, item)) {
        item->result = STORE_KEY_EXISTS;
        copy_text(item->existing, sizeof item->existing, key->job_id);
        item->same_body = strcmp(key->fingerprint, item->key->fingerprint) == 0;
        return false;
    }
    if (!key) {
        key = xcalloc(1, sizeof *key);
        key->name = xasprintf("%s\n%s", item->key->scope, item->key->key);
        map_put(&disk->keys_by_name, key->name, key);
        vector_add(&disk->keys, key);
    }
    set_text(&key->fingerprint, item->key->fingerprint);
    copy_text(key->job_id, sizeof key->job_id,
              item->row     ? item->row->id
              : item->event ? item->event->id
                            : "");
    key->expires_ms = item->key->expires_ms;
    key->orphan = !(item->row && store_item_is_submit(item));
    *out = key;
    return true;
}

static void drop_tomb(struct disk *disk, const char *id)
{
    for (size_t i = 0; i < disk->tombs.count; i++) {
        struct disk_tomb *tomb = disk->tombs.items[i];
        if (strcmp(tomb->id, id) == 0) {
            vector_remove(&disk->tombs, tomb);
            free(tomb);
            return;
        }
    }
}

static void write_event(struct disk *disk, struct event *event)
{
    struct disk_event *copy = xcalloc(1, sizeof *copy);
    event->seq = ++disk->last_seq;
    copy->seq = event->seq;
    copy->at_ms = event->at_ms;
    copy->kind = event->kind;
    copy->attempt = event->attempt;
    copy_text(copy->id, sizeof copy->id, event->id);
    copy->data = event_data_text(event);
    vector_add(&disk->events, copy);
    if (event->kind == EVENT_TOMB_SET || event->kind == EVENT_TOMB_CLEAR) {
        drop_tomb(disk, event->id);
    }
    if (event->kind == EVENT_TOMB_SET) {
        struct disk_tomb *tomb = xcalloc(1, sizeof *tomb);
        copy_text(tomb->id, sizeof tomb->id, event->id);
        tomb->seq = event->seq;
        vector_add(&disk->tombs, tomb);
    }
}

static struct disk_job *job_add(struct disk *disk, const struct store_item *item,
                                struct disk_key *key)
{
    const struct store_row *row = item->row;
    assert(item->event); /* it is the SUBMIT */
    struct disk_job *job = xcalloc(1, sizeof *job);
    copy_text(job->id, sizeof job->id, row->id);
    set_text(&job->owner, row->owner);
    set_text(&job->team, row->team);
    set_text(&job->class_name, row->class_name);
    set_text(&job->name, row->name);
    job->submitted_ms = row->submitted_ms;
    job->submit_seq = item->event->seq;
    job->key = key;
    vector_insert(&disk->jobs, job_place(disk, job->id), job);
    map_put(&disk->jobs_by_id, job->id, job);
    return job;
}

static void write_row(struct disk *disk, const struct store_item *item, struct disk_key *key)
{
    const struct store_row *row = item->row;
    struct disk_job *job =
        store_item_is_submit(item) ? job_add(disk, item, key) : map_get(&disk->jobs_by_id, row->id);
    set_text(&job->state, row->state);
    set_text(&job->place, row->place);
    set_text(&job->row, row->json);
    job->attempt = row->attempt;
    job->finished_ms = row->finished_ms ? row->finished_ms : job->finished_ms;
}

static void write_doc(struct disk *disk, const struct store_doc *from)
{
    struct vector *docs = &disk->docs[from->table];
    struct map *by_id = &disk->docs_by_id[from->table];
    struct disk_doc *old = from->table == STORE_SIGNALS ? NULL : map_get(by_id, from->id);
    if (old) {
        map_remove(by_id, old->id);
        vector_remove(docs, old);
        doc_free(old);
    }
    struct disk_doc *doc = xcalloc(1, sizeof *doc);
    copy_text(doc->id, sizeof doc->id, from->id);
    doc->at_ms = from->at_ms;
    doc->text = xstrdup(from->text);
    vector_add(docs, doc);
    if (from->table != STORE_SIGNALS) {
        map_put(by_id, doc->id, doc);
    }
}

static void write_item(struct disk *disk, struct store_item *item)
{
    struct disk_key *key = NULL;
    item->result = STORE_OK;
    if (item->key && !write_key(disk, item, &key)) {
        return;
    }
    if (item->event) {
        write_event(disk, item->event);
    }
    if (item->row) {
        write_row(disk, item, key);
    }
    if (item->doc) {
        write_doc(disk, item->doc);
    }
}

/* Whether every row is either new with its SUBMIT, or of a job that is there. */
static int check(const struct disk *disk, const struct store_batch *batch, struct error *err)
{
    struct map made;
    map_init(&made);
    int result = 0;
    for (size_t i = 0; i < batch->count && result == 0; i++) {
        const struct store_item *item = &batch->items[i];
        struct store_row *row = item->row;
        if (!row || (item->key && key_in_force(key_find(disk, item), item))) {
            continue;
        }
        bool known = map_get(&disk->jobs_by_id, row->id) || map_get(&made, row->id);
        bool submit = store_item_is_submit(item);
        if (known == submit) {
            result =
                error_set(err, ERROR_CONFLICT,
                          submit ? "job %s exists already" : "job %s was never submitted", row->id);
        }
        map_put(&made, row->id, row);
    }
    map_fini(&made);
    return result;
}

int disk_write(struct disk *disk, struct store_batch *batch, struct error *err)
{
    if (check(disk, batch, err) < 0) {
        store_batch_fail(batch);
        return -1;
    }
    for (size_t i = 0; i < batch->count; i++) {
        write_item(disk, &batch->items[i]);
    }
    return 0;
}

/* Reading. */

static bool text_fits(const char *want, const char *have)
{
    return !want || strcmp(want, have) == 0;
}

static bool state_fits(const char *want, const struct disk_job *job)
{
    if (want && strcmp(want, "live") == 0) {
        return job->finished_ms == 0;
    }
    if (want && strcmp(want, "final") == 0) {
        return job->finished_ms > 0;
    }
    return text_fits(want, job->state);
}

static bool suffix_fits(const char *want, const char *id)
{
    size_t length = want ? strlen(want) : 0;
    size_t have = strlen(id);
    return length == 0 || (length <= have && strcmp(id + have - length, want) == 0);
}

static bool job_fits(const struct store_filter *filter, const struct disk_job *job)
{
    return state_fits(filter->state, job) && text_fits(filter->owner, job->owner) &&
           text_fits(filter->team, job->team) && text_fits(filter->class_name, job->class_name) &&
           text_fits(filter->name, job->name) && text_fits(filter->place, job->place) &&
           suffix_fits(filter->suffix, job->id) &&
           (!filter->since_ms || job->submitted_ms >= filter->since_ms) &&
           (!filter->until_ms || job->submitted_ms <= filter->until_ms);
}

static void read_jobs(const struct disk *disk, struct store_read *read)
{
    const struct store_filter *filter = &read->filter;
    size_t at = filter->cursor[0] ? job_place(disk, filter->cursor) : disk->jobs.count;
    while (at-- > 0) {
        const struct disk_job *job = disk->jobs.items[at];
        if (!job_fits(filter, job)) {
            continue;
        }
        const struct disk_event *submit = event_at(disk, job->submit_seq);
        struct store_job view = {
            .id = job->id,
            .owner = job->owner,
            .team = job->team,
            .class_name = job->class_name,
            .name = job->name,
            .state = job->state,
            .place = job->place,
            .attempt = job->attempt,
            .submitted_ms = job->submitted_ms,
            .finished_ms = job->finished_ms,
            .row = job->row,
            .submit = submit ? submit->data : NULL,
        };
        json_t *row = store_job_json(&view, &read->err);
        size_t bytes = strlen(job->row) + (submit ? strlen(submit->data) : 0);
        if (!row || !store_read_add_take(read, row, bytes)) {
            return;
        }
    }
}

static int event_of(const struct disk_event *from, struct event **out, struct error *err)
{
    return event_from_text(from->seq, from->at_ms, event_name(from->kind), from->id, from->attempt,
                           from->data, out, err);
}

static void read_events(const struct disk *disk, struct store_read *read)
{
    for (size_t i = event_place(disk, read->after_seq); i < disk->events.count; i++) {
        const struct disk_event *from = disk->events.items[i];
        struct event *event;
        if (read->has_id && strcmp(from->id, read->id) != 0) {
            continue;
        }
        if (event_of(from, &event, &read->err) < 0) {
            return;
        }
        json_t *row = event_to_json(event);
        event_destroy(event);
        if (!store_read_add_take(read, row, strlen(from->data))) {
            return;
        }
    }
}

static void read_docs(const struct disk *disk, struct store_read *read)
{
    const struct vector *docs = &disk->docs[read->table];
    for (size_t i = docs->count; i-- > 0;) {
        const struct disk_doc *doc = docs->items[i];
        if (read->has_id && strcmp(doc->id, read->id) != 0) {
            continue;
        }
        json_t *row = store_doc_json(doc->id, doc->at_ms, doc->text);
        if (!store_read_add_take(read, row, strlen(doc->text))) {
            return;
        }
    }
}

void disk_read(const struct disk *disk, struct store_read *read)
{
    static void (*const table[])(const struct disk *disk, struct store_read *read) = {
        [READ_JOBS] = read_jobs,
        [READ_EVENTS] = read_events,
        [READ_DOCS] = read_docs,
    };
    table[read->kind](disk, read);
}

static int by_id(const void *a, const void *b)
{
    const struct disk_doc *const *left = a, *const *right = b;
    return strcmp((*left)->id, (*right)->id);
}

static int by_submit(const void *a, const void *b)
{
    const struct disk_job *const *left = a, *const *right = b;
    return ((*left)->submit_seq > (*right)->submit_seq) -
           ((*left)->submit_seq < (*right)->submit_seq);
}

static void **sorted(const struct vector *vector, int (*compare)(const void *a, const void *b))
{
    void **copy = xcalloc(vector->count, sizeof *copy);
    if (vector->count) {
        memcpy(copy, vector->items, vector->count * sizeof *copy);
        qsort(copy, vector->count, sizeof *copy, compare);
    }
    return copy;
}

static int load_meta(const struct disk *disk, const struct store_loader *loader, struct error *err)
{
    void **docs = sorted(&disk->docs[STORE_META], by_id);
    int result = 0;
    for (size_t i = 0; i < disk->docs[STORE_META].count && result == 0; i++) {
        const struct disk_doc *doc = docs[i];
        result = loader->doc(loader->arg, STORE_META, doc->id, doc->text, err);
    }
    free(docs);
    return result;
}

static int load_docs(const struct disk *disk, const struct store_loader *loader, int64_t since_ms,
                     struct error *err)
{
    const struct vector *policies = &disk->docs[STORE_POLICIES];
    if (policies->count) {
        const struct disk_doc *doc = policies->items[policies->count - 1];
        if (loader->doc(loader->arg, STORE_POLICIES, doc->id, doc->text, err) < 0) {
            return -1;
        }
    }
    const struct vector *decisions = &disk->docs[STORE_DECISIONS];
    for (size_t i = 0; i < decisions->count; i++) {
        const struct disk_doc *doc = decisions->items[i];
        if (doc->at_ms >= since_ms &&
            loader->doc(loader->arg, STORE_DECISIONS, doc->id, doc->text, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int load_job(const struct disk *disk, const struct disk_job *job,
                    const struct store_loader *loader, struct error *err)
{
    const struct disk_event *from = event_at(disk, job->submit_seq);
    struct event *submit;
    if (event_of(from, &submit, err) < 0) {
        return -1;
    }
    json_t *row = store_row_parse(job->id, job->row, err);
    int result = row ? loader->job(loader->arg, row, submit, err) : -1;
    json_decref(row);
    event_destroy(submit);
    return result;
}

static int load_jobs(const struct disk *disk, const struct store_loader *loader, struct error *err)
{
    void **jobs = sorted(&disk->jobs, by_submit);
    int result = 0;
    for (size_t i = 0; i < disk->jobs.count && result == 0; i++) {
        const struct disk_job *job = jobs[i];
        result = job->finished_ms ? 0 : load_job(disk, job, loader, err);
    }
    free(jobs);
    return result;
}

int disk_load(const struct disk *disk, const struct store_loader *loader, int64_t now_ms,
              struct error *err)
{
    if (load_meta(disk, loader, err) < 0 ||
        load_docs(disk, loader, now_ms - STORE_DAY_MS, err) < 0 ||
        load_jobs(disk, loader, err) < 0) {
        return -1;
    }
    int result = 0;
    for (size_t i = 0; i < disk->tombs.count && result == 0; i++) {
        const struct disk_tomb *tomb = disk->tombs.items[i];
        struct event *event;
        result = event_of(event_at(disk, tomb->seq), &event, err);
        if (result == 0) {
            result = loader->tombstone(loader->arg, event, err);
            event_destroy(event);
        }
    }
    return result;
}

/* Pruning: one pass over each vector that keeps what stays. */

static bool is_open_tombstone(const struct disk *disk, const struct disk_event *event)
{
    for (size_t i = 0; i < disk->tombs.count; i++) {
        if (((const struct disk_tomb *)disk->tombs.items[i])->seq == event->seq) {
            return true;
        }
    }
    return false;
}

static void prune_events(struct disk *disk, int64_t before_ms, const struct map *gone)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->events.count; i++) {
        struct disk_event *event = disk->events.items[i];
        bool is_job = event_stream(event->kind) == STREAM_JOB;
        if ((is_job && map_get(gone, event->id)) ||
            (!is_job && event->at_ms < before_ms && !is_open_tombstone(disk, event))) {
            event_free(event);
        } else {
            disk->events.items[kept++] = event;
        }
    }
    disk->events.count = kept;
}

/* Fills gone with the jobs that go, and returns how many; they are freed later. */
static void prune_jobs(struct disk *disk, int64_t before_ms, struct map *gone, struct vector *freed)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->jobs.count; i++) {
        struct disk_job *job = disk->jobs.items[i];
        if (job->finished_ms == 0 || job->finished_ms >= before_ms) {
            disk->jobs.items[kept++] = job;
            continue;
        }
        if (job->key) {
            job->key->orphan = true;
        }
        map_remove(&disk->jobs_by_id, job->id);
        map_put(gone, job->id, job);
        vector_add(freed, job);
    }
    disk->jobs.count = kept;
}

static void prune_keys(struct disk *disk, int64_t now_ms)
{
    size_t kept = 0;
    for (size_t i = 0; i < disk->keys.count; i++) {
        struct disk_key *key = disk->keys.items[i];
        if (key->orphan && key->expires_ms <= now_ms) {
            map_remove(&disk->keys_by_name, key->name);
            key_free(key);
        } else {
            disk->keys.items[kept++] = key;
        }
    }
    disk->keys.count = kept;
}

static void prune_docs(struct disk *disk, enum store_table table, int64_t before_ms)
{
    size_t kept = 0;
    struct vector *docs = &disk->docs[table];
    for (size_t i = 0; i < docs->count; i++) {
        struct disk_doc *doc = docs->items[i];
        if (doc->at_ms < before_ms) {
            map_remove(&disk->docs_by_id[table], doc->id);
            doc_free(doc);
        } else {
            docs->items[kept++] = doc;
        }
    }
    docs->count = kept;
}

static int64_t oldest_live_ms(const struct disk *disk, int64_t otherwise_ms)
{
    const struct disk_job *oldest = NULL;
    for (size_t i = 0; i < disk->jobs.count; i++) {
        const struct disk_job *job = disk->jobs.items[i];
        if (job->finished_ms == 0 && (!oldest || job->submit_seq < oldest->submit_seq)) {
            oldest = job;
        }
    }
    return oldest && oldest->submitted_ms < otherwise_ms ? oldest->submitted_ms : otherwise_ms;
}

void disk_prune(struct disk *disk, int64_t finished_before_ms, int64_t now_ms)
{
    struct map gone;
    struct vector freed = {0};
    map_init(&gone);
    prune_jobs(disk, finished_before_ms, &gone, &freed);
    prune_events(disk, finished_before_ms, &gone);
    map_fini(&gone);
    for (size_t i = 0; i < freed.count; i++) {
        job_free(freed.items[i]);
    }
    free(freed.items);
    prune_keys(disk, now_ms);
    prune_docs(disk, STORE_SIGNALS, now_ms - STORE_SIGNALS_MS);
    prune_docs(disk, STORE_DECISIONS, oldest_live_ms(disk, finished_before_ms));
}

int disk_open(struct disk *disk, uint64_t *generation, struct error *err)
{
    if (disk->is_open) {
        return error_set(err, ERROR_CONFLICT, "the simulated disk is in use by another broker");
    }
    disk->is_open = true;
    *generation = ++disk->generation;
    return 0;
}

void disk_close(struct disk *disk)
{
    disk->is_open = false;
}

struct disk *disk_create(void)
{
    struct disk *disk = xcalloc(1, sizeof *disk);
    map_init(&disk->jobs_by_id);
    map_init(&disk->keys_by_name);
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        map_init(&disk->docs_by_id[i]);
    }
    return disk;
}

static void vector_fini(struct vector *vector, void (*free_item)(void *item))
{
    for (size_t i = 0; i < vector->count; i++) {
        free_item(vector->items[i]);
    }
    free(vector->items);
}

void disk_destroy(struct disk *disk)
{
    if (!disk) {
        return;
    }
    vector_fini(&disk->events, event_free);
    vector_fini(&disk->jobs, job_free);
    vector_fini(&disk->keys, key_free);
    vector_fini(&disk->tombs, free);
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        vector_fini(&disk->docs[i], doc_free);
        map_fini(&disk->docs_by_id[i]);
    }
    map_fini(&disk->jobs_by_id);
    map_fini(&disk->keys_by_name);
    free(disk);
}
