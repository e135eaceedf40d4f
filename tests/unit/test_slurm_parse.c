/* test_slurm_parse.c - answers of all versions, as recorded or written after their documents. */
#include "adapters/slurm_condition.h"
#include "adapters/slurm_json.h"
#include "adapters/slurm_parse.h"
#include "adapters/slurm_result.h"
#include "adapters/slurm_discover.h"
#include "adapters/slurm_state.h"
#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int versions[] = {38, 40, 42, 43, 44, 45};
enum { VERSION_COUNT = sizeof versions / sizeof *versions };

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    cr_assert(file, "%s", path);
    char *text = xcalloc(1 << 20, 1);
    *length = fread(text, 1, (1 << 20) - 1, file);
    (void)fclose(file);
    return text;
}

/* The recorded answer of this name, with the status and type it came with. */
static struct slurm_answer *recorded(int version, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof path, FIXTURES "/slurm/v0.0.%d/index.json", version);
    json_t *index = json_load_file(path, 0, NULL);
    const json_t *entry = json_object_get(index, name);
    cr_assert(entry, "%s has no %s", path, name);
    const char *file = json_string_value(json_object_get(entry, "file"));
    const char *type = json_string_value(json_object_get(entry, "content_type"));
    size_t length = 0;
    char *text = NULL;
    if (file) {
        (void)snprintf(path, sizeof path, FIXTURES "/slurm/v0.0.%d/%s", version, file);
        text = read_file(path, &length);
    }
    struct slurm_answer *answer =
        slurm_parse((long)json_integer_value(json_object_get(entry, "status")), type ? type : "",
                    text ? text : "", length);
    free(text);
    json_decref(index);
    return answer;
}

static struct slurm_answer *parsed(long status, const char *text)
{
    return slurm_parse(status, "application/json", text, strlen(text));
}

static const struct slurm_job *job_named(const struct slurm_answer *answer, const char *begin)
{
    for (size_t i = 0; i < answer->job_count; i++) {
        if (!strncmp(answer->jobs[i].name, begin, strlen(begin))) {
            return &answer->jobs[i];
        }
    }
    cr_assert_fail("no job %s", begin);
    return NULL;
}

static void expect_job(const struct slurm_answer *answer, const char *name, enum slurm_phase phase,
                       enum outcome outcome, int code, int signal)
{
    const struct slurm_job *job = job_named(answer, name);
    cr_assert_eq(job->phase, phase, "%s: phase %d", name, (int)job->phase);
    cr_assert_eq(job->outcome, outcome, "%s: outcome %d", name, (int)job->outcome);
    cr_assert_eq(job->exit_code, code, "%s: code %d", name, job->exit_code);
    cr_assert_eq(job->signal, signal, "%s: signal %d", name, job->signal);
    cr_assert_gt(job->submit_ms, INT64_C(1700000000000));
}

/* ---- values */

