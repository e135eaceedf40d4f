/* store_sim.c - the store port on a clock: one commit at a time, one timer each for commits and reads.
 *
 * A batch is written when its commit ends, so what a crash meets is either before or after it. Latency
 * comes from a generator of its own, so that it does not disturb the clock's random numbers. */
#include "broker/sim/store_sim.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/sim/random.h"
#include "broker/sim/store_disk.h"
#include "broker/store_common.h"

#include <stdbool.h>
#include <stdlib.h>

enum { PROBE_MS = 1000, SLOW_ONE_IN = 100 };

struct pending { /* a batch and when it came */
    struct store_batch *batch;
    int64_t appended_ms;
    struct error err;
    struct pending *next;
};
struct pending_line {
    struct pending *first, **end;
};

struct store_sim {
    struct store base;
    struct disk *disk;
    struct clock *clock;
    struct store_sim_options options;
    uint64_t random;
    bool dead, closing, busy; /* busy: completions run, so the store may not be freed */
    int fail_commits;
    int64_t stall_until_ms;
    struct pending_line line, commit, finish;
    int64_t commit_start_ms;
    struct timer *commit_timer, *probe_timer, *read_timer;
    struct store_read_line reads;
    struct store_stats stats;
};

static struct store_sim *self_of(struct store *store)
{
    return (struct store_sim *)store;
}

static int64_t drawn_between(struct store_sim *self, int64_t low, int64_t high)
{
    return low + (int64_t)(random_mix(&self->random) % (uint64_t)(high - low + 1));
}

static void line_init(struct pending_line *line)
{
    *line = (struct pending_line){.end = &line->first};
}

static void line_push(struct pending_line *line, struct pending *pending)
{
    pending->next = NULL;
    *line->end = pending;
    line->end = &pending->next;
}

static struct pending *line_pop(struct pending_line *line)
{
    struct pending *pending = line->first;
    if (pending) {
        line->first = pending->next;
        line->end = line->first ? line->end : &line->first;
    }
    return pending;
}

/* The end of a commit: writes, or fails, what is in it. */
static void commit_end(struct store_sim *self)
{
    bool fails = self->fail_commits > 0;
    self->fail_commits -= fails;
    self->stats.failing = fails;
    copy_text(self->stats.error, sizeof self->stats.error,
              fails ? "the simulated disk is full" : "");
    struct pending *pending;
    while ((pending = line_pop(&self->commit))) {
        if (fails) {
            (void)error_set(&pending->err, ERROR_STORE, "%s", self->stats.error);
            store_batch_fail(pending->batch);
        } else if (disk_write(self->disk, pending->batch, &pending->err) == 0) {
            store_count(&self->stats, pending->batch);
        }
        self->stats.pending -= (int64_t)pending->batch->count;
        line_push(&self->finish, pending);
    }
    if (fails) {
        timer_start(self->probe_timer, PROBE_MS);
        return;
    }
    int64_t now_ms = clock_mono_ms(self->clock);
    int64_t took_us = (now_ms - self->commit_start_ms) * 1000;
    self->stats.commits++;
    self->stats.last_commit_ms = now_ms;
    self->stats.commit_us =
        self->stats.commits == 1 ? took_us : (self->stats.commit_us * 7 + took_us) / 8;
}

static void finish_all(struct store_sim *self)
{
    struct pending *pending;
    while ((pending = line_pop(&self->finish))) {
        struct store_batch *batch = pending->batch;
        struct error err = pending->err;
        free(pending);
        batch->done(batch, &err);
    }
}

/* Moves up to LIMIT_BATCH items from the line to the commit; a batch stays whole. */
static void commit_fill(struct store_sim *self)
{
    int64_t count = 0;
    while (self->line.first) {
        int64_t more = (int64_t)self->line.first->batch->count;
        if (count > 0 && count + more > LIMIT_BATCH) {
            return;
        }
        count += more;
        line_push(&self->commit, line_pop(&self->line));
    }
}

