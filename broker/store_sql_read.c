/* store_sql_read.c - queries: listings by keyset, and what a restart needs.
 *
 * A query that looks at too much is stopped after LIMIT_READ_STEPS, so that one bad search cannot hold
 * up the others in line. */
#include "broker/store_sql.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum { QUERY_MAX = 4096, QUERY_VALUES = 16, STEPS_AT_ONCE = 10000 };

/* A statement that grows by conditions, with the values of its parameters in order. */
struct query {
    struct strbuf sql;
    struct {
        const char *text; /* NULL: the number */
        int64_t number;
    } values[QUERY_VALUES];
    int count;
};

static void query_init(struct query *query, const char *sql)
{
    query->count = 0;
    strbuf_init(&query->sql, QUERY_MAX);
    strbuf_puts(&query->sql, sql);
}

static void query_text(struct query *query, const char *sql, const char *text)
{
    strbuf_puts(&query->sql, sql);
    query->values[query->count].text = text;
    query->count++;
}

static void query_number(struct query *query, const char *sql, int64_t number)
{
    strbuf_puts(&query->sql, sql);
    query->values[query->count].text = NULL;
    query->values[query->count].number = number;
    query->count++;
}

/* Prepares and binds; the query's text is freed. NULL: err is set. */
static sqlite3_stmt *query_start(struct query *query, sqlite3 *db, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, query->sql.text, -1, &stmt, NULL) != SQLITE_OK) {
        (void)sql_error(db, err, "store");
    }
    for (int i = 0; stmt && i < query->count; i++) {
        if (query->values[i].text) {
            (void)sqlite3_bind_text(stmt, i + 1, query->values[i].text, -1, SQLITE_STATIC);
        } else {
            (void)sqlite3_bind_int64(stmt, i + 1, query->values[i].number);
        }
    }
    strbuf_fini(&query->sql);
    return stmt;
}

static int stop_cb(void *arg)
{
    int64_t *steps = arg;
    *steps -= STEPS_AT_ONCE;
    return *steps < 0;
}

static void step_error(sqlite3 *db, int code, struct error *err)
{
    if (code == SQLITE_INTERRUPT) {
        (void)error_set(err, ERROR_TIMEOUT, "the search looked at too many rows and was stopped");
        (void)error_expect(err, "narrow it by owner, time or the id");
    } else {
        (void)sql_error(db, err, "store");
    }
}

static size_t bytes_of(sqlite3_stmt *stmt)
{
    size_t bytes = 0;
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        bytes += (size_t)sqlite3_column_bytes(stmt, i);
    }
    return bytes;
}

static json_t *job_json(sqlite3_stmt *stmt, struct error *err)
{
    struct store_job job = {
        .id = sql_text(stmt, 0),
        .owner = sql_text(stmt, 1),
        .team = sql_text(stmt, 2),
        .class_name = sql_text(stmt, 3),
        .name = sql_text(stmt, 4),
        .state = sql_text(stmt, 5),
        .place = sql_text(stmt, 6),
        .attempt = sqlite3_column_int(stmt, 7),
        .submitted_ms = sqlite3_column_int64(stmt, 8),
        .finished_ms = sqlite3_column_int64(stmt, 9),
        .row = sql_text(stmt, 10),
        .submit = (const char *)sqlite3_column_text(stmt, 11),
    };
    return store_job_json(&job, err);
}

static int event_of(sqlite3_stmt *stmt, int column, struct event **out, struct error *err)
{
    return event_from_text(sqlite3_column_int64(stmt, column),
                           sqlite3_column_int64(stmt, column + 1), sql_text(stmt, column + 2),
                           sql_text(stmt, column + 3), sqlite3_column_int(stmt, column + 4),
                           sql_text(stmt, column + 5), out, err);
}

static json_t *event_json(sqlite3_stmt *stmt, struct error *err)
{
    struct event *event;
    if (event_of(stmt, 0, &event, err) < 0) {
        return NULL;
    }
    json_t *json = event_to_json(event);
    event_destroy(event);
    return json;
}

static json_t *doc_json(sqlite3_stmt *stmt, struct error *err)
{
    (void)err;
    return store_doc_json(sql_text(stmt, 0), sqlite3_column_int64(stmt, 1), sql_text(stmt, 2));
}

#define JOB_COLUMNS                                                                                \
    "SELECT j.id, j.owner, j.team, j.class, j.name, j.state, j.place, j.attempt, j.submitted_ms,"  \
    " j.finished_ms, j.row, e.data FROM jobs j"
