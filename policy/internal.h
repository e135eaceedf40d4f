/* internal.h - what the files of a decision share: one place under decision, arithmetic, sentences.
 *
 * decision.c walks, per place: filter_job, filter_guards, filter_able, route_has, filter_refused,
 * rent_price, filter_moment, rent_machines, filter_slots, terms_price; then route_choose and
 * summary_write. Each step that says no writes the verdict and its sentence. */
#ifndef POLICY_INTERNAL_H
#define POLICY_INTERNAL_H

#include "policy/decide.h"

enum amount { AMOUNT_CPUS, AMOUNT_MEMORY, AMOUNT_GPUS, AMOUNT_TIME, AMOUNT_COUNT };
enum { ROOM_COUNT = AMOUNT_TIME }; /* what a place has: the amounts before time */

struct room {         /* one resource of one place, as far as the job needs it */
    bool stated;      /* the total is known */
    bool free_stated; /* and what of it is free */
    int64_t total, need;
    int64_t free; /* less our placements that the place does not show yet; may be negative */
};

struct load {            /* of one resource, in millionths of the total */
    int64_t used, takes; /* what is in use, and what the job adds */
};

struct shortage { /* the amount of which a place has too little for one job, if it is an amount */
    bool is_amount;
    enum amount amount;
    int64_t have, need;
};

/* OUT: has its verdict. FULL: only fill or wait of its tier speak against it. CAN: could take it. */
enum option_state { OPTION_OUT, OPTION_FULL, OPTION_CAN };

struct option { /* one place in one decision */
    const struct place_view *view;
    struct verdict_row *row;
    struct spec *spec; /* resolved for the place; ours to unref */
    struct room rooms[ROOM_COUNT];
    bool elastic;                  /* machines come up on demand, the place states no totals */
    bool fits;                     /* it would start at once, as far as is known */
    int64_t used;                  /* millionths of its fullest resource */
    struct load loads[ROOM_COUNT]; /* of each resource that is stated */
    int load_count;
    const struct node_shape *shape; /* of the machine it would rent, or NULL */
    enum option_state state;
    int tier; /* from 1, in which state holds; 0: none yet */
    int rank; /* which pattern of the tier named it: breaks ties */
};

struct deciding { /* one decision under way */
    const struct view *view;
    const struct subject *subject;
    struct decision *out;
    struct option *options; /* by place index */
    int64_t reference;      /* nano-units: G_ref, the reference cost of the whole run */
    int64_t waiting_hour;   /* nano-units: worth of an hour's waiting */
    bool relaxed;           /* fill and wait were ignored: no later tier could take it */
};

/* arith.c: a * b / c for c > 0 in 128 bits; saturates. _up and _down: for a, b >= 0. */
int64_t scale_up(int64_t a, int64_t b, int64_t c);
int64_t scale_down(int64_t a, int64_t b, int64_t c);
int64_t scale_near(int64_t a, int64_t b, int64_t c); /* half up, of negative ones too */
int64_t add_capped(int64_t a, int64_t b);            /* saturates at both ends */
int64_t nano_round(double nano);                     /* half away from zero; saturates */

/* say.c: sentences. */
void say(struct verdict_row *row, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum { AMOUNT_TEXT_SIZE = 64 };
char *amount_text(enum amount amount, int64_t value, char out[AMOUNT_TEXT_SIZE]);   /* "1 GPU" */
const char *amount_noun(enum amount amount, int64_t value);                         /* "GPUs" */
char *amount_figure(enum amount amount, int64_t value, char out[AMOUNT_TEXT_SIZE]); /* "4" */
void join_texts(const struct texts *texts, const char *between, char *out, size_t size);
int64_t percent(int64_t millionths); /* whole ones, half up */

/* room.c */
void option_init(struct option *option, const struct federation *federation,
                 const struct place_view *view, const struct subject *subject,
                 struct verdict_row *row);
void option_fini(struct option *option);
int64_t option_need(const struct option *option, enum amount amount);
/* Machines of ours that the place may bring up, in thousandths; 0: no limit is stated. */
int64_t option_machines(const struct option *option);

/* filter.c: each returns whether the place stays, else the row has its verdict. Order: what never
 * changes for this job first, so that the sentence is the one that helps most. */
bool filter_job(struct option *option);
/* Nothing says as whom the owner's jobs would run there. */
bool filter_owner(struct option *option, const struct federation *federation, const char *owner);
bool filter_guards(struct option *option, const struct deciding *deciding);
bool filter_able(struct option *option, const struct federation *federation,
                 struct shortage *shortage);
bool filter_refused(struct option *option, const struct subject *subject);
bool filter_moment(struct option *option);
bool filter_slots(struct option *option);
/* The guard that would remove the place if the job had another value for one key: into out, else "". */
void guard_near_miss(const struct rules *rules, const struct spec *spec, const char *owner,
                     const struct place *place, char *out, size_t size);

/* gpus.c */
bool gpu_is_wanted(const struct needs *needs, const char *model);
bool filter_gpus(struct option *option, const struct federation *federation,
                 struct shortage *shortage);

/* rent.c */
bool shape_fits(const struct node_shape *shape, const struct needs *needs);
/* What a job of these needs takes of the machine, in thousandths of it, rounded up. */
int64_t shape_share(const struct node_shape *shape, const struct needs *needs);
bool rent_price(struct option *option, const struct deciding *deciding);
bool rent_machines(struct option *option); /* whether one more of ours may come up there */
/* Whether every budget that must hold the booking can. names, when not NULL, gets them. */
bool rent_budgets(struct option *option, const struct deciding *deciding,
                  const struct burst_rule *burst, struct texts *names);

/* wait.c: queueing theory, and the expected wait at a place in ms. */
double wait_erlang_c(int64_t servers, double load);
/* Mean wait in units of the service time; ca2, cs2: squared coefficients of variation. load < servers. */
double wait_mean(int64_t servers, double load, double ca2, double cs2);
double wait_p95(int64_t servers, double load);
int64_t wait_expected(const struct option *option);

/* terms.c */
void terms_reference(struct deciding *deciding);
void terms_price(struct option *option, const struct deciding *deciding);
/* Bin of 2 % of a sum, for a decision with this reference cost: smaller is cheaper. */
int64_t cost_bin(int64_t sum, int64_t reference);

/* route.c */
const struct route *route_find(const struct rules *rules, const struct spec *spec,
                               const char *owner);
/* Whether a tier names the place; the first that does becomes the row's. */
bool route_has(const struct route *route, struct option *option);
void route_choose(struct deciding *deciding);
int burst_index(const struct rules *rules, const char *name); /* -1: none */

/* summary.c */
void summary_write(struct deciding *deciding);
void burst_sentence(const struct view *view, int burst, char *out, size_t size);

/* match.c: what of a match does not fit: how many keys, and a sentence on the first. */
int match_misses(const struct match *match, const struct spec *spec, const char *owner, char *out,
                 size_t size);
/* Whether one key alone does not fit, and the job has another value for it rather than none: a slip.
 * out gets the sentence. */
bool match_is_near(const struct match *match, const struct spec *spec, const char *owner, char *out,
                   size_t size);

#endif
