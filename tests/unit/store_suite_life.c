/* store_suite_life.c - the cases: keys, pruning, limits, closing, and a load that all stores share. */
#include "tests/unit/store_suite.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/strbuf.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 SUITE_WALL_MS
#define HOUR INT64_C(3600000)

/* One keyed submit of its own batch. */
static void put_keyed(struct put *put, const char *id, const char *owner, const char *key,
                      const char *fingerprint, int64_t at_ms, int64_t expires_ms)
{
    put_init(put);
    put_key(put_submit(put, id, owner, at_ms), owner, key, fingerprint, expires_ms);
}

static void expect_key(struct suite *suite, struct put *put, const char *existing, bool same_body)
{
    put_append_ok(put, suite);
    put_wait(put, suite);
    cr_assert_eq(put->err.code, ERROR_NONE, "%s", put->err.text);
    cr_expect_eq(put->items[0].result, existing ? STORE_KEY_EXISTS : STORE_OK);
    cr_expect_str_eq(put->items[0].existing, existing ? existing : "");
    cr_expect_eq(put->items[0].same_body, same_body);
    put_fini(put);
}

static size_t count_jobs(struct suite *suite)
{
    struct got got;
    got_jobs(&got, suite, &(struct store_filter){.limit = LIMIT_LIST_ROWS});
    size_t count = json_array_size(got.rows);
    got_fini(&got);
    return count;
}

static size_t count_events(struct suite *suite)
{
    struct got got;
    got_events(&got, suite, NULL, 0, LIMIT_EVENT_ROWS);
    size_t count = json_array_size(got.rows);
    got_fini(&got);
    return count;
}

void store_suite_checks_keys(struct suite *suite)
{
    struct put put;
    put_keyed(&put, "j000000001000001", "ada", "k", "f1", T0, T0 + HOUR);
    expect_key(suite, &put, NULL, false);
    put_keyed(&put, "j000000002000002", "ada", "k", "f1", T0 + 1, T0 + HOUR);
    expect_key(suite, &put, "j000000001000001", true);
    put_keyed(&put, "j000000003000003", "ada", "k", "f2", T0 + 2, T0 + HOUR);
    expect_key(suite, &put, "j000000001000001", false);
    put_keyed(&put, "j000000004000004", "bob", "k", "f2", T0 + 3, T0 + HOUR);
    expect_key(suite, &put, NULL, false);
    put_keyed(&put, "j000000005000005", "ada", "K", "f2", T0 + 4, T0 + HOUR);
    expect_key(suite, &put, NULL, false);
    /* The same item once more, id and all. */
    put_keyed(&put, "j000000001000001", "ada", "k", "f1", T0, T0 + HOUR);
    expect_key(suite, &put, "j000000001000001", true);
    cr_assert_eq(count_jobs(suite), 3);
    cr_assert_eq(count_events(suite), 3);
    suite->reopen(suite);
    put_keyed(&put, "j000000006000006", "ada", "k", "f1", T0 + 5, T0 + HOUR);
    expect_key(suite, &put, "j000000001000001", true);
}

void store_suite_checks_keys_of_one_batch(struct suite *suite)
{
    struct put puts[2];
    put_keyed(&puts[0], "j000000001000001", "ada", "k", "f", T0, T0 + HOUR);
    put_key(put_submit(&puts[0], "j000000002000002", "ada", T0), "ada", "k", "f", T0 + HOUR);
    put_key(put_submit(&puts[0], "j000000003000003", "ada", T0), "ada", "other", "f", T0 + HOUR);
    put_keyed(&puts[1], "j000000004000004", "ada", "other", "f", T0, T0 + HOUR);
    put_append_ok(&puts[0], suite);
    put_append_ok(&puts[1], suite);
    put_wait(&puts[1], suite);
    cr_assert_eq(puts[0].items[0].result, STORE_OK);
    cr_assert_eq(puts[0].items[1].result, STORE_KEY_EXISTS);
    cr_assert_str_eq(puts[0].items[1].existing, "j000000001000001");
    cr_assert_eq(puts[0].items[1].seq, 0);
    cr_assert_eq(puts[0].items[2].result, STORE_OK);
    cr_assert_eq(puts[0].items[2].seq, 2);
    cr_assert_eq(puts[1].items[0].result, STORE_KEY_EXISTS);
    cr_assert_str_eq(puts[1].items[0].existing, "j000000003000003");
    cr_assert_eq(count_jobs(suite), 2);
    put_fini(&puts[0]);
    put_fini(&puts[1]);
    struct store_stats stats;
    suite->store->ops->stats(suite->store, &stats);
    cr_assert_eq(stats.keys_hit, 2);
}

