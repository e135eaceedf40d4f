/* test_slurm_real.c - the adapter and a real Slurm 22.05, started by tests/slurm/with_cluster. */
#include "adapters/adapters.h"
#include "broker/core/alloc.h"
#include "tests/unit/slurm_bench.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, PAUSE_US = 50000 };

static char work[256], unix_url[256];

/* ---- helpers */

/* A text that lives as long as the test. */
static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...)
{
    static char texts[32][1024];
    static size_t used;
    cr_assert_lt(used, 32);
    va_list args;
    va_start(args, format);
    cr_assert_lt(vsnprintf(texts[used], sizeof texts[used], format, args), 1024);
    va_end(args);
    return texts[used++];
}

/* Reads KEY from DIR/env. */
static void setting(const char *key, char *out, size_t size)
{
    char path[300], line[512];
    const char *dir = getenv("TIELINE_SLURM_DIR");
    cr_assert(dir, "run by tests/slurm/with_cluster");
    (void)snprintf(path, sizeof path, "%s/env", dir);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    size_t length = strlen(key);
    *out = '\0';
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (!strncmp(line, key, length) && line[length] == '=') {
            (void)snprintf(out, size, "%s", line + length + 1);
        }
    }
    (void)fclose(file);
}

static void cluster(const char *command)
{
    char line[600];
    (void)snprintf(line, sizeof line, "%s %s", getenv("TIELINE_SLURM_CLUSTER"), command);
    char *dir = strstr(line, "DIR");
    cr_assert(dir);
    char *whole =
        text_of("%.*s%s%s", (int)(dir - line), line, getenv("TIELINE_SLURM_DIR"), dir + 3);
    cr_assert_eq(system(whole), 0, "%s", whole);
}

/* What a command of Slurm prints, first 4 KiB. */
static const char *slurm_says(const char *command)
{
    static char out[4096];
    char *whole = text_of("SLURM_CONF=%s/slurm.conf %s", getenv("TIELINE_SLURM_DIR"), command);
    FILE *pipe = popen(whole, "r");
    size_t length = fread(out, 1, sizeof out - 1, pipe);
    out[length] = '\0';
    (void)pclose(pipe);
    return out;
}

/* Each test has a job of its own: ids differ by the process. */
static void new_job(const char *run)
{
    static int serial;
    char id[ID_SIZE];
    (void)snprintf(id, sizeof id, "j%09d%06d", (int)getpid(), ++serial);
    slurm_lab_job(&bench.lab, id, run, &bench.spec, &bench.job);
    bench.job.ref.intent_ms = clock_wall_ms(bench.env.clock);
}

static void setup(void)
{
    char url[256], user[64], token[256];
    setting("URL", url, sizeof url);
    setting("UNIX_URL", unix_url, sizeof unix_url);
    setting("USER", user, sizeof user);
    setting("TOKEN_FILE", token, sizeof token);
    setting("WORKDIR", work, sizeof work);
    bench_setup(url, text_of("%s", user), token);
    bench.call_ms = 20000;
    bench.lab.settings.workdir = work;
    new_job("true");
}

static void accepted(struct bench_result *result)
{
    cr_assert_eq(bench_submit(result), ADAPTER_OK, "%s", result->call.err.text);
    copy_text(bench.job.ref.native_id, sizeof bench.job.ref.native_id, result->call.native_id);
}

static const struct report *report_of_job(const struct bench_result *result)
{
    for (size_t i = 0; i < result->call.report_count; i++) {
        if (!strcmp(result->reports[i].job_id, bench.job.ref.job_id)) {
            return &result->reports[i];
        }
    }
    return NULL;
}

/* Polls until the job is in this state. */
static const struct report *until(enum report_state state, struct bench_result *result)
{
    int64_t end = clock_mono_ms(bench.env.clock) + PATIENCE_MS;
    for (;;) {
        const struct report *report =
            bench_poll(result) == ADAPTER_OK ? report_of_job(result) : NULL;
        if (report && report->state == state) {
            return report;
        }
        cr_assert_lt(clock_mono_ms(bench.env.clock), end, "still %d: %s",
                     report ? (int)report->state : -1, result->call.err.text);
        (void)usleep(PAUSE_US);
    }
}

static void until_file(const char *path)
{
    int64_t end = clock_mono_ms(bench.env.clock) + PATIENCE_MS;
    while (access(path, F_OK)) {
        cr_assert_lt(clock_mono_ms(bench.env.clock), end, "%s does not come", path);
        (void)usleep(PAUSE_US);
    }
}

/* slurmctld saves its jobs some seconds late: one that is killed before has never heard of them. */
static void until_saved(void)
{
    int64_t end = clock_mono_ms(bench.env.clock) + PATIENCE_MS;
    const char *command =
        text_of("grep -q '%s' %s/state/job_state", bench.job.ref.name, getenv("TIELINE_SLURM_DIR"));
    while (system(command)) {
        cr_assert_lt(clock_mono_ms(bench.env.clock), end, "slurmctld does not save");
        (void)usleep(PAUSE_US);
    }
}

