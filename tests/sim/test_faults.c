/* test_faults.c - what goes wrong on the way loses nothing and doubles nothing: crashes, hung members, lost
 * answers, a full disk; and what people do meanwhile: cancel, drain, reload. */
#include "tests/sim/audit.h"
#include "tests/sim/lab.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static const struct audit_rules no_rules = {0};

static struct sim *small(uint64_t seed)
{
    struct lab_plan plan = {.members = 6, .rented = 2, .seed = seed};
    return lab_open(&plan);
}

static struct sim_faults *faults_of(struct sim *sim, const char *member)
{
    return sim_member_faults(sim_member_of(sim, member));
}

/* How many lines of the log hold all of these texts; b may be NULL. */
static int count_lines(const char *log, const char *a, const char *b)
{
    int count = 0;
    for (const char *line = log; *line; line = strchr(line, '\n') + 1) {
        size_t length = (size_t)(strchr(line, '\n') - line);
        count += memmem(line, length, a, strlen(a)) != NULL &&
                 (!b || memmem(line, length, b, strlen(b)) != NULL);
    }
    return count;
}

static int64_t at_of(const char *log, const char *what)
{
    const char *line = strstr(log, what);
    cr_assert(line, "the log has no %s", what);
    while (line > log && line[-1] != '\n') {
        line--;
    }
    return strtoll(strstr(line, "\"at_ms\":") + strlen("\"at_ms\":"), NULL, 10);
}

/* Placements at a place in a stretch of wall time. */
static int placed_at(const char *log, const char *place, int64_t from_ms, int64_t to_ms)
{
    char name[80];
    int count = 0;
    (void)snprintf(name, sizeof name, "\"place\":\"%s\"", place);
    for (const char *line = log; *line; line = strchr(line, '\n') + 1) {
        size_t length = (size_t)(strchr(line, '\n') - line);
        int64_t at = strtoll(strstr(line, "\"at_ms\":") + strlen("\"at_ms\":"), NULL, 10);
        count += at >= from_ms && at < to_ms && memmem(line, length, name, strlen(name)) != NULL &&
                 memmem(line, length, "\"kind\":\"place\"", 14) != NULL;
    }
    return count;
}

/* Runs to the end; every job has ended once and was started at most once. The caller frees the log. */
static char *finish(struct sim *sim, bool each_started)
{
    struct audit_figures figures;
    lab_run(sim, NULL, NULL);
    if (each_started) {
        lab_check_done(sim);
    }
    for (size_t i = 0; i < sim_sent(sim); i++) {
        cr_assert_leq(sim_starts(sim, sim_job_id(sim, i)), 1, "job %zu ran twice", i);
    }
    for (size_t i = 0; i < sim_federation(sim)->cluster_count; i++) {
        struct sim_figures of;
        sim_member_figures(sim_member_of(sim, sim_federation(sim)->clusters[i].name), &of);
        cr_assert_eq(of.twice, 0);
    }
    char *log = sim_events(sim, NULL);
    audit_log(log, &no_rules, &figures);
    cr_assert_eq(figures.jobs, (int64_t)sim_sent(sim));
    cr_assert_eq(figures.final, figures.jobs);
    return log;
}

static json_t *job_of(struct sim *sim, size_t n)
{
    struct error err;
    json_t *job = sim_job(sim, sim_job_id(sim, n), &err);
    cr_assert(job, "%s", err.text);
    return job;
}

static void expect_state(struct sim *sim, size_t n, const char *state)
{
    json_t *job = job_of(sim, n);
    cr_assert_str_eq(json_string_value(json_object_get(job, "state")), state);
    json_decref(job);
}

static void submit_one(struct sim *sim, const char *job)
{
    char why[200];
    sim_submit(sim, "ada", &job, 1);
    clock_sim_pass(sim_clock(sim), 0);
    cr_assert_eq(sim_refused(sim, why, sizeof why), 0, "%s", why);
}

/* ------------------------------------------------------------------------------------------- crashes */

