/* store_sqlite.c - the store port over SQLite: a writer's and a reader's thread beside the loop.
 *
 * append (loop) -> line -> writer's thread: gather, one transaction -> done line -> uv_async -> loop.
 * A connection belongs to one thread. The JSON of events is turned into text on the loop thread, which
 * owns it; the writer touches a batch only between append and its completion.
 *
 * Gather: the writer commits at once when it was idle. When the last commit ended less than its own
 * duration ago, those whom it answered are likely to come back: it waits until as many items as the
 * last commit had are in line, or that duration is over. So nobody waits on an idle disk, and a slow
 * disk gets larger commits.
 *
 * While the last commit has failed, the writer tries a small write every PROBE_MS, so that the store
 * recovers even if nobody appends any more. */
#include "broker/store_sqlite.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/net/clock_uv.h"
#include "broker/store_common.h"
#include "broker/store_sql.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Under load a slice of pruning comes after so many commits. */
enum { GATHER_US_MAX = 20000, PROBE_MS = 1000, COMMITS_PER_SLICE = 16 };

/* What the writer has done: a transaction with its batches, or a bare attempt. */
struct written {
    struct sql_entry *first; /* NULL: a probe or a slice of pruning */
    int64_t items, commit_us;
    bool failed, pruned; /* pruned: to the end */
    struct error err;
    struct written *next;
};

struct store_sqlite {
    struct store base;
    struct clock *clock;
    char *path, *vfs;
    bool no_sync;
    int lock_file;
    bool closing; /* loop thread */
    uv_async_t wake;
    struct store_stats stats;               /* loop thread */
    struct sql_entry *waits, **waits_end;   /* loop thread: all that wait for the disk, in order */
    struct sql_entry *finish, **finish_end; /* loop thread: done, not yet handed back, in order */

    /* writer's thread alone */
    sqlite3 *write_db;
    struct sql_writer *writer;
    int64_t commit_end_us, commit_us, commit_items;
    int commits_since_prune;
    bool failing;

    /* reader's thread alone */
    sqlite3 *read_db;

    uv_thread_t write_thread, read_thread;
    uv_mutex_t mutex; /* of all below */
    uv_cond_t write_cond, read_cond;
    struct sql_entry *line, **line_end;
    int64_t line_items;
    struct sql_prune prune;
    bool want_prune, stop;
    struct store_read_line reads, reads_done;
    struct written *written, **written_end;
};

static struct store_sqlite *self_of(struct store *store)
{
    return (struct store_sqlite *)store;
}

/* The writer's thread. The mutex is held on entry and exit of the functions called *_locked. */

static void written_push(struct store_sqlite *self, struct written *done)
{
    uv_mutex_lock(&self->mutex);
    *self->written_end = done;
    self->written_end = &done->next;
    uv_mutex_unlock(&self->mutex);
    (void)uv_async_send(&self->wake);
}

static void gather_locked(struct store_sqlite *self)
{
    int64_t wait_us = self->commit_us < GATHER_US_MAX ? self->commit_us : GATHER_US_MAX;
    int64_t until_us = self->commit_end_us + wait_us;
    int64_t enough = self->commit_items < LIMIT_BATCH ? self->commit_items : LIMIT_BATCH;
    while (!self->stop && self->line_items < enough) {
        int64_t left_us = until_us - clock_uv_thread_us();
        if (left_us <= 0) {
            break;
        }
        (void)uv_cond_timedwait(&self->write_cond, &self->mutex, (uint64_t)left_us * 1000);
    }
}

/* Takes up to LIMIT_BATCH items off the line; a batch stays whole. */
static struct sql_entry *take_locked(struct store_sqlite *self, int64_t *items)
{
    struct sql_entry *first = self->line, **end = &self->line;
    int64_t count = 0;
    while (*end && (count == 0 || count + (int64_t)(*end)->batch->count <= LIMIT_BATCH)) {
        count += (int64_t)(*end)->batch->count;
        end = &(*end)->next;
    }
    self->line = *end;
    *end = NULL;
    if (!self->line) {
        self->line_end = &self->line;
    }
    self->line_items -= count;
    *items = count;
    return first;
}

