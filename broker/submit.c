/* submit.c - one request of one or many jobs becomes batches of SUBMIT events.
 *
 * Line n of a bulk with key K has the key "K#n" (a single job: K), checked by the store in the commit
 * that stores the job. So a bulk that is sent again goes on where it stopped. A bulk is cut into
 * batches, filled in slices of time; each is answered by the store before the next is appended. */
#include "broker/submit.h"

#include "broker/admit.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/problem.h"
#include "broker/journal.h"
#include "broker/present.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BULK_SLICE = 256, KEY_KEPT_MS = 24 * 3600 * 1000 };

struct submit_op {
    struct context *context;
    struct caller caller; /* owner and team owned */
    struct value **items;
    size_t count, next; /* items before next are answered or appended */
    size_t in_flight;
    struct journal_submit *batch; /* of in_flight items */
    size_t *index;                /* of each of the batch in items */
    bool bulk;
    char *key, *fingerprint;
    json_t *results;
    struct error first_error; /* of a single job */
    struct timer *timer;      /* answers never come from within the call */
    reply_fn reply;
    void *arg;
};

static void op_finish(struct submit_op *op)
{
    struct error err;
    error_clear(&err);
    if (op->bulk) {
        json_t *body = json_pack("{s:O}", "jobs", op->results);
        op->reply(op->arg, body, &err);
        json_decref(body);
    } else {
        json_t *body = json_array_get(op->results, 0);
        op->reply(op->arg, op->first_error.code ? NULL : body,
                  op->first_error.code ? &op->first_error : &err);
    }
    for (size_t i = 0; i < op->count; i++) {
        value_destroy(op->items[i]);
    }
    free(op->items);
    free(op->batch);
    free(op->index);
    free(op->key);
    free(op->fingerprint);
    free((char *)op->caller.owner);
    free((char *)op->caller.team);
    json_decref(op->results);
    timer_destroy(op->timer);
    free(op);
}

static void set_problem(struct submit_op *op, size_t index, const struct error *err)
{
    if (!op->bulk) {
        op->first_error = *err;
    }
    json_array_set_new(op->results, index, json_pack("{s:o}", "problem", error_to_problem(err)));
}

static struct store_key *key_create(const struct submit_op *op, size_t index)
{
    if (!op->key) {
        return NULL;
    }
    struct store_key *key = xcalloc(1, sizeof *key);
    key->scope = xstrdup(op->caller.owner);
    key->key = op->bulk ? xasprintf("%s#%zu", op->key, index) : xstrdup(op->key);
    if (op->bulk) {
        json_t *json = value_to_json(op->items[index]);
        key->fingerprint = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(json);
    } else {
        key->fingerprint = xstrdup(op->fingerprint);
    }
    key->expires_ms = clock_wall_ms(op->context->clock) + KEY_KEPT_MS;
    return key;
}

/* Checks one item and makes its job; or notes its problem. */
static void take_item(struct submit_op *op, size_t index)
{
    struct context *context = op->context;
    struct error err;
    struct spec *spec;
    if (context->stopping) {
        error_set(&err, ERROR_UNAVAILABLE, "the broker stops");
        set_problem(op, index, &err);
        return;
    }
    if (journal_count(context->journal) >= LIMIT_QUEUED_JOBS) {
        error_set(&err, ERROR_TOO_MANY, "%d jobs are not finished: no more are taken",
                  LIMIT_QUEUED_JOBS);
        set_problem(op, index, &err);
        return;
    }
    if (admit(context, &op->caller, op->items[index], &spec, &err) < 0) {
        set_problem(op, index, &err);
        return;
    }
    char id[ID_SIZE];
    do {
        id_make(context->clock, 'j', id);
    } while (journal_find(context->journal, id));
    struct journal_submit *submit = &op->batch[op->in_flight];
    memset(submit, 0, sizeof *submit);
    submit->entry = journal_add_take(context->journal, job_create(id));
    submit->event =
        event_create(EVENT_SUBMIT, id, 0, clock_wall_ms(context->clock),
                     job_submit_data(spec, op->caller.owner, spec->team, op->key, NULL));
    submit->key = key_create(op, index);
    op->index[op->in_flight++] = index;
    spec_unref(spec);
}