static void crash_often(uint64_t seed)
{
    struct sim *sim = small(seed);
    struct error err;
    for (int i = 0; i < 12; i++) {
        lab_submit_mixed(sim, seed * 100 + (uint64_t)i, 50, 0);
        clock_sim_pass(sim_clock(sim), 1 + (int64_t)(seed * 7919 + (uint64_t)i * 104729) % 20000);
        cr_assert_eq(sim_crash(sim, &err), 0, "%s", err.text);
        clock_sim_pass(sim_clock(sim), i % 3); /* and at once again, while it looks around */
        cr_assert_eq(sim_crash(sim, &err), 0, "%s", err.text);
    }
    free(finish(sim, true));
    cr_assert_eq(lab_metric(sim, "tieline_recovering"), 0, "seed %llu", (unsigned long long)seed);
    cr_assert_eq(lab_metric(sim, "tieline_place_jobs"), 0);
    sim_destroy(sim);
}

Test(faults, crashes_lose_and_double_nothing)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        crash_often(seed);
    }
}

Test(faults, orderly_restarts_lose_and_double_nothing)
{
    struct sim *sim = small(20);
    struct error err;
    for (int i = 0; i < 20; i++) {
        clock_sim_pass(sim_clock(sim), 300);
        int64_t now = clock_mono_ms(sim_clock(sim));
        faults_of(sim, "m00")->hang_from_ms = now; /* so that calls are under way when it stops */
        faults_of(sim, "m00")->hang_to_ms = now + SECOND;
        lab_submit_mixed(sim, (uint64_t)i, 20, 0);
        clock_sim_pass(sim_clock(sim), 20 + i);
        cr_assert_eq(sim_restart(sim, &err), 0, "%s", err.text);
    }
    char *log = finish(sim, true);
    cr_assert_gt(count_lines(log, "\"kind\":\"unsure\"", NULL), 0, "no call was ever under way");
    free(log);
    sim_destroy(sim);
}

Test(faults, a_full_disk_and_a_slow_one)
{
    struct sim *sim = small(3);
    struct error err;
    lab_submit_mixed(sim, 5, 200, MINUTE);
    store_sim_fail(sim_store(sim), 12);
    lab_submit_mixed(sim, 18, 100, 0);
    for (int i = 0; i < 1000 && broker_ready(sim_broker(sim), &err) == 0; i++) {
        (void)clock_sim_step(sim_clock(sim));
    }
    cr_assert_eq(broker_ready(sim_broker(sim), &err), -1);
    cr_assert_eq(err.code, ERROR_STORE);
    clock_sim_pass(sim_clock(sim), MINUTE);
    cr_assert_eq(broker_ready(sim_broker(sim), &err), 0, "%s", err.text);
    lab_submit_mixed(sim, 6, 100, SECOND);
    store_sim_stall(sim_store(sim), 40 * SECOND);
    clock_sim_pass(sim_clock(sim), 35 * SECOND);
    cr_assert_eq(broker_ready(sim_broker(sim), &err), -1);
    free(finish(sim, true));
    sim_destroy(sim);
}

/* ------------------------------------------------------------------------------------------- members */

Test(faults, a_hung_member_holds_up_no_other)
{
    struct sim *sim = small(4);
    lab_submit_mixed(sim, 8, 300, MINUTE);
    int64_t now = clock_mono_ms(sim_clock(sim)), wall = clock_wall_ms(sim_clock(sim));
    faults_of(sim, "m01")->hang_from_ms = now;
    faults_of(sim, "m01")->hang_to_ms = now + 3 * MINUTE;
    clock_sim_pass(sim_clock(sim), 3 * MINUTE);
    double all = lab_metric(sim, "tieline_poll_late_seconds_count");
    double in_time = lab_metric(sim, "tieline_poll_late_seconds_bucket{le=\"0.1\"}");
    cr_assert_gt(all, 500);
    cr_assert_geq(in_time, 0.99 * all);
    char *log = finish(sim, true);
    cr_assert_gt(count_lines(log, "\"kind\":\"lose\"", NULL), 0, "nothing became unknown");
    cr_assert_eq(count_lines(log, "\"kind\":\"gone\"", NULL), 0);
    cr_assert_gt(placed_at(log, "m00", wall + MINUTE, wall + 3 * MINUTE), 0);
    cr_assert_eq(placed_at(log, "m01", wall + MINUTE, wall + 3 * MINUTE), 0);
    free(log);
    sim_destroy(sim);
}

