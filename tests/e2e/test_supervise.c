/* test_supervise.c - `tieline supervise` itself: restarts with what is on disk, one per directory, going to
 * rest, and peers that speak nonsense. */
#include "tests/e2e/local_rig.h"

#include "adapters/node/exitlog.h"
#include "adapters/node/keeper.h"
#include "adapters/node/proc.h"
#include "broker/core/alloc.h"
#include "broker/net/wire.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t mib = 1024 * 1024;
static const char other_boot[] = "00000000-0000-0000-0000-000000000000/1";

static void no_record(void *arg, const json_t *record)
{
    (void)arg;
    (void)record;
}

/* Writes what a supervisor would have: accepted, and started in that boot. run NULL: true. */
static void write_log(struct rig *rig, const struct attempt_ref *ref, const char *run,
                      const char *boot)
{
    struct exitlog *log;
    struct error err;
    char *parent = xasprintf("%s/local", rig->state_dir);
    (void)mkdir(parent, 0700);
    (void)mkdir(rig->dir, 0700);
    free(parent);
    cr_assert_eq(exitlog_open(rig->dir, no_record, NULL, &log, &err), 0, "%s", err.text);
    json_t *accept = json_pack(
        "{s:s, s:{s:s,s:i,s:s,s:s,s:I,s:i,s:i,s:i,s:i,s:[sss],s:[s]}}", "k", "accept", "work",
        "job", ref->job_id, "attempt", ref->attempt, "name", ref->name, "place", "big", "intent_ms",
        (json_int_t)ref->intent_ms, "cpus", 1000, "memory", 1 << 26, "limit_ms", 60000, "grace_ms",
        100, "argv", "/bin/sh", "-c", run ? run : "true", "env", "A=b");
    json_t *start = json_pack("{s:s,s:s,s:i,s:s,s:i}", "k", "start", "job", ref->job_id, "attempt",
                              ref->attempt, "boot", boot, "at_ms", 1);
    cr_assert_not_null(accept);
    exitlog_add(log, accept);
    exitlog_add(log, start);
    cr_assert_eq(exitlog_sync(log, &err), 0, "%s", err.text);
    exitlog_close(log);
    json_decref(accept);
    json_decref(start);
}

static void write_file(const char *dir, const char *job, const char *name, const char *text)
{
    char *path = xasprintf("%s/jobs", dir);
    (void)mkdir(path, 0700);
    free(path);
    path = xasprintf("%s/jobs/%s-1", dir, job);
    (void)mkdir(path, 0700);
    free(path);
    path = xasprintf("%s/jobs/%s-1/%s", dir, job, name);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
    free(path);
}

Test(supervise, attempt_of_an_earlier_boot_is_gone)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_ref(&rig, 1);
    write_log(&rig, &ref, NULL, other_boot);
    write_file(rig.dir, ref.job_id, "run.json", "{\"pid\":1,\"start\":1}");
    struct report report = rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_eq(report.outcome, OUTCOME_GONE);
    cr_expect_str_eq(report.reason, "the machine was started anew while it ran");
    rig_close(&rig);
}

Test(supervise, exit_that_was_left_counts_also_after_a_boot)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_ref(&rig, 1);
    write_log(&rig, &ref, NULL, other_boot);
    write_file(rig.dir, ref.job_id, "exit.json", "{\"outcome\":\"exit\",\"code\":11}");
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).exit_code, 11);
    rig_close(&rig);
}

Test(supervise, start_without_a_keeper_is_started_once_more)
{
    struct rig rig;
    char boot[PROC_BOOT_SIZE];
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_ref(&rig, 1);
    proc_boot(boot);
    write_log(&rig, &ref, "exit 12", boot);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).exit_code, 12);
    rig_close(&rig);
}

Test(supervise, keeper_that_vanished_leaves_the_outcome_unknown)
{
    struct rig rig;
    char boot[PROC_BOOT_SIZE];
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_ref(&rig, 1);
    proc_boot(boot);
    write_log(&rig, &ref, "exit 12", boot);
    write_file(rig.dir, ref.job_id, "run.json", "{\"pid\":1,\"start\":1}");
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).outcome, OUTCOME_OUTCOME_UNKNOWN);
    rig_close(&rig);
}

Test(supervise, torn_log_and_damaged_log)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "exit 3"});
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    cr_assert_eq(kill(rig_supervisor(&rig), SIGKILL), 0);
    char *path = xasprintf("%s/exits", rig.dir);
    FILE *file = fopen(path, "ae");
    cr_assert_geq(fputs("0123abcd {\"k\":\"forget\",\"jo", file), 0);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(rig_find(&rig, &ref, RIG_WAIT_MS).report.exit_code, 3);
    struct attempt_ref never = rig_ref(&rig, 1);
    cr_expect_eq(rig_find(&rig, &never, RIG_WAIT_MS).report.state, REPORT_ABSENT);
    cr_assert_eq(kill(rig_supervisor(&rig), SIGKILL), 0);
    file = fopen(path, "r+e");
    cr_assert_eq(fputs("ffffffff", file) < 0, 0);
    cr_assert_eq(fclose(file), 0);
    cr_expect_eq(rig_find(&rig, &never, RIG_WAIT_MS).result, ADAPTER_UNKNOWN,
                 "absence is not proven by a log with holes");
    free(path);
    rig_close(&rig);
}

