/* test_member.c - the simulated member is worth believing: it obeys the laws of queues, and the adapter
 * keeps the contract of the port, whatever goes wrong on the way. */
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/sim/adapter_sim.h"
#include "broker/sim/clock_sim.h"
#include "broker/sim/random.h"
#include "broker/sim/sim_member.h"
#include "config/config.h"
#include "policy/internal.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVICE_MS = 10000, CUSTOMERS = 200000 };

struct bench {
    struct clock *clock;
    struct federation *federation;
    const struct place *place;
    struct sim_member *member;
};

static void bench_open(struct bench *bench, int cpus)
{
    static const struct adapter_type *const adapters[] = {&adapter_sim, NULL};
    char *text =
        xasprintf("version: 1\nclusters:\n  m: {adapter: sim, latency: 40ms, jitter: 50%%, "
                  "capacity: {cpus: %d, memory: 32GiB}}\n",
                  cpus);
    struct error err;
    cr_assert_eq(config_federation_parse(text, "t", adapters, &bench->federation, &err), 0, "%s",
                 err.text);
    free(text);
    bench->clock = clock_sim_create(INT64_C(1773036000000), 1);
    bench->place = bench->federation->places[0];
    bench->member = sim_member_create(bench->clock, bench->federation, bench->place->cluster, 1);
}

static void bench_close(struct bench *bench)
{
    sim_member_destroy(bench->member);
    clock_sim_destroy(bench->clock);
    federation_destroy(bench->federation);
}

/* A job of one CPU that runs so long. */
struct order {
    struct spec spec;
    struct env_entry env;
    char run[UNITS_TEXT_SIZE];
    struct submit submit;
};

static void order_init(struct order *order, const struct bench *bench, int number, int64_t run_ms)
{
    memset(order, 0, sizeof *order);
    order->env = (struct env_entry){"SIM_RUN", duration_text(run_ms, order->run)};
    order->spec.refs = 1;
    order->spec.env = (struct env){&order->env, 1};
    order->spec.needs.cpus = 1000;
    order->spec.time.limit = INT64_MAX / 2;
    order->submit = (struct submit){.spec = &order->spec, .owner = "ada"};
    order->submit.ref.place = bench->place;
    order->submit.ref.attempt = 1;
    (void)snprintf(order->submit.ref.job_id, ID_SIZE, "j%015d", number);
}

static int64_t exponential(struct random *random, double mean)
{
    double u = ((double)(random_next(random) >> 11) + 0.5) / 9007199254740992.0;
    int64_t ms = (int64_t)llround(-log(u) * mean);
    return ms > 0 ? ms : 1;
}

/* ------------------------------------------------------------------------------------ laws of queues */

struct crowd { /* customers of one place, arriving at random */
    struct bench bench;
    struct random random;
    struct timer *timer;
    double gap_ms;
    int sent;
    int64_t last_ms, present_ms; /* sum over time of who is there */
    bool idle_while_waiting;
};

static void arrive_cb(void *arg)
{
    struct crowd *crowd = arg;
    struct order order;
    struct error err;
    char native[NATIVE_SIZE];
    order_init(&order, &crowd->bench, crowd->sent++, exponential(&crowd->random, SERVICE_MS));
    cr_assert_eq(sim_member_submit(crowd->bench.member, &order.submit, native, &err), 0, "%s",
                 err.text);
    if (crowd->sent < CUSTOMERS) {
        timer_start(crowd->timer, exponential(&crowd->random, crowd->gap_ms));
    }
}