TestSuite(slurm_real, .init = setup, .fini = bench_teardown, .timeout = 120);

/* ---- tests */

Test(slurm_real, probe)
{
    struct bench_result result;
    cr_assert_eq(bench_probe(&result), ADAPTER_OK, "%s", result.call.err.text);
    cr_assert_str_eq(result.version, "Slurm 22.05.8, v0.0.38");
    for (int i = 0; i < 2; i++) {
        cr_assert(result.conditions[i].up, "%s", result.conditions[i].reason);
        cr_assert_eq(result.conditions[i].total.cpus, 4000);
        cr_assert_eq(result.conditions[i].largest.memory, INT64_C(4096) << 20);
        cr_assert_eq(result.conditions[i].max_time, 0);
    }
    cr_assert(strstr(bench.logged, "no slurmdbd"), "%s", bench.logged);
}

Test(slurm_real, exit_codes)
{
    struct bench_result result;
    accepted(&result);
    const struct report *report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_EXIT);
    cr_assert_eq(report->exit_code, 0);
    cr_assert_str_eq(report->native_id, bench.job.ref.native_id);
    cr_assert_geq(report->ended_ms, report->started_ms);
    new_job("exit 7");
    accepted(&result);
    report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_EXIT);
    cr_assert_eq(report->exit_code, 7);
    new_job("kill -KILL $$");
    accepted(&result);
    report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_SIGNAL);
    cr_assert_eq(report->signal, 9);
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].signal, 9);
}

Test(slurm_real, environment_words_and_flags)
{
    struct bench_result result;
    char path[300], text[2048] = "";
    char *words[] = {
        text_of("%s", "/bin/sh"), text_of("%s", "-c"),
        text_of("%s", "printf '%s\\n' \"$0\" \"$HOME\" \"$USER\" \"$SHELL\" \"$PATH\" \"$A\" "
                      "\"$TIELINE_JOB/$TIELINE_ATTEMPT\" \"$TIELINE_PLACE\" \"$TIELINE_CPUS\" "
                      "\"$(pwd)\" >out.new && mv out.new \"$1\""),
        text_of("%s", "it's \"quoted\" $HOME"), NULL};
    struct env_entry env[] = {
        {.name = text_of("%s", "A"), .value = text_of("%s", "b\xc3\xa4r = 'c'")}};
    (void)snprintf(path, sizeof path, "%s/%s", work, bench.job.ref.job_id);
    words[4] = path;
    bench.spec.run = NULL;
    bench.spec.command = (struct texts){.items = words, .count = 5};
    bench.spec.env.items = env;
    bench.spec.env.count = 1;
    bench.spec.needs.cpus = 1500;
    accepted(&result);
    const char *shown = slurm_says(text_of("scontrol show job %s", bench.job.ref.native_id));
    cr_assert(strstr(shown, "Requeue=0"), "%s", shown);
    cr_assert(strstr(shown, "NumCPUs=2"), "%s", shown);
    cr_assert(strstr(shown, "TimeLimit=00:01:00"), "%s", shown);
    cr_assert(strstr(shown, "Partition=cpu"), "%s", shown);
    cr_assert(strstr(shown, "MinMemoryNode=64M"), "%s", shown);
    const struct report *report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->exit_code, 0);
    FILE *file = fopen(path, "r");
    cr_assert(file, "%s", path);
    cr_assert_gt(fread(text, 1, sizeof text - 1, file), 0);
    (void)fclose(file);
    char *home = text_of("%s", slurm_says("getent passwd slurm | cut -d: -f6"));
    home[strcspn(home, "\n")] = '\0';
    char *want =
        text_of("it's \"quoted\" $HOME\n%s\nslurm\n/bin/bash\n/usr/local/bin:/usr/bin:/bin\n"
                "b\xc3\xa4r = 'c'\n%s/1\nhpc/cpu\n2\n%s\n",
                home, bench.job.ref.job_id, work);
    cr_assert_str_eq(text, want);
}

Test(slurm_real, cancel_running_that_ignores_the_signal)
{
    struct bench_result result;
    char mark[300];
    (void)snprintf(mark, sizeof mark, "%s/%s", work, bench.job.ref.job_id);
    bench.spec.run =
        text_of("trap 'touch %s.term' TERM; touch %s; while :; do sleep 0.1; done", mark, mark);
    accepted(&result);
    until_file(mark);
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK, "%s", result.call.err.text);
    const struct report *report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_CANCELLED);
    until_file(text_of("%s.term", mark)); /* asked politely first */
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_CANCELLED);
}

