/* test_store_power.c - the SQLite store and the power: at any point of its work the machine may stop.
 *
 * A run appends batches of several kinds until the crash point, with some under way at all times. Then
 * the disk drops what was not synced, and the store is opened again. What must hold: every batch that
 * was acknowledged is there and whole; of the others, those that are there are whole, and none is
 * missing before one that is there; numbers have no gaps; the file is sound and takes appends.
 *
 * The test of this test: with synchronous=OFF it must find losses. */
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/sim/clock_sim.h"
#include "broker/store_sql.h"
#include "broker/store_sqlite.h"
#include "tests/unit/store_suite.h"
#include "tests/unit/vfs_drop.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define T0 SUITE_WALL_MS

enum { BATCHES = 120, UNDER_WAY = 5, CHANGES = 700, CRASHES = 260 };

struct run {
    struct suite suite;
    uv_loop_t loop;
    char folder[64];
    char *path, *name;
    struct store_sqlite_options options;
    uint64_t random;
    struct put puts[BATCHES];
    int appended;
    bool acknowledged[BATCHES];
    char wrong[300]; /* what did not hold; "" */
};

static uint32_t run_random(struct run *run, uint32_t below)
{
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(run->random >> 33) % below;
}

static void turn(struct suite *suite)
{
    struct run *run = suite->arg;
    (void)uv_run(&run->loop, UV_RUN_ONCE);
}

static int open_store(struct run *run, struct error *err)
{
    return store_sqlite_open(run->name, &run->loop, run->suite.clock, &run->options,
                             &run->suite.store, err);
}

static void close_store(struct run *run)
{
    if (run->suite.store) {
        run->suite.store->ops->close(run->suite.store);
        run->suite.store = NULL;
    }
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
}

/* Batch n: 1 to 4 events whose id is its number, a new job every third time, a document. */
static void batch_fill(struct run *run, struct put *put, int n)
{
    char id[ID_SIZE];
    (void)snprintf(id, sizeof id, "j%015d", n);
    put_init(put);
    if (n % 3 == 0) {
        put_key(put_submit(put, id, "ada", T0 + n), "ada", id, "f", T0 + n);
    } else {
        struct store_item *item = put_event(put, EVENT_LATE, id, 0, T0 + n);
        char text[3001];
        memset(text, 'a' + n % 26, sizeof text - 1);
        text[run_random(run, 3000)] = '\0';
        text[sizeof text - 1] = '\0';
        (void)json_object_set_new(item->event->data, "text", json_string(text));
    }
    for (uint32_t i = run_random(run, 4); i > 0; i--) {
        (void)put_event(put, EVENT_LATE, id, (int)i, T0 + n);
    }
    (void)put_doc(put, STORE_META, id, T0, id);
}

static void run_load(struct run *run)
{
    int waits = 0;
    while (run->appended < BATCHES && !vfs_drop_crashed()) {
        struct error err;
        struct put *put = &run->puts[run->appended];
        batch_fill(run, put, run->appended);
        cr_assert_eq(put_append(put, &run->suite, &err), 0);
        run->appended++;
        if (run->appended - waits >= UNDER_WAY) {
            put_wait(&run->puts[waits++], &run->suite);
        }
        if (run->appended % 50 == 0) {
            run->suite.store->ops->prune(run->suite.store, T0 - 1, T0 - 1);
        }
    }
    while (waits < run->appended) {
        put_wait(&run->puts[waits++], &run->suite);
    }
}

static void note_acknowledged(struct run *run)
{
    for (int i = 0; i < run->appended; i++) {
        struct put *put = &run->puts[i];
        cr_assert(put->done, "batch %d was never completed", i);
        run->acknowledged[i] = put->err.code == ERROR_NONE;
    }
}

static void wrong(struct run *run, const char *what, int batch)
{
    if (!run->wrong[0]) {
        (void)snprintf(run->wrong, sizeof run->wrong, "%s (batch %d)", what, batch);
    }
}

/* How many events and documents of each batch are there. */
static void count_found(struct run *run, int events[BATCHES], int docs[BATCHES])
{
    struct got got;
    int64_t seq = 0;
    memset(events, 0, BATCHES * sizeof *events);
    memset(docs, 0, BATCHES * sizeof *docs);
    for (got.more = true; got.more; got_fini(&got)) {
        got_events(&got, &run->suite, NULL, seq, LIMIT_EVENT_ROWS);
        for (size_t i = 0; i < json_array_size(got.rows); i++) {
            json_t *row = json_array_get(got.rows, i);
            if (json_integer_value(json_object_get(row, "seq")) != ++seq) {
                wrong(run, "the numbers have a gap", (int)seq);
            }
            events[strtol(json_string_value(json_object_get(row, "id")) + 1, NULL, 10)]++;
        }
        if (!got.more) {
            break;
        }
    }
    got_fini(&got);
    got_docs(&got, &run->suite, STORE_META, NULL, LIMIT_LIST_ROWS);
    for (size_t i = 0; i < json_array_size(got.rows); i++) {
        json_t *row = json_array_get(got.rows, i);
        docs[strtol(json_string_value(json_object_get(row, "id")) + 1, NULL, 10)]++;
    }
    got_fini(&got);
}

