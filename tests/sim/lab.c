#include "tests/sim/lab.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"
#include "broker/sim/random.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER_REQUEST = 100, TEXT_MAX = 1024 * 1024 };
#define A_WEEK (INT64_C(7) * 24 * 3600 * 1000)

const char lab_policy[] = "version: 1\n"
                          "budgets:\n"
                          "  cloud: {limit: 2 EUR, per: day}\n"
                          "bursts:\n"
                          "  overflow:\n"
                          "    open: [{pending: 50}]\n"
                          "    close: {pending: 10, for: 1m}\n"
                          "    at_most: {nodes: 12}\n"
                          "    budget: cloud\n"
                          "routes:\n"
                          "  - name: own-first\n"
                          "    tiers:\n"
                          "      - {places: \"m*\"}\n"
                          "      - {places: \"r*\", burst: overflow}\n";

static void say(const char *level, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", level, text);
}

static char *federation_text(const struct lab_plan *plan)
{
    static const int cpus[] = {16, 24, 32, 48, 64};
    struct strbuf text;
    strbuf_init(&text, TEXT_MAX);
    strbuf_puts(&text, "version: 1\nfederation: lab\n"
                       "electricity:\n  house: {source: table, price: 0.30 EUR/kWh}\nclusters:\n");
    for (int i = 0; i < plan->members; i++) {
        bool rented = i >= plan->members - plan->rented;
        int size = cpus[i % 5];
        strbuf_printf(&text,
                      "  %c%02d:\n    adapter: sim\n    latency: %dms\n    max_waiting: %d\n"
                      "    capacity: {cpus: %d, memory: %dGiB}\n",
                      rented ? 'r' : 'm', i, 5 + i * 7 % 60,
                      plan->max_waiting ? plan->max_waiting : 20, size, size * 4);
        if (rented) {
            strbuf_printf(&text,
                          "    kind: on-demand\n    nodes:\n      vm: {cpus: %d, memory: %dGiB, "
                          "price: 0.20 EUR/h, at_most: 4}\n",
                          size / 4, size);
        } else {
            strbuf_printf(&text, "    power: {tariff: house, cpu: %d W}\n", 4 + i % 4);
        }
    }
    return strbuf_take(&text);
}

struct sim *lab_open(const struct lab_plan *plan)
{
    char *federation = federation_text(plan);
    struct error err;
    struct sim *sim;
    struct sim_options options = {.federation = federation,
                                  .policy = plan->policy   ? plan->policy
                                            : plan->rented ? lab_policy
                                                           : "version: 1\n",
                                  .seed = plan->seed,
                                  .log = plan->say ? say : NULL};
    cr_assert_eq(sim_create(&options, &sim, &err), 0, "%s:%d: %s %s", err.file, err.line, err.text,
                 err.expected);
    free(federation);
    return sim;
}

static char *mixed_job(struct random *random, size_t n)
{
    static const char *const classes[] = {"inference", "training", "batch"};
    static const char *const teams[] = {"blue", "green", "red"};
    static const int minutes[] = {1, 2, 3, 6};
    int cpus = 1 << random_between(random, 0, 3);
    int estimate = minutes[random_between(random, 0, 3)];
    return xasprintf("{\"name\": \"n%zu\", \"run\": \"true\", \"class\": \"%s\", \"team\": \"%s\", "
                     "\"needs\": {\"cpus\": %d, \"memory\": \"%dGiB\"}, "
                     "\"time\": {\"limit\": \"%dm\", \"estimate\": \"%dm\"}}",
                     n, classes[random_between(random, 0, 2)], teams[random_between(random, 0, 2)],
                     cpus, cpus * 2, estimate * 2, estimate);
}

void lab_submit_mixed(struct sim *sim, uint64_t seed, size_t count, int64_t over_ms)
{
    struct random random;
    char *jobs[PER_REQUEST];
    random_init(&random, seed);
    size_t requests = (count + PER_REQUEST - 1) / PER_REQUEST;
    for (size_t sent = 0; sent < count;) {
        size_t n = count - sent < PER_REQUEST ? count - sent : PER_REQUEST;
        for (size_t i = 0; i < n; i++) {
            jobs[i] = mixed_job(&random, sent + i);
        }
        sim_submit(sim, "ada", (const char *const *)jobs, n);
        for (size_t i = 0; i < n; i++) {
            free(jobs[i]);
        }
        sent += n;
        clock_sim_pass(sim_clock(sim), over_ms / (int64_t)requests);
    }
}

void lab_run(struct sim *sim, void (*each)(void *arg), void *arg)
{
    char why[200];
    bool done = sim_run(sim, A_WEEK, each, arg);
    size_t refused = sim_refused(sim, why, sizeof why);
    cr_assert_eq(refused, 0, "%zu jobs were refused: %s", refused, why);
    cr_assert(done, "not all jobs are final after a week");
}

void lab_check_done(struct sim *sim)
{
    for (size_t i = 0; i < sim_sent(sim); i++) {
        const char *id = sim_job_id(sim, i);
        cr_assert(id[0], "job %zu was never accepted", i);
        cr_assert_eq(sim_starts(sim, id), 1, "job %s was started %d times", id,
                     sim_starts(sim, id));
    }
}

double lab_metric(struct sim *sim, const char *begin)
{
    char *text = NULL, *rest, *line;
    size_t length = 0;
    double sum = 0;
    FILE *out = open_memstream(&text, &length);
    broker_metrics(sim_broker(sim), out);
    (void)fclose(out);
    for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *value = strrchr(line, ' ');
        if (strncmp(line, begin, strlen(begin)) == 0 && value) {
            sum += strtod(value, NULL);
        }
    }
    free(text);
    return sum;
}
