/* clock.h - port: time, timers and random numbers. The real one sits on libuv (broker/net/clock_uv.h),
 * the simulated one on a seeded virtual clock (broker/sim/clock_sim.h).
 *
 * All calls are made on the loop thread. Wall time is for display, prices and deadlines; intervals and
 * leases use monotonic time. Both are milliseconds in int64. */
#ifndef BROKER_CORE_CLOCK_H
#define BROKER_CORE_CLOCK_H

#include <stdint.h>

struct clock;
struct timer;
typedef void (*timer_fn)(void *arg);

struct clock_ops {
    int64_t (*wall_ms)(struct clock *clock);
    int64_t (*mono_ms)(struct clock *clock);
    uint64_t (*random)(struct clock *clock);
    struct timer *(*timer_create)(struct clock *clock, timer_fn fn, void *arg);
    void (*timer_start)(struct timer *timer, int64_t delay_ms);
    void (*timer_stop)(struct timer *timer);
    void (*timer_destroy)(struct timer *timer);
};

/* Implementations embed this as their first member; so does struct timer with its clock. */
struct clock {
    const struct clock_ops *ops;
};
struct timer {
    struct clock *clock;
    timer_fn fn;
    void *arg;
};

static inline int64_t clock_wall_ms(struct clock *clock)
{
    return clock->ops->wall_ms(clock);
}

static inline int64_t clock_mono_ms(struct clock *clock)
{
    return clock->ops->mono_ms(clock);
}

static inline uint64_t clock_random(struct clock *clock)
{
    return clock->ops->random(clock);
}

/* The timer is idle until started. Never returns NULL (memory exhaustion aborts). */
static inline struct timer *clock_timer(struct clock *clock, timer_fn fn, void *arg)
{
    return clock->ops->timer_create(clock, fn, arg);
}

/* One shot. A running timer is set anew. 0 means: in the next turn of the loop, never at once. */
static inline void timer_start(struct timer *timer, int64_t delay_ms)
{
    timer->clock->ops->timer_start(timer, delay_ms < 0 ? 0 : delay_ms);
}

static inline void timer_stop(struct timer *timer)
{
    timer->clock->ops->timer_stop(timer);
}

/* Takes NULL. May be called from the timer's own function. */
static inline void timer_destroy(struct timer *timer)
{
    if (timer) {
        timer->clock->ops->timer_destroy(timer);
    }
}

#endif
