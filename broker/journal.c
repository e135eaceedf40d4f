/* journal.c - one writer of state.
 *
 * post:   next = clone(job); job_apply(next, event); row = next; append(event, row)
 * commit: job = next; react(job, event)          failure: next is dropped; failed(job, event)
 *
 * So a row is written in the commit of its event, and memory never runs ahead of the disk. */
#include "broker/journal.h"

#include "broker/core/alloc.h"
#include "broker/core/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct journal {
    struct context *context;
    journal_react_fn react;
    journal_failed_fn failed;
    void *arg;
    struct map by_id;
    struct entry *first, *last;
    int64_t count, pending;
    int64_t by_state[JOB_STATE_COUNT];
    int64_t applied[EVENT_COUNT];
};

struct pending { /* what a store item will do when it is on disk */
    struct entry *entry;
    struct job *next;
};
struct submit_op {
    struct journal *journal;
    struct journal_submit *items;
    journal_submit_fn done;
    void *arg;
};
struct other_op {
    struct journal *journal;
    journal_done_fn done;
    void *arg;
};

static struct store_row *row_create(const struct job *job)
{
    struct store_row *row = xcalloc(1, sizeof *row);
    const struct attempt *attempt = job_attempt(job);
    copy_text(row->id, sizeof row->id, job->id);
    row->owner = job->owner;
    row->team = job->spec->team ? job->spec->team : "";
    row->class_name = job->spec->class_name;
    row->name = job->spec->name;
    row->state = job_state_name(job->state);
    row->place = attempt ? attempt->place : "";
    row->attempt = job->attempt_count;
    row->submitted_ms = job->submitted_ms;
    row->finished_ms = job->finished_ms;
    json_t *json = job_to_row(job);
    row->json = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    return row;
}

static struct store_batch *batch_create(size_t count)
{
    struct store_batch *batch = xcalloc(1, sizeof *batch);
    batch->items = xcalloc(count, sizeof *batch->items);
    batch->count = count;
    return batch;
}

/* A batch that the store did not take: the events go back to the caller, the rest is freed. */
static void batch_refused(struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct pending *pending = batch->items[i].arg;
        if (pending) {
            job_unref(pending->next);
            free(pending);
        }
    }
    store_batch_destroy(batch);
}

static void set_job(struct journal *journal, struct entry *entry, struct job *next)
{
    journal->by_state[entry->job->state]--;
    journal->by_state[next->state]++;
    job_unref(entry->job);
    entry->job = next;
}

static void post_done(struct store_batch *batch, const struct error *err)
{
    struct journal *journal = batch->arg;
    struct store_item *item = &batch->items[0];
    struct pending *pending = item->arg;
    struct entry *entry = pending->entry;
    journal->pending--;
    entry->op = OP_NONE;
    if (item->result == STORE_OK) {
        set_job(journal, entry, pending->next);
        journal->applied[item->event->kind]++;
        journal->react(journal->arg, entry, item->event);
    } else {
        job_unref(pending->next);
        journal->failed(journal->arg, entry, item->event, err);
    }
    free(pending);
    store_batch_destroy(batch);
}

static void other_done(struct store_batch *batch, const struct error *err)
{
    struct other_op *op = batch->arg;
    struct journal *journal = op->journal;
    const struct event *event = batch->items[0].event;
    journal->pending--;
    bool ok = batch->items[0].result == STORE_OK;
    if (ok && event) {
        journal->applied[event->kind]++;
    }
    if (!ok) {
        context_log(journal->context, "error", "store: %s was not written: %s",
                    event ? event_name(event->kind) : "a document", err->text);
    }
    if (op->done) {
        op->done(op->arg, event, err);
    }
    free(op);
    store_batch_destroy(batch);
}