Test(faults, lost_submits_are_looked_up_and_never_sent_again_blind)
{
    struct sim *sim = small(5);
    clock_sim_pass(sim_clock(sim), SECOND);
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%02d", i);
        *faults_of(sim, name) = (struct sim_faults){
            .lose_answers = 4, .lose_requests = 3, .delay_submits = 2, .delay_ms = 45 * SECOND};
    }
    lab_submit_mixed(sim, 9, 300, MINUTE);
    char *log = finish(sim, true);
    cr_assert_eq(count_lines(log, "\"kind\":\"unsure\"", NULL), 4 * 9);
    cr_assert_eq(count_lines(log, "\"kind\":\"adopt\"", NULL), 4 * 6);
    cr_assert_eq(count_lines(log, "\"kind\":\"absent\"", NULL), 4 * 3);
    cr_assert_eq(count_lines(log, "\"kind\":\"requeue\"", "\"lost\""), 4 * 3);
    free(log);
    sim_destroy(sim);
}

/* Later than any look-up waits for: the job was given up there, and must not go on there. */
Test(faults, a_submit_that_arrives_after_it_was_given_up_is_ended)
{
    struct sim *sim = small(17);
    clock_sim_pass(sim_clock(sim), SECOND);
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%02d", i);
        *faults_of(sim, name) = (struct sim_faults){.delay_submits = 1, .delay_ms = 300 * SECOND};
    }
    lab_submit_mixed(sim, 9, 60, 20 * MINUTE);
    lab_run(sim, NULL, NULL);
    char *log = sim_events(sim, NULL);
    int late = count_lines(log, "\"kind\":\"absent\"", NULL);
    cr_assert_gt(late, 0);
    cr_assert_eq(count_lines(log, "\"kind\":\"tomb-set\"", NULL), late);
    cr_assert_eq(count_lines(log, "\"kind\":\"tomb-clear\"", NULL), late);
    cr_assert_eq(count_lines(log, "\"kind\":\"late\"", NULL), late);
    free(log);
    sim_destroy(sim);
}

Test(faults, a_refusal_sends_the_job_elsewhere)
{
    struct sim *sim = small(6);
    clock_sim_pass(sim_clock(sim), SECOND);
    faults_of(sim, "m00")->refuse_submits = 5;
    lab_submit_mixed(sim, 10, 60, SECOND);
    char *log = finish(sim, true);
    cr_assert_eq(count_lines(log, "\"kind\":\"reject\"", NULL), 5);
    cr_assert_eq(count_lines(log, "\"kind\":\"requeue\"", "start-failed"), 5);
    free(log);
    sim_destroy(sim);
}

Test(faults, what_a_member_forgot_is_unknown_and_not_run_again)
{
    struct sim *sim = small(7);
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%02d", i);
        faults_of(sim, name)->forget_after_ms = 1; /* before any listing can show it */
    }
    lab_submit_mixed(sim, 11, 40, SECOND);
    char *log = finish(sim, true);
    cr_assert_eq(count_lines(log, "\"kind\":\"finish\"", "outcome-unknown"), 40);
    cr_assert_eq(count_lines(log, "\"kind\":\"requeue\"", NULL), 0);
    free(log);
    sim_destroy(sim);
}

Test(faults, doubled_reports_change_nothing)
{
    struct sim *sim = small(8);
    for (int i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "m%02d", i);
        faults_of(sim, name)->repeat_reports = true;
    }
    lab_submit_mixed(sim, 12, 100, SECOND);
    free(finish(sim, true));
    sim_destroy(sim);
}

Test(faults, all_members_dark_at_once_is_our_own_fault)
{
    struct sim *sim = small(9);
    lab_submit_mixed(sim, 13, 100, SECOND);
    int64_t now = clock_mono_ms(sim_clock(sim));
    for (size_t i = 0; i < sim_federation(sim)->cluster_count; i++) {
        struct sim_faults *faults = faults_of(sim, sim_federation(sim)->clusters[i].name);
        faults->away_from_ms = now;
        faults->away_to_ms = now + 2 * MINUTE;
    }
    clock_sim_pass(sim_clock(sim), MINUTE);
    cr_assert_eq(lab_metric(sim, "tieline_isolated"), 1);
    clock_sim_pass(sim_clock(sim), 2 * MINUTE);
    cr_assert_eq(lab_metric(sim, "tieline_isolated"), 0);
    char *log = finish(sim, true);
    cr_assert_eq(count_lines(log, "\"kind\":\"lose\"", NULL), 0);
    free(log);
    sim_destroy(sim);
}

