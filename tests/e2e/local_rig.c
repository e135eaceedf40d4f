/* local_rig.c - see local_rig.h. */
#include "tests/e2e/local_rig.h"

#include "adapters/adapters.h"
#include "adapters/node/proc.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/net/clock_uv.h"
#include "broker/net/wire.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct local_settings { /* as in adapters/local.c */
    char *shell;
    int64_t grace;
};
static struct local_settings settings = {.shell = (char *)"/bin/sh", .grace = 500};

enum { FDS_MAX = 64 };

struct pending {
    struct adapter_call call;
    struct rig_result out;
    bool done;
    int times;
};

static void log_line(const char *level, const char *cluster, const char *text)
{
    (void)fprintf(stderr, "%s %s: %s\n", level, cluster, text);
}

static void call_done(struct adapter_call *call)
{
    struct pending *pending = call->arg;
    struct rig_result *out = &pending->out;
    out->result = call->result;
    out->err = call->err;
    out->report_count = call->report_count;
    if (call->report_count) {
        out->report = call->reports[0];
    }
    if (call->conditions) {
        memcpy(out->conditions, call->conditions, sizeof out->conditions);
        copy_text(out->version, sizeof out->version, call->version);
    }
    if (call->text) {
        out->text = xcalloc(call->length + 1, 1);
        memcpy(out->text, call->text, call->length);
        out->length = call->length;
    }
    out->offset = call->offset;
    out->log_complete = call->log_complete;
    pending->done = true;
    pending->times++;
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Lets the loop run for at most so long. */
static void turn(struct rig *rig, int64_t ms)
{
    struct timer *timer = clock_timer(rig->clock, nothing, NULL);
    timer_start(timer, ms);
    (void)uv_run(&rig->loop, UV_RUN_ONCE);
    timer_destroy(timer);
}

static struct pending *begin(struct rig *rig, int64_t timeout_ms)
{
    struct pending *pending = xcalloc(1, sizeof *pending);
    pending->call.done = call_done;
    pending->call.arg = pending;
    pending->call.deadline_ms = clock_mono_ms(rig->clock) + timeout_ms;
    return pending;
}

static struct rig_result finish(struct rig *rig, struct pending *pending)
{
    cr_assert_not(pending->done, "a completion ran within its call");
    int64_t late = pending->call.deadline_ms + 2000;
    while (!pending->done && clock_mono_ms(rig->clock) < late) {
        turn(rig, 100);
    }
    cr_assert_eq(pending->times, 1, "the call completed %d times", pending->times);
    struct rig_result out = pending->out;
    free(pending);
    return out;
}

struct attempt_ref rig_ref(struct rig *rig, int attempt)
{
    struct attempt_ref ref = {.attempt = attempt, .place = &rig->places[0]};
    if (attempt == 1) {
        rig->jobs++;
    }
    /* Of this process alone: what a lost keeper left is found by the job in its environment, and tests
     * run side by side. */
    (void)snprintf(ref.job_id, sizeof ref.job_id, "j%08d%07d", (int)getpid(), rig->jobs);
    (void)snprintf(ref.name, sizeof ref.name, "test.%s-%d", ref.job_id, attempt);
    ref.intent_ms = 1700000000000 + rig->jobs;
    return ref;
}

struct rig_result rig_submit_ref(struct rig *rig, const struct attempt_ref *ref,
                                 const struct rig_job *job)
{
    struct spec spec = {.run = (char *)job->run};
    struct submit submit = {.ref = *ref, .spec = &spec, .owner = "alice"};
    struct env_entry env[] = {{(char *)"GREETING", (char *)"hello"}};
    spec.env = (struct env){.items = env, .count = 1};
    spec.needs.cpus = job->cpus ? job->cpus : 1000;
    spec.needs.memory = job->memory ? job->memory : INT64_C(64) << 20;
    spec.time.limit = job->limit_ms ? job->limit_ms : 60000;
    if (!job->run) {
        spec.command.items = (char **)job->command;
        while (spec.command.items[spec.command.count]) {
            spec.command.count++;
        }
    }
    submit.ref.place = &rig->places[job->place];
    struct pending *pending = begin(rig, RIG_WAIT_MS);
    rig->adapter->type->submit(rig->adapter, &submit, &pending->call);
    return finish(rig, pending);
}

struct attempt_ref rig_submit(struct rig *rig, const struct rig_job *job)
{
    struct attempt_ref ref = rig_ref(rig, 1);
    struct rig_result result = rig_submit_ref(rig, &ref, job);
    cr_assert_eq(result.result, ADAPTER_OK, "submit: %s", result.err.text);
    return ref;
}

struct rig_result rig_find(struct rig *rig, const struct attempt_ref *ref, int64_t timeout_ms)
{
    struct pending *pending = begin(rig, timeout_ms);
    rig->adapter->type->find(rig->adapter, ref, &pending->call);
    return finish(rig, pending);
}

struct rig_result rig_poll(struct rig *rig, int64_t timeout_ms)
{
    struct pending *pending = begin(rig, timeout_ms);
    rig->adapter->type->poll(rig->adapter, &pending->call);
    return finish(rig, pending);
}

struct rig_result rig_probe(struct rig *rig, int64_t timeout_ms)
{
    struct pending *pending = begin(rig, timeout_ms);
    rig->adapter->type->probe(rig->adapter, &pending->call);
    return finish(rig, pending);
}

struct rig_result rig_cancel(struct rig *rig, const struct attempt_ref *ref)
{
    struct pending *pending = begin(rig, RIG_WAIT_MS);
    rig->adapter->type->cancel(rig->adapter, ref, &pending->call);
    return finish(rig, pending);
}

struct rig_result rig_log(struct rig *rig, const struct attempt_ref *ref, int64_t offset)
{
    struct pending *pending = begin(rig, RIG_WAIT_MS);
    rig->adapter->type->log(rig->adapter, ref, offset, &pending->call);
    return finish(rig, pending);
}

void rig_forget(struct rig *rig, const struct attempt_ref *ref)
{
    rig->adapter->type->forget(rig->adapter, ref);
}

struct report rig_await(struct rig *rig, const struct attempt_ref *ref, enum report_state state)
{
    int64_t late = clock_mono_ms(rig->clock) + RIG_WAIT_MS;
    struct rig_result result = rig_find(rig, ref, RIG_WAIT_MS);
    while (result.report.state != state && clock_mono_ms(rig->clock) < late) {
        turn(rig, 20);
        result = rig_find(rig, ref, RIG_WAIT_MS);
    }
    cr_assert_eq(result.report.state, state, "%s is in state %d, not %d: %s", ref->name,
                 (int)result.report.state, (int)state, result.err.text);
    return result.report;
}

char *rig_read(const char *path, size_t *length)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return NULL;
    }
    char *text = xcalloc(1, 4 * 1024 * 1024);
    size_t n = fread(text, 1, 4 * 1024 * 1024 - 1, file);
    (void)fclose(file);
    if (length) {
        *length = n;
    }
    return text;
}