static void finish_job(struct suite *suite, const char *id, int64_t at_ms)
{
    struct put put;
    put_init(&put);
    (void)put_update(&put, EVENT_FINISH, id, "succeeded", at_ms, at_ms);
    put_now(&put, suite);
}

static int64_t prunes(struct suite *suite)
{
    struct store_stats stats;
    suite->store->ops->stats(suite->store, &stats);
    return stats.prunes;
}

static void prune(struct suite *suite, int64_t before_ms, int64_t now_ms)
{
    int64_t before = prunes(suite);
    suite->store->ops->prune(suite->store, before_ms, now_ms);
    while (prunes(suite) == before) {
        suite->turn(suite);
    }
}

void store_suite_keeps_keys_with_their_job(struct suite *suite)
{
    struct put put;
    put_keyed(&put, "j000000001000001", "ada", "k", "f", T0, T0 + 10);
    expect_key(suite, &put, NULL, false);
    /* Its time is over, its job is not. */
    put_keyed(&put, "j000000002000002", "ada", "k", "f", T0 + HOUR, T0 + 2 * HOUR);
    expect_key(suite, &put, "j000000001000001", true);
    finish_job(suite, "j000000001000001", T0 + HOUR);
    put_keyed(&put, "j000000003000003", "ada", "k", "f", T0 + HOUR, T0 + 2 * HOUR);
    expect_key(suite, &put, "j000000001000001", true);
    prune(suite, T0 + 2 * HOUR, T0 + 2 * HOUR);
    cr_assert_eq(count_jobs(suite), 0);
    put_keyed(&put, "j000000004000004", "ada", "k", "f", T0 + 2 * HOUR, T0 + 4 * HOUR);
    expect_key(suite, &put, NULL, false);
    /* Its job is gone, its time is not over. */
    finish_job(suite, "j000000004000004", T0 + 2 * HOUR);
    prune(suite, T0 + 3 * HOUR, T0 + 3 * HOUR);
    cr_assert_eq(count_jobs(suite), 0);
    put_keyed(&put, "j000000005000005", "ada", "k", "f", T0 + 3 * HOUR, T0 + 5 * HOUR);
    expect_key(suite, &put, "j000000004000004", true);
    /* Both are over, though nothing was pruned since. */
    put_keyed(&put, "j000000006000006", "ada", "k", "f", T0 + 4 * HOUR, T0 + 6 * HOUR);
    expect_key(suite, &put, NULL, false);
}

