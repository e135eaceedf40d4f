/* store_sim.h - the store port in memory: commits take simulated time and can be made to fail.
 *
 * What is durable lives on a disk that outlives the store, so that a crash is: lose, close, open again
 * on the same disk. Same seed, same calls: the same completions at the same times. */
#ifndef BROKER_SIM_STORE_SIM_H
#define BROKER_SIM_STORE_SIM_H

#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/store.h"

#include <stdint.h>

struct disk; /* store_disk.h: disk_create, disk_destroy */

struct store_sim_options {
    uint64_t seed;
    int64_t commit_ms_min, commit_ms_max; /* of one commit, evenly spread; both 0: 1 to 4 ms */
    int64_t slow_ms;                      /* of one commit in a hundred; 0: 50 ms */
    int64_t read_ms_max;                  /* of one read; 0: 2 ms */
};

/* CONFLICT when a store is open on the disk. options may be NULL. */
int store_sim_open(struct disk *disk, struct clock *clock, const struct store_sim_options *options,
                   struct store **out, struct error *err);

/* Faults. The next so many commits fail as on a full disk. */
void store_sim_fail(struct store *store, int commits);
/* No commit ends before this time is over. */
void store_sim_stall(struct store *store, int64_t ms);
/* Power loss: of the commit under way either all or nothing is on disk (the seed decides); nothing of
 * what waits. All of it completes as STORE_FAILED within the call, with UNAVAILABLE; from then on the
 * store refuses everything but close. */
void store_sim_lose(struct store *store);

#endif
