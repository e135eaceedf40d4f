/* test_federation.c - 20 members and 10,000 jobs in one process: everything ends once, in order, inside
 * the budget; the same seed says the same, byte for byte. */
#include "tests/sim/audit.h"
#include "tests/sim/lab.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 20, RENTED = 4, JOBS = 10000, TEN_MINUTES = 600000 };
#define EUR INT64_C(1000000000)

static int64_t of_queue(json_t *body, bool waits)
{
    size_t i, wrong = 0;
    json_t *job;
    json_array_foreach(json_object_get(body, "jobs"), i, job)
    {
        const char *why = json_string_value(json_object_get(job, "why"));
        wrong += waits && (!why || !why[0]);
    }
    cr_assert_eq(wrong, 0, "%zu waiting jobs say no reason", wrong);
    return (int64_t)i;
}

struct looks {
    struct sim *sim;
    int64_t count, waiting;
};

/* Now and then: whoever waits has a reason; what is settled and booked is inside the budget. */
static void look(void *arg)
{
    struct looks *looks = arg;
    struct error err;
    size_t i;
    json_t *budget;
    if (looks->count++ % 20 != 0) {
        return;
    }
    struct store_filter filter = {.state = "queued", .limit = 100};
    json_t *body = sim_jobs(looks->sim, &filter, &err);
    cr_assert(body, "%s", err.text);
    looks->waiting += of_queue(body, true);
    json_decref(body);
    body = sim_bursts(looks->sim, &err);
    json_array_foreach(json_object_get(body, "budgets"), i, budget)
    {
        struct money limit, settled, booked;
        money_parse(json_string_value(json_object_get(budget, "limit")), &limit, &err);
        money_parse(json_string_value(json_object_get(budget, "settled")), &settled, &err);
        money_parse(json_string_value(json_object_get(budget, "booked")), &booked, &err);
        cr_assert_leq(settled.nano + booked.nano, limit.nano);
    }
    json_decref(body);
}

static void check_members(struct sim *sim, int64_t jobs)
{
    int64_t starts = 0;
    for (size_t i = 0; i < sim_federation(sim)->cluster_count; i++) {
        const struct cluster *cluster = &sim_federation(sim)->clusters[i];
        struct sim_figures figures;
        sim_member_figures(sim_member_of(sim, cluster->name), &figures);
        starts += figures.starts;
        cr_assert_eq(figures.twice, 0, "%s", cluster->name);
        cr_log_info("%s: %lld submits, %lld starts, at most %lld waited", cluster->name,
                    (long long)figures.submits, (long long)figures.starts,
                    (long long)figures.waiting_max);
        cr_assert_leq(figures.waiting_max, cluster->places[0].max_waiting, "%s: %lld waited",
                      cluster->name, (long long)figures.waiting_max);
    }
    cr_assert_eq(starts, jobs);
}

/* One whole run; returns the hash of its log. */
static void run(uint64_t seed, size_t jobs, char hash[SHA256_TEXT_SIZE])
{
    struct lab_plan plan = {.members = MEMBERS, .rented = RENTED, .seed = seed};
    struct sim *sim = lab_open(&plan);
    struct looks looks = {.sim = sim};
    struct audit_rules rules = {.budget_nano = 2 * EUR, .burst_nodes = 12 * 1000, .in_order = true};
    struct audit_figures figures;
    lab_submit_mixed(sim, 7, jobs, TEN_MINUTES);
    lab_run(sim, look, &looks);
    lab_check_done(sim);
    check_members(sim, (int64_t)jobs);
    char *log = sim_events(sim, hash);
    audit_log(log, &rules, &figures);
    cr_assert_eq(figures.jobs, (int64_t)jobs);
    cr_assert_eq(figures.final, (int64_t)jobs);
    cr_assert_eq(figures.placements, (int64_t)jobs);
    cr_assert_gt(figures.rented, 0, "the burst never opened");
    if (jobs == JOBS) {
        cr_assert_gt(figures.committed_max, 19 * EUR / 10, "the budget was never the limit");
    }
    cr_log_info("not started at most %lld, committed at most %.2f EUR, rented %lld",
                (long long)figures.not_started_max, (double)figures.committed_max / 1e9,
                (long long)figures.rented);
    cr_assert_gt(looks.waiting, 0, "nobody ever waited: the test proves little");
    cr_assert_eq(lab_metric(sim, "tieline_poll_late_seconds_bucket{le=\"0.01\"}"),
                 lab_metric(sim, "tieline_poll_late_seconds_count"));
    free(log);
    sim_destroy(sim);
}

Test(federation, twenty_members_ten_thousand_jobs_same_seed_same_log)
{
    char first[SHA256_TEXT_SIZE], second[SHA256_TEXT_SIZE];
    run(1, JOBS, first);
    run(1, JOBS, second);
    cr_assert_str_eq(first, second);
}

/* What the first so many placements after from_ms were: per class. */
static void count_turns(const char *log, struct sim *sim, int64_t from_ms, int turns, int counts[3])
{
    static const char *const classes[] = {"inference", "training", "batch"};
    for (const char *line = log; *line && turns > 0; line = strchr(line, '\n') + 1) {
        json_error_t json_err;
        struct error err;
        json_t *event = json_loadb(line, (size_t)(strchr(line, '\n') - line), 0, &json_err);
        if (strcmp(json_string_value(json_object_get(event, "kind")), "place") == 0 &&
            json_integer_value(json_object_get(event, "at_ms")) >= from_ms) {
            json_t *job = sim_job(sim, json_string_value(json_object_get(event, "id")), &err);
            for (int c = 0; c < 3; c++) {
                counts[c] +=
                    strcmp(json_string_value(json_object_get(job, "class")), classes[c]) == 0;
            }
            json_decref(job);
            turns--;
        }
        json_decref(event);
    }
}

Test(federation, classes_take_turns_by_their_shares)
{
    struct lab_plan plan = {.members = 4, .rented = 0, .seed = 3};
    struct sim *sim = lab_open(&plan);
    int counts[3] = {0};
    lab_submit_mixed(sim, 7, 4500, 0);
    clock_sim_pass(sim_clock(sim), 1000);
    int64_t all_wait = clock_wall_ms(sim_clock(sim));
    lab_run(sim, NULL, NULL);
    lab_check_done(sim);
    char *log = sim_events(sim, NULL);
    count_turns(log, sim, all_wait, 1000, counts);
    cr_assert(abs(counts[0] - 700) <= 20 && abs(counts[1] - 200) <= 20 &&
                  abs(counts[2] - 100) <= 20,
              "%d %d %d of 1000", counts[0], counts[1], counts[2]);
    free(log);
    sim_destroy(sim);
}

Test(federation, another_seed_another_log)
{
    char first[SHA256_TEXT_SIZE], second[SHA256_TEXT_SIZE];
    run(1, JOBS / 5, first);
    run(2, JOBS / 5, second);
    cr_assert_str_neq(first, second);
}
