/* clock_uv.h - the real clock: time and timers of a libuv loop, random numbers of the kernel. */
#ifndef BROKER_NET_CLOCK_UV_H
#define BROKER_NET_CLOCK_UV_H

#include "broker/core/clock.h"

#include <uv.h>

struct clock *clock_uv_create(uv_loop_t *loop);
void clock_uv_destroy(struct clock *clock); /* every timer must be destroyed before */

/* Monotonic microseconds from no particular start. The one call here that any thread may make: the
 * store's writer measures its commits with it. */
int64_t clock_uv_thread_us(void);

#endif
