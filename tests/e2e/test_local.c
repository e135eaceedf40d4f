/* test_local.c - the `local` member for real: processes, a supervisor, and what may go wrong. */
#include "tests/e2e/local_rig.h"

#include "adapters/node/proc.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t mib = 1024 * 1024;

static char *path_in(const struct rig *rig, const char *name)
{
    return xasprintf("%s/%s", rig->state_dir, name);
}

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

static struct report run_job(struct rig *rig, struct rig_job job)
{
    struct attempt_ref ref = rig_submit(rig, &job);
    return rig_await(rig, &ref, REPORT_ENDED);
}

static pid_t keeper_of(const struct rig *rig, const struct attempt_ref *ref)
{
    char path[256];
    int pid = 0;
    (void)snprintf(path, sizeof path, "%s/jobs/%s-%d/run.json", rig->dir, ref->job_id,
                   ref->attempt);
    char *text = rig_read(path, NULL);
    cr_assert_not_null(text);
    cr_assert_eq(sscanf(text, "{\"pid\":%d", &pid), 1);
    free(text);
    return pid;
}

static long lines_in(const char *path)
{
    size_t length = 0;
    long lines = 0;
    char *text = rig_read(path, &length);
    for (size_t i = 0; text && i < length; i++) {
        lines += text[i] == '\n';
    }
    free(text);
    return lines;
}

Test(local, exit_codes_and_signals)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct report good = run_job(&rig, (struct rig_job){.run = "true"});
    cr_expect_eq(good.outcome, OUTCOME_EXIT);
    cr_expect_eq(good.exit_code, 0);
    cr_expect_gt(good.started_ms, INT64_C(1600000000000));
    cr_expect_geq(good.ended_ms, good.started_ms);
    struct report seven = run_job(&rig, (struct rig_job){.run = "exit 7"});
    cr_expect_eq(seven.outcome, OUTCOME_EXIT);
    cr_expect_eq(seven.exit_code, 7);
    struct report killed = run_job(&rig, (struct rig_job){.run = "kill -KILL $$"});
    cr_expect_eq(killed.outcome, OUTCOME_SIGNAL);
    cr_expect_eq(killed.signal, SIGKILL);
    struct report words =
        run_job(&rig, (struct rig_job){.command = {(char *)"sh", (char *)"-c", (char *)"exit 3"}});
    cr_expect_eq(words.exit_code, 3);
    rig_close(&rig);
}

Test(local, what_cannot_start_says_why)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *loop = path_in(&rig, "loop");
    char *want = xasprintf("run '%s': Too many levels of symbolic links", loop);
    cr_assert_eq(symlink(loop, loop), 0);
    struct report none = run_job(&rig, (struct rig_job){.command = {loop}});
    cr_expect_eq(none.outcome, OUTCOME_START_FAILED);
    cr_expect_str_eq(none.reason, want);
    free(want);
    free(loop);
    struct report shell = run_job(&rig, (struct rig_job){.run = "no-such-program-here"});
    cr_expect_eq(shell.outcome, OUTCOME_EXIT, "the shell's own 127 is an exit code");
    cr_expect_eq(shell.exit_code, 127);
    rig_close(&rig);
}

static void expect_no_program(struct rig *rig, const char *program, int code, const char *why)
{
    struct report report = run_job(rig, (struct rig_job){.command = {(char *)program}});
    char *reason = xasprintf("%s: %s", program, why);
    cr_expect_eq(report.outcome, OUTCOME_EXIT);
    cr_expect_eq(report.exit_code, code);
    cr_expect_str_eq(report.reason, reason);
    free(reason);
}

Test(local, program_that_is_none_is_an_exit_as_of_a_shell)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *plain = path_in(&rig, "plain");
    char *below = path_in(&rig, "plain/x");
    touch(plain);
    expect_no_program(&rig, "/no/such/program", 127, "No such file or directory");
    expect_no_program(&rig, "nosuchprogram", 127, "No such file or directory");
    expect_no_program(&rig, plain, 126, "Permission denied");
    expect_no_program(&rig, below, 126, "Not a directory");
    free(below);
    free(plain);
    rig_close(&rig);
}

