/* keeper.c - see keeper.h.
 *
 * A loop of poll() over the job's output, a signalfd and two timerfds: it runs in a fork of a process
 * with a libuv loop and must not touch that.
 *
 * Phases: RUNNING -> ENDING (TERM sent, grace runs) -> KILLING (everything is stopped, then killed, until
 * nothing is left). The keeper is a subreaper: descendants that left the process group or the session,
 * and orphans, are still its own; when it has no child any more, nothing of the job is left. Descendants
 * of a job that ended by itself go the same way. */
#include "adapters/node/keeper.h"

#include "adapters/node/output.h"
#include "adapters/node/proc.h"
#include "broker/core/alloc.h"
#include "broker/core/units.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    KILL_TICK_MS = 50,     /* between two rounds of killing */
    POLL_PAUSE_MS = 100,   /* after poll() was refused */
    STOP_PASSES = 20,      /* of stopping what forks while it is stopped */
    SAVE_TRIES = 600,      /* one a second: a full disk may be cleaned up */
    READ_SIZE = 64 * 1024, /* of the job's output at once */
    PIPE_SIZE = 256 * 1024,
    JSON_FILE_MAX = 4096
};
static const char run_name[] = "run.json";
static const char exit_name[] = "exit.json";

enum phase { RUNNING, ENDING, KILLING };
enum cause { CAUSE_NONE, CAUSE_CANCEL, CAUSE_TIME, CAUSE_MEMORY };
enum { WATCH_OUTPUT, WATCH_START, WATCH_SIGNALS, WATCH_DEADLINE, WATCH_TICK, WATCH_COUNT };

struct start_failure { /* what the child says when it cannot become the program */
    int number;
    char step; /* 'o': its input and output, 'c': chdir, 'x': exec */
};

struct keeper {
    const struct keeper_job *job;
    int dir_fd; /* of job->dir: what is written lands there, or nowhere when that was removed */
    enum phase phase;
    enum cause cause;
    struct output output;
    struct pollfd watch[WATCH_COUNT]; /* fd -1: not watched */
    pid_t child;
    uint64_t child_start;
    bool child_done, all_done;
    int status; /* of the child, as wait gives it */
    struct start_failure failure;
    int64_t started_ms, ended_ms;
    char reason[REASON_SIZE];
};

/* Writes name in the directory in one step. sync: also against a fall of the machine. -1 with errno. */
static int file_put(int dir_fd, const char *name, const json_t *json, bool sync)
{
    char *text = json_dumps(json, JSON_COMPACT);
    char *temporary = xasprintf("%s.new", name);
    assert(text);
    size_t length = strlen(text);
    int result = -1;
    int fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    errno = fd < 0 ? errno : ENOSPC; /* a short write does not set it */
    if (fd >= 0 && write(fd, text, length) == (ssize_t)length && (!sync || !fsync(fd)) &&
        !renameat(dir_fd, temporary, dir_fd, name)) {
        result = sync ? fsync(dir_fd) : 0;
    }
    int number = errno;
    if (fd >= 0) {
        close(fd);
    }
    free(temporary);
    free(text);
    errno = number;
    return result;
}

