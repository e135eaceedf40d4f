/* store_sql_write.c - what the writer's thread does to the file: batches in one transaction, pruning.
 *
 * Each batch is a savepoint, so that one that fails by its own fault (a job id that exists) takes
 * nothing else with it. Any other error ends the transaction: nothing of it was written.
 *
 * Numbers of events are given here, in order, and taken back when their batch is. Pruning may delete
 * the last events, so it notes the last number first: a number is never given twice. */
#include "broker/store_sql.h"

#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { PRUNE_JOBS = 32, PRUNE_ROWS = 256, PRUNE_PAGES = 128, FREE_PAGES_MIN = 1024 };

/* X(constant, SQL) */
#define STATEMENT_LIST(X)                                                                          \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(BATCH_BEGIN, "SAVEPOINT batch")                                                              \
    X(BATCH_UNDO, "ROLLBACK TO batch")                                                             \
    X(BATCH_END, "RELEASE batch")                                                                  \
    X(EVENT, "INSERT INTO events(seq, at_ms, stream, kind, id, attempt, v, data)"                  \
             " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                            \
    X(JOB_NEW, "INSERT INTO jobs(id, state, place, attempt, row, finished_ms, owner, team, class," \
               " name, submitted_ms, submit_seq, key_id)"                                          \
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")                  \
    X(JOB_LIVE, "UPDATE jobs SET state = ?2, place = ?3, attempt = ?4, row = ?5 WHERE id = ?1")    \
    X(JOB_FINAL, "UPDATE jobs SET state = ?2, place = ?3, attempt = ?4, row = ?5,"                 \
                 " finished_ms = ?6 WHERE id = ?1")                                                \
    X(KEY_GET, "SELECT job_id, fingerprint, expires_ms, orphan FROM keys"                          \
               " WHERE scope = ?1 AND key = ?2")                                                   \
    X(KEY_PUT, "INSERT OR REPLACE INTO keys(scope, key, fingerprint, job_id, expires_ms, orphan)"  \
               " VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                  \
    X(TOMB_PUT, "INSERT OR REPLACE INTO tombstones(id, seq) VALUES(?1, ?2)")                       \
    X(TOMB_DROP, "DELETE FROM tombstones WHERE id = ?1")                                           \
    X(NUMBER_PUT, "INSERT OR REPLACE INTO numbers(name, value) VALUES(?1, ?2)")                    \
    X(OLD_JOBS, "SELECT id, key_id FROM jobs WHERE finished_ms > 0 AND finished_ms < ?1"           \
                " ORDER BY finished_ms LIMIT ?2")                                                  \
    X(OLD_EVENTS, "DELETE FROM events WHERE id = ?1 AND stream = 'job'")                           \
    X(OLD_OTHERS, "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE stream <> 'job'"  \
                  " AND at_ms < ?1 AND seq NOT IN (SELECT seq FROM tombstones) LIMIT ?2)")         \
    X(OLD_JOB, "DELETE FROM jobs WHERE id = ?1")                                                   \
    X(KEY_ORPHAN, "UPDATE keys SET orphan = 1 WHERE id = ?1")                                      \
    X(OLD_KEYS, "DELETE FROM keys WHERE id IN (SELECT id FROM keys WHERE orphan = 1"               \
                " AND expires_ms <= ?1 LIMIT ?2)")                                                 \
    X(OLD_SIGNALS, "DELETE FROM signals WHERE n IN (SELECT n FROM signals WHERE at_ms < ?1"        \
                   " LIMIT ?2)")                                                                   \
    X(OLD_DECISIONS, "DELETE FROM decisions WHERE n IN (SELECT n FROM decisions"                   \
                     " WHERE at_ms < min(?1, ifnull((SELECT submitted_ms FROM jobs"                \
                     " WHERE finished_ms = 0 ORDER BY submit_seq LIMIT 1), ?1)) LIMIT ?2)")        \
    X(DECISION_PUT, "INSERT OR REPLACE INTO decisions(id, at_ms, text) VALUES(?1, ?2, ?3)")        \
    X(POLICY_PUT, "INSERT OR REPLACE INTO policies(id, at_ms, text) VALUES(?1, ?2, ?3)")           \
    X(SIGNAL_PUT, "INSERT INTO signals(id, at_ms, text) VALUES(?1, ?2, ?3)")                       \
    X(META_PUT, "INSERT OR REPLACE INTO meta(id, at_ms, text) VALUES(?1, ?2, ?3)")

