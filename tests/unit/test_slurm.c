/* test_slurm.c - the adapter against a slurmrestd that loses answers, lies and hangs. */
#include "adapters/adapters.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "tests/unit/nasty.h"
#include "tests/unit/slurm_bench.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define API "/slurm/v0.0.38"
#define ID "j000000000000001"
#define NAME "test." ID "-1"

static struct nasty *server;
static char token_path[64];

/* ---- helpers */

static void write_token(const char *text)
{
    char temporary[80];
    (void)snprintf(temporary, sizeof temporary, "%s.new", token_path);
    FILE *file = fopen(temporary, "w");
    (void)fputs(text, file);
    (void)fclose(file);
    (void)chmod(temporary, 0600);
    (void)rename(temporary, token_path);
}

static void answer(const char *what, const char *json)
{
    nasty_on(server, what, NASTY_ANSWER, 200, "application/json", json);
}

static void refuse(const char *what, int status, const char *json)
{
    nasty_on(server, what, NASTY_ANSWER, status, "application/json", json);
}

static void setup(void)
{
    char where[64];
    (void)snprintf(token_path, sizeof token_path, "/tmp/tieline-test-token.%d", (int)getpid());
    write_token("first");
    server = nasty_start(NULL);
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.38/jobs\":{},\"/slurm/v0.0.36/jobs\":{}}}");
    (void)snprintf(where, sizeof where, "http://127.0.0.1:%d", nasty_port(server));
    bench_setup(where, "alice", token_path);
    slurm_lab_job(&bench.lab, ID, "true", &bench.spec, &bench.job);
    bench.job.ref.intent_ms = clock_wall_ms(bench.env.clock) - 1000;
}

static void teardown(void)
{
    bench_teardown();
    nasty_stop(server);
    (void)unlink(token_path);
}

/* Another bench.adapter, as settings of the cluster were changed. */
static void reopen(void)
{
    char where[64];
    (void)snprintf(where, sizeof where, "http://127.0.0.1:%d", nasty_port(server));
    bench_reopen(where);
}

/* A listing with one job of this id, name, comment and state; submitted now. */
static char *listing(int id, const char *name, const char *comment, const char *state)
{
    static char text[2048];
    (void)snprintf(
        text, sizeof text,
        "{\"errors\":[],\"jobs\":[{\"job_id\":%d,\"name\":\"%s\",\"comment\":\"%s\","
        "\"user_name\":\"alice\",\"partition\":\"cpu\",\"job_state\":\"%s\",\"cpus\":1,"
        "\"exit_code\":2048,\"submit_time\":%lld,\"start_time\":%lld,\"end_time\":%lld}]}",
        id, name, comment, state, (long long)(clock_wall_ms(bench.env.clock) / 1000),
        (long long)(clock_wall_ms(bench.env.clock) / 1000),
        (long long)(clock_wall_ms(bench.env.clock) / 1000));
    return text;
}

static const char no_job[] =
    "{\"errors\":[{\"error_number\":2017,\"error\":\"Invalid job id specified\"}],\"jobs\":[]}";
static const char no_jobs[] = "{\"errors\":[],\"jobs\":[]}";

TestSuite(slurm, .init = setup, .fini = teardown, .timeout = 60);

/* ---- submit */

Test(slurm, submit_is_sent_once_and_carries_name_tag_and_token)
{
    struct bench_result result;
    answer("POST " API "/job/submit", "{\"errors\":[],\"job_id\":77}");
    cr_assert_eq(bench_submit(&result), ADAPTER_OK);
    cr_assert_str_eq(result.call.native_id, "77");
    char *request = nasty_last(server, "POST");
    cr_assert(strstr(request, "X-SLURM-USER-NAME: alice\r\n"));
    cr_assert(strstr(request, "X-SLURM-USER-TOKEN: first\r\n"));
    cr_assert(strstr(request, "Content-Type: application/json\r\n"));
    cr_assert(strstr(request, "\"name\":\"" NAME "\""));
    cr_assert(strstr(request, "\"comment\":\"tieline:lab:" ID ":1\""));
    free(request);
    cr_assert_eq(bench_submit(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "GET /openapi"), 1);
}