static void set_result(struct submit_op *op, size_t index, const struct journal_submit *item,
                       const struct error *store_error)
{
    struct error err;
    if (item->result == STORE_OK) {
        json_t *result =
            op->bulk ? json_pack("{s:s}", "id", item->entry->job->id)
                     : job_present(item->entry->job, op->context->rules->currency, NULL, true);
        json_array_set_new(op->results, index, result);
    } else if (item->result == STORE_KEY_EXISTS && item->same_body) {
        json_array_set_new(op->results, index,
                           json_pack("{s:s, s:b}", "id", item->existing, "existing", 1));
    } else if (item->result == STORE_KEY_EXISTS) {
        error_set(&err, ERROR_KEY_MISMATCH, "the key was used for job %s with another body",
                  item->existing);
        (void)error_expect(&err, "send the same body, or another Idempotency-Key");
        set_problem(op, index, &err);
    } else {
        error_set(&err, ERROR_STORE, "the job was not stored: %s", store_error->text);
        set_problem(op, index, &err);
    }
}

/* A batch that the store would not take: its jobs were never accepted. */
static void drop_batch(struct submit_op *op, const struct error *err)
{
    for (size_t i = 0; i < op->in_flight; i++) {
        set_problem(op, op->index[i], err);
        journal_retire(op->context->journal, op->batch[i].entry);
    }
    op->in_flight = 0;
}

static void batch_done(void *arg, struct journal_submit *items, size_t count,
                       const struct error *err)
{
    struct submit_op *op = arg;
    for (size_t i = 0; i < count; i++) {
        set_result(op, op->index[i], &items[i], err);
    }
    op->in_flight = 0;
    timer_start(op->timer, 0);
}

/* Checks items for a slice of time. Returns whether the batch is ready to be appended. */
static bool fill_batch(struct submit_op *op)
{
    int64_t start = clock_mono_ms(op->context->clock);
    while (op->in_flight < BULK_SLICE && op->next < op->count) {
        take_item(op, op->next++);
        if (clock_mono_ms(op->context->clock) - start >= LIMIT_SLICE_US / 1000) {
            break;
        }
    }
    return op->in_flight == BULK_SLICE || op->next == op->count;
}

/* Appends the next batch, or answers. */
static void step_cb(void *arg)
{
    struct submit_op *op = arg;
    struct error err;
    if (!fill_batch(op)) {
        timer_start(op->timer, 0);
        return;
    }
    if (op->in_flight > 0) {
        if (journal_submit(op->context->journal, op->batch, op->in_flight, batch_done, op, &err) ==
            0) {
            return;
        }
        drop_batch(op, &err);
    }
    if (op->next < op->count) {
        timer_start(op->timer, 0);
    } else {
        op_finish(op);
    }
}

void submit_jobs(struct context *context, const struct caller *caller,
                 struct submission *submission, reply_fn reply, void *arg)
{
    struct submit_op *op = xcalloc(1, sizeof *op);
    size_t slice = submission->count < BULK_SLICE ? submission->count : BULK_SLICE;
    op->context = context;
    op->caller = (struct caller){xstrdup(caller->owner), xstrdup(caller->team), caller->role};
    op->items = submission->items;
    op->count = submission->count;
    op->bulk = submission->bulk;
    op->key = xstrdup(submission->key);
    op->fingerprint = xstrdup(submission->fingerprint ? submission->fingerprint : "");
    op->batch = xcalloc(slice, sizeof *op->batch);
    op->index = xcalloc(slice, sizeof *op->index);
    op->results = json_array();
    for (size_t i = 0; i < op->count; i++) {
        json_array_append_new(op->results, json_null());
    }
    op->reply = reply;
    op->arg = arg;
    op->timer = clock_timer(context->clock, step_cb, op);
    timer_start(op->timer, 0);
}
