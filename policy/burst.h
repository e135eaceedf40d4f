/* burst.h - when a rented tier opens and closes: one pure step of the controller.
 *
 * closed -> opening (a condition of `open` holds, its `for` runs) -> open -> closing (all of `close`
 * holds, its `for` runs) -> closed; opening falls back to closed and closing back to open when the
 * condition no longer holds. Hysteresis is the gap between `open` and `close`. */
#ifndef POLICY_BURST_H
#define POLICY_BURST_H

#include "broker/core/rules.h"
#include "policy/decide.h"

struct burst_facts {     /* at this moment, for one burst */
    int64_t now_ms;      /* monotonic */
    int64_t pending;     /* jobs of ours that wait and that the burst's places could run */
    int64_t all_pending; /* all waiting jobs at home, ours and others' */
    int64_t wait_ms;     /* longest wait of ours among pending */
    int64_t load;        /* millionths of the own places in use */
};
struct burst_memory { /* kept by the caller between steps; zero at first */
    enum burst_state state;
    int64_t holds_since_ms[8]; /* per condition of `open`: since when it holds; 0: does not */
    int64_t close_since_ms;
    char why[WHY_SIZE]; /* of the last change: "62 pending > 50" */
};
enum { BURST_OPEN_MAX = 8 };

/* Returns whether the state changed; memory->why then says the figure. */
bool burst_step(const struct burst_rule *rule, const struct burst_facts *facts,
                struct burst_memory *memory);

#endif
