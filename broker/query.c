#include "broker/query.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/journal.h"
#include "broker/lookup.h"
#include "broker/present.h"
#include "broker/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ask { /* one question under way */
    struct reader reader;
    char id[ID_SIZE]; /* of the job, whole once looked up; "" : all */
    char view[32];    /* long poll: the state that the asker has seen; "" : no waiting */
    int64_t deadline_ms, after_seq;
    int limit;
    void (*again)(void *arg); /* what news sets off */
    reply_fn reply;
    void *arg;
};

static struct ask *ask_create(const struct reader *reader, const char *id, int64_t wait_ms,
                              reply_fn reply, void *arg)
{
    struct ask *ask = xcalloc(1, sizeof *ask);
    ask->reader = *reader;
    copy_text(ask->id, sizeof ask->id, id);
    ask->deadline_ms = clock_mono_ms(reader->context->clock) + wait_ms;
    ask->reply = reply;
    ask->arg = arg;
    return ask;
}

static void ask_answer(struct ask *ask, json_t *body_take, const struct error *err)
{
    struct error none;
    error_clear(&none);
    ask->reply(ask->arg, body_take, err ? err : &none);
    json_decref(body_take);
    free(ask);
}

/* Waits for news if there is time left. Returns whether it does. */
static bool ask_wait(struct ask *ask, void (*woken)(void *arg))
{
    int64_t left = ask->deadline_ms - clock_mono_ms(ask->reader.context->clock);
    return left > 0 && follow_wait(ask->reader.follow, ask->id, left, woken, ask) == 0;
}

/* --------------------------------------------------------------------------------------------- job */

static void job_found(void *arg, const struct job *job, const struct error *err)
{
    struct ask *ask = arg;
    if (!job) {
        ask_answer(ask, NULL, err);
        return;
    }
    copy_text(ask->id, sizeof ask->id, job->id);
    if (ask->view[0] && strcmp(ask->view, job_view(job)) == 0 && !job_is_final(job) &&
        ask_wait(ask, ask->again)) {
        return;
    }
    const struct context *context = ask->reader.context;
    ask_answer(
        ask, job_present(job, context->rules->currency, why_waits(ask->reader.context, job), true),
        NULL);
}

static void job_woken(void *arg)
{
    struct ask *ask = arg;
    lookup_job(ask->reader.context, ask->id, job_found, ask);
}

void query_job(const struct reader *reader, const char *id, const char *after_view, int64_t wait_ms,
               reply_fn reply, void *arg)
{
    struct ask *ask = ask_create(reader, id, wait_ms, reply, arg);
    copy_text(ask->view, sizeof ask->view, after_view);
    ask->again = job_woken;
    lookup_job(reader->context, id, job_found, ask);
}

/* -------------------------------------------------------------------------------------------- lists */

static void jobs_done(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct ask *ask = arg;
    const struct context *context = ask->reader.context;
    if (err->code) {
        ask_answer(ask, NULL, err);
        return;
    }
    json_t *jobs = json_array();
    const char *last = NULL;
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        struct error row_err;
        struct job *job = NULL;
        last = json_string_value(json_object_get(row, "id"));
        const struct entry *entry = journal_find(context->journal, last);
        if (!entry && lookup_from_row(row, &job, &row_err) < 0) {
            json_decref(jobs);
            ask_answer(ask, NULL, &row_err);
            return;
        }
        const struct job *shown = entry ? entry->job : job;
        json_array_append_new(jobs, job_present(shown, context->rules->currency,
                                                why_waits(ask->reader.context, shown), false));
        job_unref(job);
    }
    ask_answer(ask, json_pack("{s:o, s:s?}", "jobs", jobs, "next_cursor", more ? last : NULL),
               NULL);
}

void query_jobs(const struct reader *reader, const struct store_filter *filter, reply_fn reply,
                void *arg)
{
    struct ask *ask = ask_create(reader, "", 0, reply, arg);
    reader->context->store->ops->jobs(reader->context->store, filter, jobs_done, ask);
}

/* ------------------------------------------------------------------------------------------- events */

static void events_done(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct ask *ask = arg;
    if (err->code) {
        ask_answer(ask, NULL, err);
        return;
    }
    size_t count = json_array_size(rows);
    if (count == 0 && ask_wait(ask, ask->again)) {
        return;
    }
    int64_t last = count
                       ? json_integer_value(json_object_get(json_array_get(rows, count - 1), "seq"))
                       : ask->after_seq;
    char cursor[32];
    (void)snprintf(cursor, sizeof cursor, "%lld", (long long)last);
    ask_answer(ask,
               json_pack("{s:O, s:s, s:b}", "events", rows, "next_cursor", cursor, "more", more),
               NULL);
}

static void events_read(void *arg)
{
    struct ask *ask = arg;
    struct store *store = ask->reader.context->store;
    store->ops->events(store, ask->id[0] ? ask->id : NULL, ask->after_seq, ask->limit, events_done,
                       ask);
}

static void events_found(void *arg, const struct job *job, const struct error *err)
{
    struct ask *ask = arg;
    if (!job) {
        ask_answer(ask, NULL, err);
        return;
    }
    copy_text(ask->id, sizeof ask->id, job->id);
    events_read(ask);
}

void query_events(const struct reader *reader, const char *id, int64_t after_seq, int limit,
                  int64_t wait_ms, reply_fn reply, void *arg)
{
    struct ask *ask = ask_create(reader, id, wait_ms, reply, arg);
    ask->after_seq = after_seq;
    ask->again = events_read;
    ask->limit = limit > 0 && limit < LIMIT_EVENT_ROWS ? limit : LIMIT_EVENT_ROWS;
    if (id) {
        lookup_job(reader->context, id, events_found, ask);
    } else {
        events_read(ask);
    }
}