Test(local, jobs_get_the_usual_limit_of_descriptors)
{
    struct rig rig;
    struct rlimit limit;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_gt(limit.rlim_max, 1024);
    limit.rlim_cur = limit.rlim_max; /* as the broker has it */
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "ulimit -Sn; ulimit -Hn"});
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    struct rig_result log = rig_log(&rig, &ref, 0);
    char *want = limit.rlim_max == RLIM_INFINITY
                     ? xstrdup("1024\nunlimited\n")
                     : xasprintf("1024\n%ju\n", (uintmax_t)limit.rlim_max);
    cr_expect_str_eq(log.text, want);
    free(want);
    free(log.text);
    rig_close(&rig);
}

Test(local, environment_and_directory)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct rig_job job = {
        .run =
            "echo $GREETING $TIELINE_JOB $TIELINE_ATTEMPT $TIELINE_PLACE $TIELINE_CLUSTER "
            "$TIELINE_OWNER $TIELINE_CPUS $TIELINE_MEMORY_MIB $TIELINE_GPUS; "
            "test -n \"$HOME$USER\" && test -n \"$PATH\" && test -n \"$SHELL\" && ls -A | wc -l && "
            "pwd; cat; ls /proc/self/fd | wc -l",
        .cpus = 1500};
    struct attempt_ref ref = rig_submit(&rig, &job);
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    struct rig_result log = rig_log(&rig, &ref, 0);
    char *want = xasprintf("hello %s 1 edge/big edge alice 2 64 0\n0\n%s/jobs/%s-1/work\n4\n",
                           ref.job_id, rig.dir, ref.job_id);
    cr_expect_str_eq(log.text, want);
    cr_expect(log.log_complete);
    free(want);
    free(log.text);
    rig_close(&rig);
}

Test(local, output_is_read_while_it_runs)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *go = path_in(&rig, "go");
    char *run = xasprintf("printf 'one\\n\\000\\377'; while ! test -e %s; do sleep 0.02; done; "
                          "echo two >&2",
                          go);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    (void)rig_await(&rig, &ref, REPORT_RUNNING);
    struct rig_result log = rig_log(&rig, &ref, 0);
    while (log.length < 6) {
        free(log.text);
        log = rig_log(&rig, &ref, 0);
        cr_assert_eq(log.result, ADAPTER_OK, "%s", log.err.text);
    }
    cr_expect_arr_eq(log.text, "one\n\0\377", 6);
    cr_expect_not(log.log_complete);
    free(log.text);
    touch(go);
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    log = rig_log(&rig, &ref, 6);
    cr_expect_str_eq(log.text, "two\n");
    cr_expect_eq(log.offset, 6);
    cr_expect(log.log_complete);
    free(log.text);
    free(run);
    free(go);
    rig_close(&rig);
}

Test(local, flood_of_output_is_capped, .timeout = 120)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct rig_job job = {.run = "echo first; head -c 1073741824 /dev/zero; echo last"};
    struct attempt_ref ref = rig_submit(&rig, &job);
    struct report report = rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(report.exit_code, 0);
    int64_t total = 0;
    int64_t offset = 0;
    bool marked = false;
    struct rig_result log = {.text = NULL};
    char tail[6] = "";
    do {
        free(log.text);
        log = rig_log(&rig, &ref, offset);
        cr_assert_eq(log.result, ADAPTER_OK, "%s", log.err.text);
        cr_assert_geq(log.offset, offset, "offsets only grow");
        cr_assert(offset > 0 || !strncmp(log.text, "first\n", 6));
        marked = marked || strstr(log.text, "[tieline: ");
        if (log.length >= 5) {
            copy_text(tail, sizeof tail, log.text + log.length - 5);
        }
        total += (int64_t)log.length;
        offset = log.offset + (int64_t)log.length;
    } while (!log.log_complete && log.length > 0);
    free(log.text);
    cr_expect_str_eq(tail, "last\n");
    cr_expect(marked);
    cr_expect_eq(offset, INT64_C(1073741824) + 11);
    cr_expect_leq(total, LIMIT_LOG_BYTES + 100);
    cr_expect_geq(total, LIMIT_LOG_BYTES / 4 * 3);
    rig_close(&rig);
}

