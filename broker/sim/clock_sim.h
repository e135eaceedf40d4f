/* clock_sim.h - the clock port on virtual time: it stands still until somebody moves it, then goes from
 * timer to timer. Same seed, same calls: the same times, the same order, the same random numbers. */
#ifndef BROKER_SIM_CLOCK_SIM_H
#define BROKER_SIM_CLOCK_SIM_H

#include "broker/core/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Wall time starts at wall_ms, monotonic time at some time that is not 0. */
struct clock *clock_sim_create(int64_t wall_ms, uint64_t seed);
/* Every timer must have been destroyed. Takes NULL. */
void clock_sim_destroy(struct clock *clock);

/* Goes to the next timer and runs it; timers of one time run in the order they were set. false: none. */
bool clock_sim_step(struct clock *clock);
/* Runs what falls due up to this monotonic time, and goes there. */
void clock_sim_run_until(struct clock *clock, int64_t mono_ms);
/* Lets so much time pass. 0: runs what is due now, and what that makes due now. */
void clock_sim_pass(struct clock *clock, int64_t ms);
/* Steps until no timer is set; false when at most steps were not enough. */
bool clock_sim_run_idle(struct clock *clock, int64_t steps);

/* Sets the wall clock forward or back; monotonic time does not notice. */
void clock_sim_skew(struct clock *clock, int64_t ms);

int64_t clock_sim_steps(const struct clock *clock); /* timers run since the start */
size_t clock_sim_timers(const struct clock *clock); /* that exist, set or not */

#endif