enum statement {
#define X(constant, sql) STATEMENT_##constant,
    STATEMENT_LIST(X)
#undef X
        STATEMENT_COUNT
};

static const char *const statement_sql[STATEMENT_COUNT] = {
#define X(constant, sql) [STATEMENT_##constant] = (sql),
    STATEMENT_LIST(X)
#undef X
};

static const enum statement doc_statement[STORE_TABLE_COUNT] = {
    [STORE_DECISIONS] = STATEMENT_DECISION_PUT,
    [STORE_POLICIES] = STATEMENT_POLICY_PUT,
    [STORE_SIGNALS] = STATEMENT_SIGNAL_PUT,
    [STORE_META] = STATEMENT_META_PUT,
};

struct sql_writer {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    int64_t last_seq; /* the last number that was given */
};

/* Outcome of writing a part: its own fault undoes the batch, the store's fault everything. */
enum fault { FAULT_NONE, FAULT_OWN, FAULT_STORE };

static sqlite3_stmt *use(struct sql_writer *writer, enum statement which)
{
    sqlite3_stmt *stmt = writer->statements[which];
    (void)sqlite3_reset(stmt);
    (void)sqlite3_clear_bindings(stmt);
    return stmt;
}

static void bind_text(sqlite3_stmt *stmt, int index, const char *text)
{
    (void)sqlite3_bind_text(stmt, index, text ? text : "", -1, SQLITE_STATIC);
}

static void bind_int(sqlite3_stmt *stmt, int index, int64_t value)
{
    (void)sqlite3_bind_int64(stmt, index, value);
}

/* A binding that failed leaves NULL, which every column of ours refuses. */
static enum fault run(struct sql_writer *writer, sqlite3_stmt *stmt, struct error *err)
{
    int code = sqlite3_step(stmt);
    enum fault fault = FAULT_NONE;
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)sql_error(writer->db, err, "store");
        fault = code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG ? FAULT_OWN : FAULT_STORE;
    }
    (void)sqlite3_reset(stmt);
    return fault;
}

static enum fault run_plain(struct sql_writer *writer, enum statement which, struct error *err)
{
    return run(writer, use(writer, which), err);
}

/* Sets KEY_EXISTS when the key is in force. */
static enum fault look_up_key(struct sql_writer *writer, struct store_item *item, struct error *err)
{
    sqlite3_stmt *stmt = use(writer, STATEMENT_KEY_GET);
    bind_text(stmt, 1, item->key->scope);
    bind_text(stmt, 2, item->key->key);
    int code = sqlite3_step(stmt);
    if (code == SQLITE_ROW) {
        bool orphan = sqlite3_column_int(stmt, 3) != 0;
        if (!orphan || sqlite3_column_int64(stmt, 2) > store_item_now(item)) {
            item->result = STORE_KEY_EXISTS;
            copy_text(item->existing, sizeof item->existing, sql_text(stmt, 0));
            item->same_body = strcmp(sql_text(stmt, 1), item->key->fingerprint) == 0;
        }
    } else if (code != SQLITE_DONE) {
        (void)sql_error(writer->db, err, "keys");
    }
    (void)sqlite3_reset(stmt);
    return code == SQLITE_ROW || code == SQLITE_DONE ? FAULT_NONE : FAULT_STORE;
}

static enum fault write_key(struct sql_writer *writer, const struct store_item *item,
                            int64_t *key_id, struct error *err)
{
    sqlite3_stmt *stmt = use(writer, STATEMENT_KEY_PUT);
    bind_text(stmt, 1, item->key->scope);
    bind_text(stmt, 2, item->key->key);
    bind_text(stmt, 3, item->key->fingerprint);
    bind_text(stmt, 4, item->row ? item->row->id : item->event ? item->event->id : "");
    bind_int(stmt, 5, item->key->expires_ms);
    bind_int(stmt, 6, !(item->row && store_item_is_submit(item)));
    enum fault fault = run(writer, stmt, err);
    *key_id = sqlite3_last_insert_rowid(writer->db);
    return fault;
}

