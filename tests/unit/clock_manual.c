#include "tests/unit/clock_manual.h"

#include "broker/core/alloc.h"

#include <stdlib.h>

struct manual_timer {
    struct timer base;
    bool set;
    int64_t due_ms;
    uint64_t order;
    struct manual_timer *next;
};

struct clock_manual {
    struct clock base;
    int64_t now_ms, wall_offset_ms;
    uint64_t random, order;
    struct manual_timer *timers;
};

static struct clock_manual *self_of(struct clock *clock)
{
    return (struct clock_manual *)clock;
}

static int64_t manual_wall_ms(struct clock *clock)
{
    return self_of(clock)->now_ms + self_of(clock)->wall_offset_ms;
}

static int64_t manual_mono_ms(struct clock *clock)
{
    return self_of(clock)->now_ms;
}

static uint64_t manual_random(struct clock *clock)
{
    struct clock_manual *self = self_of(clock);
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    self->random ^= self->random << 17;
    return self->random;
}

static struct timer *manual_timer_create(struct clock *clock, timer_fn fn, void *arg)
{
    struct manual_timer *timer = xcalloc(1, sizeof *timer);
    timer->base = (struct timer){clock, fn, arg};
    timer->next = self_of(clock)->timers;
    self_of(clock)->timers = timer;
    return &timer->base;
}

static void manual_timer_start(struct timer *base, int64_t delay_ms)
{
    struct manual_timer *timer = (struct manual_timer *)base;
    struct clock_manual *self = self_of(base->clock);
    timer->set = true;
    timer->due_ms = self->now_ms + delay_ms;
    timer->order = ++self->order;
}

static void manual_timer_stop(struct timer *base)
{
    ((struct manual_timer *)base)->set = false;
}

static void manual_timer_destroy(struct timer *base)
{
    struct manual_timer **at = &self_of(base->clock)->timers;
    while (&(*at)->base != base) {
        at = &(*at)->next;
    }
    *at = (*at)->next;
    free(base);
}

static struct manual_timer *next_timer(struct clock_manual *self)
{
    struct manual_timer *first = NULL;
    for (struct manual_timer *at = self->timers; at; at = at->next) {
        bool sooner = at->set && (!first || at->due_ms < first->due_ms ||
                                  (at->due_ms == first->due_ms && at->order < first->order));
        first = sooner ? at : first;
    }
    return first;
}

bool clock_manual_step(struct clock *clock)
{
    struct manual_timer *timer = next_timer(self_of(clock));
    if (!timer) {
        return false;
    }
    self_of(clock)->now_ms = timer->due_ms;
    timer->set = false;
    timer->base.fn(timer->base.arg);
    return true;
}

void clock_manual_pass(struct clock *clock, int64_t ms)
{
    struct clock_manual *self = self_of(clock);
    int64_t until_ms = self->now_ms + ms;
    struct manual_timer *timer;
    while ((timer = next_timer(self)) && timer->due_ms <= until_ms) {
        (void)clock_manual_step(clock);
    }
    self->now_ms = until_ms;
}

static const struct clock_ops manual_ops = {
    .wall_ms = manual_wall_ms,
    .mono_ms = manual_mono_ms,
    .random = manual_random,
    .timer_create = manual_timer_create,
    .timer_start = manual_timer_start,
    .timer_stop = manual_timer_stop,
    .timer_destroy = manual_timer_destroy,
};

struct clock *clock_manual_create(int64_t wall_ms, uint64_t seed)
{
    struct clock_manual *self = xcalloc(1, sizeof *self);
    self->base.ops = &manual_ops;
    self->now_ms = 1;
    self->wall_offset_ms = wall_ms - 1;
    self->random = seed * 2 + 1;
    return &self->base;
}

void clock_manual_destroy(struct clock *clock)
{
    struct clock_manual *self = self_of(clock);
    while (self->timers) {
        manual_timer_destroy(&self->timers->base);
    }
    free(self);
}