/* Runs the program; returns its status, or -1 when it did not end by itself. */
static int run_program(const char *const *args, int64_t most_ms)
{
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY);
        (void)dup2(null, 2);
        (void)execv(SUPERVISE, (char **)args);
        _exit(99);
    }
    int status = 0;
    for (int64_t ms = 0; ms < most_ms && waitpid(pid, &status, WNOHANG) == 0; ms += 10) {
        (void)poll(NULL, 0, 10);
    }
    if (!kill(pid, SIGKILL)) {
        (void)waitpid(pid, &status, 0);
        return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(supervise, usage)
{
    static const char *const bad[][5] = {
        {"x", "supervise", NULL},
        {"x", "supervise", "--dir", NULL},
        {"x", "supervise", "--no-such", NULL},
        {"x", "supervise", "--dir=/tmp/x", "--idle=5", NULL},
        {"x", "supervise", "--dir=/tmp/x", "--output=1B", NULL},
        {"x", "supervise", "--dir=/tmp/x", "more", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(run_program(bad[i], 5000), 2, "case %zu", i);
    }
    static const char *const nowhere[] = {"x", "supervise", "--dir=/proc/none/x", NULL};
    cr_expect_eq(run_program(nowhere, 5000), 1);
}

Test(supervise, one_per_directory_and_rest_when_idle)
{
    char dir[] = "/tmp/tieline-idle.XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    char *option = xasprintf("--dir=%s", dir);
    const char *first[] = {"x", "supervise", option, "--idle=500ms", "--detach", NULL};
    const char *second[] = {"x", "supervise", option, "--idle=100ms", NULL};
    cr_expect_eq(run_program(first, 10000), 0);
    cr_expect_eq(run_program(second, 10000), 3, "another one serves it");
    int status;
    int tries = 0;
    do { /* until the first one has gone to rest: then this one serves, and rests as well */
        status = run_program(second, 10000);
    } while (status == 3 && ++tries < 200);
    cr_expect_eq(status, 0);
    char *command = xasprintf("rm -r '%s'", dir);
    cr_expect_eq(system(command), 0);
    free(command);
    free(option);
}

/* Sends bytes on a connection of its own; waits until the supervisor closes it. */
static void send_raw(const struct rig *rig, const char *bytes, size_t length)
{
    struct error err;
    char answer[256];
    int fd = wire_connect(rig->dir, &err);
    cr_assert_geq(fd, 0, "%s", err.text);
    cr_assert_eq(write(fd, bytes, length), (ssize_t)length);
    struct pollfd watch = {.fd = fd, .events = POLLIN};
    cr_assert_eq(poll(&watch, 1, 10000), 1, "it stays open");
    cr_expect_leq(read(fd, answer, sizeof answer), 0);
    close(fd);
}

Test(supervise, nonsense_closes_that_connection_only)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    pid_t before = rig_supervisor(&rig);
    send_raw(&rig, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    send_raw(&rig, "\0\0\0\2\0\0\0\0[]", 10);
    send_raw(&rig, "\0\0\0\7\0\0\0\0{\"v\":2}", 15);
    cr_expect_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    cr_expect_eq(rig_supervisor(&rig), before);
    rig_close(&rig);
}

Test(supervise, asked_to_end_it_leaves_its_jobs_running)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = "sleep 0.5; exit 4"});
    (void)rig_await(&rig, &ref, REPORT_RUNNING);
    pid_t first = rig_supervisor(&rig);
    cr_assert_eq(kill(first, SIGTERM), 0);
    rig_await_gone(&rig, first);
    cr_expect_eq(rig_await(&rig, &ref, REPORT_ENDED).exit_code, 4);
    cr_expect_neq(rig_supervisor(&rig), first);
    rig_close(&rig);
}

Test(supervise, full_disk_is_no_answer)
{
    struct rig rig;
    rig_open(&rig, 4000, 1024 * mib);
    cr_assert_eq(rig_probe(&rig, RIG_WAIT_MS).result, ADAPTER_OK);
    pid_t first = rig_supervisor(&rig);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    /* Writing fails from here on, as it would on a full disk. */
    cr_assert_eq(prlimit(first, RLIMIT_FSIZE, &none, NULL), 0);
    char *file = xasprintf("%s/lines", rig.state_dir);
    char *run = xasprintf("echo x >> %s", file);
    struct attempt_ref ref = rig_submit(&rig, &(struct rig_job){.run = run});
    (void)rig_await(&rig, &ref, REPORT_ENDED);
    cr_expect_neq(rig_supervisor(&rig), first, "it ended instead of lying");
    char *text = rig_read(file, NULL);
    cr_expect_str_eq(text, "x\n");
    free(text);
    free(run);
    free(file);
    rig_close(&rig);
}