/* Mean wait in units of the service time. */
static double crowd_run(int servers, double load)
{
    struct crowd crowd = {.gap_ms = SERVICE_MS / load};
    struct sim_figures figures;
    bench_open(&crowd.bench, servers);
    random_init(&crowd.random, 42);
    struct clock *clock = crowd.bench.clock;
    sim_member_faults(crowd.bench.member)->forget_after_ms = 1;
    crowd.timer = clock_timer(clock, arrive_cb, &crowd);
    timer_start(crowd.timer, 1);
    int64_t begin = crowd.last_ms = clock_mono_ms(clock);
    struct condition *now = sim_member_probe(crowd.bench.member);
    while (clock_sim_step(clock)) {
        crowd.present_ms += (clock_mono_ms(clock) - crowd.last_ms) * (now->running + now->waiting);
        crowd.last_ms = clock_mono_ms(clock);
        free(now);
        now = sim_member_probe(crowd.bench.member);
        crowd.idle_while_waiting |= now->waiting > 0 && now->free.cpus > 0;
    }
    free(now);
    sim_member_figures(crowd.bench.member, &figures);
    cr_assert_eq(figures.ends, CUSTOMERS);
    cr_assert(!crowd.idle_while_waiting, "a server stood idle while somebody waited");
    double span = (double)(crowd.last_ms - begin);
    double there = (double)crowd.present_ms / span; /* L = lambda W */
    double each = (double)(figures.waited_ms + figures.run_ms) / CUSTOMERS;
    cr_assert_float_eq(there, CUSTOMERS / span * each, 0.01 * there, "Little: %g, %g", there,
                       CUSTOMERS / span * each);
    timer_destroy(crowd.timer);
    bench_close(&crowd.bench);
    return (double)figures.waited_ms / CUSTOMERS / SERVICE_MS;
}

Test(member, one_server_waits_as_long_as_the_formula_says)
{
    double wait = crowd_run(1, 0.5), formula = wait_mean(1, 0.5, 1.0, 1.0);
    cr_assert_float_eq(formula, 1.0, 1e-9);
    cr_assert_float_eq(wait, formula, 0.02 * formula, "%g, must be %g", wait, formula);
}

Test(member, four_servers_wait_as_long_as_the_formula_says)
{
    double wait = crowd_run(4, 2.8), formula = wait_mean(4, 2.8, 1.0, 1.0);
    cr_assert_float_eq(wait, formula, 0.02 * formula, "%g, must be %g", wait, formula);
}

/* ---------------------------------------------------------------------------------- the adapter's port */

struct called {
    struct adapter_call call;
    int done;
    bool inside; /* the call has not returned yet */
    int64_t at_ms;
    struct clock *clock;
};

static void done_cb(struct adapter_call *call)
{
    struct called *called = call->arg;
    cr_assert(!called->inside, "a completion ran within its call");
    called->done++;
    called->at_ms = clock_mono_ms(called->clock);
}

static void prepare(struct called *called, struct clock *clock)
{
    memset(called, 0, sizeof *called);
    called->clock = clock;
    called->inside = true;
    called->call.done = done_cb;
    called->call.arg = called;
    called->call.deadline_ms = clock_mono_ms(clock) + LIMIT_CALL_MS;
}

static struct adapter *open_adapter(struct bench *bench)
{
    struct adapter *adapter;
    struct error err;
    struct adapter_env env = {.clock = bench->clock, .federation = bench->federation};
    struct sim_settings *settings = bench->place->cluster->settings;
    settings->member = bench->member;
    cr_assert_eq(adapter_sim.open(&env, bench->place->cluster, &adapter, &err), 0);
    return adapter;
}

static void start_verb(struct adapter *adapter, int verb, const struct order *order,
                       struct called *called)
{
    switch (verb) {
    case 0: adapter->type->probe(adapter, &called->call); break;
    case 1: adapter->type->submit(adapter, &order->submit, &called->call); break;
    case 2: adapter->type->find(adapter, &order->submit.ref, &called->call); break;
    case 3: adapter->type->poll(adapter, &called->call); break;
    case 4: adapter->type->cancel(adapter, &order->submit.ref, &called->call); break;
    default: adapter->type->log(adapter, &order->submit.ref, 0, &called->call); break;
    }
    called->inside = false;
}