void store_suite_goes_on_after_reopen(struct suite *suite)
{
    struct put put;
    for (int i = 0; i < 3; i++) {
        put_init(&put);
        (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
        put_append_ok(&put, suite);
        put_wait(&put, suite);
        cr_assert_eq(put.items[0].seq, i + 1);
        put_fini(&put);
        suite->reopen(suite);
    }
    cr_assert_eq(count_events(suite), 3);
}

void store_suite_prunes(struct suite *suite)
{
    struct put put;
    put_init(&put);
    (void)put_submit(&put, "j000000001000001", "ada", T0);            /* old and finished */
    (void)put_submit(&put, "j000000002000002", "ada", T0 + 5 * HOUR); /* young and finished */
    (void)put_submit(&put, "j000000003000003", "ada", T0 + HOUR);     /* old and live */
    (void)put_event(&put, EVENT_UP, "hpc", 0, T0);                    /* old, of another stream */
    (void)put_event(&put, EVENT_TOMB_SET, "hpc/j000000009000009-1", 0, T0); /* old and open */
    (void)put_event(&put, EVENT_BURST_STATE, "j000000001000001", 0, T0 + 7 * HOUR); /* young */
    (void)put_doc(&put, STORE_DECISIONS, "d1", T0, "older than all");
    (void)put_doc(&put, STORE_DECISIONS, "d2", T0 + 2 * HOUR, "as young as the live job");
    (void)put_doc(&put, STORE_SIGNALS, "s", T0 + 10 * HOUR - STORE_SIGNALS_MS - 1, "old");
    (void)put_doc(&put, STORE_SIGNALS, "s", T0 + 10 * HOUR - STORE_SIGNALS_MS, "young");
    (void)put_doc(&put, STORE_META, "m", T0, "meta");
    put_now(&put, suite);
    finish_job(suite, "j000000001000001", T0 + 3 * HOUR);
    finish_job(suite, "j000000002000002", T0 + 6 * HOUR);
    prune(suite, T0 + 6 * HOUR, T0 + 10 * HOUR);
    cr_assert_eq(count_jobs(suite), 2);
    struct got got;
    got_events(&got, suite, "j000000001000001", 0, 10);
    cr_assert_eq(json_array_size(got.rows), 1);
    cr_assert_str_eq(json_string_value(json_object_get(json_array_get(got.rows, 0), "stream")),
                     "burst");
    got_fini(&got);
    cr_assert_eq(count_events(suite), 5);
    got_docs(&got, suite, STORE_DECISIONS, NULL, 10);
    cr_assert_eq(json_array_size(got.rows), 1);
    got_fini(&got);
    got_docs(&got, suite, STORE_SIGNALS, NULL, 10);
    cr_assert_eq(json_array_size(got.rows), 1);
    got_fini(&got);
    got_docs(&got, suite, STORE_META, NULL, 10);
    cr_assert_eq(json_array_size(got.rows), 1);
    got_fini(&got);
    put_init(&put);
    (void)put_submit(&put, "j000000001000001", "ada", T0);
    put_now(&put, suite);
}

void store_suite_prunes_many(struct suite *suite)
{
    enum { JOBS = 500, LEFT = 3 };
    struct put put;
    put_init(&put);
    for (int i = 0; i < JOBS; i++) {
        char id[ID_SIZE];
        (void)snprintf(id, sizeof id, "j%015d", i);
        struct store_item *item = put_submit(&put, id, "ada", T0 + i);
        put_key(item, "ada", id, "f", T0 + i);
        if (i >= LEFT) {
            (void)put_update(&put, EVENT_FINISH, id, "failed", T0 + JOBS, T0 + JOBS);
        }
    }
    put_now(&put, suite);
    prune(suite, T0 + HOUR, T0 + HOUR);
    cr_assert_eq(count_jobs(suite), LEFT);
    cr_assert_eq(count_events(suite), LEFT);
}

void store_suite_never_gives_a_number_twice(struct suite *suite)
{
    struct put put;
    put_init(&put);
    (void)put_submit(&put, "j000000001000001", "ada", T0);
    put_now(&put, suite);
    finish_job(suite, "j000000001000001", T0 + 1);
    prune(suite, T0 + HOUR, T0 + HOUR);
    cr_assert_eq(count_jobs(suite), 0);
    cr_assert_eq(count_events(suite), 0);
    suite->reopen(suite);
    put_init(&put);
    (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
    put_append_ok(&put, suite);
    put_wait(&put, suite);
    cr_assert_eq(put.items[0].seq, 3);
    put_fini(&put);
}

/* Fills the store with events that are not waited for. */
static void fill(struct put *put, struct suite *suite, int count, bool submit)
{
    put_init(put);
    for (int i = 0; i < count - submit; i++) {
        (void)put_event(put, EVENT_UP, "hpc", 0, T0);
    }
    if (submit) {
        (void)put_submit(put, "j000000001000001", "ada", T0);
    }
    (void)suite;
}

void store_suite_bounds_appends(struct suite *suite)
{
    enum { ROOM = LIMIT_APPENDS - LIMIT_APPENDS_RESERVED };
    struct put full, submit, facts, more;
    struct error err = {0};
    fill(&full, suite, ROOM, true);
    fill(&submit, suite, 1, true);
    fill(&facts, suite, LIMIT_APPENDS_RESERVED, false);
    fill(&more, suite, 1, false);
    put_append_ok(&full, suite);
    cr_assert_eq(put_append(&submit, suite, &err), -1, "a submit took what is kept for facts");
    cr_assert_eq(err.code, ERROR_TOO_MANY);
    cr_assert_neq(submit.batch, NULL, "a refused batch stays the caller's");
    put_append_ok(&facts, suite);
    cr_assert_eq(put_append(&more, suite, &err), -1);
    cr_assert_eq(err.code, ERROR_TOO_MANY);
    cr_assert_str_eq(err.text,
                     "16384 events wait for the disk; with 1 more it would be over 16384");
    put_wait(&facts, suite);
    cr_assert(full.done);
    cr_assert_eq(full.err.code, ERROR_NONE, "%s", full.err.text);
    put_append_ok(&more, suite);
    put_wait(&more, suite);
    cr_assert_eq(more.items[0].seq, LIMIT_APPENDS + 1);
    put_fini(&full);
    put_fini(&submit);
    put_fini(&facts);
    put_fini(&more);
}

void store_suite_bounds_reads(struct suite *suite)
{
    /* Every read looks at some rows, so that the line grows faster than it is worked off. */
    struct put put;
    put_init(&put);
    for (int i = 0; i < 200; i++) {
        (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
    }
    put_now(&put, suite);
    enum { READS = 4 * LIMIT_READS };
    static struct got got[READS];
    memset(got, 0, sizeof got);
    int refused = 0;
    for (int i = 0; i < READS; i++) {
        suite->store->ops->events(suite->store, NULL, 0, LIMIT_EVENT_ROWS, got_done, &got[i]);
        cr_assert(!got[i].done, "a read completed within the call");
    }
    for (int i = 0; i < READS; i++) {
        got_wait(&got[i], suite);
        cr_assert_eq(got[i].times, 1);
        cr_assert_eq(got[i].err.code,
                     json_array_size(got[i].rows) ? ERROR_NONE : ERROR_UNAVAILABLE);
        refused += got[i].err.code == ERROR_UNAVAILABLE;
        got_fini(&got[i]);
    }
    cr_assert_gt(refused, 0);
    cr_assert_lt(refused, READS - LIMIT_READS + 1);
}

void store_suite_completes_at_close(struct suite *suite)
{
    enum { PUTS = 200 };
    static struct put puts[PUTS];
    struct got got = {0};
    for (int i = 0; i < PUTS; i++) {
        put_init(&puts[i]);
        (void)put_event(&puts[i], EVENT_UP, "hpc", 0, T0 + i);
        put_append_ok(&puts[i], suite);
    }
    suite->store->ops->events(suite->store, NULL, 0, 10, got_done, &got);
    suite->store->ops->close(suite->store);
    suite->store = NULL;
    for (int i = 0; i < PUTS; i++) {
        cr_assert(puts[i].done, "batch %d was not completed", i);
        cr_assert_eq(puts[i].order, puts[0].order + i);
        cr_assert_eq(puts[i].items[0].result, STORE_OK);
        cr_assert_eq(puts[i].items[0].seq, i + 1);
        put_fini(&puts[i]);
    }
    cr_assert_eq(got.times, 1);
    cr_assert(got.err.code == ERROR_NONE || got.err.code == ERROR_UNAVAILABLE);
    got_fini(&got);
    suite->reopen(suite);
    cr_assert_eq(count_events(suite), PUTS);
}

/* A chain: each completion appends the next, and reads. */
struct chain {
    struct suite *suite;
    int left, reads;
    bool close;
    struct error refused;
};

static void chain_read(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct chain *chain = arg;
    (void)rows;
    (void)more;
    (void)err;
    chain->reads++;
}

static struct store_batch *chain_batch(struct chain *chain);

static void chain_append(struct chain *chain)
{
    struct store_batch *batch = chain_batch(chain);
    struct suite *suite = chain->suite;
    if (suite->store->ops->append(suite->store, batch, &chain->refused) < 0) {
        store_batch_destroy(batch);
    }
}

static void chain_done(struct store_batch *batch, const struct error *err)
{
    struct chain *chain = batch->arg;
    struct store *store = chain->suite->store;
    (void)err;
    store_batch_destroy(batch);
    chain->left--;
    if (chain->close) {
        chain->close = false;
        store->ops->close(store);
        return;
    }
    if (chain->left > 0) {
        chain_append(chain);
        store->ops->events(store, NULL, 0, 5, chain_read, chain);
    }
}

static struct store_batch *chain_batch(struct chain *chain)
{
    struct store_batch *batch = xcalloc(1, sizeof *batch);
    batch->items = xcalloc(1, sizeof *batch->items);
    batch->count = 1;
    batch->items[0].event = event_create(EVENT_UP, "hpc", 0, T0, NULL);
    batch->done = chain_done;
    batch->arg = chain;
    return batch;
}

void store_suite_appends_from_completions(struct suite *suite)
{
    struct chain chain = {.suite = suite, .left = 50};
    chain_append(&chain);
    while (chain.left > 0 || chain.reads < 49) {
        suite->turn(suite);
    }
    cr_assert_eq(chain.refused.code, ERROR_NONE, "%s", chain.refused.text);
    cr_assert_eq(count_events(suite), 50);
}

void store_suite_closes_from_a_completion(struct suite *suite)
{
    struct chain chain = {.suite = suite, .left = 20, .close = true};
    for (int i = 0; i < 20; i++) {
        chain_append(&chain);
    }
    for (int i = 0; i < 3; i++) {
        suite->store->ops->events(suite->store, NULL, 0, 5, chain_read, &chain);
    }
    while (chain.close) {
        suite->turn(suite);
    }
    /* Others than the first would have appended more; the store refuses that. */
    cr_assert_eq(chain.left, 0, "%d batches were not completed", chain.left);
    cr_assert_eq(chain.refused.code, ERROR_UNAVAILABLE);
    cr_assert_geq(chain.reads, 3);
    suite->store = NULL;
    suite->reopen(suite);
    cr_assert_eq(count_events(suite), 20);
}

void store_suite_refuses_while_closing(struct suite *suite)
{
    struct chain chain = {.suite = suite, .left = 2};
    chain_append(&chain);
    suite->store->ops->close(suite->store);
    cr_assert_eq(chain.left, 1);
    cr_assert_eq(chain.refused.code, ERROR_UNAVAILABLE);
    cr_assert_eq(chain.reads, 1, "a read asked for while closing was not answered");
    suite->store = NULL;
}

void store_suite_takes_an_empty_batch(struct suite *suite)
{
    struct put puts[2];
    put_init(&puts[0]);
    put_init(&puts[1]);
    (void)put_event(&puts[1], EVENT_UP, "hpc", 0, T0);
    put_append_ok(&puts[0], suite);
    put_append_ok(&puts[1], suite);
    put_wait(&puts[1], suite);
    cr_assert(puts[0].done);
    cr_assert_eq(puts[1].order, puts[0].order + 1);
    put_fini(&puts[0]);
    put_fini(&puts[1]);
}

void store_suite_counts(struct suite *suite)
{
    struct store_stats stats;
    struct put put;
    suite->store->ops->stats(suite->store, &stats);
    cr_assert_eq(stats.pending + stats.commits + stats.items + stats.oldest_pending_ms, 0);
    put_init(&put);
    (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
    (void)put_event(&put, EVENT_DOWN, "hpc", 0, T0);
    int64_t now_ms = clock_mono_ms(suite->clock);
    put_append_ok(&put, suite);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert_eq(stats.pending, 2);
    cr_assert_eq(stats.oldest_pending_ms, now_ms);
    put_wait(&put, suite);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert_eq(stats.pending, 0);
    cr_assert_eq(stats.oldest_pending_ms, 0);
    cr_assert_eq(stats.commits, 1);
    cr_assert_eq(stats.items, 2);
    cr_assert_geq(stats.last_commit_ms, now_ms);
    cr_assert_gt(stats.commit_us, 0);
    cr_assert(!stats.failing);
    cr_assert_str_eq(stats.error, "");
    put_fini(&put);
}

/* The load that all stores share. */

struct load {
    struct suite *suite;
    uint64_t random;
    int jobs;
};

static uint32_t load_random(struct load *load, uint32_t below)
{
    load->random = load->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(load->random >> 33) % below;
}

static void load_id(struct load *load, bool fresh, char id[ID_SIZE])
{
    int n =
        fresh || load->jobs == 0 ? ++load->jobs : 1 + (int)load_random(load, (uint32_t)load->jobs);
    (void)snprintf(id, ID_SIZE, "j%09d%06d", n, n * 37 % 1000);
}

static void load_item(struct load *load, struct put *put, int64_t at_ms)
{
    static const char *const owners[] = {"ada", "bob", "eve"};
    static const enum event_kind others[] = {EVENT_UP, EVENT_TOMB_SET, EVENT_TOMB_CLEAR};
    char id[ID_SIZE], name[16];
    uint32_t dice = load_random(load, 10);
    (void)snprintf(name, sizeof name, "n%u", load_random(load, 12));
    load_id(load, dice < 4, id);
    if (dice < 4) {
        struct store_item *item = put_submit(put, id, owners[load_random(load, 3)], at_ms);
        if (load_random(load, 2)) {
            put_key(item, item->row->owner, name, load_random(load, 2) ? "f" : "g", at_ms + 50);
        }
    } else if (dice < 6) {
        (void)put_update(put, EVENT_PLACE, id, "active", 0, at_ms);
    } else if (dice < 7) {
        (void)put_update(put, EVENT_FINISH, id, "succeeded", at_ms, at_ms);
    } else if (dice < 8) {
        (void)put_event(put, others[load_random(load, 3)], name, 0, at_ms);
    } else {
        (void)put_doc(put, (enum store_table)load_random(load, STORE_TABLE_COUNT), name, at_ms, id);
    }
}

static void add_got(struct strbuf *out, struct got *got)
{
    char *text = json_dumps(got->rows, JSON_COMPACT);
    strbuf_puts(out, text);
    strbuf_puts(out, "\n");
    free(text);
    got_fini(got);
}

static void add_put(struct strbuf *out, struct put *put)
{
    strbuf_printf(out, "%s", put->err.text);
    for (size_t i = 0; i < put->count; i++) {
        strbuf_printf(out, " %d:%lld:%s:%d", (int)put->items[i].result,
                      (long long)put->items[i].seq, put->items[i].existing,
                      put->items[i].same_body);
    }
    strbuf_puts(out, "\n");
    put_fini(put);
}

static void add_all(struct strbuf *out, struct suite *suite)
{
    struct got got;
    got_jobs(&got, suite, &(struct store_filter){.limit = LIMIT_LIST_ROWS});
    add_got(out, &got);
    got_jobs(&got, suite, &(struct store_filter){.owner = "ada", .state = "live", .limit = 7});
    add_got(out, &got);
    got_events(&got, suite, NULL, 0, LIMIT_EVENT_ROWS);
    add_got(out, &got);
    for (int i = 0; i < STORE_TABLE_COUNT; i++) {
        got_docs(&got, suite, (enum store_table)i, NULL, LIMIT_LIST_ROWS);
        add_got(out, &got);
    }
}

char *store_suite_workload(struct suite *suite, uint64_t seed)
{
    struct load load = {.suite = suite, .random = seed};
    struct strbuf out;
    strbuf_init(&out, 64 * 1024 * 1024);
    for (int round = 0; round < 60; round++) {
        struct put put;
        put_init(&put);
        int items = (int)load_random(&load, 6);
        for (int i = 0; i < items; i++) {
            load_item(&load, &put, T0 + round * 10);
        }
        put_append_ok(&put, suite);
        put_wait(&put, suite);
        add_put(&out, &put);
        if (round % 20 == 19) {
            prune(suite, T0 + round * 5, T0 + round * 10);
            suite->reopen(suite);
        }
    }
    add_all(&out, suite);
    return strbuf_take(&out);
}