static void commit_start(struct store_sim *self)
{
    if (self->commit.first || !self->line.first || self->dead || self->closing) {
        return;
    }
    commit_fill(self);
    const struct store_sim_options *options = &self->options;
    int64_t ms = drawn_between(self, options->commit_ms_min, options->commit_ms_max);
    if (drawn_between(self, 1, SLOW_ONE_IN) == 1) {
        ms = options->slow_ms;
    }
    self->commit_start_ms = clock_mono_ms(self->clock);
    timer_start(self->commit_timer, ms);
}

/* Runs fn and the completions that it leads to; one of them may close the store. */
static void run(struct store_sim *self, void (*fn)(struct store_sim *self))
{
    bool outer = !self->busy;
    self->busy = true;
    fn(self);
    if (outer) {
        self->busy = false;
        if (self->closing) {
            free(self);
        }
    }
}

static void commit_cb(void *arg)
{
    struct store_sim *self = arg;
    int64_t left_ms = self->stall_until_ms - clock_mono_ms(self->clock);
    if (left_ms > 0) {
        timer_start(self->commit_timer, left_ms);
        return;
    }
    commit_end(self);
    commit_start(self);
    run(self, finish_all);
}

static void probe_cb(void *arg)
{
    struct store_sim *self = arg;
    if (!self->stats.failing) {
        return;
    }
    if (self->fail_commits > 0) {
        self->fail_commits--;
        timer_start(self->probe_timer, PROBE_MS);
    } else {
        self->stats.failing = false;
        self->stats.error[0] = '\0';
    }
}

static void read_timer_start(struct store_sim *self)
{
    timer_start(self->read_timer, drawn_between(self, 0, self->options.read_ms_max));
}

static void read_refuse(struct store_sim *self, struct store_read *read)
{
    if (self->dead || self->closing) {
        (void)error_set(&read->err, ERROR_UNAVAILABLE, "the store is gone");
    }
}

static void read_one(struct store_sim *self)
{
    struct store_read *read = store_line_pop(&self->reads);
    if (!read) {
        return;
    }
    read_refuse(self, read);
    if (read->err.code == ERROR_NONE) {
        disk_read(self->disk, read);
    }
    if (self->reads.first) {
        read_timer_start(self);
    }
    store_read_finish(read);
}

static void read_cb(void *arg)
{
    run(arg, read_one);
}

static int sim_append(struct store *store, struct store_batch *batch, struct error *err)
{
    struct store_sim *self = self_of(store);
    if (self->dead || self->closing) {
        return error_set(err, ERROR_UNAVAILABLE, "the store is gone");
    }
    if (store_admit(self->stats.pending, batch, err) < 0) {
        return -1;
    }
    struct pending *pending = xcalloc(1, sizeof *pending);
    pending->batch = batch;
    pending->appended_ms = clock_mono_ms(self->clock);
    self->stats.pending += (int64_t)batch->count;
    line_push(&self->line, pending);
    commit_start(self);
    return 0;
}

static int sim_load(struct store *store, const struct store_loader *loader, struct error *err)
{
    struct store_sim *self = self_of(store);
    if (self->dead) {
        return error_set(err, ERROR_UNAVAILABLE, "the store is gone");
    }
    return disk_load(self->disk, loader, clock_wall_ms(self->clock), err);
}

static void start_read(struct store_sim *self, struct store_read *read)
{
    if (self->reads.count >= LIMIT_READS) {
        (void)error_set(&read->err, ERROR_UNAVAILABLE, "%d reads are in line", self->reads.count);
    }
    bool first = !self->reads.first;
    store_line_push(&self->reads, read);
    if (first && !self->closing) {
        read_timer_start(self);
    }
}

static void sim_jobs(struct store *store, const struct store_filter *filter, store_read_fn done,
                     void *arg)
{
    start_read(self_of(store), store_read_jobs(filter, done, arg));
}

static void sim_events(struct store *store, const char *id, int64_t after_seq, int limit,
                       store_read_fn done, void *arg)
{
    start_read(self_of(store), store_read_events(id, after_seq, limit, done, arg));
}

static void sim_docs(struct store *store, enum store_table table, const char *id, int limit,
                     store_read_fn done, void *arg)
{
    start_read(self_of(store), store_read_docs(table, id, limit, done, arg));
}

