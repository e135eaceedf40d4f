/* secret.c - resolving a reference to a secret: a file, a variable of the environment, a command.
 *
 * A command runs to its end while the caller waits, at most COMMAND_SECONDS: it is asked at start and
 * at dispatch, and must be quick. It runs in its own process group, which is killed when it is late.
 * Time comes from a timer of the kernel, so no clock is read. Bytes that were read are wiped. */
#include "broker/core/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/core/alloc.h"

enum { SECRET_MAX = 64 * 1024, COMMAND_SECONDS = 10, FIRST_FREE_FD = 3 };

struct answer {
    char bytes[SECRET_MAX];
    size_t length;
    bool full;
};

extern char **environ;

/* Reads what is there. 1: more may come, 0: the end, -1: failed. */
static int answer_read(struct answer *answer, int file)
{
    if (answer->length == sizeof answer->bytes) {
        answer->full = true;
        return 0;
    }
    ssize_t n = read(file, answer->bytes + answer->length, sizeof answer->bytes - answer->length);
    if (n < 0) {
        return errno == EINTR || errno == EAGAIN ? 1 : -1;
    }
    answer->length += (size_t)n;
    return n > 0;
}

/* Without the line end; from: what the message calls the source. */
static int answer_take(struct answer *answer, const char *from, char **out, struct error *err)
{
    size_t length = answer->length;
    while (length > 0 && strchr("\r\n", answer->bytes[length - 1]) &&
           answer->bytes[length - 1] != '\0') {
        length--;
    }
    if (answer->full) {
        error_set(err, ERROR_INVALID, "%s gives too much for a secret", from);
        return error_expect(err, "less than %d bytes", (int)SECRET_MAX);
    }
    if (length == 0 || memchr(answer->bytes, '\0', length)) {
        error_set(err, ERROR_INVALID, "%s gives %s", from,
                  length ? "bytes that are not text" : "nothing");
        return error_expect(err, "the secret as text, in one piece");
    }
    *out = xstrndup(answer->bytes, length);
    return 0;
}

static int file_check(const char *path, int file, struct error *err)
{
    struct stat stat;
    if (fstat(file, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        error_set(err, ERROR_INVALID, "the secret file %.150s is not a regular file", path);
        return error_expect(err, "a file that only the broker's user can read");
    }
    if (stat.st_mode & (S_IRWXG | S_IRWXO)) {
        error_set(err, ERROR_INVALID, "the secret file %.150s is open to others (mode %03o)", path,
                  (unsigned)(stat.st_mode & 0777U));
        return error_expect(err, "chmod 600 %.150s", path);
    }
    return 0;
}

static int file_read(const char *path, struct answer *answer, char **out, struct error *err)
{
    /* a FIFO in its place must not block the broker */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) {
        error_set(err, ERROR_INVALID, "cannot open the secret file %.150s: %s", path,
                  strerror(errno));
        return error_expect(err, "a file that the broker's user can read");
    }
    int status = file_check(path, file, err);
    int more = status == 0;
    while (more == 1) {
        more = answer_read(answer, file);
    }
    if (more < 0) {
        status = error_set(err, ERROR_INVALID, "cannot read the secret file %.150s: %s", path,
                           strerror(errno));
    }
    (void)close(file);
    return status == 0 ? answer_take(answer, path, out, err) : -1;
}

static int env_read(const char *name, char **out, struct error *err)
{
    const char *text = getenv(name);
    if (!text || !*text) {
        error_set(err, ERROR_INVALID, "the environment variable %.100s is %s", name,
                  text ? "empty" : "not set");
        return error_expect(err, "set it for the broker's process");
    }
    *out = xstrdup(text);
    return 0;
}

/* Nothing of the broker's is handed on but its environment and standard error. */
static int command_spawn(const struct texts *command, int output, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **words = xcalloc(command->count + 1, sizeof *words);
    memcpy(words, command->items, command->count * sizeof *words);
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_addclosefrom_np(&actions, FIRST_FREE_FD);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setsigdefault(&attributes, &all);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                    POSIX_SPAWN_SETSIGDEF);
    int status = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(words);
    return status;
}