Test(faults, the_wall_clock_jumps)
{
    struct sim *sim = small(10);
    lab_submit_mixed(sim, 14, 100, SECOND);
    clock_sim_skew(sim_clock(sim), -60 * MINUTE);
    clock_sim_pass(sim_clock(sim), MINUTE);
    lab_submit_mixed(sim, 15, 100, SECOND);
    clock_sim_skew(sim_clock(sim), 120 * MINUTE);
    free(finish(sim, true));
    sim_destroy(sim);
}

/* -------------------------------------------------------------------------------------------- people */

static const char long_job[] =
    "{\"name\": \"long\", \"run\": \"true\", \"needs\": {\"cpus\": 16, \"memory\": \"1GiB\"},"
    " \"env\": {\"SIM_RUN\": \"1h\"}, \"time\": {\"limit\": \"2h\", \"estimate\": \"1h\"}}";

static void cancel(struct sim *sim, size_t n)
{
    struct error err;
    json_t *body = sim_cancel(sim, sim_job_id(sim, n), &err);
    cr_assert(body, "job %zu: %s", n, err.text);
    json_decref(body);
}

Test(faults, cancel_in_every_state)
{
    struct lab_plan plan = {.members = 1, .rented = 0, .seed = 11, .max_waiting = 2};
    struct sim *sim = lab_open(&plan);
    clock_sim_pass(sim_clock(sim), SECOND);
    for (int i = 0; i < 6; i++) { /* one runs, two wait there, three wait here */
        submit_one(sim, long_job);
        clock_sim_pass(sim_clock(sim), 5 * SECOND);
    }
    expect_state(sim, 0, "running");
    expect_state(sim, 1, "dispatched");
    expect_state(sim, 5, "queued");
    cancel(sim, 5);
    expect_state(sim, 5, "cancelled");
    cancel(sim, 1);
    cancel(sim, 0);
    clock_sim_pass(sim_clock(sim), 10 * SECOND);
    expect_state(sim, 0, "cancelled");
    expect_state(sim, 1, "cancelled");
    expect_state(sim, 2, "running");
    cancel(sim, 0); /* final: the answer is the job as it is */
    expect_state(sim, 0, "cancelled");
    cr_assert_eq(sim_starts(sim, sim_job_id(sim, 1)), 0);
    cr_assert_eq(sim_starts(sim, sim_job_id(sim, 5)), 0);
    free(finish(sim, false));
    sim_destroy(sim);
}

Test(faults, cancel_while_the_submit_is_on_its_way_or_lost)
{
    struct lab_plan plan = {.members = 1, .rented = 0, .seed = 12};
    struct sim *sim = lab_open(&plan);
    clock_sim_pass(sim_clock(sim), SECOND);
    faults_of(sim, "m00")->lose_requests = 1;
    submit_one(sim, long_job);
    clock_sim_pass(sim_clock(sim), 5 * SECOND); /* unsure */
    cancel(sim, 0);
    faults_of(sim, "m00")->lose_answers = 1;
    submit_one(sim, long_job);
    clock_sim_pass(sim_clock(sim), 8); /* on its way, or about to be */
    cancel(sim, 1);
    char *log = finish(sim, false);
    cr_assert_eq(count_lines(log, "\"kind\":\"finish\"", "cancelled"), 2);
    cr_assert_eq(sim_starts(sim, sim_job_id(sim, 0)), 0);
    struct sim_figures figures;
    sim_member_figures(sim_member_of(sim, "m00"), &figures);
    cr_assert_eq(figures.ends, figures.starts, "something still runs there");
    free(log);
    sim_destroy(sim);
}

Test(faults, cancel_where_nobody_listens)
{
    struct lab_plan plan = {.members = 2, .rented = 0, .seed = 13};
    struct sim *sim = lab_open(&plan);
    clock_sim_pass(sim_clock(sim), SECOND);
    submit_one(sim, long_job);
    clock_sim_pass(sim_clock(sim), 5 * SECOND);
    for (size_t i = 0; i < 2; i++) {
        struct sim_faults *faults = faults_of(sim, sim_federation(sim)->clusters[i].name);
        faults->away_from_ms = clock_mono_ms(sim_clock(sim));
        faults->away_to_ms = faults->away_from_ms + 10 * MINUTE;
    }
    cancel(sim, 0);
    expect_state(sim, 0, "cancelling");
    clock_sim_pass(sim_clock(sim), 12 * MINUTE);
    expect_state(sim, 0, "cancelled");
    sim_destroy(sim);
}

