/* clock_sim.c - a heap of timers by (time, order of setting), and a generator (xoshiro256**).
 *
 * Time moves only to the next timer, so a run takes as long as its work and nothing depends on the
 * machine. The order of setting breaks ties: what was asked for first happens first. */
#include "broker/sim/clock_sim.h"

#include "broker/core/alloc.h"
#include "broker/sim/random.h"

#include <assert.h>
#include <stdlib.h>

enum { START_MS = 1000 }; /* 0 means "not yet" in many places */

#define NOT_SET SIZE_MAX

struct sim_timer {
    struct timer base;
    size_t index; /* in the heap */
    int64_t due_ms;
    uint64_t order;
};

struct clock_sim {
    struct clock base;
    int64_t now_ms, wall_offset_ms, steps;
    uint64_t order;
    struct random random;
    struct sim_timer **heap;
    size_t set, room, timers;
};

static struct clock_sim *self_of(const struct clock *clock)
{
    return (struct clock_sim *)clock;
}

/* --------------------------------------------------------------------------------------------- heap */

static bool is_before(const struct sim_timer *a, const struct sim_timer *b)
{
    return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->order < b->order;
}

static void put(struct clock_sim *self, size_t index, struct sim_timer *timer)
{
    self->heap[index] = timer;
    timer->index = index;
}

static void sift_up(struct clock_sim *self, size_t index)
{
    struct sim_timer *timer = self->heap[index];
    while (index > 0 && is_before(timer, self->heap[(index - 1) / 2])) {
        put(self, index, self->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    put(self, index, timer);
}

static void sift_down(struct clock_sim *self, size_t index)
{
    struct sim_timer *timer = self->heap[index];
    for (;;) {
        size_t child = 2 * index + 1;
        if (child + 1 < self->set && is_before(self->heap[child + 1], self->heap[child])) {
            child++;
        }
        if (child >= self->set || !is_before(self->heap[child], timer)) {
            break;
        }
        put(self, index, self->heap[child]);
        index = child;
    }
    put(self, index, timer);
}

static void heap_add(struct clock_sim *self, struct sim_timer *timer)
{
    if (self->set == self->room) {
        self->room = self->room ? self->room * 2 : 64;
        self->heap = xrealloc(self->heap, self->room, sizeof(struct sim_timer *));
    }
    put(self, self->set++, timer);
    sift_up(self, timer->index);
}

static void heap_remove(struct clock_sim *self, struct sim_timer *timer)
{
    size_t index = timer->index;
    struct sim_timer *last = self->heap[--self->set];
    timer->index = NOT_SET;
    if (last != timer) {
        put(self, index, last);
        sift_up(self, index);
        sift_down(self, last->index);
    }
}

/* --------------------------------------------------------------------------------------------- port */

static int64_t sim_wall_ms(struct clock *clock)
{
    return self_of(clock)->now_ms + self_of(clock)->wall_offset_ms;
}

static int64_t sim_mono_ms(struct clock *clock)
{
    return self_of(clock)->now_ms;
}

static uint64_t sim_random(struct clock *clock)
{
    return random_next(&self_of(clock)->random);
}

static struct timer *sim_timer_create(struct clock *clock, timer_fn fn, void *arg)
{
    struct sim_timer *timer = xcalloc(1, sizeof *timer);
    timer->base = (struct timer){clock, fn, arg};
    timer->index = NOT_SET;
    self_of(clock)->timers++;
    return &timer->base;
}

static void sim_timer_stop(struct timer *base)
{
    struct sim_timer *timer = (struct sim_timer *)base;
    if (timer->index != NOT_SET) {
        heap_remove(self_of(base->clock), timer);
    }
}

static void sim_timer_start(struct timer *base, int64_t delay_ms)
{
    struct sim_timer *timer = (struct sim_timer *)base;
    struct clock_sim *self = self_of(base->clock);
    sim_timer_stop(base);
    timer->due_ms = self->now_ms + delay_ms;
    timer->order = ++self->order;
    heap_add(self, timer);
}

static void sim_timer_destroy(struct timer *base)
{
    sim_timer_stop(base);
    self_of(base->clock)->timers--;
    free(base);
}

static const struct clock_ops sim_ops = {
    .wall_ms = sim_wall_ms,
    .mono_ms = sim_mono_ms,
    .random = sim_random,
    .timer_create = sim_timer_create,
    .timer_start = sim_timer_start,
    .timer_stop = sim_timer_stop,
    .timer_destroy = sim_timer_destroy,
};

/* ------------------------------------------------------------------------------------------- moving */

bool clock_sim_step(struct clock *clock)
{
    struct clock_sim *self = self_of(clock);
    if (self->set == 0) {
        return false;
    }
    struct sim_timer *timer = self->heap[0];
    heap_remove(self, timer);
    self->now_ms = timer->due_ms;
    self->steps++;
    timer->base.fn(timer->base.arg);
    return true;
}

void clock_sim_run_until(struct clock *clock, int64_t mono_ms)
{
    struct clock_sim *self = self_of(clock);
    while (self->set > 0 && self->heap[0]->due_ms <= mono_ms) {
        (void)clock_sim_step(clock);
    }
    self->now_ms = mono_ms > self->now_ms ? mono_ms : self->now_ms;
}

void clock_sim_pass(struct clock *clock, int64_t ms)
{
    clock_sim_run_until(clock, self_of(clock)->now_ms + ms);
}

bool clock_sim_run_idle(struct clock *clock, int64_t steps)
{
    while (steps-- > 0 && clock_sim_step(clock)) {
    }
    return self_of(clock)->set == 0;
}

void clock_sim_skew(struct clock *clock, int64_t ms)
{
    self_of(clock)->wall_offset_ms += ms;
}

int64_t clock_sim_steps(const struct clock *clock)
{
    return self_of(clock)->steps;
}

size_t clock_sim_timers(const struct clock *clock)
{
    return self_of(clock)->timers;
}

struct clock *clock_sim_create(int64_t wall_ms, uint64_t seed)
{
    struct clock_sim *self = xcalloc(1, sizeof *self);
    self->base.ops = &sim_ops;
    self->now_ms = START_MS;
    self->wall_offset_ms = wall_ms - START_MS;
    random_init(&self->random, seed);
    return &self->base;
}

void clock_sim_destroy(struct clock *clock)
{
    if (clock) {
        struct clock_sim *self = self_of(clock);
        assert(self->timers == 0);
        free(self->heap);
        free(self);
    }
}
