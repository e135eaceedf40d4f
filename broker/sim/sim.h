/* sim.h - a whole federation in one process on virtual time: clients, a broker, its store, its members.
 *
 * The broker is the real one; clock, store and members are simulated. Members and disk outlive a crash of
 * the broker. Clients are honest: what was not answered is sent again with the same idempotency key once
 * the broker is back. Same options and calls: the same event log, byte for byte. */
#ifndef BROKER_SIM_SIM_H
#define BROKER_SIM_SIM_H

#include "broker/broker.h"
#include "broker/core/hash.h"
#include "broker/sim/clock_sim.h"
#include "broker/sim/sim_member.h"
#include "broker/sim/store_sim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

struct sim_options {
    const char *federation, *policy; /* texts of tieline.yaml (adapter: sim) and policy.yaml */
    uint64_t seed;
    int64_t wall_ms;                                  /* at the start; 0: a Monday morning */
    struct store_sim_options store;                   /* its seed is taken from seed */
    void (*log)(const char *level, const char *text); /* NULL: nowhere */
};

int sim_create(const struct sim_options *options, struct sim **out, struct error *err);
void sim_destroy(struct sim *sim); /* takes NULL */

struct clock *sim_clock(const struct sim *sim);
struct broker *sim_broker(const struct sim *sim);
struct store *sim_store(const struct sim *sim);
const struct federation *sim_federation(const struct sim *sim);
struct sim_member *sim_member_of(const struct sim *sim, const char *cluster); /* NULL: none */

/* Sends jobs (JSON texts) as one request of this owner. They are answered as time passes. */
void sim_submit(struct sim *sim, const char *owner, const char *const *jobs, size_t count);
/* The n-th job that was sent, counted over all requests; "" while it is not accepted. */
const char *sim_job_id(const struct sim *sim, size_t n);
size_t sim_sent(const struct sim *sim);
size_t sim_refused(const struct sim *sim, char *why, size_t size); /* and the first reason */

/* Lets time pass until every job that was sent is answered and final, at most so long. Looks every ten
 * seconds; between two looks it calls each(arg), when that is given. false: time was up. */
bool sim_run(struct sim *sim, int64_t at_most_ms, void (*each)(void *arg), void *arg);

/* Power loss: the broker is gone, with all that the store had not confirmed. Then a new one starts. */
int sim_crash(struct sim *sim, struct error *err);
/* The broker is stopped in good order, and a new one starts. */
int sim_restart(struct sim *sim, struct error *err);
/* A new policy over the API; also what the next broker starts with. */
void sim_policy(struct sim *sim, const char *text);

/* Asks the broker and waits for the answer. Each returns a new reference, or NULL with err. */
json_t *sim_job(struct sim *sim, const char *id, struct error *err);
json_t *sim_explain(struct sim *sim, const char *id, struct error *err);
json_t *sim_explain_text(struct sim *sim, const char *job, struct error *err);
json_t *sim_jobs(struct sim *sim, const struct store_filter *filter, struct error *err);
json_t *sim_bursts(struct sim *sim, struct error *err);
json_t *sim_places(struct sim *sim, struct error *err);
json_t *sim_cancel(struct sim *sim, const char *id, struct error *err);
json_t *sim_drain(struct sim *sim, const char *place, bool drain, struct error *err);

/* How often the members started this job. */
int sim_starts(const struct sim *sim, const char *id);

/* The log of events, one line of JSON each. The caller frees. hash: of it; may be NULL. */
char *sim_events(struct sim *sim, char hash[SHA256_TEXT_SIZE]);

#endif