Test(slurm_real, cancel_waiting_and_unknown)
{
    struct bench_result result;
    bench.spec.needs.cpus = 4000;
    bench.spec.run = text_of("%s", "sleep 60");
    bench.job.ref.place = &bench.lab.places[1];
    accepted(&result);
    (void)until(REPORT_RUNNING, &result);
    struct submit first = bench.job;
    new_job("true");
    bench.spec.needs.cpus = 4000;
    bench.job.ref.place = &bench.lab.places[1];
    accepted(&result);
    const struct report *report = until(REPORT_PENDING, &result);
    cr_assert_eq(report->started_ms, 0);
    bench.job.ref.native_id[0] = '\0'; /* by name */
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_CANCELLED);
    bench.job.ref = first.ref;
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_CANCELLED);
    copy_text(bench.job.ref.native_id, sizeof bench.job.ref.native_id, "999999");
    cr_assert_eq(bench_cancel(&result), ADAPTER_OK);
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].outcome, OUTCOME_OUTCOME_UNKNOWN);
}

Test(slurm_real, lost_answer_is_adopted_by_name)
{
    struct bench_result result;
    cr_assert_eq(bench_find(&result), ADAPTER_OK);
    cr_assert_eq(result.reports[0].state, REPORT_ABSENT);
    cluster("pause DIR slurmctld");
    bench.call_ms = 1500;
    enum adapter_result outcome = bench_submit(&result);
    cluster("resume DIR slurmctld");
    cr_assert_eq(outcome, ADAPTER_UNKNOWN, "%s", result.call.err.text);
    bench.call_ms = 20000;
    int64_t end = clock_mono_ms(bench.env.clock) + PATIENCE_MS;
    while (bench_find(&result) != ADAPTER_OK || result.reports[0].state == REPORT_ABSENT) {
        cr_assert_lt(clock_mono_ms(bench.env.clock), end, "never found");
        (void)usleep(PAUSE_US);
    }
    cr_assert_neq(result.reports[0].native_id[0], '\0');
    (void)until(REPORT_ENDED, &result);
    int count = 0;
    cr_assert_eq(bench_poll(&result), ADAPTER_OK);
    for (size_t i = 0; i < result.call.report_count; i++) {
        count += !strcmp(result.reports[i].job_id, bench.job.ref.job_id);
    }
    cr_assert_eq(count, 1);
}

Test(slurm_real, slurmctld_restarts_in_between)
{
    struct bench_result result;
    char go[300];
    (void)snprintf(go, sizeof go, "%s/%s.go", work, bench.job.ref.job_id);
    bench.spec.run = text_of("while [ ! -e %s ]; do sleep 0.1; done; exit 5", go);
    accepted(&result);
    (void)until(REPORT_RUNNING, &result);
    until_saved();
    cluster("kill DIR slurmctld");
    bench.call_ms = 3000;
    cr_assert_eq(bench_poll(&result), ADAPTER_UNKNOWN);
    cr_assert_eq(bench_find(&result), ADAPTER_UNKNOWN);
    FILE *file = fopen(go, "w"); /* it ends while nobody listens */
    (void)fclose(file);
    cluster("restart DIR slurmctld");
    bench.call_ms = 20000;
    const struct report *report = until(REPORT_ENDED, &result);
    cr_assert_eq(report->outcome, OUTCOME_EXIT);
    cr_assert_eq(report->exit_code, 5);
}

Test(slurm_real, refused_and_failing_to_start)
{
    struct bench_result result;
    bench.lab.place_settings[0].partition = text_of("%s", "nosuch");
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_INVALID);
    cr_assert(strstr(result.call.err.text, "(2000)"), "%s", result.call.err.text);
    bench.lab.place_settings[0].partition = NULL;
    bench.spec.needs.memory = INT64_C(1) << 40;
    cr_assert_eq(bench_submit(&result), ADAPTER_FAILED);
    cr_assert_eq(result.call.err.code, ERROR_INVALID);
}

Test(slurm_real, token_that_is_replaced)
{
    struct bench_result result;
    char path[300];
    (void)snprintf(path, sizeof path, "%s/%s.token", work, bench.job.ref.job_id);
    char *make = text_of("umask 077; echo nonsense >%s", path);
    cr_assert_eq(system(make), 0);
    char good[256];
    (void)snprintf(good, sizeof good, "%s", bench.token_file);
    (void)snprintf(bench.token_file, sizeof bench.token_file, "%s", path);
    cr_assert_eq(bench_poll(&result), ADAPTER_UNKNOWN);
    cr_assert(strstr(result.call.err.expected, "token") ||
                  result.call.err.code == ERROR_UNAUTHORIZED,
              "%s / %s", result.call.err.text, result.call.err.expected);
    char *copy = text_of("umask 077; cp %s %s.new && mv %s.new %s", good, path, path, path);
    cr_assert_eq(system(copy), 0);
    cr_assert_eq(bench_poll(&result), ADAPTER_OK, "%s", result.call.err.text);
}

Test(slurm_real, unix_socket)
{
    struct bench_result result;
    bench_reopen(unix_url);
    accepted(&result);
    cr_assert_eq(until(REPORT_ENDED, &result)->exit_code, 0);
}