Test(member, every_call_completes_once_by_its_deadline)
{
    enum { CALLS = 600 };
    struct bench bench;
    struct order orders[CALLS];
    struct called *calls = xcalloc(CALLS, sizeof *calls);
    struct random random;
    bench_open(&bench, 2);
    random_init(&random, 9);
    struct adapter *adapter = open_adapter(&bench);
    struct sim_faults *faults = sim_member_faults(bench.member);
    *faults = (struct sim_faults){.lose_requests = 20,
                                  .lose_answers = 20,
                                  .delay_submits = 20,
                                  .delay_ms = 45000,
                                  .refuse_submits = 5,
                                  .hang_from_ms = 20000,
                                  .hang_to_ms = 40000,
                                  .away_from_ms = 50000,
                                  .away_to_ms = 60000};
    for (int i = 0; i < CALLS; i++) {
        order_init(&orders[i], &bench, i, 5000);
        prepare(&calls[i], bench.clock);
        start_verb(adapter, (int)random_between(&random, 0, 5), &orders[i], &calls[i]);
        clock_sim_pass(bench.clock, random_between(&random, 0, 200));
    }
    clock_sim_pass(bench.clock, 2 * LIMIT_CALL_MS);
    int results[3] = {0};
    for (int i = 0; i < CALLS; i++) {
        cr_assert_eq(calls[i].done, 1, "call %d completed %d times", i, calls[i].done);
        cr_assert_leq(calls[i].at_ms, calls[i].call.deadline_ms);
        results[calls[i].call.result]++;
    }
    cr_assert(results[0] > 100 && results[1] > 20 && results[2] > 50, "%d %d %d", results[0],
              results[1], results[2]);
    adapter->type->close(adapter);
    free(calls);
    bench_close(&bench);
}

Test(member, closing_completes_what_is_outstanding_as_unknown)
{
    enum { CALLS = 40 };
    struct bench bench;
    struct order orders[CALLS];
    struct called calls[CALLS];
    struct sim_figures figures;
    bench_open(&bench, 2);
    struct adapter *adapter = open_adapter(&bench);
    for (int i = 0; i < CALLS; i++) {
        order_init(&orders[i], &bench, i, 5000);
        prepare(&calls[i], bench.clock);
        start_verb(adapter, 1, &orders[i], &calls[i]);
    }
    adapter->type->close(adapter);
    for (int i = 0; i < CALLS; i++) {
        cr_assert_eq(calls[i].done, 1);
        cr_assert_eq(calls[i].call.result, ADAPTER_UNKNOWN);
    }
    sim_member_figures(bench.member, &figures);
    cr_assert(figures.submits > 5 && figures.submits < CALLS - 5,
              "%lld of %d arrived: some must, some must not", (long long)figures.submits, CALLS);
    bench_close(&bench);
}

Test(member, a_job_ends_as_it_says_and_never_beyond_its_limit)
{
    struct bench bench;
    struct order order;
    struct error err;
    char native[NATIVE_SIZE];
    struct report report;
    bench_open(&bench, 2);
    order_init(&order, &bench, 1, 5000);
    struct env_entry env[] = {{"SIM_RUN", "5s"}, {"SIM_EXIT", "7"}};
    order.spec.env = (struct env){env, 2};
    cr_assert_eq(sim_member_submit(bench.member, &order.submit, native, &err), 0);
    order_init(&order, &bench, 2, 5000);
    order.spec.time.limit = 3000;
    cr_assert_eq(sim_member_submit(bench.member, &order.submit, native, &err), 0);
    clock_sim_pass(bench.clock, 10000);
    sim_member_find(bench.member, &order.submit.ref, &report);
    cr_assert_eq(report.outcome, OUTCOME_TIME_LIMIT);
    cr_assert_eq(report.ended_ms - report.started_ms, 3000);
    order_init(&order, &bench, 1, 5000);
    sim_member_find(bench.member, &order.submit.ref, &report);
    cr_assert_eq(report.outcome, OUTCOME_EXIT);
    cr_assert_eq(report.exit_code, 7);
    cr_assert_eq(report.ended_ms - report.started_ms, 5000);
    order.env.value = (char *)"soon";
    cr_assert_eq(sim_member_submit(bench.member, &order.submit, native, &err), -1);
    bench_close(&bench);
}
