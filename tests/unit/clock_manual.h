/* clock_manual.h - a clock that stands still until the test moves it. */
#ifndef TESTS_UNIT_CLOCK_MANUAL_H
#define TESTS_UNIT_CLOCK_MANUAL_H

#include "broker/core/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct clock *clock_manual_create(int64_t wall_ms, uint64_t seed);
void clock_manual_destroy(struct clock *clock);
/* Goes to the next timer and runs it; timers of one time run in the order they were set. false: none. */
bool clock_manual_step(struct clock *clock);
/* Lets time pass and runs what falls due. */
void clock_manual_pass(struct clock *clock, int64_t ms);

#endif