Test(slurm, accepted_with_errors_is_accepted)
{
    struct bench_result result;
    answer("POST " API "/job/submit",
           "{\"errors\":[{\"error_code\":2042,\"error\":\"held\"}],\"job_id\":8}");
    cr_assert_eq(bench_submit(&result), ADAPTER_OK);
    cr_assert_str_eq(result.call.native_id, "8");
}

Test(slurm, lost_answers_are_unknown_and_sent_once)
{
    static const struct {
        enum nasty_way way;
        int status;
        const char *type, *body;
    } ways[] = {
        {NASTY_DIE, 0, NULL, NULL},
        {NASTY_HALF, 200, "application/json", "{\"errors\":[],\"job_id\":77}"},
        {NASTY_ANSWER, 502, "text/html", "<html>Bad gateway</html>"},
        {NASTY_ANSWER, 200, "text/html", "<html>Welcome</html>"},
        {NASTY_ANSWER, 504, "text/plain", "Gateway timeout"},
        {NASTY_ANSWER, 500, "application/json",
         "{\"errors\":[{\"error_code\":5005,\"error\":\"Zero Bytes\"}]}"},
        {NASTY_ANSWER, 500, "application/json",
         "{\"errors\":[{\"error_code\":-1,\"error\":\"x\"}]}"},
        {NASTY_ANSWER, 200, "application/json", "{}"},
        {NASTY_ANSWER, 302, "text/html", ""},
    };
    struct bench_result result;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        nasty_on(server, "POST " API "/job/submit", ways[i].way, ways[i].status, ways[i].type,
                 ways[i].body);
        cr_assert_eq(bench_submit(&result), ADAPTER_UNKNOWN, "way %zu: %s", i,
                     result.call.err.text);
        cr_assert_neq(result.call.err.text[0], '\0');
        cr_assert_eq(nasty_count(server, "POST"), (int)i + 1, "way %zu", i);
    }
}

Test(slurm, hanging_submit_is_unknown_before_its_deadline)
{
    struct bench_result result;
    nasty_on(server, "POST " API "/job/submit", NASTY_HANG, 0, NULL, NULL);
    struct adapter_call *call = bench_prepare(&result);
    call->deadline_ms = clock_mono_ms(bench.env.clock) + 600;
    adapter_slurm.submit(bench.adapter, &bench.job, call);
    bench_await(&result);
    cr_assert_lt(clock_mono_ms(bench.env.clock), call->deadline_ms);
    cr_assert_eq(call->result, ADAPTER_UNKNOWN);
    cr_assert_eq(call->err.code, ERROR_TIMEOUT);
}

Test(slurm, refusals)
{
    static const struct {
        int status;
        const char *body;
        enum error_code code;
    } rows[] = {
        {500, "{\"errors\":[{\"error_code\":2000,\"error\":\"Invalid partition name specified\"}]}",
         ERROR_INVALID},
        {500, "{\"errors\":[{\"error_code\":2002,\"error\":\"Access denied\"}]}", ERROR_FORBIDDEN},
        {400, "Unable to parse query.", ERROR_INVALID},
        {500, "{\"errors\":[{\"error_code\":1800,\"error\":\"connect failure\"}]}",
         ERROR_UNAVAILABLE},
    };
    struct bench_result result;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refuse("POST " API "/job/submit", rows[i].status, rows[i].body);
        cr_assert_eq(bench_submit(&result), ADAPTER_FAILED, "%s", rows[i].body);
        cr_assert_eq(result.call.err.code, rows[i].code, "%s", rows[i].body);
    }
}

Test(slurm, nobody_there_is_not_done)
{
    char where[64];
    struct bench_result result;
    (void)snprintf(where, sizeof where, "http://127.0.0.1:%d", nasty_closed_port());
    bench_reopen(where);
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_UNAVAILABLE);
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    cr_assert_eq(bench_poll(&result), ADAPTER_UNKNOWN);
    cr_assert_eq(bench_probe(&result), ADAPTER_UNKNOWN);
    cr_assert_eq(bench_cancel(&result), ADAPTER_UNKNOWN);
}

Test(slurm, slurmrestd_that_goes_away_after_discovery)
{
    struct bench_result result;
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    nasty_stop(server);
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_UNAVAILABLE);
    server = nasty_start(NULL);
}

/* ---- credentials */