Test(faults, a_drained_place_gets_nothing)
{
    struct sim *sim = small(14);
    struct error err;
    lab_submit_mixed(sim, 16, 300, 2 * MINUTE);
    json_decref(sim_drain(sim, "m00", true, &err));
    clock_sim_pass(sim_clock(sim), 2 * MINUTE);
    cr_assert_eq(sim_crash(sim, &err), 0, "%s", err.text); /* a drain is kept */
    clock_sim_pass(sim_clock(sim), 2 * MINUTE);
    json_decref(sim_drain(sim, "m00", false, &err));
    char *log = finish(sim, true);
    int64_t from = at_of(log, "\"kind\":\"drain\""), to = at_of(log, "\"kind\":\"undrain\"");
    cr_assert_eq(placed_at(log, "m00", from + 100, to), 0);
    cr_assert_gt(placed_at(log, "m00", 0, from), 0);
    cr_assert_gt(placed_at(log, "m00", to, INT64_MAX), 0);
    free(log);
    sim_destroy(sim);
}

Test(faults, a_policy_is_replaced_in_the_middle)
{
    struct sim *sim = small(15);
    char *policy = xasprintf("%sguards:\n  - {name: none, forbid: {places: m02}}\n", lab_policy);
    lab_submit_mixed(sim, 17, 300, 2 * MINUTE);
    sim_policy(sim, "version: 1\nroutes: [{name: x, tiers: [{places: nowhere}]}]\n"); /* bad */
    clock_sim_pass(sim_clock(sim), MINUTE);
    sim_policy(sim, policy);
    int64_t from = clock_wall_ms(sim_clock(sim));
    char *log = finish(sim, true);
    cr_assert_eq(count_lines(log, "\"kind\":\"policy-live\"", NULL), 2,
                 "the first and the good one");
    cr_assert_gt(placed_at(log, "m02", 0, from), 0);
    cr_assert_eq(placed_at(log, "m02", from + 100, INT64_MAX), 0);
    free(log);
    free(policy);
    sim_destroy(sim);
}

/* ------------------------------------------------------------------------------------------- explain */

static void check_explained(json_t *body, const char *decided, bool chosen)
{
    json_t *decision = json_object_get(body, "decision");
    size_t i, found = 0;
    json_t *place;
    cr_assert(json_is_object(decision));
    cr_assert_str_eq(json_string_value(json_object_get(body, "decided")), decided);
    json_array_foreach(json_object_get(decision, "places"), i, place)
    {
        found += strcmp(json_string_value(json_object_get(place, "verdict")), "chosen") == 0;
    }
    cr_assert_eq(i, 1, "every place is told of");
    cr_assert_eq(found, chosen ? 1 : 0);
}

Test(faults, explain_says_why)
{
    struct lab_plan plan = {.members = 1, .rented = 0, .seed = 16, .max_waiting = 1};
    struct sim *sim = lab_open(&plan);
    struct error err;
    clock_sim_pass(sim_clock(sim), SECOND);
    for (int i = 0; i < 3; i++) {
        submit_one(sim, long_job);
        clock_sim_pass(sim_clock(sim), 5 * SECOND);
    }
    json_t *running = sim_explain(sim, sim_job_id(sim, 0), &err);
    check_explained(running, "then", true);
    json_t *waiting = sim_explain(sim, sim_job_id(sim, 2), &err);
    check_explained(waiting, "now", false);
    cr_assert_not_null(json_object_get(waiting, "position"));
    json_t *imagined = sim_explain_text(sim, long_job, &err);
    check_explained(imagined, "now", false);
    json_t *huge = sim_explain_text(
        sim, "{\"run\": \"true\", \"needs\": {\"cpus\": 4096}, \"time\": {\"limit\": \"1h\"}}",
        &err);
    cr_assert_null(huge);
    cr_assert_eq(err.code, ERROR_IMPOSSIBLE);
    json_decref(running);
    json_decref(waiting);
    json_decref(imagined);
    sim_destroy(sim);
}