static void make_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

static pid_t keeper_of(const struct rig *rig, const struct attempt_ref *ref)
{
    struct error err;
    struct keeper_id id;
    char *dir = xasprintf("%s/jobs/%s-%d", rig->dir, ref->job_id, ref->attempt);
    cr_assert_eq(keeper_id_read(dir, &id, &err), 0, "%s", err.text);
    free(dir);
    return id.pid;
}

struct held { /* a job that runs until it is told to end with 9 */
    struct attempt_ref ref;
    char *go, *pid_file;
    pid_t supervisor, keeper, job;
};

static void held_start(struct rig *rig, struct held *held)
{
    held->go = xasprintf("%s/go", rig->state_dir);
    held->pid_file = xasprintf("%s/pid", rig->state_dir);
    char *run = xasprintf("echo $$ > %s.new && mv %s.new %s; while ! test -e %s; do sleep 0.02; "
                          "done; exit 9",
                          held->pid_file, held->pid_file, held->pid_file, held->go);
    held->ref = rig_submit(rig, &(struct rig_job){.run = run});
    free(run);
    rig_await_file(rig, held->pid_file, 2);
    held->job = rig_pid_in(held->pid_file);
    held->keeper = keeper_of(rig, &held->ref);
    held->supervisor = rig_supervisor(rig);
}

static void held_fini(struct held *held)
{
    free(held->go);
    free(held->pid_file);
}

static void remove_tree(const char *dir, const char *name)
{
    char *command = xasprintf("rm -rf '%s%s'", dir, name);
    cr_assert_eq(system(command), 0);
    free(command);
}

Test(supervise, without_its_directory_it_ends_its_jobs_and_itself)
{
    struct rig rig;
    struct held held;
    rig_open(&rig, 4000, 1024 * mib);
    held_start(&rig, &held);
    remove_tree(rig.dir, "");
    rig_await_gone(&rig, held.supervisor);
    rig_await_gone(&rig, held.keeper);
    rig_await_gone(&rig, held.job);
    cr_expect_eq(rig_find(&rig, &held.ref, RIG_WAIT_MS).report.state, REPORT_ABSENT,
                 "a new one serves, and knows of nothing");
    held_fini(&held);
    rig_close(&rig);
}

Test(supervise, keeper_that_cannot_leave_the_exit_ends_after_its_job)
{
    struct rig rig;
    struct held held;
    rig_open(&rig, 4000, 1024 * mib);
    held_start(&rig, &held);
    cr_assert_eq(kill(held.supervisor, SIGKILL), 0);
    remove_tree(rig.dir, "");
    make_file(held.go);
    rig_await_gone(&rig, held.job);
    rig_await_gone(&rig, held.keeper);
    held_fini(&held);
    rig_close(&rig);
}

Test(supervise, keeper_that_waits_for_a_full_disk_ends_when_asked)
{
    struct rig rig;
    struct held held;
    struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
    rig_open(&rig, 4000, 1024 * mib);
    held_start(&rig, &held);
    cr_assert_eq(prlimit(held.keeper, RLIMIT_FSIZE, &none, NULL), 0);
    make_file(held.go);
    rig_await_gone(&rig, held.job);
    cr_expect_eq(rig_find(&rig, &held.ref, RIG_WAIT_MS).report.state, REPORT_RUNNING);
    for (int i = 0; i < 500 && !rig_is_gone(held.keeper); i++) {
        (void)kill(held.keeper, SIGTERM); /* the first may come while it still keeps the job */
        (void)poll(NULL, 0, 20);
    }
    cr_expect_eq(rig_await(&rig, &held.ref, REPORT_ENDED).outcome, OUTCOME_OUTCOME_UNKNOWN);
    held_fini(&held);
    rig_close(&rig);
}

Test(supervise, without_its_socket_or_lock_the_next_one_takes_over)
{
    static const char *const names[] = {"/sock", "/lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct rig rig;
        struct held held;
        rig_open(&rig, 4000, 1024 * mib);
        held_start(&rig, &held);
        remove_tree(rig.dir, names[i]);
        rig_await_gone(&rig, held.supervisor);
        make_file(held.go);
        cr_expect_eq(rig_await(&rig, &held.ref, REPORT_ENDED).exit_code, 9, "%s", names[i]);
        held_fini(&held);
        rig_close(&rig);
    }
}
