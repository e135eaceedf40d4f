/* keeps.c - see keeps.h.
 *
 * A keeper is watched by a pidfd, whether it is a child or was adopted. The supervisor is a subreaper
 * too: what a killed keeper leaves behind comes to it, and is known as that because it is a child and no
 * keeper. What had come to an earlier supervisor went to init meanwhile; that is found by the job and
 * attempt in its environment. */
#include "adapters/node/keeps.h"

#include "broker/core/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAMPLE_MS = 250, /* between two looks at the memory of all jobs */
    LOST_MS = 100    /* between two rounds of ending what a lost keeper left */
};

struct keep {
    struct server *server;
    struct work *work;
    pid_t pid;
    int pidfd; /* -1: not known yet */
    bool said; /* that it cannot be watched: it is tried many times */
    uv_poll_t poll;
};

struct keeping {
    int signals;
    uv_poll_t poll;
    struct timer *sample, *lost;
    bool sampling, losing;
    pid_t cleaner; /* 0: none */
    bool dirty;    /* something was discarded since it was forked */
};

static void keep_closed_cb(uv_handle_t *handle)
{
    struct keep *keep = handle->data;
    close(keep->pidfd);
    free(keep);
}

static void release(struct work *work)
{
    struct keep *keep = work->keep;
    work->keep = NULL;
    if (keep && keep->pidfd >= 0) {
        uv_close((uv_handle_t *)&keep->poll, keep_closed_cb);
    } else {
        free(keep);
    }
}

static void record_end(struct server *server, struct work *work, const struct keeper_exit *end)
{
    json_t *record = work_record("end", work);
    json_object_set_new(record, "exit", keeper_exit_to_json(end));
    release(work);
    server_record_take(server, record);
}

static void record_outcome(struct server *server, struct work *work, enum outcome outcome,
                           const char *reason)
{
    struct keeper_exit end = {.outcome = outcome, .started_ms = work->started_ms};
    end.ended_ms = clock_wall_ms(server->clock);
    copy_text(end.reason, sizeof end.reason, reason);
    if (outcome == OUTCOME_START_FAILED) {
        end.started_ms = 0;
    }
    record_end(server, work, &end);
}

static void watch_lost(struct server *server)
{
    if (!server->keeping->losing) {
        server->keeping->losing = true;
        timer_start(server->keeping->lost, 0);
    }
}

/* The keeper is no more: it left the exit, or it was killed. */
static void keeper_gone(struct server *server, struct work *work)
{
    struct error err;
    struct keeper_exit end;
    struct keeper_id id;
    char *dir = server_job_dir(server, work->job, work->attempt);
    if (!keeper_exit_read(dir, &end, &err)) {
        record_end(server, work, &end);
    } else if (keeper_id_read(dir, &id, &err) && err.code == ERROR_NOT_FOUND) {
        record_outcome(server, work, OUTCOME_START_FAILED, "its keeper died before it began");
    } else {
        release(work);
        work->state = WORK_LOST;
        watch_lost(server);
    }
    free(dir);
}

static void keeper_cb(uv_poll_t *handle, int status, int events)
{
    struct keep *keep = handle->data;
    (void)status;
    (void)events;
    keeper_gone(keep->server, keep->work);
}

static void hold(struct server *server, struct work *work)
{
    work->keep = xcalloc(1, sizeof *work->keep);
    work->keep->server = server;
    work->keep->work = work;
    work->keep->pidfd = -1;
}

/* It runs and cannot be watched: the round for lost ones tries again. */
static void watch_later(struct server *server, struct work *work, const char *why)
{
    if (!work->keep->said) {
        server_say(server, "the keeper of %s cannot be watched yet: %s", work->key, why);
    }
    work->keep->said = true;
    watch_lost(server);
}