static void commit(struct store_sqlite *self, struct sql_entry *first, int64_t items)
{
    struct written *done = xcalloc(1, sizeof *done);
    int64_t start_us = clock_uv_thread_us();
    done->first = first;
    done->items = items;
    done->failed = sql_writer_commit(self->writer, first, &done->err) < 0;
    self->failing = done->failed;
    self->commit_end_us = clock_uv_thread_us();
    self->commit_us = self->commit_end_us - start_us;
    self->commit_items = items;
    self->commits_since_prune++;
    done->commit_us = self->commit_us;
    written_push(self, done);
}

/* Tells the loop only what it needs to know: a failure, the first success after one, the end. */
static void attempt_done(struct store_sqlite *self, bool failed, bool pruned,
                         const struct error *err)
{
    if (failed || self->failing || pruned) {
        struct written *done = xcalloc(1, sizeof *done);
        done->failed = failed;
        done->pruned = pruned;
        done->err = *err;
        written_push(self, done);
    }
    self->failing = failed;
}

static void prune_slice(struct store_sqlite *self, struct sql_prune prune)
{
    struct error err = {0};
    self->commits_since_prune = 0;
    int more = sql_writer_prune(self->writer, &prune, &err);
    attempt_done(self, more < 0, more == 0, &err);
    if (more > 0) {
        uv_mutex_lock(&self->mutex);
        if (!self->want_prune) {
            self->prune = prune;
            self->want_prune = true;
        }
        uv_mutex_unlock(&self->mutex);
    }
}

static void probe(struct store_sqlite *self)
{
    struct error err = {0};
    bool failed = sql_writer_probe(self->writer, &err) < 0;
    attempt_done(self, failed, false, &err);
}

enum work { WORK_STOP, WORK_COMMIT, WORK_PRUNE, WORK_PROBE };

static enum work wait_locked(struct store_sqlite *self)
{
    while (!self->line && !self->want_prune && !self->stop) {
        if (!self->failing) {
            uv_cond_wait(&self->write_cond, &self->mutex);
        } else if (uv_cond_timedwait(&self->write_cond, &self->mutex,
                                     (uint64_t)PROBE_MS * 1000000) == UV_ETIMEDOUT) {
            return WORK_PROBE;
        }
    }
    bool prune_due = self->want_prune && self->commits_since_prune >= COMMITS_PER_SLICE;
    if (self->line && (self->stop || !prune_due)) {
        return WORK_COMMIT;
    }
    return self->stop ? WORK_STOP : WORK_PRUNE;
}

/* Does the next piece of work. false: the store stops and nothing is left. */
static bool write_next(struct store_sqlite *self)
{
    struct sql_entry *first = NULL;
    int64_t items = 0;
    uv_mutex_lock(&self->mutex);
    enum work work = wait_locked(self);
    struct sql_prune prune = self->prune;
    if (work == WORK_COMMIT) {
        gather_locked(self);
        first = take_locked(self, &items);
    } else if (work == WORK_PRUNE) {
        self->want_prune = false;
    }
    uv_mutex_unlock(&self->mutex);
    if (work == WORK_COMMIT) {
        commit(self, first, items);
    } else if (work == WORK_PRUNE) {
        prune_slice(self, prune);
    } else if (work == WORK_PROBE) {
        probe(self);
    }
    return work != WORK_STOP;
}

static void write_main(void *arg)
{
    struct store_sqlite *self = arg;
    while (write_next(self)) {
    }
}

/* The reader's thread. */

static bool read_next(struct store_sqlite *self)
{
    uv_mutex_lock(&self->mutex);
    while (!self->reads.first && !self->stop) {
        uv_cond_wait(&self->read_cond, &self->mutex);
    }
    struct store_read *read = self->stop ? NULL : store_line_pop(&self->reads);
    uv_mutex_unlock(&self->mutex);
    if (!read) {
        return false;
    }
    sql_read(self->read_db, read);
    uv_mutex_lock(&self->mutex);
    store_line_push(&self->reads_done, read);
    uv_mutex_unlock(&self->mutex);
    (void)uv_async_send(&self->wake);
    return true;
}

static void read_main(void *arg)
{
    struct store_sqlite *self = arg;
    while (read_next(self)) {
    }
}

/* The loop thread. */

static void entry_push(struct sql_entry ***end, struct sql_entry *entry)
{
    entry->next = NULL;
    **end = entry;
    *end = &entry->next;
}

static struct sql_entry *finish_pop(struct store_sqlite *self)
{
    struct sql_entry *entry = self->finish;
    if (entry) {
        self->finish = entry->next;
        self->finish_end = self->finish ? self->finish_end : &self->finish;
    }
    return entry;
}