static enum fault write_tombstone(struct sql_writer *writer, const struct event *event,
                                  struct error *err)
{
    if (event->kind != EVENT_TOMB_SET && event->kind != EVENT_TOMB_CLEAR) {
        return FAULT_NONE;
    }
    bool set = event->kind == EVENT_TOMB_SET;
    sqlite3_stmt *stmt = use(writer, set ? STATEMENT_TOMB_PUT : STATEMENT_TOMB_DROP);
    bind_text(stmt, 1, event->id);
    if (set) {
        bind_int(stmt, 2, event->seq);
    }
    return run(writer, stmt, err);
}

static enum fault write_event(struct sql_writer *writer, struct event *event, const char *text,
                              struct error *err)
{
    sqlite3_stmt *stmt = use(writer, STATEMENT_EVENT);
    event->seq = ++writer->last_seq;
    bind_int(stmt, 1, event->seq);
    bind_int(stmt, 2, event->at_ms);
    bind_text(stmt, 3, stream_name(event_stream(event->kind)));
    bind_text(stmt, 4, event_name(event->kind));
    bind_text(stmt, 5, event->id);
    bind_int(stmt, 6, event->attempt);
    bind_int(stmt, 7, EVENT_VERSION);
    bind_text(stmt, 8, text);
    enum fault fault = run(writer, stmt, err);
    return fault == FAULT_NONE ? write_tombstone(writer, event, err) : fault;
}

static void bind_row(sqlite3_stmt *stmt, const struct store_row *row)
{
    bind_text(stmt, 1, row->id);
    bind_text(stmt, 2, row->state);
    bind_text(stmt, 3, row->place);
    bind_int(stmt, 4, row->attempt);
    bind_text(stmt, 5, row->json);
}

static enum fault write_new_row(struct sql_writer *writer, const struct store_item *item,
                                int64_t key_id, struct error *err)
{
    const struct store_row *row = item->row;
    sqlite3_stmt *stmt = use(writer, STATEMENT_JOB_NEW);
    bind_row(stmt, row);
    bind_int(stmt, 6, row->finished_ms);
    bind_text(stmt, 7, row->owner);
    bind_text(stmt, 8, row->team);
    bind_text(stmt, 9, row->class_name);
    bind_text(stmt, 10, row->name);
    bind_int(stmt, 11, row->submitted_ms);
    bind_int(stmt, 12, item->event->seq);
    if (key_id) {
        bind_int(stmt, 13, key_id);
    }
    enum fault fault = run(writer, stmt, err);
    if (fault == FAULT_OWN &&
        sqlite3_extended_errcode(writer->db) == SQLITE_CONSTRAINT_PRIMARYKEY) {
        (void)error_set(err, ERROR_CONFLICT, "job %s exists already", row->id);
    }
    return fault;
}

static enum fault write_row(struct sql_writer *writer, const struct store_item *item,
                            int64_t key_id, struct error *err)
{
    if (store_item_is_submit(item)) {
        return write_new_row(writer, item, key_id, err);
    }
    const struct store_row *row = item->row;
    sqlite3_stmt *stmt = use(writer, row->finished_ms ? STATEMENT_JOB_FINAL : STATEMENT_JOB_LIVE);
    bind_row(stmt, row);
    if (row->finished_ms) {
        bind_int(stmt, 6, row->finished_ms);
    }
    enum fault fault = run(writer, stmt, err);
    if (fault == FAULT_NONE && sqlite3_changes(writer->db) == 0) {
        (void)error_set(err, ERROR_CONFLICT, "job %s was never submitted", row->id);
        fault = FAULT_OWN;
    }
    return fault;
}

static enum fault write_doc(struct sql_writer *writer, const struct store_doc *doc,
                            struct error *err)
{
    sqlite3_stmt *stmt = use(writer, doc_statement[doc->table]);
    bind_text(stmt, 1, doc->id);
    bind_int(stmt, 2, doc->at_ms);
    bind_text(stmt, 3, doc->text);
    return run(writer, stmt, err);
}

static enum fault write_item(struct sql_writer *writer, struct store_item *item, const char *text,
                             struct error *err)
{
    enum fault fault = FAULT_NONE;
    int64_t key_id = 0;
    item->result = STORE_OK;
    if (item->key) {
        fault = look_up_key(writer, item, err);
        if (fault != FAULT_NONE || item->result == STORE_KEY_EXISTS) {
            return fault;
        }
        fault = write_key(writer, item, &key_id, err);
    }
    if (fault == FAULT_NONE && item->event) {
        fault = write_event(writer, item->event, text, err);
    }
    if (fault == FAULT_NONE && item->row) {
        fault = write_row(writer, item, key_id, err);
    }
    if (fault == FAULT_NONE && item->doc) {
        fault = write_doc(writer, item->doc, err);
    }
    return fault;
}

