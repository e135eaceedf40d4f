/* store_common.h - what every store does alike: admission, copies of reads, the shape of rows. */
#ifndef BROKER_STORE_COMMON_H
#define BROKER_STORE_COMMON_H

#include "broker/core/error.h"
#include "broker/core/event.h"
#include "broker/core/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum store_read_kind { READ_JOBS, READ_EVENTS, READ_DOCS };

/* One read in line, with copies of what it asks for, and then with its answer. */
struct store_read {
    enum store_read_kind kind;
    struct store_filter filter; /* READ_JOBS; texts owned */
    bool has_id;                /* READ_EVENTS, READ_DOCS */
    char id[EVENT_ID_SIZE];
    int64_t after_seq;
    enum store_table table;
    int limit;
    int64_t steps; /* a query that takes more is stopped */
    store_read_fn done;
    void *arg;
    json_t *rows;
    size_t bytes; /* of the texts in rows, about */
    bool more;
    struct error err;
    struct store_read *next;
};
struct store_read_line {
    struct store_read *first, **end;
    int count;
};

struct store_read *store_read_jobs(const struct store_filter *filter, store_read_fn done,
                                   void *arg);
struct store_read *store_read_events(const char *id, int64_t after_seq, int limit,
                                     store_read_fn done, void *arg);
struct store_read *store_read_docs(enum store_table table, const char *id, int limit,
                                   store_read_fn done, void *arg);

/* Adds a row (taken) of about this many bytes. false: the page is full and the row was dropped. */
bool store_read_add_take(struct store_read *read, json_t *row, size_t bytes);
/* Hands the answer over and frees the read. */
void store_read_finish(struct store_read *read);

void store_line_init(struct store_read_line *line);
void store_line_push(struct store_read_line *line, struct store_read *read);
struct store_read *store_line_pop(struct store_read_line *line); /* NULL: empty */

struct store_job { /* one job as the store has it; submit: data of its SUBMIT event, or NULL */
    const char *id, *owner, *team, *class_name, *name, *state, *place;
    int attempt;
    int64_t submitted_ms, finished_ms;
    const char *row, *submit;
};
/* The row of a listing. NULL with STORE when a text is no JSON. */
json_t *store_job_json(const struct store_job *job, struct error *err);
json_t *store_doc_json(const char *id, int64_t at_ms, const char *text);
/* The JSON of a job's row alone, for a loader. */
json_t *store_row_parse(const char *id, const char *text, struct error *err);

/* Whether the batch may join so many that wait; see store_ops.append. */
int store_admit(int64_t pending, const struct store_batch *batch, struct error *err);
/* Sets the result of every item and takes back what was filled in. */
void store_batch_fail(struct store_batch *batch);
/* Adds what a durable batch wrote to the figures. */
void store_count(struct store_stats *stats, const struct store_batch *batch);
bool store_item_is_submit(const struct store_item *item);
/* Wall time by which the expiry of keys is judged. */
int64_t store_item_now(const struct store_item *item);

#endif