static void submit_done(struct store_batch *batch, const struct error *err)
{
    struct submit_op *op = batch->arg;
    struct journal *journal = op->journal;
    journal->pending -= (int64_t)batch->count;
    for (size_t i = 0; i < batch->count; i++) {
        struct store_item *item = &batch->items[i];
        struct pending *pending = item->arg;
        struct journal_submit *out = &op->items[i];
        out->result = item->result;
        out->same_body = item->same_body;
        copy_text(out->existing, sizeof out->existing, item->existing);
        out->event = NULL;
        pending->entry->op = OP_NONE;
        if (item->result == STORE_OK) {
            set_job(journal, pending->entry, pending->next);
            pending->entry->job->submit_seq = item->event->seq;
            journal->applied[EVENT_SUBMIT]++;
        } else {
            job_unref(pending->next);
            out->entry = NULL;
            journal_retire(journal, pending->entry);
        }
    }
    op->done(op->arg, op->items, batch->count, err);
    for (size_t i = 0; i < batch->count; i++) {
        struct pending *pending = batch->items[i].arg;
        if (batch->items[i].result == STORE_OK) {
            journal->react(journal->arg, pending->entry, batch->items[i].event);
        }
        free(pending);
    }
    free(op);
    store_batch_destroy(batch);
}

struct entry *journal_find(const struct journal *journal, const char *id)
{
    return map_get(&journal->by_id, id);
}

struct entry *journal_first(const struct journal *journal)
{
    return journal->first;
}

int64_t journal_count(const struct journal *journal)
{
    return journal->count;
}

int64_t journal_count_state(const struct journal *journal, enum job_state state)
{
    return journal->by_state[state];
}

int64_t journal_pending(const struct journal *journal)
{
    return journal->pending;
}

int64_t journal_applied(const struct journal *journal, enum event_kind kind)
{
    return journal->applied[kind];
}

struct entry *journal_add_take(struct journal *journal, struct job *job_take)
{
    struct entry *entry = xcalloc(1, sizeof *entry);
    entry->job = job_take;
    copy_text(entry->id, sizeof entry->id, job_take->id);
    /* Ids sort by time, so the place is at or near the end. */
    struct entry *after = journal->last;
    while (after && strcmp(after->job->id, job_take->id) > 0) {
        after = after->prev;
    }
    entry->prev = after;
    entry->next = after ? after->next : journal->first;
    *(entry->prev ? &entry->prev->next : &journal->first) = entry;
    *(entry->next ? &entry->next->prev : &journal->last) = entry;
    map_put(&journal->by_id, entry->id, entry);
    journal->count++;
    journal->by_state[entry->job->state]++;
    return entry;
}

void journal_retire(struct journal *journal, struct entry *entry)
{
    map_remove(&journal->by_id, entry->id);
    *(entry->prev ? &entry->prev->next : &journal->first) = entry->next;
    *(entry->next ? &entry->next->prev : &journal->last) = entry->prev;
    journal->count--;
    journal->by_state[entry->job->state]--;
    timer_destroy(entry->timer);
    job_unref(entry->job);
    free(entry);
}

int journal_post(struct journal *journal, struct entry *entry, enum event_kind kind, int attempt,
                 json_t *data_take, struct store_doc *doc_take, struct error *err)
{
    struct store_batch *batch = batch_create(1);
    struct store_item *item = &batch->items[0];
    item->event = event_create(kind, entry->job->id, attempt,
                               clock_wall_ms(journal->context->clock), data_take);
    item->doc = doc_take;
    struct pending *pending = xcalloc(1, sizeof *pending);
    pending->entry = entry;
    pending->next = job_clone(entry->job);
    item->arg = pending;
    batch->done = post_done;
    batch->arg = journal;
    if (entry->op != OP_NONE) {
        error_set(err, ERROR_CONFLICT, "job %s is busy", entry->job->id);
        goto fail;
    }
    if (job_apply(pending->next, item->event, err) < 0) {
        goto fail;
    }
    item->row = row_create(pending->next);
    if (journal->context->store->ops->append(journal->context->store, batch, err) < 0) {
        goto fail;
    }
    entry->op = OP_APPEND;
    journal->pending++;
    return 0;
fail:
    batch_refused(batch);
    return -1;
}