Test(slurm_json, numbers_in_all_forms)
{
    static const struct {
        const char *json;
        int64_t want;
    } rows[] = {
        {"7", 7},
        {"-127", -127},
        {"7.9", 7},
        {"\"12\"", 12},
        {"\"Infinity\"", UNLIMITED},
        {"\"UNLIMITED\"", UNLIMITED},
        {"\"12x\"", -9},
        {"\"\"", -9},
        {"null", -9},
        {"true", -9},
        {"[]", -9},
        {"{}", -9},
        {"1e300", UNLIMITED},
        {"-1e300", -9},
        {"{\"set\":true,\"infinite\":false,\"number\":5}", 5},
        {"{\"set\":false,\"infinite\":false,\"number\":5}", -9},
        {"{\"set\":false,\"infinite\":true,\"number\":0}", UNLIMITED},
        {"{\"set\":true,\"infinite\":false,\"number\":2.5}", 2},
        {"{\"number\":{\"number\":1}}", -9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *json = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
        cr_assert(json);
        cr_assert_eq(slurm_number(json, -9), rows[i].want, "%s", rows[i].json);
        json_decref(json);
    }
    cr_assert_eq(slurm_number(NULL, 3), 3);
}

/* ---- jobs */

ParameterizedTestParameters(slurm_parse, jobs)
{
    return cr_make_param_array(const int, (int *)(uintptr_t)versions, VERSION_COUNT);
}

ParameterizedTest(const int *version, slurm_parse, jobs)
{
    struct slurm_answer *answer = recorded(*version, "jobs");
    cr_assert(answer->is_json && answer->has_jobs && !answer->has_errors && !answer->is_unchanged);
    cr_assert_neq(answer->release[0], '\0');
    expect_job(answer, "exit8.", SLURM_ENDED, OUTCOME_EXIT, 8, 0);
    expect_job(answer, "ok.", SLURM_ENDED, OUTCOME_EXIT, 0, 0);
    expect_job(answer, "timeout.", SLURM_ENDED, OUTCOME_TIME_LIMIT, 0, 15);
    expect_job(answer, "running.", SLURM_RUNNING, OUTCOME_NONE, 0, 0);
    expect_job(answer, "cancelled.", SLURM_ENDED, OUTCOME_CANCELLED, 0, *version == 38 ? 15 : 9);
    expect_job(answer, "killed.", SLURM_ENDED, OUTCOME_SIGNAL, 0, 15);
    expect_job(answer, "held.", SLURM_PENDING, OUTCOME_NONE, 0, 0);
    const struct slurm_job *job = job_named(answer, "exit8.");
    cr_assert_eq(job->id, 1);
    cr_assert_eq(job->cpus, 1);
    cr_assert_str_eq(job->user, "alice");
    cr_assert_str_eq(job->partition, "cpu");
    cr_assert_eq(strncmp(job->comment, "tieline:lab:", 12), 0);
    cr_assert_str_eq(job->reason, "NonZeroExitCode");
    cr_assert_geq(job->end_ms, job->start_ms);
    slurm_answer_destroy(answer);
}

Test(slurm_parse, flags_of_later_versions)
{
    for (size_t i = 1; i < VERSION_COUNT; i++) {
        struct slurm_answer *answer = recorded(versions[i], "jobs");
        expect_job(answer, "cancelledpending.", SLURM_ENDED, OUTCOME_CANCELLED, 0, 0);
        expect_job(answer, "completing.", SLURM_RUNNING, OUTCOME_NONE, 0, 0);
        expect_job(answer, "stopped.", SLURM_RUNNING, OUTCOME_NONE, 0, 0);
        expect_job(answer, "configuring.", SLURM_PENDING, OUTCOME_NONE, 0, 0);
        expect_job(answer, "requeued.", SLURM_PENDING, OUTCOME_NONE, 0, 0);
        expect_job(answer, "preempted.", SLURM_ENDED, OUTCOME_RECLAIMED, 0, 15);
        expect_job(answer, "nodefail.", SLURM_ENDED, OUTCOME_RECLAIMED, 0, 0);
        expect_job(answer, "oom.", SLURM_ENDED, OUTCOME_OUT_OF_MEMORY, 0, 9);
        expect_job(answer, "sibling.", SLURM_SIBLING, OUTCOME_NONE, 0, 0);
        expect_job(answer, "launchfail.", SLURM_ENDED, OUTCOME_START_FAILED, 1, 0);
        slurm_answer_destroy(answer);
    }
}

Test(slurm_parse, launch_failure_of_22_05)
{
    struct slurm_answer *answer = recorded(38, "jobs");
    const struct slurm_job *job = job_named(answer, "launchfail.");
    cr_assert_eq(job->phase, SLURM_ENDED);
    cr_assert_eq(job->outcome, OUTCOME_START_FAILED);
    slurm_answer_destroy(answer);
    answer = recorded(38, "job_cancelled_pending");
    cr_assert_eq(answer->jobs[0].outcome, OUTCOME_CANCELLED);
    slurm_answer_destroy(answer);
    answer = recorded(38, "job_node_fail");
    cr_assert_eq(answer->jobs[0].outcome, OUTCOME_RECLAIMED);
    slurm_answer_destroy(answer);
    answer = recorded(38, "job_stopped");
    cr_assert_eq(answer->jobs[0].phase, SLURM_RUNNING);
    slurm_answer_destroy(answer);
}

ParameterizedTestParameters(slurm_parse, edges)
{
    return cr_make_param_array(const int, (int *)(uintptr_t)versions, VERSION_COUNT);
}

ParameterizedTest(const int *version, slurm_parse, edges)
{
    struct slurm_answer *answer = recorded(*version, "jobs_empty");
    cr_assert(answer->has_jobs && !answer->is_unchanged);
    cr_assert_eq(answer->job_count, 0);
    slurm_answer_destroy(answer);
    answer = recorded(*version, "jobs_no_change");
    cr_assert(*version == 38 ? answer->status == 304 && !answer->has_jobs : answer->is_unchanged);
    slurm_answer_destroy(answer);
    struct slurm_reply reply = {.answer = recorded(*version, "job_unknown"), .sent = true};
    cr_assert(slurm_reply_is_no_job(&reply));
    cr_assert_not(slurm_reply_is_good(&reply));
    slurm_answer_destroy(reply.answer);
}

/* ---- states */

static void expect_state(const char *words, enum slurm_phase phase, enum outcome outcome)
{
    char *json = xasprintf("{\"jobs\":[{\"job_id\":1,\"job_state\":%s,\"start_time\":5,"
                           "\"exit_code\":256}]}",
                           words);
    struct slurm_answer *answer = parsed(200, json);
    cr_assert_eq(answer->jobs[0].phase, phase, "%s", words);
    cr_assert_eq(answer->jobs[0].outcome, outcome, "%s", words);
    slurm_answer_destroy(answer);
    free(json);
}

Test(slurm_parse, states_and_flags)
{
    expect_state("[\"COMPLETED\",\"COMPLETING\"]", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("\"COMPLETING\"", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("[\"RUNNING\",\"CONFIGURING\"]", SLURM_PENDING, OUTCOME_NONE);
    expect_state("[\"NODE_FAIL\",\"REQUEUED\"]", SLURM_PENDING, OUTCOME_NONE);
    expect_state("[\"PENDING\",\"SPECIAL_EXIT\"]", SLURM_PENDING, OUTCOME_NONE);
    expect_state("[\"COMPLETED\",\"STAGE_OUT\"]", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("[\"COMPLETED\",\"UPDATE_DB\"]", SLURM_ENDED, OUTCOME_EXIT);
    expect_state("[\"CANCELLED\",\"REVOKED\"]", SLURM_SIBLING, OUTCOME_NONE);
    expect_state("[\"FAILED\",\"LAUNCH_FAILED\"]", SLURM_ENDED, OUTCOME_START_FAILED);
    expect_state("[\"RUNNING\",\"STOPPED\"]", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("\"NODE_FAIL\"", SLURM_ENDED, OUTCOME_RECLAIMED);
    expect_state("[\"PREEMPTED\"]", SLURM_ENDED, OUTCOME_RECLAIMED);
    expect_state("[\"BOOT_FAIL\"]", SLURM_ENDED, OUTCOME_START_FAILED);
    expect_state("[\"OUT_OF_MEMORY\"]", SLURM_ENDED, OUTCOME_OUT_OF_MEMORY);
    expect_state("[\"DEADLINE\"]", SLURM_ENDED, OUTCOME_TIME_LIMIT);
    expect_state("\"SUSPENDED\"", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("\"FAILED\"", SLURM_ENDED, OUTCOME_EXIT);
    expect_state("[\"FUTURE_WORD\"]", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("[\"FUTURE_WORD\",\"COMPLETED\"]", SLURM_ENDED, OUTCOME_EXIT);
    expect_state("[]", SLURM_RUNNING, OUTCOME_NONE);
    expect_state("7", SLURM_RUNNING, OUTCOME_NONE);
}

Test(slurm_parse, failed_without_a_status_is_no_success)
{
    struct slurm_answer *answer =
        parsed(200, "{\"jobs\":[{\"job_state\":\"FAILED\",\"exit_code\":0,\"start_time\":9},"
                    "{\"job_state\":\"FAILED\",\"exit_code\":0},"
                    "{\"job_state\":[\"FAILED\"],\"exit_code\":{\"status\":[\"INVALID\"],"
                    "\"return_code\":-127,\"signal\":{\"signal_id\":0}},\"start_time\":9}]}");
    cr_assert_eq(answer->jobs[0].outcome, OUTCOME_OUTCOME_UNKNOWN);
    cr_assert_eq(answer->jobs[1].outcome, OUTCOME_START_FAILED);
    cr_assert_eq(answer->jobs[2].outcome, OUTCOME_OUTCOME_UNKNOWN);
    slurm_answer_destroy(answer);
}

Test(slurm_parse, exit_codes_of_39_and_of_accounting)
{
    struct slurm_answer *answer = parsed(
        200,
        "{\"jobs\":[{\"job_state\":\"FAILED\",\"exit_code\":{\"status\":\"SIGNALED\","
        "\"return_code\":0,\"signal\":{\"signal_id\":15,\"name\":\"TERM\"}}},"
        "{\"job_id\":7,\"name\":\"a.j-1\",\"user\":\"bob\",\"comment\":{\"job\":\"c\"},"
        "\"state\":{\"current\":\"CANCELLED by 1000\",\"reason\":\"None\"},"
        "\"kill_request_user\":\"alice\",\"time\":{\"submission\":100,\"start\":200,\"end\":300},"
        "\"exit_code\":{\"status\":[\"SUCCESS\"],\"return_code\":{\"set\":true,\"number\":0},"
        "\"signal\":{\"id\":{\"set\":false,\"number\":0}}}}]}");
    cr_assert_eq(answer->jobs[0].outcome, OUTCOME_SIGNAL);
    cr_assert_eq(answer->jobs[0].signal, 15);
    const struct slurm_job *job = &answer->jobs[1];
    cr_assert_eq(job->outcome, OUTCOME_CANCELLED);
    cr_assert_str_eq(job->by, "alice");
    cr_assert_str_eq(job->user, "bob");
    cr_assert_str_eq(job->comment, "c");
    cr_assert_str_eq(job->reason, "");
    cr_assert_eq(job->submit_ms, 100000);
    cr_assert_eq(job->start_ms, 200000);
    cr_assert_eq(job->end_ms, 300000);
    slurm_answer_destroy(answer);
}

/* ---- submit and cancel */

static void expect_submit(int version, const char *name, enum adapter_result result,
                          enum error_code code)
{
    struct slurm_reply reply = {.answer = recorded(version, name), .sent = true};
    struct error err;
    error_clear(&err);
    cr_assert_eq(slurm_submit_result(&reply, &err), result, "v%d %s: %s", version, name, err.text);
    cr_assert_eq(err.code, code, "v%d %s: %s %s", version, name, error_name(err.code), err.text);
    cr_assert(result != ADAPTER_OK || reply.answer->job_id > 0);
    slurm_answer_destroy(reply.answer);
}

Test(slurm_result, submits_of_22_05)
{
    static const char *const taken[] = {
        "submit_ok",     "submit_held",          "submit_dependency",
        "submit_array",  "submit_too_many_cpus", "submit_partition_down",
        "submit_bad_qos"};
    static const char *const refused[] = {
        "submit_bad_partition",  "submit_too_much_memory",   "submit_unknown_key",
        "submit_no_environment", "submit_environment_array", "submit_time_limit_object",
        "submit_no_script",      "submit_bad_json",          "submit_form_type"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        expect_submit(38, taken[i], ADAPTER_OK, ERROR_NONE);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        expect_submit(38, refused[i], ADAPTER_FAILED, ERROR_INVALID);
    }
    expect_submit(38, "no_auth", ADAPTER_FAILED, ERROR_UNAUTHORIZED);
    expect_submit(38, "unknown_version", ADAPTER_FAILED, ERROR_UNAVAILABLE);
    expect_submit(38, "controller_down_submit", ADAPTER_FAILED, ERROR_UNAVAILABLE);
    expect_submit(38, "controller_hung_submit", ADAPTER_UNKNOWN, ERROR_UPSTREAM);
    expect_submit(38, "expired_token_submit", ADAPTER_UNKNOWN, ERROR_UPSTREAM);
}

Test(slurm_result, submits_of_later_versions)
{
    for (size_t i = 1; i < VERSION_COUNT; i++) {
        expect_submit(versions[i], "submit_ok", ADAPTER_OK, ERROR_NONE);
        expect_submit(versions[i], "submit_held", ADAPTER_OK, ERROR_NONE);
        expect_submit(versions[i], "submit_warning_field", ADAPTER_OK, ERROR_NONE);
        expect_submit(versions[i], "submit_bad_partition", ADAPTER_FAILED, ERROR_INVALID);
        expect_submit(versions[i], "submit_node_config", ADAPTER_FAILED, ERROR_INVALID);
        expect_submit(versions[i], "submit_unreachable", ADAPTER_FAILED, ERROR_UNAVAILABLE);
    }
}

static void expect_text(long status, const char *type, const char *text, enum adapter_result result)
{
    struct slurm_reply reply = {.answer = slurm_parse(status, type, text, strlen(text)),
                                .sent = true};
    struct error err;
    cr_assert_eq(slurm_submit_result(&reply, &err), result, "%ld %s", status, text);
    slurm_answer_destroy(reply.answer);
}

Test(slurm_result, what_is_not_slurmrestd_proves_nothing)
{
    expect_text(502, "text/html", "<html><h1>Bad gateway</h1>", ADAPTER_UNKNOWN);
    expect_text(404, "text/html", "<html>", ADAPTER_UNKNOWN);
    expect_text(200, "text/html; charset=utf-8", "<html>", ADAPTER_UNKNOWN);
    expect_text(200, "application/json", "{\"job_id\": 12", ADAPTER_UNKNOWN);
    expect_text(200, "application/json", "", ADAPTER_UNKNOWN);
    expect_text(200, "application/json", "[]", ADAPTER_UNKNOWN);
    expect_text(200, "application/json", "{\"job_id\": 0}", ADAPTER_UNKNOWN);
    expect_text(504, "application/json", "{\"errors\":[{\"error_number\":-1}]}", ADAPTER_UNKNOWN);
    expect_text(500, "application/json", "{\"errors\":[{\"error_number\":1801}]}", ADAPTER_UNKNOWN);
    expect_text(511, "text/plain", "Authentication", ADAPTER_FAILED);
    expect_text(500, "application/json", "{\"errors\":[{\"error_number\":6001}]}", ADAPTER_FAILED);
    expect_text(500, "application/json", "{\"job_id\":9,\"errors\":[{\"error_number\":2042}]}",
                ADAPTER_OK);
}

Test(slurm_result, a_reply_that_never_came)
{
    struct slurm_reply reply = {.answer = NULL, .sent = true};
    struct error err;
    error_set(&reply.err, ERROR_TIMEOUT, "late");
    cr_assert_eq(slurm_submit_result(&reply, &err), ADAPTER_UNKNOWN);
    cr_assert_eq(err.code, ERROR_TIMEOUT);
    reply.sent = false;
    cr_assert_eq(slurm_submit_result(&reply, &err), ADAPTER_FAILED);
    cr_assert_eq(err.code, ERROR_UNAVAILABLE);
}

static void expect_cancel(int version, const char *name, enum adapter_result result)
{
    struct slurm_reply reply = {.answer = recorded(version, name), .sent = true};
    struct error err;
    cr_assert_eq(slurm_cancel_result(&reply, &err), result, "v%d %s", version, name);
    slurm_answer_destroy(reply.answer);
}

Test(slurm_result, cancels)
{
    expect_cancel(38, "cancel_running", ADAPTER_OK);
    expect_cancel(38, "cancel_pending", ADAPTER_OK);
    expect_cancel(38, "cancel_foreign", ADAPTER_FAILED);
    expect_cancel(38, "controller_down_cancel", ADAPTER_UNKNOWN);
    expect_cancel(38, "no_auth", ADAPTER_UNKNOWN);
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        expect_cancel(versions[i], "cancel_ended", ADAPTER_OK);
        expect_cancel(versions[i], "cancel_unknown", ADAPTER_OK);
    }
}

Test(slurm_result, old_releases_say_the_same_of_a_bad_token_and_a_dead_controller)
{
    static const char *const names[] = {"bad_token", "expired_token", "expired_token_submit",
                                        "controller_down_ping"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slurm_reply reply = {.answer = recorded(38, names[i]), .sent = true};
        struct error err;
        cr_assert(slurm_answer_may_be_unauthorized(reply.answer), "%s", names[i]);
        cr_assert_not(slurm_answer_is_unauthorized(reply.answer));
        (void)slurm_reply_error(&reply, &err);
        cr_assert(strstr(err.expected, "connect.token"), "%s", err.expected);
        slurm_answer_destroy(reply.answer);
    }
}

/* ---- conditions */

static struct federation federation;
static struct gpu_model models[2];
static struct cluster cluster;
static struct place place;
static struct gpu_name names[1];

static void make_federation(void)
{
    models[0].name = (char *)(uintptr_t) "h100";
    models[1].name = (char *)(uintptr_t) "a100-80";
    names[0] = (struct gpu_name){.name = models[1].name, .native = (char *)(uintptr_t) "gpu:a100"};
    federation.gpus = models;
    federation.gpu_count = 2;
    cluster.name = (char *)(uintptr_t) "hpc";
    place.cluster = &cluster;
    place.gpus = (struct list){.items = names, .count = 1};
    (void)snprintf(place.name, sizeof place.name, "hpc/cpu");
}

ParameterizedTestParameters(slurm_condition, places)
{
    return cr_make_param_array(const int, (int *)(uintptr_t)versions, VERSION_COUNT);
}

ParameterizedTest(const int *version, slurm_condition, places, .init = make_federation)
{
    struct slurm_answer *partitions = recorded(*version, "partitions");
    struct slurm_answer *nodes = recorded(*version, "nodes");
    struct slurm_answer *jobs = recorded(*version, "jobs");
    struct condition condition = {0};
    slurm_condition_fill(&federation, &place, "cpu", partitions, nodes, &condition);
    slurm_condition_count("cpu", jobs, &condition);
    cr_assert(condition.up, "%s", condition.reason);
    /* n4 is drained, n5 down, n7 under maintenance */
    int64_t usable = *version == 38 ? 2 : 4;
    cr_assert_eq(condition.total.cpus, usable * 4000, "%lld", (long long)condition.total.cpus);
    cr_assert_eq(condition.total.memory, usable * (INT64_C(4096) << 20));
    cr_assert_eq(condition.largest.cpus, 4000);
    cr_assert_eq(condition.free.cpus, *version == 38 ? 4000 : 9000);
    cr_assert_geq(condition.running, 1);
    cr_assert_geq(condition.waiting, 1);
    cr_assert_geq(condition.waiting_cpus, 1000 * condition.waiting);
    cr_assert_eq(condition.max_time, *version == 38 ? 0 : INT64_C(2880) * 60000);
    struct condition none = {0};
    slurm_condition_fill(&federation, &place, "nosuch", partitions, nodes, &none);
    cr_assert(!none.up && strstr(none.reason, "nosuch"));
    slurm_answer_destroy(partitions);
    slurm_answer_destroy(nodes);
    slurm_answer_destroy(jobs);
}

Test(slurm_condition, down_and_drained, .init = make_federation)
{
    struct slurm_answer *partitions = recorded(38, "partitions_down");
    struct slurm_answer *nodes = recorded(38, "nodes_drained");
    struct condition big = {0}, cpu = {0};
    slurm_condition_fill(&federation, &place, "big", partitions, nodes, &big);
    cr_assert(!big.up && strstr(big.reason, "DOWN"), "%s", big.reason);
    slurm_condition_fill(&federation, &place, "cpu", partitions, nodes, &cpu);
    cr_assert_str_eq(slurm_default_partition(partitions), "cpu");
    slurm_answer_destroy(nodes);
    slurm_answer_destroy(partitions);
    partitions =
        parsed(200, "{\"partitions\":[{\"name\":\"p\",\"partition\":{\"state\":[\"UP\"]},"
                    "\"maximums\":{\"time\":{\"set\":true,\"infinite\":true,\"number\":0}}}]}");
    nodes = parsed(200,
                   "{\"nodes\":[{\"state\":[\"IDLE\",\"DRAIN\"],\"cpus\":4,\"partitions\":[\"p\"]},"
                   "{\"state\":[\"DOWN\"],\"cpus\":4,\"partitions\":\"q,p\"},"
                   "{\"state\":\"idle\",\"state_flags\":[\"NOT_RESPONDING\"],\"cpus\":4,"
                   "\"partitions\":[\"p\"]}]}");
    struct condition none = {0};
    slurm_condition_fill(&federation, &place, "p", partitions, nodes, &none);
    cr_assert(!none.up && strstr(none.reason, "no node"), "%s", none.reason);
    cr_assert_eq(none.total.cpus, 0);
    cr_assert_eq(none.max_time, 0);
    cr_assert_str_eq(slurm_default_partition(partitions), "p");
    slurm_answer_destroy(nodes);
    slurm_answer_destroy(partitions);
}

Test(slurm_condition, gpus_by_our_names, .init = make_federation)
{
    struct slurm_answer *partitions =
        parsed(200, "{\"partitions\":[{\"name\":\"g\",\"state\":\"UP\"}]}");
    struct slurm_answer *nodes = parsed(
        200, "{\"nodes\":[{\"state\":\"mixed\",\"cpus\":8,\"alloc_cpus\":3,\"real_memory\":100,"
             "\"alloc_memory\":40,\"partitions\":[\"g\"],\"gres\":\"gpu:a100:4(S:0-1),gpu:h100:2,"
             "shard:8,gpu:other:1\",\"gres_used\":\"gpu:a100:3(IDX:0,2-3),gpu:h100:0(IDX:N/A)\"},"
             "{\"state\":\"idle\",\"cpus\":2,\"partitions\":[\"g\"],\"gres\":\"gpu:5\"},"
             "{\"state\":\"idle\",\"cpus\":2,\"partitions\":[\"g\"],\"gres\":\"gpu\","
             "\"gres_used\":\"gpu:0\"}]}");
    struct condition condition = {0};
    slurm_condition_fill(&federation, &place, "g", partitions, nodes, &condition);
    cr_assert_eq(condition.gpu_count, 2);
    cr_assert_eq(condition.gpus[0].model, 1);
    cr_assert_eq(condition.gpus[0].total, 4000);
    cr_assert_eq(condition.gpus[0].free, 1000);
    cr_assert_eq(condition.gpus[1].model, 0);
    cr_assert_eq(condition.gpus[1].total, 2000);
    cr_assert_eq(condition.gpus[1].free, 2000);
    cr_assert_eq(condition.total.gpus, 13000);
    cr_assert_eq(condition.free.gpus, 10000);
    cr_assert_eq(condition.largest.gpus, 7000);
    cr_assert_eq(condition.free.cpus, 9000);
    cr_assert_eq(condition.free.memory, INT64_C(60) << 20);
    slurm_answer_destroy(nodes);
    slurm_answer_destroy(partitions);
}

/* ---- versions, and nonsense */

Test(slurm_parse, versions_of_a_document)
{
    struct slurm_answer *answer = parsed(
        200, "{\"paths\":{\"\\/slurm\\/v0.0.36\\/jobs\":{},\"/slurm/v0.0.40/jobs/\":{},"
             "\"/slurm/v0.0.39/diag/\":{},\"/slurmdb/v0.0.40/jobs/\":{},\"/slurm/v0.0.999/x\":{},"
             "\"/openapi/v3\":{}}}");
    cr_assert_eq(slurm_version_pick(answer->versions), 40);
    cr_assert(answer->accounting >> 40 & 1);
    cr_assert_not(answer->accounting >> 39 & 1);
    slurm_answer_destroy(answer);
    cr_assert_eq(slurm_version_pick(UINT64_C(1) << 36 | UINT64_C(1) << 37 | UINT64_C(1) << 38), 38);
    cr_assert_eq(slurm_version_pick(UINT64_C(1) << 39), 0);
    cr_assert_eq(slurm_version_pick(UINT64_C(1) << 50 | UINT64_C(1) << 45), 45);
}

Test(slurm_parse, wrong_types_are_no_crash)
{
    static const char *const texts[] = {
        "{\"jobs\":{}}",
        ("{\"jobs\":[1,null,\"x\",[],{\"job_id\":\"a\",\"name\":7,\"job_state\":{\"a\":1},"
         "\"exit_code\":[],\"comment\":[],\"state\":5,\"time\":\"x\"}]}"),
        "{\"nodes\":[0,{\"state\":5,\"partitions\":9,\"gres\":1,\"cpus\":-3,\"real_memory\":1e30}]}",
        "{\"partitions\":[0,{\"name\":null,\"partition\":\"x\",\"maximums\":[]}]}",
        "{\"errors\":[1,{\"error_number\":\"x\",\"description\":5}],\"meta\":[],\"paths\":[]}",
        "{\"errors\":\"x\",\"job_id\":\"Infinity\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slurm_answer *answer = parsed(200, texts[i]);
        cr_assert(answer->is_json, "%s", texts[i]);
        slurm_answer_destroy(answer);
    }
    static const char bytes[] = "\xff\xfe\0<>";
    slurm_answer_destroy(slurm_parse(200, "", bytes, sizeof bytes));
    slurm_answer_destroy(NULL);
}

Test(slurm_parse, plain_text_becomes_one_line)
{
    struct slurm_answer *answer =
        slurm_parse(401, "text/plain", "Authentication\r\n\tfailure\x01", 25);
    cr_assert_not(answer->is_json);
    cr_assert_str_eq(answer->fault.text, "Authentication failure ");
    cr_assert(slurm_answer_is_unauthorized(answer));
    slurm_answer_destroy(answer);
}
