#include "broker/store_common.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <stdlib.h>
#include <string.h>

static struct store_read *read_create(enum store_read_kind kind, int limit, int limit_max,
                                      store_read_fn done, void *arg)
{
    struct store_read *read = xcalloc(1, sizeof *read);
    read->kind = kind;
    read->limit = limit < 1 ? 1 : limit > limit_max ? limit_max : limit;
    read->steps = LIMIT_READ_STEPS;
    read->done = done;
    read->arg = arg;
    read->rows = json_array();
    return read;
}

static void set_id(struct store_read *read, const char *id)
{
    read->has_id = id != NULL;
    copy_text(read->id, sizeof read->id, id);
}

/* The texts of a filter, so that copying and freeing go over one list. */
static void filter_texts(struct store_filter *filter, const char **out[7])
{
    out[0] = &filter->state;
    out[1] = &filter->owner;
    out[2] = &filter->team;
    out[3] = &filter->class_name;
    out[4] = &filter->name;
    out[5] = &filter->place;
    out[6] = &filter->suffix;
}

struct store_read *store_read_jobs(const struct store_filter *filter, store_read_fn done, void *arg)
{
    struct store_read *read = read_create(READ_JOBS, filter->limit, LIMIT_LIST_ROWS, done, arg);
    read->filter = *filter;
    const char **texts[7];
    filter_texts(&read->filter, texts);
    for (int i = 0; i < 7; i++) {
        *texts[i] = xstrdup(*texts[i]);
    }
    return read;
}

struct store_read *store_read_events(const char *id, int64_t after_seq, int limit,
                                     store_read_fn done, void *arg)
{
    struct store_read *read = read_create(READ_EVENTS, limit, LIMIT_EVENT_ROWS, done, arg);
    read->after_seq = after_seq;
    set_id(read, id);
    return read;
}

struct store_read *store_read_docs(enum store_table table, const char *id, int limit,
                                   store_read_fn done, void *arg)
{
    struct store_read *read = read_create(READ_DOCS, limit, LIMIT_LIST_ROWS, done, arg);
    read->table = table;
    set_id(read, id);
    return read;
}

bool store_read_add_take(struct store_read *read, json_t *row, size_t bytes)
{
    size_t have = json_array_size(read->rows);
    if (have == (size_t)read->limit || (have > 0 && read->bytes + bytes > LIMIT_READ_BYTES)) {
        read->more = true;
        json_decref(row);
        return false;
    }
    read->bytes += bytes;
    (void)json_array_append_new(read->rows, row);
    return true;
}

void store_read_finish(struct store_read *read)
{
    if (read->err.code != ERROR_NONE) {
        (void)json_array_clear(read->rows);
        read->more = false;
    }
    read->done(read->arg, read->rows, read->more, &read->err);
    const char **texts[7];
    filter_texts(&read->filter, texts);
    for (int i = 0; i < 7; i++) {
        free((char *)(uintptr_t)*texts[i]);
    }
    json_decref(read->rows);
    free(read);
}

void store_line_init(struct store_read_line *line)
{
    *line = (struct store_read_line){.end = &line->first};
}

void store_line_push(struct store_read_line *line, struct store_read *read)
{
    read->next = NULL;
    *line->end = read;
    line->end = &read->next;
    line->count++;
}

struct store_read *store_line_pop(struct store_read_line *line)
{
    struct store_read *read = line->first;
    if (read) {
        line->first = read->next;
        line->end = line->first ? line->end : &line->first;
        line->count--;
    }
    return read;
}

static json_t *parse(const char *what, const char *id, const char *text, struct error *err)
{
    json_error_t why;
    json_t *json = json_loads(text, 0, &why);
    if (!json) {
        (void)error_set(err, ERROR_STORE, "the %s of job %s in the store is no JSON: %s", what, id,
                        why.text);
    }
    return json;
}

json_t *store_row_parse(const char *id, const char *text, struct error *err)
{
    return parse("row", id, text, err);
}

json_t *store_job_json(const struct store_job *job, struct error *err)
{
    json_t *row = parse("row", job->id, job->row, err);
    json_t *submit = !row          ? NULL
                     : job->submit ? parse("submit event", job->id, job->submit, err)
                                   : json_null();
    if (!submit) {
        json_decref(row);
        return NULL;
    }
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:o, s:o}", "id", job->id,
                     "owner", job->owner, "team", job->team, "class", job->class_name, "name",
                     job->name, "state", job->state, "place", job->place, "attempt", job->attempt,
                     "submitted_ms", (json_int_t)job->submitted_ms, "finished_ms",
                     (json_int_t)job->finished_ms, "row", row, "submit", submit);
}

json_t *store_doc_json(const char *id, int64_t at_ms, const char *text)
{
    return json_pack("{s:s, s:I, s:s}", "id", id, "at_ms", (json_int_t)at_ms, "text", text);
}

bool store_item_is_submit(const struct store_item *item)
{
    return item->event && item->event->kind == EVENT_SUBMIT;
}

int64_t store_item_now(const struct store_item *item)
{
    return item->event ? item->event->at_ms : item->row ? item->row->submitted_ms : 0;
}

int store_admit(int64_t pending, const struct store_batch *batch, struct error *err)
{
    int64_t room = LIMIT_APPENDS;
    for (size_t i = 0; i < batch->count; i++) {
        if (store_item_is_submit(&batch->items[i])) {
            room = LIMIT_APPENDS - LIMIT_APPENDS_RESERVED;
            break;
        }
    }
    if (pending + (int64_t)batch->count <= room) {
        return 0;
    }
    (void)error_set(err, ERROR_TOO_MANY,
                    "%lld events wait for the disk; with %zu more it would be over %lld",
                    (long long)pending, batch->count, (long long)room);
    return error_expect(err, "try again in a moment, with fewer at once");
}

void store_batch_fail(struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct store_item *item = &batch->items[i];
        item->result = STORE_FAILED;
        item->existing[0] = '\0';
        item->same_body = false;
        if (item->event) {
            item->event->seq = 0;
        }
    }
}

void store_count(struct store_stats *stats, const struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        stats->items += batch->items[i].result == STORE_OK;
        stats->keys_hit += batch->items[i].result == STORE_KEY_EXISTS;
    }
}