Test(slurm, another_token_is_tried_once)
{
    struct bench_result result;
    refuse("POST " API "/job/submit", 401, "Authentication failure");
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_UNAUTHORIZED);
    cr_assert_eq(nasty_count(server, "POST"), 1);
    write_token("second");
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    char *request = nasty_last(server, "POST");
    cr_assert(strstr(request, "X-SLURM-USER-TOKEN: second\r\n"));
    free(request);
    cr_assert_eq(nasty_count(server, "POST"), 2);
}

Test(slurm, missing_token_is_said_and_nothing_is_sent)
{
    struct bench_result result;
    (void)unlink(token_path);
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_UNAUTHORIZED);
    cr_assert(strstr(result.call.err.text, "token"), "%s", result.call.err.text);
    cr_assert_eq(nasty_connections(server), 0);
}

/* ---- versions */

Test(slurm, versions_are_tried_where_no_document_is_served)
{
    struct bench_result result;
    nasty_on(server, "GET /openapi/v3", NASTY_ANSWER, 404, "text/plain", "no");
    answer("GET /slurm/v0.0.42/ping", "{\"pings\":[]}");
    answer("GET /slurm/v0.0.40/ping", "{\"pings\":[]}");
    answer("GET /slurm/v0.0.42/jobs", no_jobs);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK, "%s", result.call.err.text);
    cr_assert_eq(nasty_count(server, "GET /slurm/v0.0.40"), 0);
}

Test(slurm, a_version_that_went_away_is_looked_for_again)
{
    struct bench_result result;
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    nasty_on(server, "GET " API "/jobs", NASTY_ANSWER, 404, "text/plain",
             "Unable find requested URL.");
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.43/jobs/\":{},\"/slurm/v0.0.42/jobs/\":{}}}");
    answer("GET /slurm/v0.0.43/jobs", no_jobs);
    cr_assert_eq(bench_poll(&result), ADAPTER_UNKNOWN);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "GET /slurm/v0.0.43/jobs"), 1);
}

Test(slurm, no_version_in_common)
{
    struct bench_result result;
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.39/jobs/\":{},\"/slurm/v0.0.37/jobs/\":{}}}");
    cr_assert_eq(bench_poll(&result), ADAPTER_UNKNOWN);
    cr_assert(strstr(result.call.err.text, "v0.0.37, v0.0.39"), "%s", result.call.err.text);
}

/* ---- find */

Test(slurm, lost_submit_is_found_by_name)
{
    struct bench_result result;
    answer("GET " API "/jobs", listing(12, NAME, "tieline:lab:" ID ":1", "RUNNING"));
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_RUNNING);
    cr_assert_str_eq(result.reports[0].native_id, "12");
    cr_assert_str_eq(result.reports[0].job_id, ID);
    cr_assert_gt(result.reports[0].started_ms, 0);
    answer("GET " API "/jobs", listing(12, NAME, "changed by somebody", "FAILED"));
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ENDED);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_EXIT);
    cr_assert_eq(result.reports[0].exit_code, 8);
}

Test(slurm, what_is_not_the_attempt_is_not_taken)
{
    struct bench_result result;
    answer("GET " API "/jobs", listing(12, "test." ID "-2", "tieline:lab:" ID ":2", "RUNNING"));
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
    answer("GET " API "/jobs", listing(12, NAME, "tieline:other:" ID ":1", "RUNNING"));
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
    answer("GET " API "/jobs", "{\"jobs\":[{\"job_id\":12,\"name\":\"" NAME
                               "\",\"user_name\":\"bob\",\"job_state\":\"RUNNING\"}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE"), 0, "deleted another's job");
}

Test(slurm, a_renamed_job_is_found_and_cancelled)
{
    struct bench_result result;
    answer("GET " API "/jobs", listing(12, "renamed", "tieline:lab:" ID ":1", "RUNNING"));
    answer("DELETE " API "/job/12", "{\"errors\":[]}");
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_RUNNING);
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE " API "/job/12"), 1);
}