Test(local, same_attempt_runs_once)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *file = path_in(&rig, "lines");
    char *run = xasprintf("echo x >> %s", file);
    struct rig_job job = {.run = run};
    struct attempt_ref ref = rig_submit(&rig, &job);
    cr_expect_eq(rig_submit_ref(&rig, &ref, &job).result, ADAPTER_OK);
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(rig_submit_ref(&rig, &ref, &job).result, ADAPTER_OK);
    struct attempt_ref other = ref;
    other.intent_ms++;
    struct rig_result refused = rig_submit_ref(&rig, &other, &job);
    cr_expect_eq(refused.result, ADAPTER_UNKNOWN, "it was here: whoever asks must look it up");
    cr_expect_eq(refused.err.code, ERROR_CONFLICT);
    struct attempt_ref second = rig_ref(&rig, 2);
    cr_expect_eq(rig_submit_ref(&rig, &second, &job).result, ADAPTER_OK);
    (void)rig_await(&rig, &second, REPORT_ENDED);
    rig_forget(&rig, &ref);
    rig_forget(&rig, &second);
    cr_expect_eq(rig_submit_ref(&rig, &ref, &job).result, ADAPTER_UNKNOWN,
                 "a late copy was here, too: it is looked up");
    cr_expect_eq(lines_in(file), 2);
    cr_expect_eq(rig_find(&rig, &ref, RIG_WAIT_MS).report.state, REPORT_ENDED);
    struct attempt_ref never = rig_ref(&rig, 1);
    cr_expect_eq(rig_find(&rig, &never, RIG_WAIT_MS).report.state, REPORT_ABSENT);
    free(run);
    free(file);
    rig_close(&rig);
}

Test(local, broker_is_killed_and_comes_back)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref runs = rig_submit(&rig, &(struct rig_job){.run = "sleep 1; exit 5"});
    struct attempt_ref done = rig_submit(&rig, &(struct rig_job){.run = "exit 6"});
    (void)rig_await(&rig, &done, REPORT_ENDED);
    pid_t supervisor = rig_supervisor(&rig);
    rig_restart_broker(&rig);
    cr_expect_eq(rig_await(&rig, &done, REPORT_ENDED).exit_code, 6);
    cr_expect_eq(rig_await(&rig, &runs, REPORT_ENDED).exit_code, 5);
    cr_expect_eq(rig_supervisor(&rig), supervisor);
    cr_expect_eq(rig_poll(&rig, RIG_WAIT_MS).report_count, 2);
    rig_close(&rig);
}

Test(local, supervisor_is_killed_while_jobs_run)
{
    struct rig rig;
    rig_open(&rig, 2000, 1024 * mib);
    char *file = path_in(&rig, "lines");
    char *go = path_in(&rig, "go");
    char *run =
        xasprintf("echo a >> %s; while ! test -e %s; do sleep 0.02; done; exit 5", file, go);
    char *quick = xasprintf("echo a >> %s; sleep 0.2; exit 9", file);
    struct attempt_ref runs = rig_submit(&rig, &(struct rig_job){.run = run});
    struct attempt_ref ends = rig_submit(&rig, &(struct rig_job){.run = quick});
    struct attempt_ref waits = rig_submit(&rig, &(struct rig_job){.run = quick, .cpus = 2000});
    rig_await_file(&rig, file, 4);
    pid_t first = rig_supervisor(&rig);
    pid_t keeper = keeper_of(&rig, &ends);
    cr_assert_eq(kill(first, SIGKILL), 0);
    rig_await_gone(&rig, keeper); /* it ends while nobody watches */
    cr_expect_eq(rig_await(&rig, &ends, REPORT_ENDED).exit_code, 9);
    cr_expect_eq(rig_await(&rig, &runs, REPORT_RUNNING).state, REPORT_RUNNING);
    cr_expect_eq(rig_await(&rig, &waits, REPORT_PENDING).state, REPORT_PENDING);
    cr_expect_neq(rig_supervisor(&rig), first);
    touch(go);
    cr_expect_eq(rig_await(&rig, &runs, REPORT_ENDED).exit_code, 5);
    cr_expect_eq(rig_await(&rig, &waits, REPORT_ENDED).exit_code, 9);
    cr_expect_eq(lines_in(file), 3, "each ran once");
    free(quick);
    free(run);
    free(go);
    free(file);
    rig_close(&rig);
}

