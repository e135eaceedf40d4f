/* supervise.c - see supervise.h.
 *
 * One process per local member, alone on its directory by a lock:
 *   lock    held as long as it lives       sock   where it is asked (requests.h)
 *   exits   the exit log (exitlog.h)       jobs/  one directory per attempt (keeper.h, output.h)
 *   trash/  being removed
 * It decides what starts when, and remembers; each running attempt has a keeper, which depends on nobody.
 * So the broker may die, and the supervisor may die, and the next one knows what ran and how it ended.
 * TERM or INT: ends at once; running jobs go on, and the next one takes them over. When the directory is
 * removed under it, home.h says what becomes of it and its jobs. */
#include "adapters/node/supervise.h"

#include "adapters/node/home.h"
#include "adapters/node/keeps.h"
#include "adapters/node/requests.h"
#include "adapters/node/server.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_TAKEN = 3, IDLE_MS = 60 * 1000, PRUNE_MS = 10 * 60 * 1000 };
enum { OUTPUT_MIN = 64, JOB_FILES = 1024 };

struct options {
    const char *dir;
    int64_t idle_ms, output_cap;
    bool detach;
};

struct pruning {
    struct server *server;
    struct timer *timer;
};

static int usage(const char *why)
{
    (void)fprintf(stderr, "tieline supervise: %s\n", why);
    (void)fprintf(stderr, "usage: tieline supervise --dir DIR [--member NAME] [--idle TIME] "
                          "[--output SIZE] [--detach]\n");
    return EXIT_USAGE;
}

/* 0, or the status to end with. */
static int parse_options(int argc, char **argv, struct options *out)
{
    static const struct option rows[] = {
        {"dir", required_argument, NULL, 'd'},  {"member", required_argument, NULL, 'm'},
        {"idle", required_argument, NULL, 'i'}, {"output", required_argument, NULL, 'o'},
        {"detach", no_argument, NULL, 'b'},     {NULL, 0, NULL, 0},
    };
    struct error err = {.code = ERROR_NONE};
    int letter;
    int failed = 0;
    *out = (struct options){.idle_ms = IDLE_MS, .output_cap = LIMIT_LOG_BYTES};
    optind = 1;
    while (!failed && (letter = getopt_long(argc, argv, "", rows, NULL)) != -1) {
        switch (letter) {
        case 'd': out->dir = optarg; break;
        case 'm': break;
        case 'i': failed = duration_parse(optarg, &out->idle_ms, &err); break;
        case 'o': failed = size_parse(optarg, &out->output_cap, &err); break;
        case 'b': out->detach = true; break;
        default: return usage("see above");
        }
    }
    if (failed) {
        return usage(err.text);
    }
    if (!out->dir || optind < argc || out->output_cap < OUTPUT_MIN) {
        return usage(!out->dir ? "--dir is missing" : "a value that cannot be used");
    }
    return 0;
}