Test(slurm, what_accounting_sees_alive_is_not_absent)
{
    struct bench_result result;
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.38/jobs\":{},\"/slurmdb/v0.0.38/jobs\":{}}}");
    answer("GET " API "/jobs", no_jobs);
    answer("GET /slurmdb/v0.0.38/jobs", no_jobs);
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
    answer("GET /slurmdb/v0.0.38/jobs",
           "{\"errors\":[],\"jobs\":[{\"job_id\":12,\"name\":\"" NAME "\",\"user\":\"alice\","
           "\"state\":{\"current\":\"PENDING\",\"reason\":\"None\"},"
           "\"time\":{\"submission\":9999999999,\"start\":0,\"end\":0}}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    cr_assert(strstr(result.call.err.text, "accounting knows"), "%s", result.call.err.text);
}

Test(slurm, absent_only_by_a_whole_listing)
{
    struct bench_result result;
    nasty_on(server, "GET " API "/jobs", NASTY_HALF, 200, "application/json", no_jobs);
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    refuse("GET " API "/jobs", 500, "{\"errors\":[{\"error_number\":-1}],\"jobs\":[]}");
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    answer("GET " API "/jobs", "{\"jobs\":[],\"last_update\":{\"set\":false},"
                               "\"warnings\":[{\"description\":\"Zero jobs to dump\"}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
}

Test(slurm, absent_is_not_proven_for_what_may_be_forgotten)
{
    struct bench_result result;
    answer("GET " API "/jobs", no_jobs);
    bench.job.ref.intent_ms -= bench.lab.settings.min_job_age;
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ENDED);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_OUTCOME_UNKNOWN);
    cr_assert(strstr(result.reports[0].reason, "MinJobAge"));
}

Test(slurm, accepted_and_forgotten)
{
    struct bench_result result;
    (void)snprintf(bench.job.ref.native_id, sizeof bench.job.ref.native_id, "12");
    refuse("GET " API "/job/12", 500, no_job);
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_OUTCOME_UNKNOWN);
    cr_assert_str_eq(result.reports[0].native_id, "12");
    /* The id is another job's by now. */
    answer("GET " API "/job/12", listing(12, "somebody", "", "RUNNING"));
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_OUTCOME_UNKNOWN);
    refuse("GET " API "/job/12", 500, "{\"errors\":[{\"error_number\":-1}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
}

Test(slurm, accounting_remembers)
{
    struct bench_result result;
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.38/jobs\":{},\"/slurmdb/v0.0.38/jobs\":{}}}");
    (void)snprintf(bench.job.ref.native_id, sizeof bench.job.ref.native_id, "12");
    refuse("GET " API "/job/12", 500, no_job);
    refuse("GET /slurmdb/v0.0.38/jobs", 500, "{\"errors\":[{\"error_number\":7000}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN, "a slurmdbd that is away is asked again");
    answer(
        "GET /slurmdb/v0.0.38/jobs",
        "{\"errors\":[],\"jobs\":[{\"job_id\":12,\"name\":\"" NAME "\",\"user\":\"alice\","
        "\"state\":{\"current\":\"CANCELLED\",\"reason\":\"None\"},\"kill_request_user\":\"bob\","
        "\"time\":{\"submission\":9999999999,\"start\":1,\"end\":2},"
        "\"exit_code\":{\"status\":\"SUCCESS\",\"return_code\":0}}]}");
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_CANCELLED);
    cr_assert_str_eq(result.reports[0].by, "bob");
    char *request = nasty_last(server, "GET /slurmdb");
    cr_assert(strstr(request, "?job_name=" NAME "&start_time=uts"));
    free(request);
}

Test(slurm, duplicates_the_lowest_is_kept)
{
    struct bench_result result;
    char text[1024];
    (void)snprintf(text, sizeof text,
                   "{\"jobs\":[{\"job_id\":14,\"name\":\"%s\",\"job_state\":\"PENDING\"},"
                   "{\"job_id\":12,\"name\":\"%s\",\"job_state\":\"RUNNING\"}]}",
                   NAME, NAME);
    answer("GET " API "/jobs", text);
    answer("DELETE " API "/job/14", "{\"errors\":[]}");
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_str_eq(result.reports[0].native_id, "12");
    while (!nasty_count(server, "DELETE " API "/job/14")) {
        (void)uv_run(&bench.loop, UV_RUN_NOWAIT);
    }
    cr_assert_eq(nasty_count(server, "DELETE"), 1);
    cr_assert(strstr(bench.logged, "warn hpc: " NAME " exists twice"), "%s", bench.logged);
}