static void sim_stats(struct store *store, struct store_stats *out)
{
    struct store_sim *self = self_of(store);
    const struct pending *oldest = self->commit.first ? self->commit.first : self->line.first;
    *out = self->stats;
    out->oldest_pending_ms = oldest ? oldest->appended_ms : 0;
}

static void sim_prune(struct store *store, int64_t finished_before_ms, int64_t now_ms)
{
    struct store_sim *self = self_of(store);
    if (!self->dead) {
        disk_prune(self->disk, finished_before_ms, now_ms);
        self->stats.prunes++;
    }
}

static void reads_end(struct store_sim *self)
{
    struct store_read *read;
    while ((read = store_line_pop(&self->reads))) {
        read_refuse(self, read);
        store_read_finish(read);
    }
}

static void sim_close(struct store *store)
{
    struct store_sim *self = self_of(store);
    self->closing = true;
    if (!self->dead) {
        while (self->commit.first || self->line.first) {
            commit_fill(self);
            commit_end(self);
        }
        disk_close(self->disk);
    }
    timer_destroy(self->commit_timer);
    timer_destroy(self->probe_timer);
    timer_destroy(self->read_timer);
    finish_all(self);
    reads_end(self);
    if (!self->busy) {
        free(self);
    }
}

static const struct store_ops sim_ops = {
    .append = sim_append,
    .load = sim_load,
    .jobs = sim_jobs,
    .events = sim_events,
    .docs = sim_docs,
    .stats = sim_stats,
    .prune = sim_prune,
    .close = sim_close,
};

void store_sim_fail(struct store *store, int commits)
{
    self_of(store)->fail_commits = commits;
}

void store_sim_stall(struct store *store, int64_t ms)
{
    struct store_sim *self = self_of(store);
    self->stall_until_ms = clock_mono_ms(self->clock) + ms;
}

static void lose_one(struct store_sim *self, struct pending *pending)
{
    store_batch_fail(pending->batch);
    (void)error_set(&pending->err, ERROR_UNAVAILABLE, "the store was lost before it answered");
    self->stats.pending -= (int64_t)pending->batch->count;
    line_push(&self->finish, pending);
}

static void lose_all(struct store_sim *self)
{
    bool written = (random_mix(&self->random) & 1) != 0 && self->fail_commits == 0;
    struct pending *pending;
    while ((pending = line_pop(&self->commit))) {
        if (written) {
            (void)disk_write(self->disk, pending->batch, &pending->err);
        }
        lose_one(self, pending);
    }
    while ((pending = line_pop(&self->line))) {
        lose_one(self, pending);
    }
    finish_all(self);
    reads_end(self);
}

void store_sim_lose(struct store *store)
{
    struct store_sim *self = self_of(store);
    self->dead = true;
    timer_stop(self->commit_timer);
    timer_stop(self->probe_timer);
    timer_stop(self->read_timer);
    disk_close(self->disk);
    run(self, lose_all);
}

int store_sim_open(struct disk *disk, struct clock *clock, const struct store_sim_options *options,
                   struct store **out, struct error *err)
{
    uint64_t generation;
    if (disk_open(disk, &generation, err) < 0) {
        return -1;
    }
    struct store_sim *self = xcalloc(1, sizeof *self);
    self->base.ops = &sim_ops;
    self->disk = disk;
    self->clock = clock;
    self->options = options ? *options : (struct store_sim_options){0};
    if (self->options.commit_ms_max == 0) {
        self->options.commit_ms_min = 1;
        self->options.commit_ms_max = 4;
    }
    self->options.slow_ms = self->options.slow_ms ? self->options.slow_ms : 50;
    self->options.read_ms_max = self->options.read_ms_max ? self->options.read_ms_max : 2;
    self->random = self->options.seed ^ (generation << 32);
    line_init(&self->line);
    line_init(&self->commit);
    line_init(&self->finish);
    store_line_init(&self->reads);
    self->commit_timer = clock_timer(clock, commit_cb, self);
    self->probe_timer = clock_timer(clock, probe_cb, self);
    self->read_timer = clock_timer(clock, read_cb, self);
    *out = &self->base;
    return 0;
}
