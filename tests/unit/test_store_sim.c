/* test_store_sim.c - the simulated store: the common suite, its faults, and that it repeats itself. */
#include "broker/sim/clock_sim.h"
#include "broker/sim/store_disk.h"
#include "broker/sim/store_sim.h"
#include "tests/unit/store_suite.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 SUITE_WALL_MS

struct bench {
    struct suite suite;
    struct disk *disk;
    uint64_t seed;
};

static void turn(struct suite *suite)
{
    cr_assert(clock_sim_step(suite->clock), "the store waits for nothing");
}

static void reopen(struct suite *suite)
{
    struct bench *bench = suite->arg;
    struct error err = {0};
    struct store_sim_options options = {.seed = bench->seed};
    if (suite->store) {
        suite->store->ops->close(suite->store);
    }
    cr_assert_eq(store_sim_open(bench->disk, suite->clock, &options, &suite->store, &err), 0, "%s",
                 err.text);
}

static struct suite *bench_open(uint64_t seed)
{
    struct bench *bench = xcalloc(1, sizeof *bench);
    bench->seed = seed;
    bench->disk = disk_create();
    bench->suite = (struct suite){
        .clock = clock_sim_create(T0, seed), .turn = turn, .reopen = reopen, .arg = bench};
    reopen(&bench->suite);
    return &bench->suite;
}

static struct suite *suite_open(void)
{
    return bench_open(1);
}

static void suite_close(struct suite *suite)
{
    struct bench *bench = suite->arg;
    if (suite->store) {
        suite->store->ops->close(suite->store);
    }
    disk_destroy(bench->disk);
    clock_sim_destroy(suite->clock);
    free(bench);
}

#define SUITE_NAME store_sim
STORE_SUITE_LIST(STORE_SUITE_TEST)

static void put_up(struct put *put, struct suite *suite)
{
    put_init(put);
    (void)put_event(put, EVENT_UP, "hpc", 0, T0);
    put_append_ok(put, suite);
}

/* When each of a row of appends completes: the trace that a seed stands for. */
static char *trace(uint64_t seed)
{
    struct suite *suite = bench_open(seed);
    char *text = NULL;
    for (int i = 0; i < 300; i++) {
        struct put put;
        put_up(&put, suite);
        put_wait(&put, suite);
        char *longer =
            xasprintf("%s %lld", text ? text : "", (long long)clock_mono_ms(suite->clock));
        free(text);
        text = longer;
        put_fini(&put);
    }
    suite_close(suite);
    return text;
}

Test(store_sim, same_seed_same_times)
{
    char *one = trace(42), *again = trace(42), *other = trace(43);
    cr_assert_str_eq(one, again);
    cr_assert_str_neq(one, other);
    free(one);
    free(again);
    free(other);
}

