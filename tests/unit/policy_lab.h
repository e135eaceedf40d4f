/* policy_lab.h - a small federation with a policy, built by hand, for the tests of decisions.
 *
 * lab_site() is the site of the examples: hpc/cpu hpc/gpu k8s/ci edge aws/spot aws/on-demand, all idle.
 * Names in one text are separated by blanks. Everything belongs to the lab. */
#ifndef TESTS_UNIT_POLICY_LAB_H
#define TESTS_UNIT_POLICY_LAB_H

#include "policy/burst.h"
#include "policy/decide.h"
#include "policy/internal.h"

#include "broker/core/adapter.h"

enum { LAB_CLUSTERS = 8, LAB_PLACES = 8, LAB_LIST = 8, LAB_OWNED = 2048 };
enum { MINUTE = 60 * 1000, HOUR = 60 * MINUTE };
#define GIB (INT64_C(1) << 30)
#define CPU INT64_C(1000)

struct lab {
    struct adapter_type adapter;
    struct cluster clusters[LAB_CLUSTERS];
    struct place places[LAB_CLUSTERS][LAB_PLACES];
    struct place *by_index[LAB_CLUSTERS * LAB_PLACES];
    struct place_view views[LAB_CLUSTERS * LAB_PLACES];
    struct federation federation;
    struct rules rules;
    struct burst_view bursts[LAB_LIST];
    struct budget_view budgets[LAB_LIST];
    struct view view;
    struct spec spec;
    struct subject subject;
    void *owned[LAB_OWNED];
    size_t owned_count;
};

struct lab *lab_create(void);
struct lab *lab_site(void);
void lab_destroy(struct lab *lab);

struct texts lab_texts(struct lab *lab, const char *words);
struct label lab_label(struct lab *lab, const char *name, const char *words);
/* Adds a label to labels. */
void lab_labels(struct lab *lab, struct labels *labels, const char *name, const char *words);

struct place *lab_place(struct lab *lab, const char *name, enum place_kind kind);
struct place_view *lab_view(struct lab *lab, const char *name);
/* Numbers every place and gives new ones an idle view of 64 CPUs and 256 GiB. */
void lab_ready(struct lab *lab);
void lab_shape(struct lab *lab, struct place *place, const char *name, int64_t cpus, int64_t gib,
               int64_t gpus, const char *gpu, int64_t milli, const char *currency, int64_t at_most);
void lab_gpus(struct lab *lab, const char *place, const char *model, int64_t total, int64_t free);

struct guard *lab_guard(struct lab *lab, const char *name);
struct budget_rule *lab_budget(struct lab *lab, const char *name, int64_t units, int per);
struct burst_rule *lab_burst(struct lab *lab, const char *name, int64_t pending);
struct burst_condition *lab_condition(struct lab *lab, struct burst_rule *burst);
struct route *lab_route(struct lab *lab, const char *name);
struct tier *lab_tier(struct lab *lab, struct route *route, const char *places);
struct class_rule *lab_class(struct lab *lab, const char *name, int64_t percent);
void lab_match_any(struct match *match);

/* The job: whole CPUs, GiB, minutes of estimate; the limit is 45 minutes or the estimate. */
void lab_job(struct lab *lab, int64_t cpus, int64_t gib, int64_t minutes);

/* Decides; the caller gives it to decision_fini. */
struct decision lab_decide(struct lab *lab);
const struct verdict_row *lab_row(const struct decision *decision, const char *place);
const char *lab_chosen(const struct decision *decision); /* "" when it waits */

/* A seeded stream of numbers. */
uint64_t lab_random(uint64_t *state);
int64_t lab_range(uint64_t *state, int64_t low, int64_t high);

#endif
