/* test_proc.c - processes: identity, descent, environment. */
#include "adapters/node/proc.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that only waits. */
static pid_t sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    cr_assert_gt(pid, 0);
    return pid;
}

static void end(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

Test(proc, boot_is_stable)
{
    char a[PROC_BOOT_SIZE];
    char b[PROC_BOOT_SIZE];
    proc_boot(a);
    proc_boot(b);
    cr_expect_str_eq(a, b);
    cr_expect_gt(strlen(a), 36);
}

Test(proc, identity_needs_the_start_time)
{
    pid_t pid = sleeper();
    struct proc proc;
    cr_assert_eq(proc_read(pid, &proc), 0);
    cr_expect_eq(proc.parent, getpid());
    int fd = proc_open(pid, proc.start);
    cr_expect_geq(fd, 0);
    (void)close(fd);
    cr_expect_eq(proc_open(pid, proc.start + 1), -1);
    cr_expect_eq(errno, ESRCH);
    struct proc later = proc;
    later.start++;
    cr_expect_eq(proc_signal(&later, SIGKILL), -1, "a later process with this pid is spared");
    cr_expect_eq(waitpid(pid, NULL, WNOHANG), 0);
    cr_expect_eq(proc_signal(&proc, SIGKILL), 0);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_expect_eq(proc_read(pid, &proc), -1);
}

Test(proc, descent_is_to_the_nearest_root)
{
    pid_t child = sleeper();
    pid_t self = getpid();
    pid_t parent = getppid();
    pid_t roots[] = {self, parent};
    struct proc_list list;
    cr_assert_eq(proc_scan(&list), 0);
    proc_tree(&list, roots, 2);
    cr_expect_eq(proc_find(&list, child)->root, self);
    cr_expect_eq(proc_find(&list, self)->root, parent);
    cr_expect_eq(proc_find(&list, 1)->root, 0);
    cr_expect_gt(proc_find(&list, self)->memory, 0);
    cr_expect_gt(proc_memory_shared(proc_find(&list, self)), 0);
    proc_list_fini(&list);
    end(child);
}

Test(proc, name_with_brackets_and_blanks)
{
    int named[2];
    char byte;
    cr_assert_eq(pipe(named), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, "a) R 1 (");
        cr_assert_eq(write(named[1], "x", 1), 1);
        (void)pause();
        _exit(0);
    }
    cr_assert_eq(read(named[0], &byte, 1), 1);
    struct proc proc;
    cr_assert_eq(proc_read(pid, &proc), 0);
    cr_expect_eq(proc.parent, getpid());
    cr_expect_neq(proc.state, 'Z');
    cr_expect_gt(proc.start, 0);
    end(pid);
}

Test(proc, environment_is_matched_by_whole_lines)
{
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char *)"sleep", (char *)"30", NULL};
        char *envp[] = {(char *)"TIELINE_ATTEMPT=12", (char *)"B=", NULL};
        (void)execve("/bin/sleep", argv, envp);
        _exit(1);
    }
    while (!proc_has_env(pid, "B=")) {
        cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0);
    }
    cr_expect(proc_has_env(pid, "TIELINE_ATTEMPT=12"));
    cr_expect_not(proc_has_env(pid, "TIELINE_ATTEMPT=1"));
    cr_expect_not(proc_has_env(pid, "ATTEMPT=12"));
    end(pid);
    cr_expect_not(proc_has_env(pid, "B="));
}
