/* The real clock: a timer that starts itself again leaves the loop its turn. */
#include "broker/net/clock_uv.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stddef.h>

struct turns {
    struct timer *timer;
    int fired, fired_before_io;
    bool seen;
    uv_async_t io;
};

enum { TURNS = 50 };

static void again_cb(void *arg)
{
    struct turns *turns = arg;
    uint64_t until = uv_hrtime() + 2000000; /* a slice of work */
    while (uv_hrtime() < until) {
    }
    if (++turns->fired < TURNS) {
        timer_start(turns->timer, 0);
    }
}

static void io_cb(uv_async_t *io)
{
    struct turns *turns = io->data;
    turns->seen = true;
    turns->fired_before_io = turns->fired;
    uv_close((uv_handle_t *)io, NULL);
}

Test(clock, a_timer_started_by_itself_waits_for_the_next_turn)
{
    uv_loop_t loop;
    struct turns turns = {.fired = 0};
    cr_assert_eq(uv_loop_init(&loop), 0);
    struct clock *clock = clock_uv_create(&loop);
    cr_assert_eq(uv_async_init(&loop, &turns.io, io_cb), 0);
    turns.io.data = &turns;
    turns.timer = clock_timer(clock, again_cb, &turns);
    timer_start(turns.timer, 0);
    cr_assert_eq(uv_async_send(&turns.io), 0);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect(turns.seen);
    cr_expect_eq(turns.fired, TURNS);
    cr_expect_leq(turns.fired_before_io, 2, "%d slices ran before a descriptor was looked at",
                  turns.fired_before_io);
    timer_destroy(turns.timer);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&loop), 0);
    clock_uv_destroy(clock);
}

Test(clock, work_before_the_start_does_not_cut_the_delay)
{
    uv_loop_t loop;
    struct turns turns = {.fired = TURNS};
    cr_assert_eq(uv_loop_init(&loop), 0);
    struct clock *clock = clock_uv_create(&loop);
    turns.timer = clock_timer(clock, again_cb, &turns);
    uint64_t until = uv_hrtime() + 30000000;
    while (uv_hrtime() < until) {
    }
    uint64_t start = uv_hrtime();
    timer_start(turns.timer, 20);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_geq((uv_hrtime() - start) / 1000000, 19);
    timer_destroy(turns.timer);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&loop), 0);
    clock_uv_destroy(clock);
}