static enum fault write_items(struct sql_writer *writer, struct sql_entry *entry, struct error *err)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < entry->batch->count && fault == FAULT_NONE; i++) {
        fault = write_item(writer, &entry->batch->items[i], entry->texts[i], err);
    }
    return fault;
}

static enum fault write_batch(struct sql_writer *writer, struct sql_entry *entry, struct error *err)
{
    int64_t last_seq = writer->last_seq;
    enum fault fault = run_plain(writer, STATEMENT_BATCH_BEGIN, err);
    if (fault == FAULT_NONE) {
        fault = write_items(writer, entry, &entry->err);
    }
    if (fault == FAULT_STORE) {
        if (entry->err.code != ERROR_NONE) {
            *err = entry->err;
        }
        return fault;
    }
    if (fault == FAULT_OWN) {
        writer->last_seq = last_seq;
        store_batch_fail(entry->batch);
        if (run_plain(writer, STATEMENT_BATCH_UNDO, err) != FAULT_NONE) {
            return FAULT_STORE;
        }
    }
    return run_plain(writer, STATEMENT_BATCH_END, err) == FAULT_NONE ? FAULT_NONE : FAULT_STORE;
}

static void roll_back(struct sql_writer *writer)
{
    /* SQLite has already done it after some errors. */
    if (!sqlite3_get_autocommit(writer->db)) {
        struct error ignored;
        (void)run_plain(writer, STATEMENT_ROLLBACK, &ignored);
    }
}

int sql_writer_commit(struct sql_writer *writer, struct sql_entry *first, struct error *err)
{
    int64_t last_seq = writer->last_seq;
    enum fault fault = run_plain(writer, STATEMENT_BEGIN, err);
    for (struct sql_entry *at = first; at && fault == FAULT_NONE; at = at->next) {
        fault = write_batch(writer, at, err);
    }
    if (fault == FAULT_NONE) {
        fault = run_plain(writer, STATEMENT_COMMIT, err);
    }
    if (fault == FAULT_NONE) {
        return 0;
    }
    roll_back(writer);
    writer->last_seq = last_seq;
    for (struct sql_entry *at = first; at; at = at->next) {
        at->err = *err;
        store_batch_fail(at->batch);
    }
    return -1;
}

static enum fault put_number(struct sql_writer *writer, const char *name, int64_t value,
                             struct error *err)
{
    sqlite3_stmt *stmt = use(writer, STATEMENT_NUMBER_PUT);
    bind_text(stmt, 1, name);
    bind_int(stmt, 2, value);
    return run(writer, stmt, err);
}

static int end(struct sql_writer *writer, enum fault fault, struct error *err)
{
    if (fault == FAULT_NONE) {
        fault = run_plain(writer, STATEMENT_COMMIT, err);
    }
    if (fault != FAULT_NONE) {
        roll_back(writer);
        return -1;
    }
    return 0;
}

int sql_writer_probe(struct sql_writer *writer, struct error *err)
{
    enum fault fault = run_plain(writer, STATEMENT_BEGIN, err);
    if (fault == FAULT_NONE) {
        fault = put_number(writer, "seq", writer->last_seq, err);
    }
    return end(writer, fault, err);
}

static enum fault prune_job(struct sql_writer *writer, const char *id, int64_t key_id,
                            struct error *err)
{
    sqlite3_stmt *stmt = use(writer, STATEMENT_OLD_EVENTS);
    bind_text(stmt, 1, id);
    enum fault fault = run(writer, stmt, err);
    if (fault == FAULT_NONE && key_id) {
        stmt = use(writer, STATEMENT_KEY_ORPHAN);
        bind_int(stmt, 1, key_id);
        fault = run(writer, stmt, err);
    }
    if (fault == FAULT_NONE) {
        stmt = use(writer, STATEMENT_OLD_JOB);
        bind_text(stmt, 1, id);
        fault = run(writer, stmt, err);
    }
    return fault;
}