static void check_contents(struct run *run)
{
    int events[BATCHES], docs[BATCHES];
    bool missing = false;
    count_found(run, events, docs);
    for (int i = 0; i < run->appended; i++) {
        int want = (int)run->puts[i].count - 1;
        bool whole = events[i] == want && docs[i] == 1;
        if (!whole && (events[i] || docs[i])) {
            wrong(run, "a batch is there in part", i);
        }
        if (!whole && run->acknowledged[i]) {
            wrong(run, "an acknowledged batch is lost", i);
        }
        if (whole && missing) {
            wrong(run, "one before it is missing", i);
        }
        missing = missing || !whole;
    }
}

static void check_file(struct run *run)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    bool sound =
        sqlite3_open_v2(run->path, &db, SQLITE_OPEN_READWRITE, VFS_DROP_NAME) == SQLITE_OK &&
        sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW && strcmp(sql_text(stmt, 0), "ok") == 0;
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    if (!sound) {
        wrong(run, "the file is not sound", 0);
    }
}

static void check_takes_appends(struct run *run)
{
    struct put put;
    put_init(&put);
    (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
    put_append_ok(&put, &run->suite);
    put_wait(&put, &run->suite);
    if (put.err.code != ERROR_NONE) {
        wrong(run, "the file takes no appends", 0);
    }
    put_fini(&put);
}

static void check(struct run *run)
{
    struct error err = {0};
    check_file(run);
    if (run->wrong[0]) {
        return; /* a broken file says no more */
    }
    if (open_store(run, &err) < 0) {
        wrong(run, err.text, 0);
        return;
    }
    check_contents(run);
    if (!run->wrong[0]) {
        check_takes_appends(run);
    }
    close_store(run);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static void run_init(struct run *run, uint64_t seed, bool no_sync)
{
    *run = (struct run){.random = seed, .options = {VFS_DROP_NAME, no_sync}};
    (void)snprintf(run->folder, sizeof run->folder, "/tmp/tieline-power-XXXXXX");
    cr_assert_neq(mkdtemp(run->folder), NULL);
    run->path = xasprintf("%s/store.db", run->folder);
    run->name = xasprintf("sqlite:%s", run->path);
    run->suite.clock = clock_sim_create(T0, seed);
    run->suite.turn = turn;
    run->suite.arg = run;
    cr_assert_eq(uv_loop_init(&run->loop), 0);
    vfs_drop_reset(seed);
}

static void run_fini(struct run *run)
{
    for (int i = 0; i < run->appended; i++) {
        put_fini(&run->puts[i]);
    }
    cr_assert_eq(uv_loop_close(&run->loop), 0);
    clock_sim_destroy(run->suite.clock);
    (void)nftw(run->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    free(run->path);
    free(run->name);
}

/* One crash. Returns whether all held; says what did not. acknowledged: batches, to see that it works. */
static bool crash(uint64_t seed, bool no_sync, bool torn, int *acknowledged, char out[300])
{
    static struct run run;
    struct error err = {0};
    run_init(&run, seed, no_sync);
    vfs_drop_crash_at(1 + run_random(&run, CHANGES));
    if (open_store(&run, &err) == 0) {
        run_load(&run);
        note_acknowledged(&run);
        close_store(&run);
    }
    (void)uv_run(&run.loop, UV_RUN_DEFAULT);
    vfs_drop_power_loss(torn);
    check(&run);
    for (int i = 0; i < run.appended; i++) {
        *acknowledged += run.acknowledged[i];
    }
    (void)snprintf(out, 300, "%s", run.wrong);
    run_fini(&run);
    return out[0] == '\0';
}

Test(store_power, nothing_acknowledged_is_lost)
{
    int acknowledged = 0;
    char out[300];
    for (uint64_t seed = 0; seed < CRASHES; seed++) {
        cr_assert(crash(seed, false, seed % 2 != 0, &acknowledged, out), "seed %d: %s", (int)seed,
                  out);
    }
    cr_assert_gt(acknowledged, CRASHES * BATCHES / 10, "only %d batches were acknowledged",
                 acknowledged);
}

Test(store_power, a_forgotten_sync_is_found)
{
    int found = 0, lost = 0, acknowledged = 0;
    char out[300];
    for (uint64_t seed = 0; seed < 40; seed++) {
        if (!crash(seed, true, seed % 2 != 0, &acknowledged, out)) {
            found++;
            lost += strstr(out, "an acknowledged batch is lost") != NULL;
        }
    }
    cr_assert_gt(found, 20, "only %d of 40 crashes without syncs were found", found);
    cr_assert_gt(lost, 0, "no loss was seen");
}
