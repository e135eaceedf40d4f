/* audit.h - reads a log of events as a stranger would and checks what must hold in every prefix of it. */
#ifndef TESTS_SIM_AUDIT_H
#define TESTS_SIM_AUDIT_H

#include "broker/sim/sim.h"

#include <stdbool.h>
#include <stdint.h>

struct audit_rules {
    int64_t budget_nano; /* settled and booked together never exceed it; 0: not asked */
    int64_t burst_nodes; /* thousandths: never more rented at once; 0: not asked */
    bool in_order;       /* jobs of one shape are placed in the order of their ids */
};
struct audit_figures {
    int64_t events, jobs, final, placements, rented, starts;
    int64_t not_started_max; /* most attempts at one place that had not started, as the log says */
    int64_t committed_max;   /* nano-units: most that was settled and booked at once */
};

/* Fails the test on the first thing that does not hold. */
void audit_log(const char *log, const struct audit_rules *rules, struct audit_figures *out);

#endif
