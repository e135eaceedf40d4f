/* store_put.c - the tools of the store's tests: batches to write, answers to read. */
#include "tests/unit/store_suite.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

int put_completions;

void put_init(struct put *put)
{
    *put = (struct put){0};
    put->batch = xcalloc(1, sizeof *put->batch);
}

void put_fini(struct put *put)
{
    store_batch_destroy(put->batch);
    free(put->items);
}

static struct store_item *add_item(struct put *put)
{
    struct store_batch *batch = put->batch;
    if ((batch->count & (batch->count - 1)) == 0) { /* full at every power of two */
        batch->items = xrealloc(batch->items, batch->count * 2 + 1, sizeof *batch->items);
    }
    struct store_item *item = &batch->items[batch->count++];
    *item = (struct store_item){0};
    return item;
}

struct store_item *put_event(struct put *put, enum event_kind kind, const char *id, int attempt,
                             int64_t at_ms)
{
    struct store_item *item = add_item(put);
    item->event = event_create(kind, id, attempt, at_ms, json_pack("{s:s, s:i}", "of", id, "n", 7));
    return item;
}

static struct store_row *add_row(struct store_item *item, const char *id, const char *state,
                                 int64_t finished_ms)
{
    struct store_row *row = item->row = xcalloc(1, sizeof *row);
    copy_text(row->id, sizeof row->id, id);
    row->owner = "ada";
    row->team = "red";
    row->class_name = "batch";
    row->name = "train";
    row->place = "hpc/gpu";
    row->state = state;
    row->attempt = 1;
    row->finished_ms = finished_ms;
    row->json = xasprintf("{\"state\":\"%s\",\"id\":\"%s\"}", state, id);
    return row;
}

struct store_item *put_submit(struct put *put, const char *id, const char *owner, int64_t at_ms)
{
    struct store_item *item = put_event(put, EVENT_SUBMIT, id, 0, at_ms);
    struct store_row *row = add_row(item, id, "queued", 0);
    row->owner = owner;
    row->place = "";
    row->attempt = 0;
    row->submitted_ms = at_ms;
    return item;
}

struct store_item *put_update(struct put *put, enum event_kind kind, const char *id,
                              const char *state, int64_t finished_ms, int64_t at_ms)
{
    struct store_item *item = put_event(put, kind, id, 1, at_ms);
    (void)add_row(item, id, state, finished_ms);
    return item;
}

struct store_item *put_doc(struct put *put, enum store_table table, const char *id, int64_t at_ms,
                           const char *text)
{
    struct store_item *item = add_item(put);
    item->doc = xcalloc(1, sizeof *item->doc);
    item->doc->table = table;
    copy_text(item->doc->id, sizeof item->doc->id, id);
    item->doc->at_ms = at_ms;
    item->doc->text = xstrdup(text);
    return item;
}

void put_key(struct store_item *item, const char *scope, const char *key, const char *fingerprint,
             int64_t expires_ms)
{
    item->key = xcalloc(1, sizeof *item->key);
    item->key->scope = xstrdup(scope);
    item->key->key = xstrdup(key);
    item->key->fingerprint = xstrdup(fingerprint);
    item->key->expires_ms = expires_ms;
}

static void put_done(struct store_batch *batch, const struct error *err)
{
    struct put *put = batch->arg;
    cr_assert(!put->done, "a batch completed twice");
    put->done = true;
    put->order = ++put_completions;
    put->err = *err;
    put->count = batch->count;
    put->items = xcalloc(batch->count, sizeof *put->items);
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_item *item = &batch->items[i];
        put->items[i].result = item->result;
        put->items[i].seq = item->event ? item->event->seq : 0;
        put->items[i].same_body = item->same_body;
        copy_text(put->items[i].existing, ID_SIZE, item->existing);
    }
    store_batch_destroy(batch);
}

int put_append(struct put *put, struct suite *suite, struct error *err)
{
    put->batch->done = put_done;
    put->batch->arg = put;
    if (suite->store->ops->append(suite->store, put->batch, err) < 0) {
        return -1;
    }
    cr_assert(!put->done, "a batch completed within append");
    put->batch = NULL;
    return 0;
}

void put_append_ok(struct put *put, struct suite *suite)
{
    struct error err = {0};
    cr_assert_eq(put_append(put, suite, &err), 0, "%s", err.text);
}

void put_wait(struct put *put, struct suite *suite)
{
    while (!put->done) {
        suite->turn(suite);
    }
}

void put_now(struct put *put, struct suite *suite)
{
    put_append_ok(put, suite);
    put_wait(put, suite);
    cr_assert_eq(put->err.code, ERROR_NONE, "%s", put->err.text);
    for (size_t i = 0; i < put->count; i++) {
        cr_assert_eq(put->items[i].result, STORE_OK);
    }
    put_fini(put);
}

void got_done(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct got *got = arg;
    got->done = true;
    got->times++;
    got->more = more;
    got->err = *err;
    got->rows = json_incref(rows);
}

void got_wait(struct got *got, struct suite *suite)
{
    while (!got->done) {
        suite->turn(suite);
    }
}

void got_fini(struct got *got)
{
    json_decref(got->rows);
    *got = (struct got){0};
}

void got_jobs(struct got *got, struct suite *suite, const struct store_filter *filter)
{
    *got = (struct got){0};
    suite->store->ops->jobs(suite->store, filter, got_done, got);
    got_wait(got, suite);
    cr_assert_eq(got->err.code, ERROR_NONE, "%s", got->err.text);
}

void got_events(struct got *got, struct suite *suite, const char *id, int64_t after_seq, int limit)
{
    *got = (struct got){0};
    suite->store->ops->events(suite->store, id, after_seq, limit, got_done, got);
    got_wait(got, suite);
    cr_assert_eq(got->err.code, ERROR_NONE, "%s", got->err.text);
}

void got_docs(struct got *got, struct suite *suite, enum store_table table, const char *id,
              int limit)
{
    *got = (struct got){0};
    suite->store->ops->docs(suite->store, table, id, limit, got_done, got);
    got_wait(got, suite);
    cr_assert_eq(got->err.code, ERROR_NONE, "%s", got->err.text);
}