#define JOB_JOIN " LEFT JOIN events e ON e.seq = j.submit_seq WHERE 1"

static void add_equal(struct query *query, const char *sql, const char *text)
{
    if (text) {
        query_text(query, sql, text);
    }
}

static void add_state(struct query *query, const char *state)
{
    if (!state) {
        return;
    }
    if (strcmp(state, "live") == 0) {
        strbuf_puts(&query->sql, " AND j.finished_ms = 0");
    } else if (strcmp(state, "final") == 0) {
        strbuf_puts(&query->sql, " AND j.finished_ms > 0");
    } else {
        query_text(query, " AND j.state = ?", state);
    }
}

/* The index that the planner, which knows no figures of this file, would not pick by itself. */
static const char *job_index(const struct store_filter *filter)
{
    if (filter->suffix && strlen(filter->suffix) >= ID_SUFFIX_MIN) {
        return " INDEXED BY jobs_suffix";
    }
    if (filter->state && strcmp(filter->state, "live") == 0) {
        return " INDEXED BY jobs_live";
    }
    if (filter->owner) {
        return " INDEXED BY jobs_owner";
    }
    return filter->since_ms ? " INDEXED BY jobs_submitted" : "";
}

static void add_suffix(struct query *query, const char *suffix)
{
    if (!suffix) {
        return;
    }
    size_t length = strlen(suffix);
    if (length >= ID_SUFFIX_MIN) {
        query_text(query, " AND substr(j.id, -4) = ?", suffix + length - ID_SUFFIX_MIN);
    }
    if (length) {
        query_number(query, " AND substr(j.id, ?)", -(int64_t)length);
        query_text(query, " = ?", suffix);
    }
}

static sqlite3_stmt *start_jobs(sqlite3 *db, const struct store_read *read, struct error *err)
{
    const struct store_filter *filter = &read->filter;
    struct query query;
    query_init(&query, JOB_COLUMNS);
    strbuf_puts(&query.sql, job_index(filter));
    strbuf_puts(&query.sql, JOB_JOIN);
    add_state(&query, filter->state);
    add_equal(&query, " AND j.owner = ?", filter->owner);
    add_equal(&query, " AND j.team = ?", filter->team);
    add_equal(&query, " AND j.class = ?", filter->class_name);
    add_equal(&query, " AND j.name = ?", filter->name);
    add_equal(&query, " AND j.place = ?", filter->place);
    add_suffix(&query, filter->suffix);
    if (filter->since_ms) {
        query_number(&query, " AND j.submitted_ms >= ?", filter->since_ms);
    }
    if (filter->until_ms) {
        query_number(&query, " AND j.submitted_ms <= ?", filter->until_ms);
    }
    add_equal(&query, " AND j.id < ?", filter->cursor[0] ? filter->cursor : NULL);
    query_number(&query, " ORDER BY j.id DESC LIMIT ?", (int64_t)read->limit + 1);
    return query_start(&query, db, err);
}

static sqlite3_stmt *start_events(sqlite3 *db, const struct store_read *read, struct error *err)
{
    struct query query;
    query_init(&query, "SELECT seq, at_ms, kind, id, attempt, data FROM events");
    query_number(&query, " WHERE seq > ?", read->after_seq);
    add_equal(&query, " AND id = ?", read->has_id ? read->id : NULL);
    query_number(&query, " ORDER BY seq LIMIT ?", (int64_t)read->limit + 1);
    return query_start(&query, db, err);
}

static sqlite3_stmt *start_docs(sqlite3 *db, const struct store_read *read, struct error *err)
{
    static const char *const selects[STORE_TABLE_COUNT] = {
        [STORE_DECISIONS] = "SELECT id, at_ms, text FROM decisions",
        [STORE_POLICIES] = "SELECT id, at_ms, text FROM policies",
        [STORE_SIGNALS] = "SELECT id, at_ms, text FROM signals",
        [STORE_META] = "SELECT id, at_ms, text FROM meta",
    };
    struct query query;
    query_init(&query, selects[read->table]);
    add_equal(&query, " WHERE id = ?", read->has_id ? read->id : NULL);
    query_number(&query, " ORDER BY n DESC LIMIT ?", (int64_t)read->limit + 1);
    return query_start(&query, db, err);
}

