/* test_secret.c - secrets by reference: files, variables, commands; what is refused and what is late. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/core/keys.h"

static char directory[] = "/tmp/tieline-secret-XXXXXX";
static char path[64];

static void make_directory(void)
{
    cr_assert_not_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/secret", directory);
}

static void remove_directory(void)
{
    (void)unlink(path);
    (void)rmdir(directory);
}

TestSuite(secret, .init = make_directory, .fini = remove_directory);

static void write_file(const char *bytes, size_t length, mode_t mode)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, bytes, length), (ssize_t)length);
    cr_assert_eq(fchmod(file, mode), 0);
    close(file);
}

static void check_read(const struct secret *secret, const char *wanted)
{
    char *out = NULL;
    struct error err = {0};
    cr_assert_eq(secret_read(secret, &out, &err), 0, "%s", err.text);
    cr_assert_str_eq(out, wanted);
    secret_wipe(out);
}

static void check_refused(const struct secret *secret, const char *text, const char *expected)
{
    char *out = NULL;
    struct error err = {0};
    cr_assert_eq(secret_read(secret, &out, &err), -1);
    cr_assert_null(out);
    cr_assert_neq(err.code, ERROR_NONE);
    cr_assert(strstr(err.text, text), "%s", err.text);
    cr_assert(strstr(err.expected, expected), "%s", err.expected);
}

#define COMMAND(...)                                                                               \
    {                                                                                              \
        .command = {                                                                               \
            .items = (char *[]){__VA_ARGS__},                                                      \
            .count = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)                              \
        }                                                                                          \
    }

Test(secret, file)
{
    struct secret secret = {.file = path};
    write_file("s3cret\n", 7, 0600);
    check_read(&secret, "s3cret");
    write_file("two\nlines\r\n\n", 12, 0400);
    check_read(&secret, "two\nlines");
}

Test(secret, file_open_to_others)
{
    struct secret secret = {.file = path};
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0644, 0610};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        write_file("s3cret", 6, modes[i]);
        check_refused(&secret, "open to others", "chmod 600");
    }
}

Test(secret, files_that_are_none)
{
    struct secret secret = {.file = path};
    check_refused(&secret, "cannot open", "can read");
    write_file("", 0, 0600);
    check_refused(&secret, "gives nothing", "as text");
    write_file("\n\n", 2, 0600);
    check_refused(&secret, "gives nothing", "as text");
    write_file("a\0b", 3, 0600);
    check_refused(&secret, "not text", "as text");
    unlink(path);
    cr_assert_eq(mkfifo(path, 0600), 0);
    check_refused(&secret, "not a regular file", "only the broker's user");
    secret.file = directory;
    check_refused(&secret, "not a regular file", "only the broker's user");
}

Test(secret, file_too_large)
{
    struct secret secret = {.file = path};
    size_t length = (size_t)64 * 1024 + 1;
    char *bytes = malloc(length);
    cr_assert_not_null(bytes);
    memset(bytes, 'x', length);
    write_file(bytes, length, 0600);
    check_refused(&secret, "too much", "less than");
    free(bytes);
}

Test(secret, env)
{
    struct secret secret = {.env = "TIELINE_TEST_SECRET"};
    unsetenv("TIELINE_TEST_SECRET");
    check_refused(&secret, "is not set", "set it");
    setenv("TIELINE_TEST_SECRET", "", 1);
    check_refused(&secret, "is empty", "set it");
    setenv("TIELINE_TEST_SECRET", "abc", 1);
    check_read(&secret, "abc");
}

Test(secret, command)
{
    struct secret secret = COMMAND("sh", "-c", "printf 'a  b\\n'");
    check_read(&secret, "a  b");
    struct secret words = COMMAND("printf", "%s|", "one two", "$HOME");
    check_read(&words, "one two|$HOME|");
}

Test(secret, command_that_fails)
{
    struct secret failed = COMMAND("sh", "-c", "echo leak; exit 3");
    check_refused(&failed, "ended with status 3", "status 0");
    struct secret killed = COMMAND("sh", "-c", "kill -9 $$");
    check_refused(&killed, "ended with signal 9", "status 0");
    struct secret absent = COMMAND("/nonexistent/program");
    check_refused(&absent, "cannot start", "no shell");
    struct secret silent = COMMAND("true");
    check_refused(&silent, "gives nothing", "as text");
    struct secret none = {0};
    check_refused(&none, "no secret is given", "{file: PATH}");
}

Test(secret, command_that_never_stops_talking)
{
    struct secret secret = COMMAND("yes");
    check_refused(&secret, "too much", "less than");
}

Test(secret, command_inherits_nothing)
{
    int file = open("/dev/null", O_RDONLY); /* without close-on-exec on purpose */
    cr_assert_geq(file, 3);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    struct secret files =
        COMMAND("sh", "-c",
                "for f in 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$f ] && echo $f; done; cat; echo end");
    check_read(&files, "end");
    /* the last seven digits: signals 1 to 28; what the C library keeps for itself is not ours */
    struct secret signals =
        COMMAND("sh", "-c", "grep -oE 'Sig(Blk|Ign).*' /proc/self/status | grep -oE '.{7}$'");
    check_read(&signals, "0000000\n0000000");
    close(file);
}

/* As /proc says; 'X' when there is no such process. */
static char state_of(int pid)
{
    char status[64], state = 'X';
    (void)snprintf(status, sizeof status, "/proc/%d/stat", pid);
    FILE *file = fopen(status, "r");
    if (file) {
        if (fscanf(file, "%*d %*s %c", &state) != 1) {
            state = 'X';
        }
        (void)fclose(file);
    }
    return state;
}

/* What it starts is ended with it: the shell waits for a child that would outlive the limit. */
Test(secret, late_command_is_ended, .timeout = 60)
{
    char script[200];
    (void)snprintf(script, sizeof script, "sleep 100 & echo $! > %s; wait", path);
    struct secret secret = COMMAND("sh", "-c", script);
    check_refused(&secret, "took too long", "within 10 s");
    FILE *file = fopen(path, "r");
    int pid = 0;
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%d", &pid), 1);
    (void)fclose(file);
    /* It was killed: it is gone soon, or dead and not yet reaped by its new parent. */
    char state = 'R';
    for (int i = 0; i < 500 && state != 'Z' && state != 'X'; i++) {
        state = state_of(pid);
        (void)usleep(10 * 1000);
    }
    cr_assert(state == 'Z' || state == 'X', "state %c", state);
}
