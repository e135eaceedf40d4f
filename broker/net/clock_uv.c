/* clock_uv.c - the real clock: the only place that reads time and sets timers.
 *
 * Monotonic time counts while the machine sleeps too (CLOCK_BOOTTIME), so that a lease cannot outlive a
 * suspend. Timers run on the loop's own clock, which does not: they are late after a suspend, never
 * early. A timer's memory is freed by the loop, so the loop must run once more after the last one was
 * destroyed. */
#include "broker/net/clock_uv.h"

#include "broker/core/alloc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

struct clock_uv {
    struct clock base;
    uv_loop_t *loop;
    bool firing; /* a timer's function runs */
};

struct timer_uv {
    struct timer base;
    uv_timer_t handle;
};

static int64_t read_ms(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now); /* fails only for a clock that does not exist */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t wall_ms(struct clock *clock)
{
    (void)clock;
    return read_ms(CLOCK_REALTIME);
}

static int64_t mono_ms(struct clock *clock)
{
    (void)clock;
    return read_ms(CLOCK_BOOTTIME);
}

static uint64_t random_bits(struct clock *clock)
{
    (void)clock;
    uint64_t bits;
    while (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits) {
        if (errno != EINTR) { /* ids must not repeat: no weaker source will do */
            (void)fputs("tieline: the kernel gives no random numbers\n", stderr);
            abort();
        }
    }
    return bits;
}

static void fired_cb(uv_timer_t *handle)
{
    struct timer_uv *timer = handle->data;
    struct clock_uv *clock = (struct clock_uv *)timer->base.clock;
    clock->firing = true;
    timer->base.fn(timer->base.arg); /* may destroy it */
    clock->firing = false;
}

static void closed_cb(uv_handle_t *handle)
{
    free(handle->data);
}

static struct timer *create_timer(struct clock *clock, timer_fn fn, void *arg)
{
    struct timer_uv *timer = xcalloc(1, sizeof *timer);
    timer->base = (struct timer){.clock = clock, .fn = fn, .arg = arg};
    (void)uv_timer_init(((struct clock_uv *)clock)->loop, &timer->handle); /* cannot fail */
    timer->handle.data = timer;
    return &timer->base;
}

/* The loop's time is that of the turn's start: the work since then must not cut the delay. It is added
 * here, never set forward in the loop: a timer that is started again by its own function would be due in
 * the same turn, and the loop would see no file descriptor until the last of them is done. */
static void start_timer(struct timer *timer, int64_t delay_ms)
{
    const struct clock_uv *clock = (const struct clock_uv *)timer->clock;
    uint64_t now = uv_hrtime() / 1000000;
    uint64_t turn = uv_now(clock->loop);
    uint64_t lag = now > turn ? now - turn : 0;
    if (clock->firing && lag + (uint64_t)delay_ms == 0) {
        lag = 1;
    }
    (void)uv_timer_start(&((struct timer_uv *)timer)->handle, fired_cb, lag + (uint64_t)delay_ms,
                         0);
}

static void stop_timer(struct timer *timer)
{
    (void)uv_timer_stop(&((struct timer_uv *)timer)->handle);
}

static void destroy_timer(struct timer *timer)
{
    uv_close((uv_handle_t *)&((struct timer_uv *)timer)->handle, closed_cb);
}

static const struct clock_ops ops = {
    .wall_ms = wall_ms,
    .mono_ms = mono_ms,
    .random = random_bits,
    .timer_create = create_timer,
    .timer_start = start_timer,
    .timer_stop = stop_timer,
    .timer_destroy = destroy_timer,
};

struct clock *clock_uv_create(uv_loop_t *loop)
{
    struct clock_uv *clock = xcalloc(1, sizeof *clock);
    clock->base.ops = &ops;
    clock->loop = loop;
    return &clock->base;
}

void clock_uv_destroy(struct clock *clock)
{
    free(clock);
}

int64_t clock_uv_thread_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