/* Collects the output until the process has ended and all is read. Returns whether it was in time. */
static bool command_follow(struct answer *answer, int output, int process, int timer)
{
    struct pollfd fds[] = {
        {.fd = output, .events = POLLIN},
        {.fd = process, .events = POLLIN},
        {.fd = timer, .events = POLLIN},
    };
    while (!answer->full && (fds[0].fd >= 0 || fds[1].fd >= 0)) {
        if (poll(fds, 3, -1) < 0) {
            if (errno == EINTR) {
                continue;
            }
            return false;
        }
        if (fds[2].revents) {
            return false;
        }
        if (fds[0].fd >= 0 && fds[0].revents && answer_read(answer, output) <= 0) {
            fds[0].fd = -1;
        }
        if (fds[1].fd >= 0 && fds[1].revents) {
            fds[1].fd = -1;
        }
    }
    return true;
}

static int command_result(struct answer *answer, const char *name, bool in_time, int status,
                          char **out, struct error *err)
{
    if (!in_time) {
        error_set(err, ERROR_INVALID, "the secret command %.100s took too long", name);
        return error_expect(err, "it must end within %d s", (int)COMMAND_SECONDS);
    }
    if (!answer->full && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
        error_set(err, ERROR_INVALID, "the secret command %.100s ended with %s %d", name,
                  WIFEXITED(status) ? "status" : "signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        return error_expect(err, "status 0 and the secret on its standard output");
    }
    return answer_take(answer, name, out, err);
}

static int command_run(const struct texts *command, struct answer *answer, int pipe_fds[2],
                       int timer, char **out, struct error *err)
{
    const char *name = command->items[0];
    pid_t pid = -1;
    int status = command_spawn(command, pipe_fds[1], &pid);
    (void)close(pipe_fds[1]);
    pipe_fds[1] = -1;
    if (status != 0) {
        error_set(err, ERROR_INVALID, "cannot start the secret command %.100s: %s", name,
                  strerror(status));
        return error_expect(err, "a program and its arguments; no shell reads them");
    }
    int process = pidfd_open(pid, 0);
    bool in_time = process >= 0 && command_follow(answer, pipe_fds[0], process, timer);
    (void)kill(-pid, SIGKILL); /* late ones, and what it left behind */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (process >= 0) {
        (void)close(process);
    }
    return command_result(answer, name, in_time, status, out, err);
}

static int command_read(const struct texts *command, struct answer *answer, char **out,
                        struct error *err)
{
    struct itimerspec limit = {.it_value = {.tv_sec = COMMAND_SECONDS}};
    int fds[2] = {-1, -1};
    int status = -1;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (timer < 0 || timerfd_settime(timer, 0, &limit, NULL) != 0 || pipe2(fds, O_CLOEXEC) != 0) {
        error_set(err, ERROR_UNAVAILABLE, "cannot run a secret command: %s", strerror(errno));
    } else {
        status = command_run(command, answer, fds, timer, out, err);
    }
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    if (timer >= 0) {
        (void)close(timer);
    }
    return status;
}

int secret_read(const struct secret *secret, char **out, struct error *err)
{
    if (secret->env) {
        return env_read(secret->env, out, err);
    }
    if (!secret->file && secret->command.count == 0) {
        error_set(err, ERROR_INVALID, "no secret is given");
        return error_expect(err, "{file: PATH}, {env: NAME} or {command: [prog, arg]}");
    }
    struct answer *answer = xcalloc(1, sizeof *answer);
    int status = secret->file ? file_read(secret->file, answer, out, err)
                              : command_read(&secret->command, answer, out, err);
    explicit_bzero(answer, sizeof *answer);
    free(answer);
    return status;
}

void secret_wipe(char *text)
{
    if (text) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}