Test(local, cancel_reaches_an_adopted_job)
{
    struct rig rig;
    rig_open(&rig, 2000, 1024 * mib);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "sleep 60"});
    (void)rig_await(&rig, &ref, REPORT_RUNNING);
    cr_assert_eq(kill(rig_supervisor(&rig), SIGKILL), 0);
    cr_expect_eq(rig_cancel(&rig, &ref).result, ADAPTER_OK);
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).outcome, OUTCOME_CANCELLED);
    rig_close(&rig);
}

Test(local, killed_keeper_leaves_nothing_behind)
{
    struct rig rig;
    rig_open(&rig, 2000, 1024 * mib);
    char *file = path_in(&rig, "pid");
    char *run = xasprintf("setsid sh -c 'echo $$ > %s; sleep 60' & sleep 60", file);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    rig_await_file(&rig, file, 2);
    pid_t escaped = rig_pid_in(file);
    cr_assert_eq(kill(keeper_of(&rig, &ref), SIGKILL), 0);
    struct report report = rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(report.outcome, OUTCOME_OUTCOME_UNKNOWN);
    cr_expect(rig_is_gone(escaped));
    free(run);
    free(file);
    rig_close(&rig);
}

Test(local, descendants_are_ended_with_their_job)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *daemon = path_in(&rig, "daemon");
    char *escaped = path_in(&rig, "escaped");
    /* A double fork into the background, and one that leaves the session. Both outlive the job. */
    char *run = xasprintf("(sh -c 'echo $$ > %s; exec sleep 60' &) ; "
                          "setsid sh -c 'echo $$ > %s; exec sleep 60' & "
                          "while ! test -s %s || ! test -s %s; do sleep 0.02; done; exit 4",
                          daemon, escaped, daemon, escaped);
    struct report report = run_job(&rig, (struct rig_job){.run = run});
    cr_expect_eq(report.outcome, OUTCOME_EXIT);
    cr_expect_eq(report.exit_code, 4);
    cr_expect(rig_is_gone(rig_pid_in(daemon)));
    cr_expect(rig_is_gone(rig_pid_in(escaped)));
    free(run);
    free(escaped);
    free(daemon);
    rig_close(&rig);
}

Test(local, cancel_kills_what_ignores_term)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *file = path_in(&rig, "pid");
    char *run = xasprintf("trap '' TERM; setsid sh -c \"trap '' TERM; echo \\$\\$ > %s; "
                          "while :; do sleep 1; done\" & while :; do sleep 1; done",
                          file);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    rig_await_file(&rig, file, 2);
    int64_t begin = clock_mono_ms(rig.clock);
    cr_expect_eq(rig_cancel(&rig, &ref).result, ADAPTER_OK);
    struct report report = rig_await(&rig, &ref, REPORT_ENDED);
    int64_t took = clock_mono_ms(rig.clock) - begin;
    cr_expect_eq(report.outcome, OUTCOME_CANCELLED);
    cr_expect(rig_is_gone(rig_pid_in(file)));
    cr_expect_geq(took, 500, "the grace was cut short: %" PRId64 " ms", took);
    free(run);
    free(file);
    rig_close(&rig);
}

Test(local, polite_job_may_clean_up_when_cancelled)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *ready = path_in(&rig, "ready");
    char *run =
        xasprintf("trap 'echo bye; exit 0' TERM; echo x > %s; while :; do sleep 0.05; done", ready);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    rig_await_file(&rig, ready, 2);
    cr_expect_eq(rig_cancel(&rig, &ref).result, ADAPTER_OK);
    struct report report = rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(report.outcome, OUTCOME_CANCELLED);
    cr_expect_eq(report.exit_code, 0);
    struct rig_result log = rig_log(&rig, &ref, 0);
    /* Its shell may also say that a child of it was terminated: all of the tree is asked. */
    cr_expect(strstr(log.text, "bye\n"), "%s", log.text);
    free(log.text);
    cr_expect_eq(rig_cancel(&rig, &ref).result, ADAPTER_OK, "gone already");
    free(run);
    free(ready);
    rig_close(&rig);
}

Test(local, time_limit)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct report report = run_job(&rig, (struct rig_job){.run = "sleep 60", .limit_ms = 300});
    cr_expect_eq(report.outcome, OUTCOME_TIME_LIMIT);
    cr_expect_str_eq(report.reason, "its time limit of 300ms was reached");
    cr_expect_lt(report.ended_ms - report.started_ms, 10000);
    rig_close(&rig);
}