/* Batches are done in the order of the appends, so it is the first that waits. */
static void waits_pop(struct store_sqlite *self)
{
    self->waits = self->waits->waits_next;
    if (!self->waits) {
        self->waits_end = &self->waits;
    }
}

static void count_written(struct store_sqlite *self, const struct written *done)
{
    struct store_stats *stats = &self->stats;
    stats->failing = done->failed;
    copy_text(stats->error, sizeof stats->error, done->failed ? done->err.text : "");
    stats->pending -= done->items;
    stats->prunes += done->pruned;
    if (done->failed || !done->first) {
        return;
    }
    stats->commits++;
    for (const struct sql_entry *entry = done->first; entry; entry = entry->next) {
        store_count(stats, entry->batch);
    }
    stats->last_commit_ms = clock_mono_ms(self->clock);
    stats->commit_us =
        stats->commits == 1 ? done->commit_us : (stats->commit_us * 7 + done->commit_us) / 8;
}

/* Takes what the writer has done; false: nothing. */
static bool take_written(struct store_sqlite *self)
{
    uv_mutex_lock(&self->mutex);
    struct written *done = self->written;
    if (done) {
        self->written = done->next;
        self->written_end = self->written ? self->written_end : &self->written;
    }
    uv_mutex_unlock(&self->mutex);
    if (!done) {
        return false;
    }
    count_written(self, done);
    while (done->first) {
        struct sql_entry *entry = done->first;
        done->first = entry->next;
        waits_pop(self);
        entry_push(&self->finish_end, entry);
    }
    free(done);
    return true;
}

static void entry_destroy(struct sql_entry *entry, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(entry->texts[i]);
    }
    free(entry->texts);
    free(entry);
}

static void finish_entry(struct sql_entry *entry)
{
    struct store_batch *batch = entry->batch;
    struct error err = entry->err;
    entry_destroy(entry, batch->count);
    batch->done(batch, &err);
}

static struct store_read *take_read(struct store_sqlite *self)
{
    uv_mutex_lock(&self->mutex);
    struct store_read *read = store_line_pop(&self->reads_done);
    uv_mutex_unlock(&self->mutex);
    return read;
}

/* Runs completions until there are none. One of them may close the store, which runs the rest. */
static void drain(struct store_sqlite *self)
{
    struct sql_entry *entry;
    struct store_read *read;
    while (take_written(self)) {
        while ((entry = finish_pop(self))) {
            finish_entry(entry);
        }
    }
    while ((read = take_read(self))) {
        store_read_finish(read);
    }
}

static void wake_cb(uv_async_t *wake)
{
    drain(wake->data);
}

static int texts_fill(struct sql_entry *entry, struct error *err)
{
    struct store_batch *batch = entry->batch;
    for (size_t i = 0; i < batch->count; i++) {
        const struct event *event = batch->items[i].event;
        if (event && !(entry->texts[i] = event_data_text(event))) {
            return error_set(err, ERROR_INTERNAL, "event %s of %s is no JSON",
                             event_name(event->kind), event->id);
        }
    }
    return 0;
}

static int sqlite_append(struct store *store, struct store_batch *batch, struct error *err)
{
    struct store_sqlite *self = self_of(store);
    if (self->closing) {
        return error_set(err, ERROR_UNAVAILABLE, "the store closes");
    }
    if (store_admit(self->stats.pending, batch, err) < 0) {
        return -1;
    }
    struct sql_entry *entry = xcalloc(1, sizeof *entry);
    entry->batch = batch;
    entry->texts = xcalloc(batch->count, sizeof *entry->texts);
    if (texts_fill(entry, err) < 0) {
        entry_destroy(entry, batch->count);
        return -1;
    }
    entry->appended_ms = clock_mono_ms(self->clock);
    self->stats.pending += (int64_t)batch->count;
    *self->waits_end = entry;
    self->waits_end = &entry->waits_next;
    uv_mutex_lock(&self->mutex);
    entry_push(&self->line_end, entry);
    self->line_items += (int64_t)batch->count;
    uv_cond_signal(&self->write_cond);
    uv_mutex_unlock(&self->mutex);
    return 0;
}