static json_t *file_get(const char *dir, const char *name, struct error *err)
{
    char *path = xasprintf("%s/%s", dir, name);
    char text[JSON_FILE_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (length < 0) {
        error_set(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE, "read '%s': %s", path,
                  strerror(errno));
    }
    json_t *json = length < 0 ? NULL : json_loadb(text, (size_t)length, 0, NULL);
    if (length >= 0 && !json_is_object(json)) {
        error_set(err, ERROR_MALFORMED, "'%s' is damaged", path);
        json_decref(json);
        json = NULL;
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return json;
}

static int64_t field(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

/* Names in a reason may have been cut within a character, or be no UTF-8 at all. */
static json_t *reason_to_json(const char *reason)
{
    size_t length = strlen(reason);
    while (length > 0 && !utf8_is_valid(reason, length)) {
        length--;
    }
    return json_stringn(reason, length);
}

json_t *keeper_exit_to_json(const struct keeper_exit *end)
{
    return json_pack("{s:s, s:i, s:i, s:I, s:I, s:i, s:I, s:o}", "outcome",
                     outcome_name(end->outcome), "code", end->exit_code, "signal", end->signal,
                     "started_ms", (json_int_t)end->started_ms, "ended_ms",
                     (json_int_t)end->ended_ms, "pid", (int)end->pid, "start",
                     (json_int_t)end->start, "reason", reason_to_json(end->reason));
}

int keeper_exit_from_json(const json_t *json, struct keeper_exit *out)
{
    memset(out, 0, sizeof *out);
    const char *word = json_string_value(json_object_get(json, "outcome"));
    for (int i = OUTCOME_NONE + 1; word && i < OUTCOME_COUNT; i++) {
        if (strcmp(word, outcome_name((enum outcome)i)) == 0) {
            out->outcome = (enum outcome)i;
        }
    }
    out->exit_code = (int)field(json, "code");
    out->signal = (int)field(json, "signal");
    out->started_ms = field(json, "started_ms");
    out->ended_ms = field(json, "ended_ms");
    out->pid = (pid_t)field(json, "pid");
    out->start = (uint64_t)field(json, "start");
    copy_text(out->reason, sizeof out->reason, json_string_value(json_object_get(json, "reason")));
    return out->outcome == OUTCOME_NONE ? -1 : 0;
}

int keeper_exit_read(const char *dir, struct keeper_exit *out, struct error *err)
{
    json_t *json = file_get(dir, exit_name, err);
    if (!json) {
        return -1;
    }
    int result = keeper_exit_from_json(json, out);
    json_decref(json);
    return result ? error_set(err, ERROR_MALFORMED, "'%s/%s' is damaged", dir, exit_name) : 0;
}

int keeper_id_read(const char *dir, struct keeper_id *out, struct error *err)
{
    json_t *json = file_get(dir, run_name, err);
    if (!json) {
        return -1;
    }
    out->pid = (pid_t)field(json, "pid");
    out->start = (uint64_t)field(json, "start");
    json_decref(json);
    return 0;
}

int keeper_lock(const char *dir, struct error *err)
{
    char *path = xasprintf("%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        error_set(err, ERROR_UNAVAILABLE, "open '%s': %s", path, strerror(errno));
    } else if (flock(fd, LOCK_EX | LOCK_NB)) {
        error_set(err, errno == EWOULDBLOCK ? ERROR_CONFLICT : ERROR_UNAVAILABLE, "lock '%s': %s",
                  path, strerror(errno));
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

static void timer_set(int fd, int64_t first_ms, int64_t every_ms)
{
    if (first_ms < 1) {
        first_ms = 1; /* 0 would mean: never */
    }
    struct itimerspec when = {
        .it_value = {.tv_sec = first_ms / 1000, .tv_nsec = first_ms % 1000 * 1000000},
        .it_interval = {.tv_sec = every_ms / 1000, .tv_nsec = every_ms % 1000 * 1000000},
    };
    (void)timerfd_settime(fd, 0, &when, NULL);
}

/* One signal to every descendant that is not in this state. Returns to how many. */
static int signal_tree(int number, char unless_state)
{
    struct proc_list list;
    pid_t self = getpid();
    int sent = 0;
    if (proc_scan(&list)) {
        return 0;
    }
    proc_tree(&list, &self, 1);
    for (size_t i = 0; i < list.count; i++) {
        const struct proc *proc = &list.items[i];
        if (proc->root == self && proc->state != 'Z' && proc->state != unless_state) {
            sent += proc_signal(proc, number) == 0;
        }
    }
    proc_list_fini(&list);
    return sent;
}

/* What is stopped cannot fork: stop until nothing new shows up, then kill. */
static void kill_round(void)
{
    for (int i = 0; i < STOP_PASSES && signal_tree(SIGSTOP, 'T') > 0; i++) {
    }
    (void)signal_tree(SIGKILL, '\0');
}

static void begin_killing(struct keeper *keeper)
{
    if (keeper->phase == KILLING) {
        return;
    }
    keeper->phase = KILLING;
    kill_round();
    timer_set(keeper->watch[WATCH_TICK].fd, KILL_TICK_MS, KILL_TICK_MS);
}

static void begin_ending(struct keeper *keeper)
{
    if (keeper->phase != RUNNING) {
        return;
    }
    keeper->phase = ENDING;
    (void)signal_tree(SIGTERM, '\0');
    (void)signal_tree(SIGCONT, '\0'); /* what is stopped could not hear it */
    timer_set(keeper->watch[WATCH_DEADLINE].fd, keeper->job->grace_ms, 0);
}

/* The first cause counts, and none that comes after the job's own end. */
static void note_cause(struct keeper *keeper, enum cause cause)
{
    if (!keeper->child_done && keeper->cause == CAUSE_NONE) {
        keeper->cause = cause;
    }
}

static void reap(struct keeper *keeper)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == keeper->child) {
            keeper->child_done = true;
            keeper->status = status;
            keeper->ended_ms = clock_wall_ms(keeper->job->clock);
        }
    }
    keeper->all_done = pid < 0 && errno == ECHILD;
    if (keeper->child_done && !keeper->all_done) {
        begin_ending(keeper);
    }
}

static void on_signals(struct keeper *keeper)
{
    struct signalfd_siginfo info;
    bool cancel = false;
    bool memory = false;
    while (read(keeper->watch[WATCH_SIGNALS].fd, &info, sizeof info) == (ssize_t)sizeof info) {
        cancel = cancel || info.ssi_signo == KEEPER_CANCEL;
        if (info.ssi_signo == KEEPER_MEMORY && !memory) {
            memory = true;
            (void)snprintf(keeper->reason, sizeof keeper->reason,
                           "it used %d MiB and had asked for %lld MiB", info.ssi_int,
                           (long long)(keeper->job->memory / (1024 * 1024)));
        }
    }
    reap(keeper);
    if (memory) {
        note_cause(keeper, CAUSE_MEMORY);
        begin_killing(keeper);
    } else if (cancel) {
        note_cause(keeper, CAUSE_CANCEL);
        begin_ending(keeper);
    }
}

static void on_deadline(struct keeper *keeper)
{
    uint64_t times;
    if (read(keeper->watch[WATCH_DEADLINE].fd, &times, sizeof times) != (ssize_t)sizeof times) {
        return;
    }
    if (keeper->phase == RUNNING) {
        note_cause(keeper, CAUSE_TIME);
        begin_ending(keeper);
    } else {
        begin_killing(keeper);
    }
}

static void on_tick(struct keeper *keeper)
{
    uint64_t times;
    if (read(keeper->watch[WATCH_TICK].fd, &times, sizeof times) == (ssize_t)sizeof times) {
        kill_round();
    }
}

static void unwatch(struct pollfd *watch)
{
    close(watch->fd);
    watch->fd = -1;
}

/* Takes what the pipe holds, at most so many bytes: signals must get their turn. */
static void on_output(struct keeper *keeper, size_t most)
{
    static char bytes[READ_SIZE];
    struct pollfd *watch = &keeper->watch[WATCH_OUTPUT];
    for (size_t taken = 0; watch->fd >= 0 && taken < most;) {
        ssize_t n = read(watch->fd, bytes, sizeof bytes);
        if (n > 0) {
            output_write(&keeper->output, bytes, (size_t)n);
            taken += (size_t)n;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            unwatch(watch);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* Nothing comes when the program was started: the descriptor closes with the exec. */
static void on_start(struct keeper *keeper)
{
    struct pollfd *watch = &keeper->watch[WATCH_START];
    struct start_failure failure;
    if (read(watch->fd, &failure, sizeof failure) == (ssize_t)sizeof failure) {
        keeper->failure = failure;
    }
    unwatch(watch);
}

static void child_fail(int fd, char step)
{
    struct start_failure failure = {.number = errno, .step = step};
    ssize_t n = write(fd, &failure, sizeof failure);
    _exit(n < 0 ? 126 : 127);
}

/* Becomes the job's program. */
static _Noreturn void child_run(const struct keeper_job *job, pid_t keeper, int output, int start)
{
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* not alone when the keeper is killed */
    if (getppid() != keeper) {
        _exit(126);
    }
    for (int number = 1; number < NSIG; number++) {
        (void)signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) {
        child_fail(start, 'o');
    }
    if (null > 2) {
        close(null);
    }
    (void)umask(022);
    (void)setrlimit(RLIMIT_NOFILE, &job->files);
    if (chdir(job->cwd)) {
        child_fail(start, 'c');
    }
    environ = job->envp;
    execvp(job->argv[0], job->argv);
    child_fail(start, 'x');
    abort();
}

static int fork_child(struct keeper *keeper)
{
    int output[2] = {-1, -1};
    int start[2] = {-1, -1};
    if (pipe2(output, O_CLOEXEC) || pipe2(start, O_CLOEXEC)) {
        return -1;
    }
    (void)fcntl(output[0], F_SETPIPE_SZ, PIPE_SIZE); /* may be refused: only slower */
    pid_t self = getpid();
    keeper->started_ms = clock_wall_ms(keeper->job->clock);
    keeper->child = fork();
    if (keeper->child == 0) {
        child_run(keeper->job, self, output[1], start[1]);
    }
    int number = errno;
    close(output[1]);
    close(start[1]);
    (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
    keeper->watch[WATCH_OUTPUT].fd = output[0];
    keeper->watch[WATCH_START].fd = start[0];
    errno = number;
    return keeper->child < 0 ? -1 : 0;
}

static int set_up(struct keeper *keeper, struct error *err)
{
    const struct keeper_job *job = keeper->job;
    struct proc self;
    json_t *id = proc_read(getpid(), &self)
                     ? NULL
                     : json_pack("{s:i, s:I, s:s}", "pid", (int)self.pid, "start",
                                 (json_int_t)self.start, "boot", job->boot);
    keeper->dir_fd = open(job->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = !id || keeper->dir_fd < 0 || file_put(keeper->dir_fd, run_name, id, false);
    json_decref(id);
    if (failed) {
        return error_set(err, ERROR_UNAVAILABLE, "write '%s/%s': %s", job->dir, run_name,
                         strerror(errno));
    }
    if (mkdir(job->cwd, 0700) && errno != EEXIST) {
        return error_set(err, ERROR_UNAVAILABLE, "make '%s': %s", job->cwd, strerror(errno));
    }
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, KEEPER_CANCEL);
    sigaddset(&mask, KEEPER_MEMORY);
    keeper->watch[WATCH_SIGNALS].fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    for (int i = WATCH_DEADLINE; i <= WATCH_TICK; i++) {
        keeper->watch[i].fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    }
    if (keeper->watch[WATCH_SIGNALS].fd < 0 || keeper->watch[WATCH_DEADLINE].fd < 0 ||
        keeper->watch[WATCH_TICK].fd < 0) {
        return error_set(err, ERROR_UNAVAILABLE, "watch the job: %s", strerror(errno));
    }
    return output_open(&keeper->output, job->dir, job->output_cap, err);
}

static int start(struct keeper *keeper, struct error *err)
{
    if (set_up(keeper, err)) {
        return -1;
    }
    if (fork_child(keeper)) {
        return error_set(err, ERROR_UNAVAILABLE, "start a process: %s", strerror(errno));
    }
    struct proc child;
    keeper->child_start = proc_read(keeper->child, &child) ? 0 : child.start;
    timer_set(keeper->watch[WATCH_DEADLINE].fd, keeper->job->limit_ms, 0);
    return 0;
}

/* Waits for something to do. The job must be kept even while poll() is refused: then all that can be read
 * without waiting is looked at, after a pause. */
static void await_any(struct keeper *keeper)
{
    const struct timespec pause = {.tv_nsec = POLL_PAUSE_MS * 1000000};
    struct pollfd *watch = keeper->watch;
    if (poll(watch, WATCH_COUNT, -1) >= 0) {
        return;
    }
    bool refused = errno != EINTR;
    if (refused) {
        (void)nanosleep(&pause, NULL);
    }
    for (int i = 0; i < WATCH_COUNT; i++) {
        watch[i].revents = refused && i != WATCH_START ? POLLIN : 0;
    }
}

static void watch_all(struct keeper *keeper)
{
    struct pollfd *watch = keeper->watch;
    while (!keeper->all_done) {
        await_any(keeper);
        if (watch[WATCH_START].fd >= 0 && watch[WATCH_START].revents) {
            on_start(keeper);
        }
        if (watch[WATCH_OUTPUT].fd >= 0 && watch[WATCH_OUTPUT].revents) {
            on_output(keeper, READ_SIZE);
        }
        if (watch[WATCH_SIGNALS].revents) {
            on_signals(keeper);
        }
        if (watch[WATCH_DEADLINE].revents) {
            on_deadline(keeper);
        }
        if (watch[WATCH_TICK].revents) {
            on_tick(keeper);
        }
    }
    /* A process elsewhere may hold the pipe: take what is there, do not wait for its end. */
    on_output(keeper, PIPE_SIZE);
    if (watch[WATCH_START].fd >= 0) {
        on_start(keeper);
    }
}

/* What a shell ends with when the job itself is at fault, so that trying again would not help; 0: not so. */
static int code_of_exec(int number)
{
    switch (number) {
    case ENOENT: return 127;
    case EACCES:
    case ENOEXEC:
    case ENOTDIR: return 126;
    default: return 0;
    }
}

static void fill_start_failure(const struct keeper *keeper, struct keeper_exit *end)
{
    const struct keeper_job *job = keeper->job;
    const struct start_failure *failure = &keeper->failure;
    const char *text = strerror(failure->number);
    int code = failure->step == 'x' ? code_of_exec(failure->number) : 0;
    if (code) {
        end->outcome = OUTCOME_EXIT;
        end->exit_code = code;
        (void)snprintf(end->reason, sizeof end->reason, "%.120s: %s", job->argv[0], text);
        return;
    }
    end->outcome = OUTCOME_START_FAILED;
    if (failure->step == 'o') {
        (void)snprintf(end->reason, sizeof end->reason, "set its input and output: %s", text);
    } else {
        (void)snprintf(end->reason, sizeof end->reason, "%s '%.120s': %s",
                       failure->step == 'c' ? "enter" : "run",
                       failure->step == 'c' ? job->cwd : job->argv[0], text);
    }
}

static void fill_exit(const struct keeper *keeper, struct keeper_exit *end)
{
    static const enum outcome by_cause[] = {
        [CAUSE_CANCEL] = OUTCOME_CANCELLED,
        [CAUSE_TIME] = OUTCOME_TIME_LIMIT,
        [CAUSE_MEMORY] = OUTCOME_OUT_OF_MEMORY,
    };
    bool signalled = WIFSIGNALED(keeper->status);
    end->pid = keeper->child;
    end->start = keeper->child_start;
    end->started_ms = keeper->started_ms;
    end->ended_ms = keeper->ended_ms;
    end->exit_code = signalled ? 0 : WEXITSTATUS(keeper->status);
    end->signal = signalled ? WTERMSIG(keeper->status) : 0;
    end->outcome = keeper->cause != CAUSE_NONE ? by_cause[keeper->cause]
                   : signalled                 ? OUTCOME_SIGNAL
                                               : OUTCOME_EXIT;
    if (keeper->failure.step) {
        fill_start_failure(keeper, end);
    } else if (keeper->cause == CAUSE_TIME) {
        char limit[UNITS_TEXT_SIZE];
        (void)snprintf(end->reason, sizeof end->reason, "its time limit of %s was reached",
                       duration_text(keeper->job->limit_ms, limit));
    } else if (keeper->cause == CAUSE_MEMORY) {
        copy_text(end->reason, sizeof end->reason, keeper->reason);
    } else if (keeper->output.failed) {
        copy_text(end->reason, sizeof end->reason, "the disk refused a part of its output");
    }
}

static void say_lost(const struct keeper *keeper, const char *why)
{
    (void)fprintf(stderr, "keeper: '%s/%s' cannot be written, how the job ended is lost: %s\n",
                  keeper->job->dir, exit_name, why);
}

/* Waits before the next try. Returns whether it was asked to end meanwhile. */
static bool pause_to_save(void)
{
    const struct timespec second = {.tv_sec = 1};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, KEEPER_CANCEL);
    return sigtimedwait(&mask, NULL, &second) == KEEPER_CANCEL;
}

/* While the supervisor is the parent it makes the exit durable, together with others. A full disk may
 * be cleaned up; a directory that was removed does not come back, and nobody will ask. */
static void save(const struct keeper *keeper, const struct keeper_exit *end)
{
    json_t *json = keeper_exit_to_json(end);
    assert(json);
    bool tries = true;
    for (int i = 0; tries; i++) {
        bool orphan = getppid() != keeper->job->supervisor;
        if (!file_put(keeper->dir_fd, exit_name, json, orphan)) {
            break;
        }
        int number = errno;
        bool gone = number == ENOENT || number == ENOTDIR || number == ESTALE;
        tries = !gone && i < SAVE_TRIES && !pause_to_save();
        if (!tries) {
            say_lost(keeper, strerror(number));
        }
    }
    json_decref(json);
}

static void keep_only(int fd)
{
    if (fd > 3) {
        (void)close_range(3, (unsigned)fd - 1, 0);
    }
    (void)close_range((unsigned)fd + 1, UINT_MAX, 0);
}

_Noreturn void keeper_run(const struct keeper_job *job)
{
    struct keeper keeper = {.job = job, .dir_fd = -1, .output = {.dir_fd = -1, .fd = -1}};
    struct keeper_exit end = {.outcome = OUTCOME_START_FAILED};
    struct error err;
    for (int i = 0; i < WATCH_COUNT; i++) {
        keeper.watch[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    keep_only(job->lock_fd);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "tieline-keeper");
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (start(&keeper, &err)) {
        copy_text(end.reason, sizeof end.reason, err.text);
        end.ended_ms = clock_wall_ms(job->clock);
    } else {
        watch_all(&keeper);
        fill_exit(&keeper, &end);
    }
    output_close(&keeper.output);
    save(&keeper, &end);
    _exit(0);
}