Test(slurm, many_finds_share_listings)
{
    enum { MANY = 50 };
    static struct bench_result results[MANY];
    answer("GET " API "/jobs", no_jobs);
    for (int i = 0; i < MANY; i++) {
        adapter_slurm.find(bench.adapter, &bench.job.ref, bench_prepare(&results[i]));
    }
    for (int i = 0; i < MANY; i++) {
        if (!results[i].runs) {
            bench_await(&results[i]);
        }
        cr_assert_eq(results[i].reports[0].state, REPORT_ABSENT);
    }
    cr_assert_leq(nasty_count(server, "GET " API "/jobs"), 2);
}

/* ---- poll and probe */

Test(slurm, poll_reports_ours_alone)
{
    struct bench_result result;
    char text[2048];
    (void)snprintf(text, sizeof text,
                   "{\"jobs\":["
                   "{\"job_id\":1,\"name\":\"a\",\"comment\":\"tieline:lab:" ID
                   ":3\",\"job_state\":\"PENDING\","
                   "\"state_reason\":\"Resources\",\"start_time\":99},"
                   "{\"job_id\":2,\"name\":\"b." ID
                   "-4\",\"comment\":\"\",\"user_name\":\"alice\",\"job_state\":\"RUNNING\"},"
                   "{\"job_id\":3,\"name\":\"c." ID
                   "-5\",\"comment\":\"\",\"user_name\":\"bob\",\"job_state\":\"RUNNING\"},"
                   "{\"job_id\":4,\"name\":\"d." ID "-6\",\"comment\":\"tieline:other:" ID
                   ":6\",\"job_state\":\"RUNNING\"},"
                   "{\"job_id\":5,\"name\":\"interactive\",\"job_state\":\"RUNNING\"},"
                   "{\"job_id\":6,\"name\":\"e." ID "-7\",\"comment\":\"tieline:lab:" ID ":7\","
                   "\"job_state\":[\"CANCELLED\",\"REVOKED\"]},"
                   "{\"job_id\":7,\"name\":\"f." ID
                   "-8\",\"comment\":\"tieline:lab:broken\",\"job_state\":\"TIMEOUT\"}]}");
    answer("GET " API "/jobs", text);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    cr_assert_eq(result.call.report_count, 3);
    cr_assert_eq(result.reports[0].attempt, 3);
    cr_assert_eq(result.reports[0].state, REPORT_PENDING);
    cr_assert_eq(result.reports[0].started_ms, 0, "an estimate is no start");
    cr_assert_str_eq(result.reports[0].reason, "Resources");
    cr_assert_eq(result.reports[1].attempt, 4);
    cr_assert_eq(result.reports[2].attempt, 8);
    cr_assert_eq(result.reports[2].outcome, OUTCOME_TIME_LIMIT);
}

static void serve_condition(void)
{
    answer("GET " API "/partitions",
           "{\"meta\":{\"Slurm\":{\"release\":\"22.05.8\"}},\"partitions\":["
           "{\"name\":\"cpu\",\"state\":\"UP\",\"max_time_limit\":60,"
           "\"flags\":[\"default\"]},{\"name\":\"gpu\",\"state\":\"DOWN\"}]}");
    answer("GET " API "/nodes",
           "{\"meta\":{\"Slurm\":{\"release\":\"22.05.8\"}},\"nodes\":["
           "{\"state\":\"mixed\",\"cpus\":8,\"alloc_cpus\":2,\"real_memory\":1000,"
           "\"partitions\":[\"cpu\",\"gpu\"]}]}");
}

Test(slurm, probe_and_its_warning)
{
    struct bench_result result;
    serve_condition();
    answer("GET " API "/jobs", listing(5, "x", "", "RUNNING"));
    cr_assert_eq(bench_probe(&result), ADAPTER_OK, "%s", result.call.err.text);
    cr_assert_str_eq(result.version, "Slurm 22.05.8, v0.0.38");
    cr_assert(result.conditions[0].up);
    cr_assert_eq(result.conditions[0].free.cpus, 6000);
    cr_assert_eq(result.conditions[0].max_time, 3600000);
    cr_assert_eq(result.conditions[0].running, 1);
    cr_assert_eq(result.conditions[0].waiting, 0);
    cr_assert_not(result.conditions[1].up);
    cr_assert(strstr(bench.logged, "warn hpc: no slurmdbd"));
    size_t length = strlen(bench.logged);
    cr_assert_eq(bench_probe(&result), ADAPTER_OK);
    cr_assert_eq(strlen(bench.logged), length, "warned twice");
    cr_assert_eq(nasty_count(server, "GET " API "/jobs"), 1, "a fresh listing was not used");
}

