/* decide.h - one decision: which place, for how much money, and why; or why none.
 *
 * Pure: `now` is in the view, nothing is read but the arguments, nothing is kept. The scheduler,
 * explain, expectations, the dry run and the simulator all call decide(). Order: guards; limits,
 * budgets, health (each removal with its sentence); route and first open tier; smallest sum of money
 * in it, in bins of 2 %, ties by fixed order. Formulas: docs/deciding.md. Money: nano-units of the
 * policy's currency. */
#ifndef POLICY_DECIDE_H
#define POLICY_DECIDE_H

#include "broker/core/cluster.h"
#include "broker/core/job.h"
#include "broker/core/rules.h"
#include "broker/core/signal.h"
#include "broker/core/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* X(constant, name, billed): cost terms, in the order in which they are shown */
#define TERM_LIST(X)                                                                               \
    X(RENT, "rent", true)                                                                          \
    X(POWER, "power", true)                                                                        \
    X(WAITING, "waiting", false)                                                                   \
    X(RISK, "risk", false)                                                                         \
    X(CROWD, "crowd", false)

enum term_kind {
#define X(constant, name, billed) TERM_##constant,
    TERM_LIST(X)
#undef X
        TERM_COUNT
};

/* X(constant, word): what became of a place in a decision */
#define VERDICT_LIST(X)                                                                            \
    X(CHOSEN, "chosen")                                                                            \
    X(DEARER, "dearer")   /* could take it, another costs less */                                  \
    X(FULL, "full")       /* past fill or wait of its tier */                                      \
    X(CLOSED, "closed")   /* its burst is not open, or an earlier tier serves */                   \
    X(LATER, "later")     /* cannot take it now: no slot, stale, drained, no budget left */        \
    X(REMOVED, "removed") /* guard, route, skip, health */                                         \
    X(NEVER, "never")     /* could never run it */

enum verdict {
#define X(constant, word) VERDICT_##constant,
    VERDICT_LIST(X)
#undef X
        VERDICT_COUNT
};

enum burst_state { BURST_CLOSED, BURST_OPENING, BURST_OPEN, BURST_CLOSING };

struct place_view {
    const struct place *place;
    bool known;          /* it was probed at least once */
    bool reachable;      /* the last probe answered */
    int64_t silent_ms;   /* since when not, when not reachable */
    int64_t age_ms;      /* of condition */
    int64_t good_for_ms; /* its shelf life: older filters the place */
    bool drained;
    char drain_note[64];
    bool looking; /* nothing is submitted yet: the broker has just started and lists the members */
    bool recovering; /* nothing may be submitted: the store is older than the world */
    int64_t health;  /* millionths, SHARE_ONE: all well */
    struct condition condition;
    int64_t
        waiting_ours; /* attempts of ours there that have not started, reservations among them */
    int64_t running_ours;
    struct resources unseen;             /* of our placements that condition does not show yet */
    int64_t unseen_gpus[GPU_MODELS_MAX]; /* the same by condition.gpus index, thousandths */
    int64_t unseen_jobs;
    int64_t service_ms;   /* mean run time of jobs there; 0: not known */
    int64_t arrivals_ms;  /* mean time between two arrivals there; 0: not known */
    int64_t rented_nodes; /* thousandths of machines that our attempts hold there */
};
struct burst_facts; /* policy/burst.h */
struct burst_view { /* by index of rules.bursts */
    const struct burst_rule *rule;
    enum burst_state state;
    int64_t jobs;                    /* attempts placed through it that hold a place */
    int64_t nodes;                   /* thousandths */
    const struct burst_facts *facts; /* of its last step, for the sentences; or NULL */
    const char *why;                 /* of its last change: "62 pending > 50"; or NULL */
};
struct budget_view { /* by index of rules.budgets; of the running period */
    int64_t settled, booked;
};
struct view {
    int64_t now_ms; /* wall */
    const struct rules *rules;
    const struct federation *federation;
    struct place_view *places; /* by place index */
    struct burst_view *bursts;
    struct budget_view *budgets;
};

struct subject { /* what is decided */
    struct spec *spec;
    const char *owner;
    int64_t waited_ms;    /* since it was queued */
    struct texts refused; /* places whose member refused this job: removed; borrowed */
    bool silent; /* only what is chosen and the verdicts are wanted: no sentence is written */
};

enum { WHY_SIZE = 160 };

struct verdict_row {
    const struct place *place;
    int tier; /* from 1; 0: in no tier of the route */
    enum verdict verdict;
    bool silent;               /* no sentence is written */
    char why[WHY_SIZE];        /* the sentence; "" when chosen or dearer */
    int64_t terms[TERM_COUNT]; /* nano-units; zero when not priced */
    int64_t sum;
    bool priced;
    int64_t rent_expected, booked, price_hour; /* nano-units */
    int64_t nodes;   /* thousandths of a machine that it would hold; 0 when nothing is rented */
    int64_t wait_ms; /* expected until it starts */
};

struct decision {
    int chosen;                /* index into rows; -1: none, the job waits */
    const struct route *route; /* NULL: none matches */
    int tier;
    const char *burst;        /* that opened the chosen tier, or NULL */
    char summary[WHY_SIZE];   /* why there, or what it waits for: "1 of 4 places later: ..." */
    struct verdict_row *rows; /* one per place, by index */
    size_t row_count;
    size_t can_now, can_later; /* places that can take it now, and later */
    struct texts budgets;      /* names that must hold the booking of the chosen place */
};

/* Fills out (zeroed by the caller, given to decision_fini afterwards). Never fails: no candidate at all
 * is itself an answer. */
void decide(const struct view *view, const struct subject *subject, struct decision *out);
void decision_fini(struct decision *decision);

/* Whether any configured place could ever run it, by configuration and last known totals alone. If
 * none: -1 and IMPOSSIBLE, with the nearest place's figure. Places never probed count as able. */
int decide_possible(const struct view *view, const struct subject *subject, struct error *err);

/* How many of the tiers' `wait` the job has outlived: together with its shape this says whether a
 * decision of another job may be reused. */
int decide_wait_step(const struct view *view, const struct subject *subject);

/* The record of a decision as JSON, integers and text only, fixed key order; explain prints it. */
json_t *decision_to_json(const struct decision *decision, const struct view *view);

const char *term_name(enum term_kind term);
bool term_is_billed(enum term_kind term);
const char *verdict_name(enum verdict verdict);
const char *burst_state_name(enum burst_state state);
int burst_state_find(const char *name); /* -1: none */

#endif