/* Puts the read in line, or completes it with an error in the next turn. */
static void start_read(struct store_sqlite *self, struct store_read *read)
{
    uv_mutex_lock(&self->mutex);
    if (self->closing) {
        (void)error_set(&read->err, ERROR_UNAVAILABLE, "the store closes");
    } else if (self->reads.count >= LIMIT_READS) {
        (void)error_set(&read->err, ERROR_UNAVAILABLE, "%d reads are in line", self->reads.count);
    }
    bool refused = read->err.code != ERROR_NONE;
    store_line_push(refused ? &self->reads_done : &self->reads, read);
    uv_cond_signal(&self->read_cond);
    uv_mutex_unlock(&self->mutex);
    if (refused && !self->closing) {
        (void)uv_async_send(&self->wake);
    }
}

static void sqlite_jobs(struct store *store, const struct store_filter *filter, store_read_fn done,
                        void *arg)
{
    start_read(self_of(store), store_read_jobs(filter, done, arg));
}

static void sqlite_events(struct store *store, const char *id, int64_t after_seq, int limit,
                          store_read_fn done, void *arg)
{
    start_read(self_of(store), store_read_events(id, after_seq, limit, done, arg));
}

static void sqlite_docs(struct store *store, enum store_table table, const char *id, int limit,
                        store_read_fn done, void *arg)
{
    start_read(self_of(store), store_read_docs(table, id, limit, done, arg));
}

static int sqlite_load(struct store *store, const struct store_loader *loader, struct error *err)
{
    struct store_sqlite *self = self_of(store);
    struct sql_place place = {self->path, self->vfs, self->no_sync};
    sqlite3 *db;
    if (sql_connect(&place, SQL_READER, &db, err) < 0) {
        return -1;
    }
    int result = sql_load(db, loader, clock_wall_ms(self->clock), err);
    (void)sqlite3_close(db);
    return result;
}

static void sqlite_stats(struct store *store, struct store_stats *out)
{
    struct store_sqlite *self = self_of(store);
    *out = self->stats;
    out->oldest_pending_ms = self->waits ? self->waits->appended_ms : 0;
}

static void sqlite_prune(struct store *store, int64_t finished_before_ms, int64_t now_ms)
{
    struct store_sqlite *self = self_of(store);
    uv_mutex_lock(&self->mutex);
    self->prune = (struct sql_prune){finished_before_ms, now_ms};
    self->want_prune = true;
    uv_cond_signal(&self->write_cond);
    uv_mutex_unlock(&self->mutex);
}

static void closed_cb(uv_handle_t *handle)
{
    struct store_sqlite *self = handle->data;
    uv_cond_destroy(&self->write_cond);
    uv_cond_destroy(&self->read_cond);
    uv_mutex_destroy(&self->mutex);
    free(self);
}

/* Takes a half-built store. */
static void files_close(struct store_sqlite *self)
{
    sql_writer_destroy(self->writer);
    (void)sqlite3_close(self->read_db);
    (void)sqlite3_close(self->write_db); /* the last one: moves the log into the file */
    if (self->lock_file >= 0) {
        (void)close(self->lock_file);
    }
    free(self->path);
    free(self->vfs);
}

static void sqlite_close(struct store *store)
{
    struct store_sqlite *self = self_of(store);
    self->closing = true;
    uv_mutex_lock(&self->mutex);
    self->stop = true;
    uv_cond_signal(&self->write_cond);
    uv_cond_signal(&self->read_cond);
    uv_mutex_unlock(&self->mutex);
    (void)uv_thread_join(&self->write_thread);
    (void)uv_thread_join(&self->read_thread);
    struct store_read *read;
    while ((read = store_line_pop(&self->reads))) {
        (void)error_set(&read->err, ERROR_UNAVAILABLE, "the store closes");
        store_line_push(&self->reads_done, read);
    }
    files_close(self);
    struct sql_entry *entry;
    while ((entry = finish_pop(self))) {
        finish_entry(entry);
    }
    drain(self);
    uv_close((uv_handle_t *)&self->wake, closed_cb);
}

static const struct store_ops sqlite_ops = {
    .append = sqlite_append,
    .load = sqlite_load,
    .jobs = sqlite_jobs,
    .events = sqlite_events,
    .docs = sqlite_docs,
    .stats = sqlite_stats,
    .prune = sqlite_prune,
    .close = sqlite_close,
};

