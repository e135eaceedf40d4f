/* test_store_sqlite.c - the SQLite store: the common suite, its file, its schema, and disks that fail. */
#include "broker/store_sqlite.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/sim/clock_sim.h"
#include "broker/sim/store_disk.h"
#include "broker/sim/store_sim.h"
#include "broker/store_sql.h"
#include "tests/unit/store_suite.h"
#include "tests/unit/vfs_drop.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define T0 SUITE_WALL_MS

struct bench {
    struct suite suite;
    uv_loop_t loop;
    char folder[64];
    char *path, *name;
    struct store_sqlite_options options;
};

static struct bench *bench_of(struct suite *suite)
{
    return suite->arg;
}

static void turn(struct suite *suite)
{
    (void)uv_run(&bench_of(suite)->loop, UV_RUN_ONCE);
}

static void close_store(struct suite *suite)
{
    if (suite->store) {
        suite->store->ops->close(suite->store);
        suite->store = NULL;
    }
    (void)uv_run(&bench_of(suite)->loop, UV_RUN_DEFAULT);
}

static int try_open(struct suite *suite, struct error *err)
{
    struct bench *bench = bench_of(suite);
    return store_sqlite_open(bench->name, &bench->loop, suite->clock, &bench->options,
                             &suite->store, err);
}

static void reopen(struct suite *suite)
{
    struct error err = {0};
    close_store(suite);
    cr_assert_eq(try_open(suite, &err), 0, "%s", err.text);
}

static struct suite *bench_create(const char *vfs)
{
    struct bench *bench = xcalloc(1, sizeof *bench);
    (void)snprintf(bench->folder, sizeof bench->folder, "/tmp/tieline-store-XXXXXX");
    cr_assert_neq(mkdtemp(bench->folder), NULL);
    bench->path = xasprintf("%s/store.db", bench->folder);
    bench->name = xasprintf("sqlite:%s", bench->path);
    bench->options.vfs = vfs;
    bench->suite = (struct suite){
        .clock = clock_sim_create(T0, 1), .turn = turn, .reopen = reopen, .arg = bench};
    cr_assert_eq(uv_loop_init(&bench->loop), 0);
    return &bench->suite;
}

/* The suite needs no real syncs: the shim leaves them out. */
static struct suite *suite_open(void)
{
    vfs_drop_reset(1);
    struct suite *suite = bench_create(VFS_DROP_NAME);
    reopen(suite);
    return suite;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void suite_close(struct suite *suite)
{
    struct bench *bench = bench_of(suite);
    close_store(suite);
    cr_assert_eq(uv_loop_close(&bench->loop), 0, "the store left a handle");
    clock_sim_destroy(suite->clock);
    (void)nftw(bench->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(bench->path);
    free(bench->name);
    free(bench);
}

#define SUITE_NAME store_sqlite
STORE_SUITE_LIST(STORE_SUITE_TEST)

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    int code = sqlite3_open(path, &db);
    code = code == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, &why) : code;
    cr_assert_eq(code, SQLITE_OK, "%s: %s", sql, why ? why : sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

static int64_t ask_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    struct error err = {0};
    int64_t value = 0;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sql_integer(db, sql, &value, &err), 0, "%s", err.text);
    (void)sqlite3_close(db);
    return value;
}

static mode_t mode_of(const char *folder, const char *name)
{
    struct stat info;
    char *path = xasprintf("%s/%s", folder, name);
    cr_assert_eq(stat(path, &info), 0, "%s", path);
    free(path);
    return info.st_mode & 0777;
}

static void put_up(struct put *put, struct suite *suite)
{
    put_init(put);
    (void)put_event(put, EVENT_UP, "hpc", 0, T0);
    put_append_ok(put, suite);
}

static void put_up_now(struct suite *suite, enum store_result result)
{
    struct put put;
    put_up(&put, suite);
    put_wait(&put, suite);
    cr_assert_eq(put.items[0].result, result, "%s", put.err.text);
    put_fini(&put);
}

/* The simulated store under the same load. */

static void sim_turn(struct suite *suite)
{
    cr_assert(clock_sim_step(suite->clock));
}

static void sim_reopen(struct suite *suite)
{
    struct error err = {0};
    if (suite->store) {
        suite->store->ops->close(suite->store);
    }
    cr_assert_eq(store_sim_open(suite->arg, suite->clock, NULL, &suite->store, &err), 0);
}