static const struct {
    sqlite3_stmt *(*start)(sqlite3 *db, const struct store_read *read, struct error *err);
    json_t *(*row)(sqlite3_stmt *stmt, struct error *err);
} read_table[] = {
    [READ_JOBS] = {start_jobs, job_json},
    [READ_EVENTS] = {start_events, event_json},
    [READ_DOCS] = {start_docs, doc_json},
};

void sql_read(sqlite3 *db, struct store_read *read)
{
    int64_t steps = read->steps;
    sqlite3_progress_handler(db, STEPS_AT_ONCE, stop_cb, &steps);
    sqlite3_stmt *stmt = read_table[read->kind].start(db, read, &read->err);
    int code = SQLITE_ERROR;
    while (stmt && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        json_t *row = read_table[read->kind].row(stmt, &read->err);
        if (!row || !store_read_add_take(read, row, bytes_of(stmt))) {
            break;
        }
    }
    if (stmt && code != SQLITE_ROW && code != SQLITE_DONE) {
        step_error(db, code, &read->err);
    }
    (void)sqlite3_finalize(stmt);
    sqlite3_progress_handler(db, 0, NULL, NULL);
}

/* Calls fn for each row of a statement with at most one parameter. */
static int each(sqlite3 *db, const char *sql, int64_t value,
                int (*fn)(sqlite3_stmt *stmt, const struct store_loader *loader, struct error *err),
                const struct store_loader *loader, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        return sql_error(db, err, "store");
    }
    if (sqlite3_bind_parameter_count(stmt) == 1) {
        (void)sqlite3_bind_int64(stmt, 1, value);
    }
    int code, result = 0;
    while (result == 0 && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
        result = fn(stmt, loader, err);
    }
    if (result == 0 && code != SQLITE_DONE) {
        result = sql_error(db, err, "store");
    }
    (void)sqlite3_finalize(stmt);
    return result;
}

static int load_doc(sqlite3_stmt *stmt, const struct store_loader *loader, struct error *err)
{
    return loader->doc(loader->arg, (enum store_table)sqlite3_column_int(stmt, 0),
                       sql_text(stmt, 1), sql_text(stmt, 2), err);
}

static int load_job(sqlite3_stmt *stmt, const struct store_loader *loader, struct error *err)
{
    const char *id = sql_text(stmt, 0);
    if (sqlite3_column_type(stmt, 2) == SQLITE_NULL) {
        return error_set(err, ERROR_STORE, "job %s has no submit event in the store", id);
    }
    json_t *row = store_row_parse(id, sql_text(stmt, 1), err);
    struct event *submit;
    if (!row || event_of(stmt, 2, &submit, err) < 0) {
        json_decref(row);
        return -1;
    }
    int result = loader->job(loader->arg, row, submit, err);
    event_destroy(submit);
    json_decref(row);
    return result;
}

static int load_tombstone(sqlite3_stmt *stmt, const struct store_loader *loader, struct error *err)
{
    struct event *event;
    if (event_of(stmt, 0, &event, err) < 0) {
        return -1;
    }
    int result = loader->tombstone(loader->arg, event, err);
    event_destroy(event);
    return result;
}

int sql_load(sqlite3 *db, const struct store_loader *loader, int64_t now_ms, struct error *err)
{
    static const struct {
        const char *sql;
        int (*fn)(sqlite3_stmt *stmt, const struct store_loader *loader, struct error *err);
    } parts[] = {
        {"SELECT 3, id, text FROM meta ORDER BY id", load_doc},
        {"SELECT 1, id, text FROM policies ORDER BY n DESC LIMIT 1", load_doc},
        {"SELECT 0, id, text FROM decisions WHERE at_ms >= ?1 ORDER BY n", load_doc},
        {"SELECT j.id, j.row, e.seq, e.at_ms, e.kind, e.id, e.attempt, e.data FROM jobs j"
         " INDEXED BY jobs_live LEFT JOIN events e ON e.seq = j.submit_seq"
         " WHERE j.finished_ms = 0 ORDER BY j.submit_seq",
         load_job},
        {"SELECT e.seq, e.at_ms, e.kind, e.id, e.attempt, e.data FROM tombstones t"
         " JOIN events e ON e.seq = t.seq ORDER BY e.seq",
         load_tombstone},
    };
    _Static_assert(STORE_DECISIONS == 0 && STORE_POLICIES == 1 && STORE_META == 3, "parts");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (each(db, parts[i].sql, now_ms - STORE_DAY_MS, parts[i].fn, loader, err) < 0) {
            return -1;
        }
    }
    return 0;
}