static int refuse_locked(int file, const char *path, struct error *err)
{
    char pid[24] = "";
    ssize_t length = pread(file, pid, sizeof pid - 1, 0);
    pid[length > 0 ? (size_t)length : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    (void)error_set(err, ERROR_CONFLICT, "%s is in use by another broker%s%s", path,
                    pid[0] ? ", process " : "", pid);
    return error_expect(err, "one broker for each store: stop that one, or name another file");
}

/* A lock of its own beside the file: SQLite's own locks let a second program write in turn. */
static int lock_take(const char *path, int *out, struct error *err)
{
    char *name = xasprintf("%s.lock", path);
    int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int result = -1;
    if (file < 0) {
        (void)error_set(err, ERROR_STORE, "%s: %s", name, strerror(errno));
        (void)error_expect(err, "a folder that is there and that the broker may write to");
    } else if (flock(file, LOCK_EX | LOCK_NB) < 0) {
        (void)(errno == EWOULDBLOCK ? refuse_locked(file, path, err)
                                    : error_set(err, ERROR_STORE, "%s: %s", name, strerror(errno)));
        (void)close(file);
    } else {
        /* The number is for people; the lock counts even if it cannot be written. */
        (void)(ftruncate(file, 0) == 0 && dprintf(file, "%ld\n", (long)getpid()) > 0);
        *out = file;
        result = 0;
    }
    free(name);
    return result;
}

/* Only the owner may read it: SQLite gives its log the same mode. */
static int make_file(const char *path, struct error *err)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || fchmod(file, 0600) < 0) {
        (void)error_set(err, ERROR_STORE, "%s: %s", path, strerror(errno));
        if (file >= 0) {
            (void)close(file);
        }
        return -1;
    }
    (void)close(file);
    return sql_sync_file(path, err);
}

static int files_open(struct store_sqlite *self, struct error *err)
{
    struct sql_place place = {self->path, self->vfs, self->no_sync};
    if (lock_take(self->path, &self->lock_file, err) < 0 || make_file(self->path, err) < 0 ||
        sql_connect(&place, SQL_WRITER, &self->write_db, err) < 0 ||
        sql_schema_prepare(self->write_db, self->path, &sql_schema, err) < 0 ||
        sql_writer_create(self->write_db, &self->writer, err) < 0) {
        return -1;
    }
    return sql_connect(&place, SQL_READER, &self->read_db, err);
}

static void must(int code)
{
    if (code != 0) {
        (void)fprintf(stderr, "tieline: store: %s\n", uv_strerror(code));
        abort();
    }
}

/* Signals are the loop thread's. */
static void threads_start(struct store_sqlite *self)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    must(-pthread_sigmask(SIG_SETMASK, &all, &old));
    must(uv_thread_create(&self->write_thread, write_main, self));
    must(uv_thread_create(&self->read_thread, read_main, self));
    must(-pthread_sigmask(SIG_SETMASK, &old, NULL));
}

static void lines_init(struct store_sqlite *self)
{
    self->waits_end = &self->waits;
    self->finish_end = &self->finish;
    self->line_end = &self->line;
    self->written_end = &self->written;
    store_line_init(&self->reads);
    store_line_init(&self->reads_done);
}

int store_sqlite_open(const char *name, uv_loop_t *loop, struct clock *clock,
                      const struct store_sqlite_options *options, struct store **out,
                      struct error *err)
{
    static const char scheme[] = "sqlite:";
    size_t length = sizeof scheme - 1;
    if (strncmp(name, scheme, length) != 0 || name[length] == '\0') {
        (void)error_set(err, ERROR_INVALID, "'%s' names no SQLite store", name);
        return error_expect(err, "sqlite:/path/of/the/file");
    }
    struct store_sqlite *self = xcalloc(1, sizeof *self);
    self->base.ops = &sqlite_ops;
    self->clock = clock;
    self->path = xstrdup(name + length);
    self->vfs = xstrdup(options ? options->vfs : NULL);
    self->no_sync = options && options->no_sync;
    self->lock_file = -1;
    lines_init(self);
    if (files_open(self, err) < 0) {
        files_close(self);
        free(self);
        return -1;
    }
    must(uv_mutex_init(&self->mutex));
    must(uv_cond_init(&self->write_cond));
    must(uv_cond_init(&self->read_cond));
    must(uv_async_init(loop, &self->wake, wake_cb));
    self->wake.data = self;
    threads_start(self);
    *out = &self->base;
    return 0;
}
