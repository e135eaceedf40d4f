/* rules.h - the policy as plain structs. Filled by config/ from policy.yaml; immutable; pure data. */
#ifndef BROKER_CORE_RULES_H
#define BROKER_CORE_RULES_H

#include "broker/core/keys.h"
#include "broker/core/spec.h"
#include "broker/core/units.h"

#include <stdbool.h>
#include <stdint.h>

enum { RULES_HASH_SIZE = 65, RULES_HASH_SHORT = 6 };

struct worth { /* of an hour's waiting: money per hour, or a share of the reference cost per hour */
    bool is_share;
    int64_t share; /* millionths */
    struct money money;
};
struct class_rule {
    char *name;
    int64_t order; /* 1..9, lower goes first */
    int64_t share; /* millionths: least part of the starts when every class waits */
    struct worth waiting;
    struct job_time time; /* defaults of its jobs */
    struct needs needs;
};

enum tristate { ANY, NO, YES };
struct needs_match {         /* a range that is not given has low 0 and high UNLIMITED */
    struct range cpus, gpus; /* thousandths */
    struct range memory;     /* bytes */
    struct texts gpu;
};
struct match { /* all that are given must fit */
    struct texts class_name, team, owner, name;
    struct labels labels;
    struct needs_match needs;
    enum tristate is_protected;
};

struct guard {
    char *name;
    struct match match;
    struct labels require, forbid;
    int line;
};

struct tier {
    struct texts places;
    int64_t fill;       /* millionths; 0: no limit */
    int64_t wait;       /* ms; 0: no limit */
    int64_t leave_free; /* millionths; 0: none */
    char *burst;        /* NULL: always open */
    int line;
};
struct route {
    char *name;
    struct match match;
    struct list tiers; /* struct tier */
    int line;
};

struct burst_condition { /* what is 0 is not asked */
    int64_t pending;     /* more than so many jobs that the burst's places could run */
    int64_t all_pending; /* more than so many waiting jobs, ours and others' */
    int64_t wait;        /* ms: the longest of ours waits more than so long */
    int64_t load;        /* millionths of the own places in use */
    int64_t for_ms;      /* the condition holds so long */
};
struct burst_limit {
    int64_t nodes, jobs; /* UNLIMITED when not given */
};
struct burst_rule {
    char *name;
    struct list open;             /* struct burst_condition: any opens */
    struct burst_condition close; /* below all of it: closes */
    bool has_close;
    struct burst_limit at_most;
    char *budget;
    int line;
};

enum budget_per { BUDGET_JOB, BUDGET_DAY, BUDGET_WEEK, BUDGET_MONTH, BUDGET_YEAR };
struct budget_rule {
    char *name;
    struct money limit; /* in the policy's currency after loading */
    int per;            /* enum budget_per */
    struct match match;
    struct texts places; /* empty: all rented */
    int line;
};

struct rate_of_exchange { /* one unit of name in the policy's currency */
    char *name;
    struct money price;
};

struct expect_given {
    struct texts full, down, drained; /* places */
    struct texts open;                /* bursts */
    struct texts spent;               /* budgets */
};
struct expectation {
    struct value *job; /* a job without what it runs */
    struct expect_given given;
    struct texts goes_to, never;
    bool waits, has_waits;
    int line;
};

struct reference {    /* p_ref: what a share in `waiting` refers to; 0: the cheapest rented place */
    struct money cpu; /* per CPU and hour */
    struct list gpus; /* struct gpu_price */
};
struct gpu_price {
    char *name;
    struct money price;
};

struct rules {
    char hash[RULES_HASH_SIZE]; /* SHA-256 of the text, hex; the first RULES_HASH_SHORT are shown */
    int64_t version;
    char currency[CURRENCY_SIZE];
    struct list rates; /* struct rate_of_exchange */
    char *default_class;
    struct list classes; /* struct class_rule */
    struct list guards;  /* struct guard */
    struct list budgets; /* struct budget_rule */
    struct list bursts;  /* struct burst_rule */
    struct list routes;  /* struct route */
    struct list expects; /* struct expectation */
    struct reference reference;
    char *text; /* of the file, as it was read */
};

const struct class_rule *rules_class(const struct rules *rules, const char *name);
const struct burst_rule *rules_burst(const struct rules *rules, const char *name);
const struct budget_rule *rules_budget(const struct rules *rules, const char *name);

/* Converts money to nano-units of the policy's currency. Returns -1 when there is no rate. */
int rules_exchange(const struct rules *rules, const struct money *money, int64_t *nano);

#define RULES_AT(list, type, i) (&((type *)(list).items)[i])

#endif