Test(slurm, probe_with_accounting_does_not_warn)
{
    struct bench_result result;
    answer("GET /openapi/v3",
           "{\"paths\":{\"/slurm/v0.0.38/jobs\":{},\"/slurmdb/v0.0.38/jobs\":{}}}");
    answer("GET /slurmdb/v0.0.38/diag", "{\"errors\":[],\"statistics\":{}}");
    serve_condition();
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_probe(&result), ADAPTER_OK);
    cr_assert_eq(bench.logged[0], '\0');
    cr_assert_eq(bench_probe(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "GET /slurmdb"), 1);
}

Test(slurm, half_a_condition_is_none)
{
    struct bench_result result;
    serve_condition();
    answer("GET " API "/jobs", no_jobs);
    refuse("GET " API "/nodes", 500, "{\"errors\":[{\"error_number\":-1}]}");
    cr_assert_eq(bench_probe(&result), ADAPTER_UNKNOWN);
    cr_assert_null(result.call.conditions);
}

Test(slurm, a_long_listing_is_parsed_beside_the_loop)
{
    enum { JOBS = 20000, ROOM = 4 << 20 };
    struct bench_result result;
    char *text = xcalloc(ROOM, 1);
    size_t used = (size_t)snprintf(text, ROOM, "{\"jobs\":[");
    for (int i = 0; i < JOBS; i++) {
        used += (size_t)snprintf(text + used, ROOM - used,
                                 "%s{\"job_id\":%d,\"name\":\"other\",\"job_state\":\"PENDING\","
                                 "\"partition\":\"gpu,cpu\",\"cpus\":2}",
                                 i ? "," : "", i + 1);
    }
    (void)snprintf(text + used, ROOM - used, "]}");
    answer("GET " API "/jobs", text);
    serve_condition();
    cr_assert_eq(bench_probe(&result), ADAPTER_OK);
    cr_assert_eq(result.conditions[0].waiting, JOBS);
    cr_assert_eq(result.conditions[1].waiting, JOBS);
    cr_assert_eq(result.conditions[0].waiting_cpus, JOBS * INT64_C(2000));
    free(text);
}

/* ---- cancel */