void rig_await_file(struct rig *rig, const char *path, long bytes)
{
    int64_t late = clock_mono_ms(rig->clock) + RIG_WAIT_MS;
    struct stat info;
    while ((stat(path, &info) || info.st_size < bytes) && clock_mono_ms(rig->clock) < late) {
        turn(rig, 20);
    }
    cr_assert_eq(stat(path, &info), 0, "'%s' did not come", path);
    cr_assert_geq(info.st_size, bytes);
}

bool rig_is_gone(pid_t pid)
{
    struct proc proc;
    return proc_read(pid, &proc) || proc.state == 'Z' || proc.state == 'X';
}

void rig_await_gone(struct rig *rig, pid_t pid)
{
    int64_t late = clock_mono_ms(rig->clock) + RIG_WAIT_MS;
    while (!rig_is_gone(pid) && clock_mono_ms(rig->clock) < late) {
        turn(rig, 20);
    }
    cr_assert(rig_is_gone(pid), "process %d lives", (int)pid);
}

pid_t rig_pid_in(const char *path)
{
    char *text = rig_read(path, NULL);
    cr_assert_not_null(text, "no '%s'", path);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    free(text);
    cr_assert_gt(pid, 1);
    return pid;
}

pid_t rig_supervisor(const struct rig *rig)
{
    struct error err;
    struct ucred peer;
    socklen_t size = sizeof peer;
    int fd = wire_connect(rig->dir, &err);
    cr_assert_geq(fd, 0, "%s", err.text);
    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    close(fd);
    return peer.pid;
}