Test(local, memory_is_summed_over_the_tree)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    /* Each stays below the limit, both together do not. */
    const char *hog = "hog() { head -c 40000000 /dev/zero | tail -c 40000000 | sleep 30; }; "
                      "hog & hog & wait";
    struct report report = run_job(&rig, (struct rig_job){.run = hog, .memory = 60 * mib});
    cr_expect_eq(report.outcome, OUTCOME_OUT_OF_MEMORY);
    cr_expect(strstr(report.reason, "had asked for 60 MiB"), "%s", report.reason);
    struct report fits = run_job(
        &rig, (struct rig_job){.run = "head -c 40000000 /dev/zero | tail -c 40000000 | sleep 1",
                               .memory = 60 * mib});
    cr_expect_eq(fits.outcome, OUTCOME_EXIT, "%s", fits.reason);
    rig_close(&rig);
}

Test(local, slots_are_given_first_come_first_served)
{
    struct rig rig;
    rig_open(&rig, 2000, 1024 * mib);
    char *go = path_in(&rig, "go");
    char *run = xasprintf("while ! test -e %s; do sleep 0.02; done", go);
    struct attempt_ref first = rig_submit(&rig, &(struct rig_job){.run = run, .cpus = 1500});
    struct attempt_ref big = rig_submit(&rig, &(struct rig_job){.run = run, .cpus = 2000});
    struct attempt_ref small = rig_submit(&rig, &(struct rig_job){.run = run, .cpus = 500});
    struct attempt_ref there = rig_submit(&rig, &(struct rig_job){.run = run, .place = 1});
    (void)rig_await(&rig, &first, REPORT_RUNNING);
    (void)rig_await(&rig, &there, REPORT_RUNNING);
    (void)rig_await(&rig, &big, REPORT_PENDING);
    (void)rig_await(&rig, &small, REPORT_PENDING);
    struct rig_result probe = rig_probe(&rig, RIG_WAIT_MS);
    cr_expect_eq(probe.conditions[0].total.cpus, 2000);
    cr_expect_eq(probe.conditions[0].free.cpus, 500);
    cr_expect_eq(probe.conditions[0].free.memory, 960 * mib);
    cr_expect_eq(probe.conditions[0].running, 1);
    cr_expect_eq(probe.conditions[0].waiting, 2);
    cr_expect_eq(probe.conditions[0].waiting_cpus, 2500);
    cr_expect_eq(probe.conditions[1].free.cpus, 0);
    cr_expect(probe.conditions[0].up);
    cr_expect(strncmp(probe.version, "supervise ", 10) == 0);
    cr_expect_eq(rig_cancel(&rig, &big).result, ADAPTER_OK);
    cr_expect_eq(rig_await(&rig, &big, REPORT_ENDED).outcome, OUTCOME_CANCELLED);
    (void)rig_await(&rig, &small, REPORT_RUNNING);
    struct attempt_ref ref = rig_ref(&rig, 1);
    struct rig_result never =
        rig_submit_ref(&rig, &ref, &(struct rig_job){.run = run, .cpus = 2500});
    cr_expect_eq(never.result, ADAPTER_FAILED);
    cr_expect_str_eq(never.err.text, "it needs 2.5 CPUs, 'big' gives away 2");
    touch(go);
    (void)rig_await(&rig, &first, REPORT_ENDED);
    (void)rig_await(&rig, &small, REPORT_ENDED);
    (void)rig_await(&rig, &there, REPORT_ENDED);
    free(run);
    free(go);
    rig_close(&rig);
}