static char *sim_workload(uint64_t seed)
{
    struct suite sim = {.clock = clock_sim_create(T0, 1),
                        .turn = sim_turn,
                        .reopen = sim_reopen,
                        .arg = disk_create()};
    sim_reopen(&sim);
    char *text = store_suite_workload(&sim, seed);
    sim.store->ops->close(sim.store);
    disk_destroy(sim.arg);
    clock_sim_destroy(sim.clock);
    return text;
}

Test(store_sqlite, same_contents_as_the_simulated_store)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct suite *suite = suite_open();
        char *text = store_suite_workload(suite, seed);
        char *other = sim_workload(seed);
        size_t same = 0;
        while (text[same] && text[same] == other[same]) {
            same++;
        }
        size_t from = same < 60 ? 0 : same - 60;
        cr_assert_str_eq(text, other, "seed %d: ...%.120s\nsimulated: ...%.120s", (int)seed,
                         text + from, other + from);
        free(text);
        free(other);
        suite_close(suite);
    }
}

Test(store_sqlite, only_the_owner_may_read)
{
    umask(0);
    struct suite *suite = bench_create(NULL);
    const char *folder = bench_of(suite)->folder;
    FILE *file = fopen(bench_of(suite)->path, "w");
    cr_assert_neq(file, NULL);
    (void)fclose(file);
    reopen(suite);
    put_up_now(suite, STORE_OK);
    cr_assert_eq(mode_of(folder, "store.db"), 0600);
    cr_assert_eq(mode_of(folder, "store.db-wal"), 0600);
    cr_assert_eq(mode_of(folder, "store.db.lock"), 0600);
    suite_close(suite);
}

Test(store_sqlite, settings)
{
    struct suite *suite = bench_create(NULL);
    struct error err = {0};
    reopen(suite);
    put_up_now(suite, STORE_OK);
    close_store(suite);
    const char *path = bench_of(suite)->path;
    cr_assert_eq(ask_sql(path, "PRAGMA application_id"), SQL_APPLICATION_ID);
    cr_assert_eq(ask_sql(path, "PRAGMA user_version"), 1);
    cr_assert_eq(ask_sql(path, "PRAGMA auto_vacuum"), 2);
    struct sql_place place = {path, NULL, false};
    sqlite3 *db = NULL;
    int64_t level = 0;
    cr_assert_eq(sql_connect(&place, SQL_WRITER, &db, &err), 0, "%s", err.text);
    cr_assert_eq(sql_integer(db, "PRAGMA synchronous", &level, &err), 0);
    cr_assert_eq(level, 2, "synchronous must be FULL");
    (void)sqlite3_close(db);
    cr_assert_eq(sql_connect(&place, SQL_READER, &db, &err), 0, "%s", err.text);
    cr_assert_eq(sql_exec(db, "DELETE FROM events", &err), -1, "a reader wrote");
    (void)sqlite3_close(db);
    suite_close(suite);
}

Test(store_sqlite, one_broker_for_each_file)
{
    struct suite *suite = suite_open();
    struct store *first = suite->store;
    struct error err = {0};
    char expected[200];
    cr_assert_eq(try_open(suite, &err), -1);
    cr_assert_eq(err.code, ERROR_CONFLICT);
    (void)snprintf(expected, sizeof expected, "%s is in use by another broker, process %ld",
                   bench_of(suite)->path, (long)getpid());
    cr_assert_str_eq(err.text, expected);
    cr_assert_str_eq(err.expected,
                     "one broker for each store: stop that one, or name another file");
    suite->store = first;
    put_up_now(suite, STORE_OK);
    reopen(suite);
    suite_close(suite);
}