/* Takes the pidfd. Returns -1 when it is to be tried again. */
static int watch_keeper(struct server *server, struct work *work, int pidfd)
{
    struct keep *keep = work->keep;
    int failed = uv_poll_init(&server->loop, &keep->poll, pidfd);
    if (failed) {
        close(pidfd);
        watch_later(server, work, uv_strerror(failed));
        return -1;
    }
    keep->pidfd = pidfd;
    keep->poll.data = keep;
    failed = uv_poll_start(&keep->poll, UV_READABLE, keeper_cb);
    if (failed) {
        bool said = keep->said;
        release(work); /* with the pidfd */
        hold(server, work);
        work->keep->said = said;
        watch_later(server, work, uv_strerror(failed));
    }
    return failed ? -1 : 0;
}

static void watch_sample(struct server *server)
{
    if (!server->keeping->sampling) {
        server->keeping->sampling = true;
        timer_start(server->keeping->sample, SAMPLE_MS);
    }
}

/* A pidfd of a keeper that lives although its work has no hold on it yet. The keeper writes its identity
 * first thing; until then there is none to read. */
static void adopt(struct server *server, struct work *work)
{
    struct error err;
    struct keeper_id id;
    char *dir = server_job_dir(server, work->job, work->attempt);
    bool known = !keeper_id_read(dir, &id, &err);
    int lock = known ? -1 : keeper_lock(dir, &err);
    free(dir);
    if (lock >= 0) {
        close(lock);
        keeper_gone(server, work);
        return;
    }
    if (!known &&
        server->ending) { /* it cannot be known any more: its job is found by other means */
        release(work);
        work->state = WORK_LOST;
    }
    if (!known) {
        watch_lost(server); /* looks again */
        return;
    }
    int pidfd = proc_open(id.pid, id.start);
    if (pidfd < 0 && errno == ESRCH) {
        keeper_gone(server, work);
        return;
    }
    if (pidfd < 0) {
        watch_lost(server); /* no descriptor is left: that says nothing about the keeper */
        return;
    }
    if (watch_keeper(server, work, pidfd)) {
        return;
    }
    work->keep->pid = id.pid;
    works_started(&server->works, work);
    watch_sample(server);
    if (work->cancelled) {
        (void)pidfd_send_signal(pidfd, KEEPER_CANCEL, NULL, 0);
    }
}

/* Of an attempt that had started when an earlier supervisor ended. */
static void recover(struct server *server, struct work *work)
{
    struct error err;
    struct keeper_exit end;
    struct keeper_id id;
    char *dir = server_job_dir(server, work->job, work->attempt);
    (void)mkdir(dir, 0700); /* it is not there yet when no keeper was forked */
    int lock = keeper_lock(dir, &err);
    if (lock < 0) {
        hold(server, work);
        adopt(server, work);
    } else if (!keeper_exit_read(dir, &end, &err)) {
        record_end(server, work, &end);
    } else if (strcmp(work->boot, server->boot) != 0) {
        record_outcome(server, work, OUTCOME_GONE, "the machine was started anew while it ran");
    } else if (work->argv && keeper_id_read(dir, &id, &err) && err.code == ERROR_NOT_FOUND) {
        server_record_take(server, work_record("unstart", work));
    } else {
        work->state = WORK_LOST;
        watch_lost(server);
    }
    if (lock >= 0) {
        close(lock);
    }
    free(dir);
}

void keeps_recover(struct server *server)
{
    for (size_t i = 0; i < server->works.count; i++) {
        if (server->works.items[i]->state == WORK_STARTED) {
            recover(server, server->works.items[i]);
        }
    }
}

/* The strings of an array, ended by NULL; they belong to the array. */
static char **strings_of(const json_t *array)
{
    size_t count = json_array_size(array);
    char **out = xcalloc(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        out[i] = (char *)json_string_value(json_array_get(array, i));
    }
    return out;
}

static pid_t fork_keeper(struct server *server, const struct work *work, const char *dir, int lock)
{
    char *cwd = xasprintf("%s/work", dir);
    struct keeper_job job = {
        .clock = server->clock,
        .dir = dir,
        .cwd = cwd,
        .boot = server->boot,
        .argv = strings_of(work->argv),
        .envp = strings_of(work->env),
        .limit_ms = work->limit_ms,
        .grace_ms = work->grace_ms,
        .memory = work->memory,
        .output_cap = server->output_cap,
        .files = server->job_files,
        .supervisor = getpid(),
        .lock_fd = lock,
    };
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, &old);
    pid_t pid = fork();
    if (pid == 0) {
        keeper_run(&job);
    }
    int number = errno;
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    free(cwd);
    free(job.argv);
    free(job.envp);
    errno = number;
    return pid;
}