int journal_post_other(struct journal *journal, enum event_kind kind, const char *id,
                       json_t *data_take, struct store_doc *doc_take, journal_done_fn done,
                       void *arg, struct error *err)
{
    struct store_batch *batch = batch_create(1);
    struct other_op *op = xcalloc(1, sizeof *op);
    *op = (struct other_op){journal, done, arg};
    batch->items[0].event =
        event_create(kind, id, 0, clock_wall_ms(journal->context->clock), data_take);
    batch->items[0].doc = doc_take;
    batch->done = other_done;
    batch->arg = op;
    if (journal->context->store->ops->append(journal->context->store, batch, err) < 0) {
        batch_refused(batch);
        free(op);
        return -1;
    }
    journal->pending++;
    return 0;
}

int journal_submit(struct journal *journal, struct journal_submit *items, size_t count,
                   journal_submit_fn done, void *arg, struct error *err)
{
    struct store_batch *batch = batch_create(count);
    struct submit_op *op = xcalloc(1, sizeof *op);
    *op = (struct submit_op){journal, items, done, arg};
    batch->done = submit_done;
    batch->arg = op;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        struct store_item *item = &batch->items[i];
        struct pending *pending = xcalloc(1, sizeof *pending);
        pending->entry = items[i].entry;
        pending->next = job_clone(items[i].entry->job);
        item->event = items[i].event;
        item->key = items[i].key;
        item->arg = pending;
        items[i].event = NULL;
        items[i].key = NULL;
        result = job_apply(pending->next, item->event, err);
        item->row = result == 0 ? row_create(pending->next) : NULL;
    }
    if (result < 0 ||
        journal->context->store->ops->append(journal->context->store, batch, err) < 0) {
        batch_refused(batch);
        free(op);
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        items[i].entry->op = OP_APPEND;
    }
    journal->pending += (int64_t)count;
    return 0;
}

struct store_doc *store_doc_create(enum store_table table, const char *id, int64_t at_ms,
                                   json_t *data_take)
{
    struct store_doc *doc = xcalloc(1, sizeof *doc);
    doc->table = table;
    copy_text(doc->id, sizeof doc->id, id);
    doc->at_ms = at_ms;
    doc->text = json_dumps(data_take, JSON_COMPACT);
    json_decref(data_take);
    return doc;
}

void store_doc_destroy(struct store_doc *doc)
{
    if (doc) {
        free(doc->text);
        free(doc);
    }
}

void journal_put(struct journal *journal, enum store_table table, const char *id, json_t *data_take)
{
    struct store_batch *batch = batch_create(1);
    struct other_op *op = xcalloc(1, sizeof *op);
    *op = (struct other_op){journal, NULL, NULL};
    batch->items[0].doc =
        store_doc_create(table, id, clock_wall_ms(journal->context->clock), data_take);
    batch->done = other_done;
    batch->arg = op;
    struct error err;
    if (journal->context->store->ops->append(journal->context->store, batch, &err) < 0) {
        context_log(journal->context, "error", "store: document %s was not written: %s", id,
                    err.text);
        batch_refused(batch);
        free(op);
        return;
    }
    journal->pending++;
}

struct journal *journal_create(struct context *context, journal_react_fn react,
                               journal_failed_fn failed, void *arg)
{
    struct journal *journal = xcalloc(1, sizeof *journal);
    journal->context = context;
    journal->react = react;
    journal->failed = failed;
    journal->arg = arg;
    map_init(&journal->by_id);
    return journal;
}

void journal_destroy(struct journal *journal)
{
    if (!journal) {
        return;
    }
    while (journal->first) {
        journal_retire(journal, journal->first);
    }
    map_fini(&journal->by_id);
    free(journal);
}