Test(slurm, cancel_looks_before_it_deletes)
{
    struct bench_result result;
    (void)snprintf(bench.job.ref.native_id, sizeof bench.job.ref.native_id, "12");
    answer("GET " API "/job/12", listing(12, "somebody", "", "RUNNING"));
    answer("DELETE " API "/job/12", "{\"errors\":[]}");
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE"), 0, "deleted another's job");
    answer("GET " API "/job/12", listing(12, NAME, "", "FAILED"));
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE"), 0);
    answer("GET " API "/job/12", listing(12, NAME, "", "RUNNING"));
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE"), 1);
    refuse("DELETE " API "/job/12", 500,
           "{\"errors\":[{\"error_number\":2002,\"error\":\"denied\"}]}");
    cr_assert_eq(bench_cancel(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_FORBIDDEN);
    nasty_on(server, "DELETE " API "/job/12", NASTY_DIE, 0, NULL, NULL);
    cr_assert_eq(bench_cancel(&result), ADAPTER_UNKNOWN);
    refuse("GET " API "/job/12", 500, no_job);
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
}

Test(slurm, cancel_without_an_id_goes_by_name)
{
    struct bench_result result;
    answer("GET " API "/jobs", listing(12, NAME, "", "PENDING"));
    answer("DELETE " API "/job/12", "{\"errors\":[]}");
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE " API "/job/12"), 1);
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(nasty_count(server, "DELETE"), 1);
}

/* ---- rate, line, close */

Test(slurm, requests_limits_the_rate)
{
    struct bench_result results[6];
    bench.lab.cluster.requests = (struct rate){.count = 3, .per_ms = 300};
    reopen();
    answer("POST " API "/job/submit", "{\"job_id\":1}");
    int64_t begin = clock_mono_ms(bench.env.clock);
    for (int i = 0; i < 6; i++) {
        adapter_slurm.submit(bench.adapter, &bench.job, bench_prepare(&results[i]));
    }
    for (int i = 0; i < 6; i++) {
        if (!results[i].runs) {
            bench_await(&results[i]);
        }
        cr_assert_eq(results[i].call.result, ADAPTER_OK);
    }
    /* 7 requests with the search for the version: 3 at once, 4 at one per 100 ms */
    int64_t took = clock_mono_ms(bench.env.clock) - begin;
    cr_assert_geq(took, 395, "%lld", (long long)took);
    cr_assert_lt(took, 3000, "%lld", (long long)took);
}

Test(slurm, what_the_rate_leaves_no_time_for_was_not_done)
{
    struct bench_result first, second;
    bench.lab.cluster.requests = (struct rate){.count = 2, .per_ms = 3600000};
    reopen();
    answer("POST " API "/job/submit", "{\"job_id\":1}");
    cr_assert_eq(bench_submit(&first), ADAPTER_OK);
    struct adapter_call *call = bench_prepare(&second);
    call->deadline_ms = clock_mono_ms(bench.env.clock) + 300;
    adapter_slurm.submit(bench.adapter, &bench.job, call);
    bench_await(&second);
    cr_assert_lt(clock_mono_ms(bench.env.clock), call->deadline_ms);
    cr_assert_eq(call->result, ADAPTER_FAILED);
    cr_assert_eq(call->err.code, ERROR_UNAVAILABLE);
    cr_assert_eq(nasty_count(server, "POST"), 1);
}

Test(slurm, the_line_is_bounded)
{
    enum { MANY = LIMIT_MEMBER_LINE + 50 };
    static struct bench_result results[MANY];
    struct bench_result result;
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    answer("POST " API "/job/submit", "{\"job_id\":1}");
    for (int i = 0; i < MANY; i++) {
        adapter_slurm.submit(bench.adapter, &bench.job, bench_prepare(&results[i]));
    }
    int failed = 0;
    for (int i = 0; i < MANY; i++) {
        if (!results[i].runs) {
            bench_await(&results[i]);
        }
        failed += results[i].call.result == ADAPTER_FAILED;
    }
    cr_assert_eq(failed, 50);
    cr_assert_eq(nasty_count(server, "POST"), LIMIT_MEMBER_LINE);
}

Test(slurm, close_completes_what_is_outstanding)
{
    struct bench_result hung, waiting;
    answer("GET " API "/jobs", no_jobs);
    cr_assert_eq(bench_poll(&hung), ADAPTER_OK);
    nasty_on(server, "POST " API "/job/submit", NASTY_HANG, 0, NULL, NULL);
    adapter_slurm.submit(bench.adapter, &bench.job, bench_prepare(&hung));
    while (!nasty_count(server, "POST")) {
        (void)uv_run(&bench.loop, UV_RUN_NOWAIT);
    }
    adapter_slurm.find(bench.adapter, &bench.job.ref, bench_prepare(&waiting));
    bench_reopen("http://127.0.0.1:1");
    cr_assert_eq(hung.runs, 1);
    cr_assert_eq(hung.call.result, ADAPTER_UNKNOWN);
    cr_assert_eq(waiting.runs, 1);
    cr_assert_eq(waiting.call.result, ADAPTER_UNKNOWN);
    adapter_slurm.poll(bench.adapter, bench_prepare(&waiting));
    bench_reopen("http://127.0.0.1:1"); /* while it looks for the version */
    cr_assert_eq(waiting.runs, 1);
    cr_assert_eq(waiting.call.result, ADAPTER_UNKNOWN);
}

Test(slurm, unix_socket)
{
    char path[100], where[120];
    struct bench_result result;
    (void)snprintf(path, sizeof path, "/tmp/tieline-test-slurm.%d", (int)getpid());
    struct nasty *local = nasty_start(path);
    nasty_on(local, "GET /openapi/v3", NASTY_ANSWER, 200, "application/json",
             "{\"paths\":{\"/slurm/v0.0.38/jobs\":{}}}");
    nasty_on(local, "GET " API "/jobs", NASTY_ANSWER, 200, "application/json", no_jobs);
    (void)snprintf(where, sizeof where, "unix:%s", path);
    bench_reopen(where);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK, "%s", result.call.err.text);
    nasty_stop(local);
}