/* 0, or -1 with the reason why nothing was started. */
static int start_keeper(struct server *server, struct work *work, struct error *err)
{
    char *dir = server_job_dir(server, work->job, work->attempt);
    int lock = -1;
    pid_t pid = -1;
    if (mkdir(dir, 0700) && errno != EEXIST) {
        error_set(err, ERROR_UNAVAILABLE, "make '%s': %s", dir, strerror(errno));
    } else if ((lock = keeper_lock(dir, err)) >= 0) {
        pid = fork_keeper(server, work, dir, lock);
        if (pid < 0) {
            error_set(err, ERROR_UNAVAILABLE, "fork: %s", strerror(errno));
        }
        close(lock);
    }
    free(dir);
    if (pid < 0) {
        return -1;
    }
    hold(server, work);
    work->keep->pid = pid;
    int pidfd = pidfd_open(pid, 0);
    if (pidfd < 0) {
        watch_later(server, work, strerror(errno));
    } else {
        (void)watch_keeper(server, work, pidfd);
    }
    return 0;
}

void keeps_start(struct server *server, struct work *work)
{
    struct error err;
    if (work->cancelled) {
        record_outcome(server, work, OUTCOME_CANCELLED, "");
        return;
    }
    if (start_keeper(server, work, &err)) {
        record_outcome(server, work, OUTCOME_START_FAILED, err.text);
        return;
    }
    works_started(&server->works, work);
    watch_sample(server);
}

void keeps_cancel(struct server *server, struct work *work)
{
    if (work->state == WORK_ENDED || work->cancelled) {
        return;
    }
    server_record_take(server, work_record("cancel", work));
    if (work->state == WORK_QUEUED) {
        record_outcome(server, work, OUTCOME_CANCELLED, "");
    } else if (work->keep && work->keep->pidfd >= 0) {
        (void)pidfd_send_signal(work->keep->pidfd, KEEPER_CANCEL, NULL, 0);
    }
}

void keeps_cancel_all(struct server *server)
{
    for (size_t i = 0; i < server->works.count; i++) {
        keeps_cancel(server, server->works.items[i]);
    }
}

/* Tells the keeper how many MiB its job uses. */
static void tell_memory(const struct work *work, int64_t used)
{
    siginfo_t info = {.si_signo = KEEPER_MEMORY, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_int = (int)(used / (1024 * 1024));
    (void)pidfd_send_signal(work->keep->pidfd, KEEPER_MEMORY, &info, 0);
}

static int64_t memory_of(const struct proc_list *list, pid_t keeper, bool shared)
{
    int64_t sum = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].root == keeper) {
            sum += shared ? proc_memory_shared(&list->items[i]) : list->items[i].memory;
        }
    }
    return sum;
}

static bool is_kept(const struct work *work)
{
    return work->state == WORK_STARTED && work->keep && work->keep->pidfd >= 0;
}

/* The pids of all keepers; the caller frees them. */
static pid_t *keeper_pids(const struct server *server, size_t *count)
{
    pid_t *pids = xcalloc(server->works.count, sizeof *pids);
    *count = 0;
    for (size_t i = 0; i < server->works.count; i++) {
        if (is_kept(server->works.items[i])) {
            pids[(*count)++] = server->works.items[i]->keep->pid;
        }
    }
    return pids;
}

/* One scan for all. Resident sizes count shared pages more than once: only who is over by them is looked
 * at in proportion, which costs more. */