/* Waits until the child says that it serves. */
static int await_child(pid_t child, int fd)
{
    char byte = 0;
    ssize_t n;
    do {
        n = child < 0 ? 0 : read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    return n == 1 ? byte : EXIT_FAILURE;
}

/* Goes to the background. Returns the descriptor to report at; the parent does not return. */
static int detach(void)
{
    int ready[2];
    if (pipe2(ready, O_CLOEXEC)) {
        return -1;
    }
    pid_t pid = fork();
    if (pid != 0) {
        close(ready[1]);
        _exit(await_child(pid, ready[0]));
    }
    close(ready[0]);
    (void)setsid();
    return ready[1];
}

static void report_ready(int fd, int status)
{
    char byte = (char)status;
    if (fd >= 0) {
        ssize_t n = write(fd, &byte, 1);
        (void)n; /* whoever waited has left */
        close(fd);
    }
}

/* The lock of the member. -1: another supervisor has it, or err is set to what failed. */
static int lock_dir(const char *dir, struct error *err)
{
    char *path = xasprintf("%s/lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
        error_set(err, fd >= 0 && errno == EWOULDBLOCK ? ERROR_CONFLICT : ERROR_UNAVAILABLE,
                  "lock '%s': %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        fd = -1;
    }
    free(path);
    return fd;
}

static bool may_rest(struct server *server)
{
    return keeps_are_quiet(server);
}

static void prune_fired(void *arg)
{
    struct pruning *pruning = arg;
    struct server *server = pruning->server;
    int64_t before = clock_wall_ms(server->clock) - server->keep_logs_ms;
    if (server->keep_logs_ms > 0) {
        keeps_prune(server, before);
        works_prune(&server->works, before);
    }
    timer_start(pruning->timer, PRUNE_MS);
}

static int open_all(struct server *server, const char *dir, struct error *err)
{
    if (server_open(server, dir, err) || keeps_open(server, err)) {
        return -1;
    }
    keeps_recover(server);
    int fd = wire_listen(dir, err);
    return fd < 0 ? -1 : server_listen(server, fd, err);
}

static int serve(struct server *server, const char *dir, int lock, int ready)
{
    struct error err;
    struct pruning pruning = {.server = server};
    int status = EXIT_FAILURE;
    if (open_all(server, dir, &err)) {
        (void)fprintf(stderr, "tieline supervise: %s\n", err.text);
        report_ready(ready, status);
    } else {
        pruning.timer = clock_timer(server->clock, prune_fired, &pruning);
        timer_start(pruning.timer, PRUNE_MS);
        struct home *home = home_watch(server, lock);
        report_ready(ready, 0);
        (void)uv_run(&server->loop, UV_RUN_DEFAULT);
        home_unwatch(home);
        timer_destroy(pruning.timer);
        status = EXIT_SUCCESS;
    }
    keeps_close(server);
    server_close(server);
    return status;
}

/* Two descriptors per running job. Jobs get the usual limit, not ours nor that of the broker, which has
 * raised its own: programs that use select() need a low one. They may raise it to the hard one. */
static void raise_files(struct rlimit *of_jobs)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0) {
        *of_jobs = most;
        of_jobs->rlim_cur = most.rlim_max < JOB_FILES ? most.rlim_max : JOB_FILES;
        most.rlim_cur = most.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &most);
    }
}

static int run(const struct options *options, const char *dir, int ready)
{
    static struct server server; /* its slots are too many for a stack */
    struct error err;
    int lock = lock_dir(dir, &err);
    if (lock < 0) {
        int status = err.code == ERROR_CONFLICT ? EXIT_TAKEN : EXIT_FAILURE;
        (void)fprintf(stderr, "tieline supervise: %s\n", err.text);
        report_ready(ready, status);
        return status;
    }
    raise_files(&server.job_files);
    server.idle_ms = options->idle_ms;
    server.output_cap = options->output_cap;
    server.hooks.request = requests_serve;
    server.hooks.start = keeps_start;
    server.hooks.may_rest = may_rest;
    int status = serve(&server, dir, lock, ready);
    close(lock);
    return status;
}

/* Makes the directory and all above it. */
static int make_dirs(const char *dir)
{
    char *path = xstrdup(dir);
    int failed = 0;
    for (char *at = path + 1; !failed && *at; at++) {
        if (*at == '/') {
            *at = '\0';
            failed = mkdir(path, 0700) && errno != EEXIST;
            *at = '/';
        }
    }
    failed = failed || (mkdir(path, 0700) && errno != EEXIST);
    free(path);
    return failed ? -1 : 0;
}

int supervise_main(int argc, char **argv)
{
    struct options options;
    int status = parse_options(argc, argv, &options);
    if (status) {
        return status;
    }
    (void)umask(077);
    char *dir = make_dirs(options.dir) ? NULL : realpath(options.dir, NULL);
    if (!dir || chdir("/")) {
        (void)fprintf(stderr, "tieline supervise: '%s': %s\n", options.dir, strerror(errno));
        free(dir);
        return EXIT_FAILURE;
    }
    (void)close_range(3, UINT_MAX, 0); /* nothing of whoever started it is kept open */
    int ready = options.detach ? detach() : -1;
    status = run(&options, dir, ready);
    free(dir);
    return status;
}