static void open_adapter(struct rig *rig)
{
    struct error err;
    cr_assert_eq(adapter_local.open(&rig->env, &rig->cluster, &rig->adapter, &err), 0, "%s",
                 err.text);
}

void rig_open(struct rig *rig, int64_t cpus, int64_t memory)
{
    memset(rig, 0, sizeof *rig);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(rig->state_dir, sizeof rig->state_dir, "/tmp/tieline-local.XXXXXX");
    cr_assert_not_null(mkdtemp(rig->state_dir));
    (void)snprintf(rig->dir, sizeof rig->dir, "%s/local/edge", rig->state_dir);
    cr_assert_eq(uv_loop_init(&rig->loop), 0);
    rig->clock = clock_uv_create(&rig->loop);
    rig->cluster = (struct cluster){.name = (char *)"edge", .adapter = &adapter_local};
    rig->cluster.places = rig->places;
    rig->cluster.place_count = RIG_PLACES;
    rig->cluster.settings = &settings;
    rig->federation.keep.logs = 3600 * 1000;
    for (int i = 0; i < RIG_PLACES; i++) {
        struct place *place = &rig->places[i];
        place->local_name = i ? "small" : "big";
        (void)snprintf(place->name, sizeof place->name, "edge/%s", place->local_name);
        place->cluster = &rig->cluster;
        place->capacity.cpus = i ? 1000 : cpus;
        place->capacity.memory = i ? INT64_C(256) << 20 : memory;
    }
    rig->env = (struct adapter_env){.clock = rig->clock,
                                    .loop = &rig->loop,
                                    .federation = &rig->federation,
                                    .state_dir = rig->state_dir,
                                    .program = SUPERVISE,
                                    .log = log_line};
    open_adapter(rig);
}

/* What is closed frees itself in the loop. Ends when no handle is left. */
static void drain(struct rig *rig)
{
    (void)uv_run(&rig->loop, UV_RUN_DEFAULT);
}

void rig_restart_broker(struct rig *rig)
{
    /* No farewell can pass once the connection is shut: as good as being killed. */
    int fd = -1;
    for (int i = 3; i < FDS_MAX; i++) {
        struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
        socklen_t size = sizeof peer;
        if (!getpeername(i, (struct sockaddr *)&peer, &size) && peer.sun_family == AF_UNIX &&
            size > sizeof(sa_family_t) && strncmp(peer.sun_path, "/proc/self/fd/", 14) == 0) {
            fd = i;
            (void)shutdown(fd, SHUT_RDWR);
        }
    }
    cr_assert_geq(fd, 0, "no connection to break");
    rig->adapter->type->close(rig->adapter);
    drain(rig);
    open_adapter(rig);
}

static void await_lock(struct rig *rig)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/lock", rig->dir);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int64_t late = clock_mono_ms(rig->clock) + RIG_WAIT_MS;
    int failed = fd >= 0;
    while (failed && (failed = flock(fd, LOCK_EX | LOCK_NB)) && clock_mono_ms(rig->clock) < late) {
        turn(rig, 20);
    }
    cr_assert_not(failed, "the supervisor stays");
    if (fd >= 0) {
        close(fd);
    }
}

void rig_close(struct rig *rig)
{
    char path[128];
    rig->adapter->type->close(rig->adapter);
    await_lock(rig);
    drain(rig);
    clock_uv_destroy(rig->clock);
    cr_assert_eq(uv_loop_close(&rig->loop), 0, "a handle of the adapter is left");
    (void)snprintf(path, sizeof path, "%s/supervise.log", rig->dir);
    char *text = rig_read(path, NULL);
    cr_assert(!text || (!strstr(text, "Sanitizer") && !strstr(text, "runtime error")), "%s", text);
    free(text);
    (void)snprintf(path, sizeof path, "rm -rf '%s'", rig->state_dir);
    cr_assert_eq(system(path), 0);
}