static void sample_fired(void *arg)
{
    struct server *server = arg;
    struct proc_list list;
    size_t count;
    pid_t *pids = keeper_pids(server, &count);
    server->keeping->sampling = false;
    if (count > 0 && !proc_scan(&list)) {
        proc_tree(&list, pids, count);
        for (size_t i = 0; i < server->works.count; i++) {
            const struct work *work = server->works.items[i];
            if (!is_kept(work) || work->memory == 0 ||
                memory_of(&list, work->keep->pid, false) <= work->memory) {
                continue;
            }
            int64_t used = memory_of(&list, work->keep->pid, true);
            if (used > work->memory) {
                tell_memory(work, used);
            }
        }
        proc_list_fini(&list);
    }
    if (count > 0) {
        watch_sample(server);
    }
    free(pids);
}

/* Whether the process was left behind by this attempt. */
static bool is_left(const struct proc *proc, const struct work *work)
{
    char job[64];
    char attempt[64];
    (void)snprintf(job, sizeof job, "TIELINE_JOB=%s", work->job);
    (void)snprintf(attempt, sizeof attempt, "TIELINE_ATTEMPT=%d", work->attempt);
    return proc_has_env(proc->pid, job) && proc_has_env(proc->pid, attempt);
}

/* Kills what the attempt left. Returns how much there was. */
static int kill_left(const struct work *work, const struct proc_list *list)
{
    int killed = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct proc *proc = &list->items[i];
        if (proc->pid != getpid() && proc->state != 'Z' && is_left(proc, work)) {
            killed += proc_signal(proc, SIGKILL) == 0;
        }
    }
    return killed;
}

/* Our children that are neither keepers nor the cleaner are orphans of lost keepers. */
static int kill_orphans(const struct server *server, const struct proc_list *list)
{
    size_t count;
    pid_t *pids = keeper_pids(server, &count);
    pid_t self = getpid();
    int killed = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct proc *proc = &list->items[i];
        bool known = proc->pid == server->keeping->cleaner;
        for (size_t k = 0; k < count && !known; k++) {
            known = pids[k] == proc->pid;
        }
        if (proc->parent == self && proc->state != 'Z' && !known) {
            killed += proc_signal(proc, SIGKILL) == 0;
        }
    }
    free(pids);
    return killed;
}

static bool needs_adoption(const struct work *work)
{
    return work->state == WORK_STARTED && work->keep && work->keep->pidfd < 0;
}

static void lost_round(struct server *server, const struct proc_list *list)
{
    bool unwatched = false;
    for (size_t i = 0; i < server->works.count; i++) {
        struct work *work = server->works.items[i];
        if (needs_adoption(work)) {
            adopt(server, work);
            unwatched = unwatched || needs_adoption(work);
        }
    }
    /* A keeper that is not known yet must not be taken for an orphan. */
    int orphans = unwatched ? 1 : kill_orphans(server, list);
    for (size_t i = 0; i < server->works.count; i++) {
        struct work *work = server->works.items[i];
        if (work->state == WORK_LOST && kill_left(work, list) == 0 && orphans == 0) {
            record_outcome(server, work,
                           work->cancelled ? OUTCOME_CANCELLED : OUTCOME_OUTCOME_UNKNOWN,
                           "the process that kept it was killed");
        } else if (work->state == WORK_LOST) {
            watch_lost(server);
        }
    }
}

static void lost_fired(void *arg)
{
    struct server *server = arg;
    struct proc_list list;
    server->keeping->losing = false;
    if (proc_scan(&list)) {
        watch_lost(server);
        return;
    }
    lost_round(server, &list);
    proc_list_fini(&list);
    if (server->keeping->losing) {
        timer_start(server->keeping->lost, LOST_MS);
    }
}

/* In a process of its own. Directories are made writable first: a job may leave read-only trees. */
static _Noreturn void clean(const char *trash)
{
    char *paths[] = {(char *)trash, NULL};
    (void)close_range(3, UINT_MAX, 0);      /* the sockets are the supervisor's */
    (void)setpriority(PRIO_PROCESS, 0, 10); /* if it may not, it cleans all the same */
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    const FTSENT *entry;
    while (walk && (entry = fts_read(walk))) {
        if (entry->fts_info == FTS_D) {
            (void)chmod(entry->fts_accpath, 0700);
        } else if (entry->fts_level > 0) {
            (void)remove(entry->fts_accpath);
        }
    }
    _exit(0);
}