Test(local, three_hundred_short_jobs, .timeout = 120)
{
    enum { JOBS = 300 };
    struct rig rig;
    struct attempt_ref refs[JOBS];
    rig_open(&rig, 8000, 4096 * mib);
    char *file = path_in(&rig, "lines");
    char *run = xasprintf("echo x >> %s", file);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    int64_t begin = clock_mono_ms(rig.clock);
    for (int i = 0; i < JOBS; i++) {
        refs[i] = rig_submit(&rig, &(struct rig_job){.run = run, .memory = 8 * mib});
    }
    for (int i = 0; i < JOBS; i++) {
        struct report report = rig_await(&rig, &refs[i], REPORT_ENDED);
        cr_assert_eq(report.outcome, OUTCOME_EXIT, "%s", report.reason);
        cr_assert_eq(report.exit_code, 0);
    }
    int64_t took = clock_mono_ms(rig.clock) - begin;
    (void)fprintf(stderr, "%d jobs in %" PRId64 " ms\n", JOBS, took);
    cr_expect_eq(lines_in(file), JOBS);
    for (int i = 0; i < JOBS; i++) {
        rig_forget(&rig, &refs[i]);
    }
    cr_expect_eq(rig_poll(&rig, RIG_WAIT_MS).report_count, 0);
    free(run);
    free(file);
    rig_close(&rig);
}

Test(local, forgotten_jobs_keep_their_log_and_lose_their_directory)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct rig_job job = {.run = "mkdir -p a/b; echo x > a/b/c; chmod 500 a/b; echo done"};
    struct attempt_ref ref = rig_submit(&rig, &job);
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    char *work = xasprintf("%s/jobs/%s-1/work", rig.dir, ref.job_id);
    struct stat info;
    cr_assert_eq(stat(work, &info), 0);
    rig_forget(&rig, &ref);
    cr_expect_eq(rig_poll(&rig, RIG_WAIT_MS).report_count, 0);
    cr_expect_neq(stat(work, &info), 0);
    struct rig_result log = rig_log(&rig, &ref, 0);
    cr_expect_eq(log.result, ADAPTER_OK, "%s", log.err.text);
    cr_expect_str_eq(log.text, "done\n");
    cr_expect(log.log_complete);
    free(log.text);
    struct attempt_ref never = rig_ref(&rig, 1);
    struct rig_result none = rig_log(&rig, &never, 0);
    cr_expect_eq(none.result, ADAPTER_FAILED);
    cr_expect_eq(none.err.code, ERROR_NOT_FOUND);
    free(work);
    rig_close(&rig);
}

Test(local, stale_socket_is_no_obstacle)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "exit 2"});
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    pid_t first = rig_supervisor(&rig);
    cr_assert_eq(kill(first, SIGKILL), 0);
    rig_await_gone(&rig, first);
    char *path = xasprintf("%s/sock", rig.dir);
    struct stat info;
    cr_assert_eq(stat(path, &info), 0, "the dead one's socket is still there");
    cr_expect_eq(info.st_mode & 0777, 0600);
    cr_expect_eq(rig_find(&rig, &ref, RIG_WAIT_MS).report.exit_code, 2);
    free(path);
    rig_close(&rig);
}

Test(local, stopped_supervisor_is_unknown_and_in_time)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    char *file = path_in(&rig, "lines");
    char *run = xasprintf("echo x >> %s", file);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    pid_t supervisor = rig_supervisor(&rig);
    cr_assert_eq(kill(supervisor, SIGSTOP), 0);
    int64_t begin = clock_mono_ms(rig.clock);
    struct rig_result probe = rig_probe(&rig, 300);
    int64_t took = clock_mono_ms(rig.clock) - begin;
    cr_expect_eq(probe.result, ADAPTER_UNKNOWN);
    cr_expect_eq(probe.err.code, ERROR_TIMEOUT);
    cr_expect_geq(took, 290);
    cr_expect_lt(took, 1000, "it took %" PRId64 " ms", took);
    cr_assert_eq(kill(supervisor, SIGCONT), 0);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(lines_in(file), 1);
    free(run);
    free(file);
    rig_close(&rig);
}

Test(local, program_that_cannot_be_started_is_unknown)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    rig.adapter->type->close(rig.adapter);
    rig.env.program = "/no/such/tieline";
    struct error err;
    cr_assert_eq(rig.cluster.adapter->open(&rig.env, &rig.cluster, &rig.adapter, &err), 0);
    struct rig_result probe = rig_probe(&rig, 300);
    cr_expect_eq(probe.result, ADAPTER_UNKNOWN);
    cr_expect(strstr(probe.err.text, "/no/such/tieline"), "%s", probe.err.text);
    rig_close(&rig);
}

Test(local, calls_complete_when_the_adapter_closes)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "sleep 0.3; exit 8"});
    rig_restart_broker(&rig);
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).exit_code, 8);
    rig_close(&rig);
}