static enum fault prune_jobs(struct sql_writer *writer, int64_t before_ms, bool *more,
                             struct error *err)
{
    struct {
        char id[ID_SIZE];
        int64_t key_id;
    } old[PRUNE_JOBS];
    int count = 0;
    sqlite3_stmt *stmt = use(writer, STATEMENT_OLD_JOBS);
    bind_int(stmt, 1, before_ms);
    bind_int(stmt, 2, PRUNE_JOBS);
    int code;
    while ((code = sqlite3_step(stmt)) == SQLITE_ROW && count < PRUNE_JOBS) {
        copy_text(old[count].id, sizeof old[count].id, sql_text(stmt, 0));
        old[count].key_id = sqlite3_column_int64(stmt, 1);
        count++;
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) {
        (void)sql_error(writer->db, err, "prune");
        return FAULT_STORE;
    }
    (void)sqlite3_reset(stmt);
    enum fault fault = FAULT_NONE;
    for (int i = 0; i < count && fault == FAULT_NONE; i++) {
        fault = prune_job(writer, old[i].id, old[i].key_id, err);
    }
    *more = count == PRUNE_JOBS;
    return fault;
}

static enum fault prune_rows(struct sql_writer *writer, enum statement which, int64_t before_ms,
                             bool *more, struct error *err)
{
    sqlite3_stmt *stmt = use(writer, which);
    bind_int(stmt, 1, before_ms);
    bind_int(stmt, 2, PRUNE_ROWS);
    enum fault fault = run(writer, stmt, err);
    *more = *more || (fault == FAULT_NONE && sqlite3_changes(writer->db) >= PRUNE_ROWS);
    return fault;
}

/* Gives pages back to the file system when over a quarter of the file is unused. 1: there are more. */
static int shrink(struct sql_writer *writer, struct error *err)
{
    int64_t unused = 0, pages = 0;
    if (sql_integer(writer->db, "PRAGMA freelist_count", &unused, err) < 0 ||
        sql_integer(writer->db, "PRAGMA page_count", &pages, err) < 0) {
        return -1;
    }
    if (unused < FREE_PAGES_MIN || unused < pages / 4) {
        return 0;
    }
    char sql[64];
    (void)sqlite3_snprintf(sizeof sql, sql, "PRAGMA incremental_vacuum(%d)", (int)PRUNE_PAGES);
    return sql_exec(writer->db, sql, err) < 0 ? -1 : 1;
}

int sql_writer_prune(struct sql_writer *writer, const struct sql_prune *prune, struct error *err)
{
    bool more = false;
    enum fault fault = run_plain(writer, STATEMENT_BEGIN, err);
    if (fault == FAULT_NONE) {
        fault = put_number(writer, "seq", writer->last_seq, err);
    }
    if (fault == FAULT_NONE) {
        fault = prune_jobs(writer, prune->finished_before_ms, &more, err);
    }
    if (fault == FAULT_NONE) {
        fault = prune_rows(writer, STATEMENT_OLD_OTHERS, prune->finished_before_ms, &more, err);
    }
    if (fault == FAULT_NONE) {
        fault = prune_rows(writer, STATEMENT_OLD_KEYS, prune->now_ms, &more, err);
    }
    if (fault == FAULT_NONE) {
        fault =
            prune_rows(writer, STATEMENT_OLD_SIGNALS, prune->now_ms - STORE_SIGNALS_MS, &more, err);
    }
    if (fault == FAULT_NONE) {
        fault = prune_rows(writer, STATEMENT_OLD_DECISIONS, prune->finished_before_ms, &more, err);
    }
    if (end(writer, fault, err) < 0) {
        return -1;
    }
    return more ? 1 : shrink(writer, err);
}

void sql_writer_destroy(struct sql_writer *writer)
{
    if (!writer) {
        return;
    }
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(writer->statements[i]);
    }
    free(writer);
}

int sql_writer_create(sqlite3 *db, struct sql_writer **out, struct error *err)
{
    struct sql_writer *writer = xcalloc(1, sizeof *writer);
    writer->db = db;
    int64_t noted = 0;
    if (sql_integer(db, "SELECT max(seq) FROM events", &writer->last_seq, err) < 0 ||
        sql_integer(db, "SELECT value FROM numbers WHERE name = 'seq'", &noted, err) < 0) {
        goto fail;
    }
    writer->last_seq = noted > writer->last_seq ? noted : writer->last_seq;
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &writer->statements[i], NULL) != SQLITE_OK) {
            (void)sql_error(db, err, "store");
            goto fail;
        }
    }
    *out = writer;
    return 0;
fail:
    sql_writer_destroy(writer);
    return -1;
}