static void run_cleaner(struct server *server)
{
    struct keeping *keeping = server->keeping;
    if (keeping->cleaner || !keeping->dirty) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        clean(server->trash_dir);
    }
    keeping->cleaner = pid > 0 ? pid : 0;
    keeping->dirty = pid < 0;
}

static void signals_cb(uv_poll_t *handle, int status, int events)
{
    struct server *server = handle->data;
    struct signalfd_siginfo info;
    (void)status;
    (void)events;
    while (read(server->keeping->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD) {
            server_say(server, "asked to end by signal %u; running jobs go on", info.ssi_signo);
            uv_stop(&server->loop);
        }
    }
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (pid == server->keeping->cleaner) {
            server->keeping->cleaner = 0;
            run_cleaner(server);
        }
    }
}

void keeps_discard(struct server *server, const char *key, const char *name)
{
    char *from = name ? xasprintf("%s/%s/%s", server->jobs_dir, key, name)
                      : xasprintf("%s/%s", server->jobs_dir, key);
    char *to = xasprintf("%s/%s%s%s", server->trash_dir, key, name ? "." : "", name ? name : "");
    if (rename(from, to) == 0) {
        server->keeping->dirty = true;
        run_cleaner(server);
    } else if (errno != ENOENT) {
        server_say(server, "'%s' is left behind: %s", from, strerror(errno));
    }
    free(from);
    free(to);
}

void keeps_prune(struct server *server, int64_t before_ms)
{
    DIR *dir = opendir(server->jobs_dir);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char *path = xasprintf("%s/%s", server->jobs_dir, entry->d_name);
        struct stat info;
        if (entry->d_name[0] != '.' && !map_get(&server->works.by_key, entry->d_name) &&
            stat(path, &info) == 0 && (int64_t)info.st_mtim.tv_sec * 1000 < before_ms) {
            keeps_discard(server, entry->d_name, NULL);
        }
        free(path);
    }
    if (dir) {
        closedir(dir);
    }
}

bool keeps_are_quiet(const struct server *server)
{
    if (server->keeping->cleaner || server->keeping->losing) {
        return false;
    }
    for (size_t i = 0; i < server->works.count; i++) {
        if (server->works.items[i]->state != WORK_ENDED) {
            return false;
        }
    }
    return true;
}

int keeps_open(struct server *server, struct error *err)
{
    struct keeping *keeping = xcalloc(1, sizeof *keeping);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    server->keeping = keeping;
    keeping->sample = clock_timer(server->clock, sample_fired, server);
    keeping->lost = clock_timer(server->clock, lost_fired, server);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a refused write is an error like any other */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    keeping->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeping->signals < 0 || uv_poll_init(&server->loop, &keeping->poll, keeping->signals)) {
        return error_set(err, ERROR_UNAVAILABLE, "watch children: %s", strerror(errno));
    }
    keeping->poll.data = server;
    keeping->dirty = true; /* an earlier cleaner may not have finished */
    run_cleaner(server);
    return uv_poll_start(&keeping->poll, UV_READABLE, signals_cb)
               ? error_set(err, ERROR_UNAVAILABLE, "watch children: no memory")
               : 0;
}

static void keeping_closed_cb(uv_handle_t *handle)
{
    (void)handle;
}

void keeps_close(struct server *server)
{
    struct keeping *keeping = server->keeping;
    if (!keeping) {
        return;
    }
    for (size_t i = 0; i < server->works.count; i++) {
        release(server->works.items[i]);
    }
    timer_destroy(keeping->sample);
    timer_destroy(keeping->lost);
    uv_close((uv_handle_t *)&keeping->poll, keeping_closed_cb);
    (void)uv_run(&server->loop, UV_RUN_NOWAIT);
    close(keeping->signals);
    free(keeping);
    server->keeping = NULL;
}