Test(store_sim, same_seed_same_contents)
{
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        struct suite *suite = bench_open(9);
        texts[i] = store_suite_workload(suite, 5);
        suite_close(suite);
    }
    cr_assert_str_eq(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

Test(store_sim, takes_time)
{
    struct suite *suite = suite_open();
    struct put put;
    int64_t start_ms = clock_mono_ms(suite->clock);
    put_up(&put, suite);
    put_wait(&put, suite);
    cr_assert_gt(clock_mono_ms(suite->clock), start_ms);
    put_fini(&put);
    suite_close(suite);
}

Test(store_sim, fails_and_recovers)
{
    struct suite *suite = suite_open();
    struct store_stats stats;
    struct put put;
    store_sim_fail(suite->store, 2);
    for (int i = 0; i < 3; i++) {
        put_up(&put, suite);
        put_wait(&put, suite);
        bool fails = i < 2;
        cr_assert_eq(put.items[0].result, fails ? STORE_FAILED : STORE_OK);
        cr_assert_eq(put.err.code, fails ? ERROR_STORE : ERROR_NONE);
        suite->store->ops->stats(suite->store, &stats);
        cr_assert_eq(stats.failing, fails);
        cr_assert_str_eq(stats.error, fails ? "the simulated disk is full" : "");
        put_fini(&put);
    }
    cr_assert_eq(stats.items, 1);
    suite_close(suite);
}

Test(store_sim, recovers_without_appends)
{
    struct suite *suite = suite_open();
    struct store_stats stats;
    struct put put;
    store_sim_fail(suite->store, 3);
    put_up(&put, suite);
    put_wait(&put, suite);
    put_fini(&put);
    clock_sim_pass(suite->clock, 2500);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert(stats.failing);
    clock_sim_pass(suite->clock, 1000);
    suite->store->ops->stats(suite->store, &stats);
    cr_assert(!stats.failing);
    cr_assert(!clock_sim_step(suite->clock), "a healthy idle store sets no timers");
    suite_close(suite);
}

Test(store_sim, stalls)
{
    struct suite *suite = suite_open();
    struct put put;
    int64_t start_ms = clock_mono_ms(suite->clock);
    put_up(&put, suite);
    store_sim_stall(suite->store, 5000);
    clock_sim_pass(suite->clock, 4999);
    cr_assert(!put.done);
    put_wait(&put, suite);
    cr_assert_eq(clock_mono_ms(suite->clock), start_ms + 5000);
    cr_assert_eq(put.items[0].result, STORE_OK);
    put_fini(&put);
    suite_close(suite);
}

static size_t durable_events(struct suite *suite)
{
    struct got got;
    suite->reopen(suite);
    got_events(&got, suite, NULL, 0, 100);
    size_t count = json_array_size(got.rows);
    got_fini(&got);
    return count;
}

/* Of one crash: one event is acknowledged, one is in a commit, one waits. Returns what is there after. */
static size_t crash(uint64_t seed)
{
    struct suite *suite = bench_open(seed);
    struct put puts[3];
    struct got got = {0};
    struct error err = {0};
    put_up(&puts[0], suite);
    put_wait(&puts[0], suite);
    put_up(&puts[1], suite);
    put_up(&puts[2], suite);
    suite->store->ops->events(suite->store, NULL, 0, 5, got_done, &got);
    store_sim_lose(suite->store);
    for (int i = 1; i < 3; i++) {
        cr_assert(puts[i].done);
        cr_assert_eq(puts[i].items[0].result, STORE_FAILED);
        cr_assert_eq(puts[i].items[0].seq, 0);
        cr_assert_eq(puts[i].err.code, ERROR_UNAVAILABLE);
    }
    cr_assert_eq(got.times, 1);
    cr_assert_eq(got.err.code, ERROR_UNAVAILABLE);
    got_fini(&got);
    struct put late;
    put_init(&late);
    (void)put_event(&late, EVENT_UP, "hpc", 0, T0);
    cr_assert_eq(put_append(&late, suite, &err), -1);
    cr_assert_eq(err.code, ERROR_UNAVAILABLE);
    suite->store->ops->events(suite->store, NULL, 0, 5, got_done, &got);
    got_wait(&got, suite);
    cr_assert_eq(got.err.code, ERROR_UNAVAILABLE);
    got_fini(&got);
    size_t count = durable_events(suite);
    for (int i = 0; i < 3; i++) {
        put_fini(&puts[i]);
    }
    put_fini(&late);
    suite_close(suite);
    return count;
}

Test(store_sim, loses_what_was_not_acknowledged)
{
    int written = 0;
    for (uint64_t seed = 0; seed < 64; seed++) {
        size_t count = crash(seed);
        cr_assert(count == 1 || count == 2, "%zu events after a crash", count);
        cr_assert_eq(crash(seed), count, "seed %d does not repeat itself", (int)seed);
        written += count == 2;
    }
    cr_assert(written > 10 && written < 54, "the commit under way: %d of 64 times", written);
}

Test(store_sim, one_broker_for_each_disk)
{
    struct suite *suite = suite_open();
    struct bench *bench = suite->arg;
    struct store *second;
    struct error err = {0};
    cr_assert_eq(store_sim_open(bench->disk, suite->clock, NULL, &second, &err), -1);
    cr_assert_eq(err.code, ERROR_CONFLICT);
    suite_close(suite);
}
