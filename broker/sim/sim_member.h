/* sim_member.h - a simulated member cluster: places with a capacity, a queue each, jobs that take time.
 *
 * It is the far side: it outlives the adapters and brokers that speak to it, and knows nothing of the way
 * between (adapter_sim.c). A place is one pool of CPUs, memory and GPUs; its queue is strictly first come
 * first served. How long a job runs: its env SIM_RUN (a duration), else its estimate at the
 * place's speed, spread by the seed, the job and the attempt alone; it never runs beyond its limit. How
 * it ends: its env SIM_EXIT (an exit code), else 0. */
#ifndef BROKER_SIM_SIM_MEMBER_H
#define BROKER_SIM_SIM_MEMBER_H

#include "broker/core/adapter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_settings { /* of a cluster; the keys of adapter_sim */
    int64_t latency;  /* ms, there and back */
    int64_t jitter;   /* millionths: so much more or less, of latency and run time */
    int64_t speed;    /* thousandths: 2000 runs jobs in half of their estimate */
    int64_t seed;
    struct sim_member *member; /* set by a simulation; NULL: each adapter makes its own */
};
struct sim_place_settings {
    char *gpu; /* model of its GPUs, or NULL */
    int64_t gpu_count;
};

struct sim_faults {    /* times are monotonic; all zero: none */
    int lose_requests; /* of the next submits: they never arrive, and nobody is told */
    int lose_answers;  /* of the next submits: they arrive, the answer does not */
    int delay_submits; /* of the next submits: they arrive after delay_ms, unanswered */
    int64_t delay_ms;
    int refuse_submits;               /* of the next submits: refused */
    int64_t hang_from_ms, hang_to_ms; /* calls of this time are neither taken nor answered */
    int64_t away_from_ms, away_to_ms; /* calls of this time find nobody who listens */
    int64_t forget_after_ms;          /* what has ended is forgotten so soon; 0: when told to */
    bool repeat_reports;              /* each job is listed twice, and in reverse */
};

struct sim_figures {
    int64_t submits, refused, starts, ends, cancels;
    int64_t twice;                          /* submits of an attempt that was there already */
    int64_t waiting_max;                    /* most jobs that ever waited in one place's queue */
    int64_t busy_cpu_ms, waited_ms, run_ms; /* sums over time and jobs: for the laws of queues */
};

struct sim_member *sim_member_create(struct clock *clock, const struct federation *federation,
                                     const struct cluster *cluster, uint64_t seed);
void sim_member_destroy(struct sim_member *member); /* takes NULL */

struct sim_faults *sim_member_faults(struct sim_member *member);
void sim_member_figures(const struct sim_member *member, struct sim_figures *out);
int64_t sim_member_waiting(const struct sim_member *member); /* now, in all its places */
/* Tells of every start of a job. */
void sim_member_watch(struct sim_member *member,
                      void (*started)(void *arg, const char *job_id, int attempt), void *arg);

/* ---- what an adapter asks; all at once, the way there and back is the adapter's */
/* Takes the job, or says why not. native: NATIVE_SIZE. */
int sim_member_submit(struct sim_member *member, const struct submit *submit, char *native,
                      struct error *err);
void sim_member_find(const struct sim_member *member, const struct attempt_ref *ref,
                     struct report *out);
/* Every attempt it knows, oldest first; the caller frees. */
struct report *sim_member_list(const struct sim_member *member, size_t *count);
void sim_member_cancel(struct sim_member *member, const struct attempt_ref *ref);
void sim_member_forget(struct sim_member *member, const struct attempt_ref *ref);
/* One condition per place, in the order of the cluster; the caller frees. */
struct condition *sim_member_probe(const struct sim_member *member);

/* How long and to which end this attempt will run; INVALID when its env says nonsense. */
int sim_run_of(const struct sim_settings *settings, uint64_t seed, const struct submit *submit,
               int64_t *run_ms, int *exit_code, struct error *err);

#endif