Test(store_sqlite, refuses_bad_names)
{
    static const struct {
        const char *name;
        enum error_code code;
    } cases[] = {
        {"sqlite:", ERROR_INVALID}, {"redis:/x", ERROR_INVALID},
        {"", ERROR_INVALID},        {"sqlite:/nowhere/at/all/store.db", ERROR_STORE},
        {NULL, ERROR_STORE}, /* a folder */
    };
    struct suite *suite = bench_create(NULL);
    struct bench *bench = bench_of(suite);
    char *folder = xasprintf("%s/folder", bench->folder);
    cr_assert_eq(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error err = {0};
        free(bench->name);
        bench->name = cases[i].name ? xstrdup(cases[i].name) : xasprintf("sqlite:%s", folder);
        cr_expect_eq(try_open(suite, &err), -1, "'%s' was opened", bench->name);
        cr_expect_eq(err.code, cases[i].code, "'%s': %s", bench->name, err.text);
        cr_expect_neq(err.text[0], '\0');
    }
    free(folder);
    suite_close(suite);
}

Test(store_sqlite, leaves_files_of_others_alone)
{
    struct suite *suite = bench_create(NULL);
    const char *path = bench_of(suite)->path;
    struct error err = {0};
    run_sql(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (7)");
    cr_assert_eq(try_open(suite, &err), -1);
    cr_assert_eq(err.code, ERROR_CONFLICT);
    cr_assert(strstr(err.text, "is the SQLite file of another program"), "%s", err.text);
    cr_assert_eq(ask_sql(path, "SELECT x FROM theirs"), 7);
    cr_assert_eq(ask_sql(path, "SELECT count(*) FROM sqlite_master"), 1);
    cr_assert_eq(
        ask_sql(path, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 0);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 5000; i++) {
        (void)fputs("no database at all\n", file);
    }
    (void)fclose(file);
    cr_assert_eq(try_open(suite, &err), -1);
    cr_assert_eq(err.code, ERROR_STORE);
    cr_assert(strstr(err.text, "file is not a database"), "%s", err.text);
    suite_close(suite);
}

Test(store_sqlite, refuses_a_newer_schema)
{
    struct suite *suite = bench_create(NULL);
    const char *path = bench_of(suite)->path;
    struct error err = {0};
    reopen(suite);
    close_store(suite);
    run_sql(path, "PRAGMA user_version = 7");
    cr_assert_eq(try_open(suite, &err), -1);
    cr_assert_eq(err.code, ERROR_CONFLICT);
    char expected[200];
    (void)snprintf(expected, sizeof expected,
                   "%s was written by a newer release: it has schema 7, this one knows 1", path);
    cr_assert_str_eq(err.text, expected);
    cr_assert_str_eq(err.expected, "that release, or the copy from before it: FILE.schema-1");
    cr_assert_eq(ask_sql(path, "PRAGMA user_version"), 7);
    suite_close(suite);
}

/* Schema 0: a store of before the first release, with a table of its own that must survive. */
Test(store_sqlite, migrates_an_older_schema_after_a_copy)
{
    struct suite *suite = bench_create(NULL);
    const char *path = bench_of(suite)->path;
    char *copy = xasprintf("%s.schema-0", path);
    char *sql = sqlite3_mprintf("PRAGMA application_id = %d; CREATE TABLE old (x);"
                                "INSERT INTO old VALUES (41)",
                                (int)SQL_APPLICATION_ID);
    run_sql(path, sql);
    sqlite3_free(sql);
    reopen(suite);
    put_up_now(suite, STORE_OK);
    close_store(suite);
    cr_assert_eq(ask_sql(path, "PRAGMA user_version"), 1);
    cr_assert_eq(ask_sql(path, "SELECT x FROM old"), 41);
    cr_assert_eq(ask_sql(path, "SELECT count(*) FROM events"), 1);
    cr_assert_eq(mode_of(bench_of(suite)->folder, "store.db.schema-0"), 0600);
    cr_assert_eq(ask_sql(copy, "PRAGMA user_version"), 0);
    cr_assert_eq(ask_sql(copy, "PRAGMA application_id"), SQL_APPLICATION_ID);
    cr_assert_eq(ask_sql(copy, "SELECT x FROM old"), 41);
    cr_assert_eq(ask_sql(copy, "SELECT count(*) FROM sqlite_master WHERE name = 'events'"), 0);
    /* Once migrated, no further copy is made. */
    cr_assert_eq(unlink(copy), 0);
    reopen(suite);
    cr_assert_neq(access(copy, F_OK), 0);
    free(copy);
    suite_close(suite);
}

static sqlite3 *connect_writer(const char *path)
{
    struct sql_place place = {path, NULL, false};
    struct error err = {0};
    sqlite3 *db = NULL;
    cr_assert_eq(sql_connect(&place, SQL_WRITER, &db, &err), 0, "%s", err.text);
    return db;
}

Test(store_sqlite, runs_each_step_once_and_all_or_none)
{
    static const char *const good[] = {"", "CREATE TABLE two (x)", "ALTER TABLE two ADD COLUMN y"};
    const char *const bad[] = {"", good[1], good[2], "CREATE TABLE four (x)", "nonsense"};
    struct suite *suite = bench_create(NULL);
    const char *path = bench_of(suite)->path;
    struct error err = {0};
    reopen(suite);
    close_store(suite);
    sqlite3 *db = connect_writer(path);
    struct sql_schema schema = {good, 3};
    cr_assert_eq(sql_schema_prepare(db, path, &schema, &err), 0, "%s", err.text);
    cr_assert_eq(sql_schema_prepare(db, path, &schema, &err), 0, "%s", err.text);
    (void)sqlite3_close(db);
    cr_assert_eq(ask_sql(path, "PRAGMA user_version"), 3);
    cr_assert_eq(ask_sql(path, "SELECT count(*) FROM pragma_table_info('two')"), 2);
    db = connect_writer(path);
    schema = (struct sql_schema){bad, 5};
    cr_assert_eq(sql_schema_prepare(db, path, &schema, &err), -1);
    cr_assert(strstr(err.text, "step to schema 5"), "%s", err.text);
    (void)sqlite3_close(db);
    cr_assert_eq(ask_sql(path, "PRAGMA user_version"), 3);
    cr_assert_eq(ask_sql(path, "SELECT count(*) FROM sqlite_master WHERE name = 'four'"), 0);
    cr_assert_eq(mode_of(bench_of(suite)->folder, "store.db.schema-3"), 0600);
    suite_close(suite);
}

Test(store_sqlite, refuses_events_of_unknown_kinds)
{
    struct suite *suite = bench_create(NULL);
    struct got got = {0};
    reopen(suite);
    put_up_now(suite, STORE_OK);
    close_store(suite);
    run_sql(bench_of(suite)->path, "UPDATE events SET kind = 'teleport'");
    reopen(suite);
    suite->store->ops->events(suite->store, NULL, 0, 10, got_done, &got);
    got_wait(&got, suite);
    cr_assert_eq(got.err.code, ERROR_INTERNAL);
    cr_assert(strstr(got.err.text, "unknown kind 'teleport'"), "%s", got.err.text);
    cr_assert_eq(json_array_size(got.rows), 0);
    got_fini(&got);
    suite_close(suite);
}

Test(store_sqlite, stops_a_search_that_looks_at_too_much)
{
    struct suite *suite = suite_open();
    struct put put;
    struct got got = {0};
    put_init(&put);
    for (int i = 0; i < 4000; i++) {
        char id[ID_SIZE];
        (void)snprintf(id, sizeof id, "j%015d", i);
        (void)put_submit(&put, id, "ada", T0);
    }
    put_now(&put, suite);
    close_store(suite);
    sqlite3 *db = connect_writer(bench_of(suite)->path);
    struct store_filter filter = {.name = "none", .limit = 5};
    for (int i = 0; i < 2; i++) {
        struct store_read *read = store_read_jobs(&filter, got_done, &got);
        read->steps = i == 0 ? 1 : read->steps;
        sql_read(db, read);
        store_read_finish(read);
        cr_assert_eq(got.err.code, i == 0 ? ERROR_TIMEOUT : ERROR_NONE, "%s", got.err.text);
        got_fini(&got);
    }
    (void)sqlite3_close(db);
    suite_close(suite);
}

/* What no index can hold up: a plan that walks the table would stop the reader's thread. */
Test(store_sqlite, common_searches_use_an_index)
{
    struct suite *suite = suite_open();
    close_store(suite);
    static const char *const sql[] = {
        "EXPLAIN QUERY PLAN SELECT id FROM jobs j INDEXED BY jobs_suffix WHERE substr(j.id, -4) = ?",
        "EXPLAIN QUERY PLAN SELECT id FROM jobs INDEXED BY jobs_owner WHERE owner = ? AND id < ?"
        " ORDER BY id DESC",
        "EXPLAIN QUERY PLAN SELECT id FROM jobs INDEXED BY jobs_submitted WHERE submitted_ms > ?",
        "EXPLAIN QUERY PLAN SELECT seq FROM events WHERE seq > ? AND id = ? ORDER BY seq",
        "EXPLAIN QUERY PLAN SELECT id FROM jobs WHERE finished_ms > 0 AND finished_ms < ?1"
        " ORDER BY finished_ms LIMIT ?2",
    };
    sqlite3 *db = connect_writer(bench_of(suite)->path);
    for (size_t i = 0; i < sizeof sql / sizeof sql[0]; i++) {
        sqlite3_stmt *stmt = NULL;
        cr_assert_eq(sqlite3_prepare_v2(db, sql[i], -1, &stmt, NULL), SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            const char *detail = sql_text(stmt, 3);
            cr_expect(strstr(detail, "SEARCH") && strstr(detail, "INDEX"), "%s: %s", sql[i],
                      detail);
        }
        (void)sqlite3_finalize(stmt);
    }
    (void)sqlite3_close(db);
    suite_close(suite);
}

Test(store_sqlite, survives_a_full_disk)
{
    struct suite *suite = suite_open();
    struct store_stats stats;
    put_up_now(suite, STORE_OK);
    vfs_drop_full(true);
    enum { PUTS = 20 };
    struct put puts[PUTS];
    for (int i = 0; i < PUTS; i++) {
        put_up(&puts[i], suite);
    }
    put_wait(&puts[PUTS - 1], suite);
    for (int i = 0; i < PUTS; i++) {
        cr_assert_eq(puts[i].items[0].result, STORE_FAILED);
        cr_assert_eq(puts[i].items[0].seq, 0);
        cr_assert_eq(puts[i].err.code, ERROR_STORE);
        cr_assert_str_eq(puts[i].err.text, "store: database or disk is full");
        put_fini(&puts[i]);
    }
    suite->store->ops->stats(suite->store, &stats);
    cr_assert(stats.failing);
    cr_assert_str_eq(stats.error, "store: database or disk is full");
    cr_assert_eq(stats.items, 1);
    cr_assert_eq(stats.pending, 0);
    vfs_drop_full(false);
    struct put put;
    put_up(&put, suite);
    put_wait(&put, suite);
    cr_assert_eq(put.items[0].seq, 2, "a failed event kept its number");
    put_fini(&put);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert(!stats.failing);
    cr_assert_str_eq(stats.error, "");
    suite_close(suite);
}

Test(store_sqlite, recovers_without_appends)
{
    struct suite *suite = suite_open();
    struct store_stats stats;
    vfs_drop_full(true);
    put_up_now(suite, STORE_FAILED);
    vfs_drop_full(false);
    do {
        suite->turn(suite);
        suite->store->ops->stats(suite->store, &stats);
    } while (stats.failing);
    cr_assert_eq(stats.items, 0);
    suite_close(suite);
}

Test(store_sqlite, acknowledges_nothing_when_a_sync_fails)
{
    struct suite *suite = suite_open();
    put_up_now(suite, STORE_OK);
    vfs_drop_fail_syncs(true);
    put_up_now(suite, STORE_FAILED);
    vfs_drop_fail_syncs(false);
    put_up_now(suite, STORE_OK);
    reopen(suite);
    struct got got;
    got_events(&got, suite, NULL, 0, 10);
    cr_assert_eq(json_array_size(got.rows), 2);
    got_fini(&got);
    suite_close(suite);
}

Test(store_sqlite, completes_at_close_on_a_full_disk)
{
    struct suite *suite = suite_open();
    struct put puts[50];
    vfs_drop_full(true);
    for (int i = 0; i < 50; i++) {
        put_up(&puts[i], suite);
    }
    close_store(suite);
    for (int i = 0; i < 50; i++) {
        cr_assert(puts[i].done);
        cr_assert_eq(puts[i].items[0].result, STORE_FAILED);
        put_fini(&puts[i]);
    }
    vfs_drop_full(false);
    suite_close(suite);
}

Test(store_sqlite, groups_appends)
{
    struct suite *suite = suite_open();
    enum { PUTS = 2000 };
    static struct put puts[PUTS];
    int64_t before = vfs_drop_syncs();
    for (int i = 0; i < PUTS; i++) {
        put_up(&puts[i], suite);
    }
    put_wait(&puts[PUTS - 1], suite);
    cr_assert_lt(vfs_drop_syncs() - before, PUTS / 4);
    for (int i = 0; i < PUTS; i++) {
        put_fini(&puts[i]);
    }
    suite_close(suite);
}

Test(store_sqlite, gives_space_back)
{
    struct suite *suite = suite_open();
    struct stat info;
    enum { JOBS = 3000 };
    struct put put;
    put_init(&put);
    char *text = xcalloc(4001, 1);
    memset(text, 'x', 4000);
    for (int i = 0; i < JOBS; i++) {
        char id[ID_SIZE];
        (void)snprintf(id, sizeof id, "j%015d", i);
        struct store_item *item = put_submit(&put, id, "ada", T0);
        (void)json_object_set_new(item->event->data, "run", json_string(text));
        (void)put_update(&put, EVENT_FINISH, id, "failed", T0 + 1, T0 + 1);
    }
    free(text);
    put_now(&put, suite);
    reopen(suite);
    cr_assert_eq(stat(bench_of(suite)->path, &info), 0);
    off_t before = info.st_size;
    struct store_stats stats;
    suite->store->ops->prune(suite->store, T0 + 2, T0 + 2);
    do {
        suite->turn(suite);
        suite->store->ops->stats(suite->store, &stats);
    } while (stats.prunes == 0);
    reopen(suite);
    cr_assert_eq(stat(bench_of(suite)->path, &info), 0);
    cr_assert_lt(info.st_size, before / 2, "%lld of %lld bytes are left", (long long)info.st_size,
                 (long long)before);
    suite_close(suite);
}

/* A prune of many jobs may hold up a commit for a slice, never for the whole. */
Test(store_sqlite, prunes_behind_the_appends)
{
    struct suite *suite = suite_open();
    struct put put;
    struct store_stats stats;
    put_init(&put);
    for (int i = 0; i < 2000; i++) {
        char id[ID_SIZE];
        (void)snprintf(id, sizeof id, "j%015d", i);
        (void)put_submit(&put, id, "ada", T0);
        (void)put_update(&put, EVENT_FINISH, id, "failed", T0 + 1, T0 + 1);
    }
    put_now(&put, suite);
    suite->store->ops->prune(suite->store, T0 + 2, T0 + 2);
    put_up_now(suite, STORE_OK);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert_eq(stats.prunes, 0, "the append waited for the whole prune");
    do {
        suite->turn(suite);
        suite->store->ops->stats(suite->store, &stats);
    } while (stats.prunes == 0);
    suite_close(suite);
}

/* What docs/stores.md tells the operator to do, in the middle of appends. */
Test(store_sqlite, is_backed_up_while_it_runs)
{
    struct suite *suite = bench_create(NULL);
    reopen(suite);
    enum { PUTS = 300 };
    static struct put puts[PUTS];
    for (int i = 0; i < PUTS; i++) {
        put_up(&puts[i], suite);
        if (i == PUTS / 2) {
            put_wait(&puts[i], suite);
        }
    }
    struct bench *bench = bench_of(suite);
    char *copy = xasprintf("%s/copy.db", bench->folder);
    sqlite3 *from = NULL, *to = NULL;
    cr_assert_eq(sqlite3_open(bench->path, &from), SQLITE_OK);
    cr_assert_eq(sqlite3_open(copy, &to), SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    cr_assert_eq(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    cr_assert_eq(sqlite3_backup_finish(backup), SQLITE_OK);
    (void)sqlite3_close(from);
    (void)sqlite3_close(to);
    put_wait(&puts[PUTS - 1], suite);
    for (int i = 0; i < PUTS; i++) {
        cr_assert_eq(puts[i].items[0].result, STORE_OK, "%s", puts[i].err.text);
        put_fini(&puts[i]);
    }
    close_store(suite);
    free(bench->name);
    bench->name = xasprintf("sqlite:%s", copy);
    reopen(suite);
    struct got got;
    got_events(&got, suite, NULL, 0, LIMIT_EVENT_ROWS);
    cr_assert_gt(json_array_size(got.rows), PUTS / 2);
    got_fini(&got);
    put_up_now(suite, STORE_OK);
    free(copy);
    suite_close(suite);
}
