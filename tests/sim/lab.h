/* lab.h - a federation for simulations: members m00, m01, ... of different sizes; the last ones rented. */
#ifndef TESTS_SIM_LAB_H
#define TESTS_SIM_LAB_H

#include "broker/sim/sim.h"

#include <stddef.h>
#include <stdint.h>

struct lab_plan {
    int members, rented; /* of them */
    int max_waiting;     /* of each place; 0: 20 */
    const char *policy;  /* text; NULL: lab_policy, or with none rented the built-in one */
    uint64_t seed;
    bool say; /* the broker's log goes to stderr */
};

/* Own places first, rented ones while the burst is open, a budget of 2 EUR a day. */
extern const char lab_policy[];

struct sim *lab_open(const struct lab_plan *plan);

/* Sends count jobs of mixed classes, teams and sizes, in requests of a hundred, in so much time. */
void lab_submit_mixed(struct sim *sim, uint64_t seed, size_t count, int64_t over_ms);

/* Runs until all is done or fails the test, with each(arg) now and then. */
void lab_run(struct sim *sim, void (*each)(void *arg), void *arg);

/* Every job that was sent is final, and the members started each as often as expected. */
void lab_check_done(struct sim *sim);

/* One figure of the broker's metrics; the sum of all samples whose line begins so. */
double lab_metric(struct sim *sim, const char *begin);

#endif
