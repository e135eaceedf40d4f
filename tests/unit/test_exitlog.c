/* test_exitlog.c - the supervisor's log: groups, torn ends, damage, rewriting. */
#include "adapters/node/exitlog.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char dir[64];
static char path[96];
static long sum;
static int count;
static bool refuses_directories; /* fsync() does */

/* In place of libc's, to fail for directories. */
int fsync(int fd)
{
    struct stat info;
    if (refuses_directories && !fstat(fd, &info) && S_ISDIR(info.st_mode)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void set_up(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/tieline-exits.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/exits", dir);
}

static void tear_down(void)
{
    (void)unlink(path);
    cr_expect_eq(rmdir(dir), 0, "something is left in '%s'", dir);
}

TestSuite(exitlog, .init = set_up, .fini = tear_down);

static void seen(void *arg, const json_t *record)
{
    (void)arg;
    sum += (long)json_integer_value(json_object_get(record, "n"));
    count++;
}

static struct exitlog *open_log(void)
{
    struct exitlog *log = NULL;
    struct error err;
    sum = count = 0;
    cr_assert_eq(exitlog_open(dir, seen, NULL, &log, &err), 0, "%s", err.text);
    return log;
}

static void add(struct exitlog *log, int n)
{
    json_t *record = json_pack("{s:i}", "n", n);
    exitlog_add(log, record);
    json_decref(record);
}

static void sync_log(struct exitlog *log)
{
    struct error err;
    cr_assert_eq(exitlog_sync(log, &err), 0, "%s", err.text);
}

static void write_three(void)
{
    struct exitlog *log = open_log();
    for (int n = 1; n <= 3; n++) {
        add(log, n);
    }
    sync_log(log);
    exitlog_close(log);
}

Test(exitlog, group_is_one_write_and_comes_back)
{
    struct exitlog *log = open_log();
    int64_t groups;
    int64_t records;
    for (int n = 1; n <= 100; n++) {
        add(log, n);
    }
    cr_expect(exitlog_is_dirty(log));
    sync_log(log);
    cr_expect_not(exitlog_is_dirty(log));
    exitlog_counts(log, &groups, &records);
    cr_expect_eq(groups, 1);
    cr_expect_eq(records, 100);
    add(log, 1000); /* never synced */
    exitlog_close(log);
    log = open_log();
    cr_expect_eq(count, 100);
    cr_expect_eq(sum, 5050);
    exitlog_close(log);
}

Test(exitlog, torn_end_is_cut_wherever_it_tears)
{
    write_three();
    struct stat info;
    cr_assert_eq(stat(path, &info), 0);
    for (off_t cut = 1; cut <= 16; cut++) {
        cr_assert_eq(truncate(path, info.st_size - cut), 0);
        struct exitlog *log = open_log();
        cr_expect_eq(sum, 3, "cut by %d", (int)cut);
        cr_expect_eq(exitlog_damaged(log), 0);
        add(log, 3); /* what comes next is whole again */
        sync_log(log);
        exitlog_close(log);
        log = open_log();
        cr_expect_eq(sum, 6, "cut by %d", (int)cut);
        exitlog_close(log);
    }
}

static void overwrite(long at, char byte)
{
    FILE *file = fopen(path, "r+e");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, at, SEEK_SET), 0);
    (void)fputc(byte, file);
    (void)fclose(file);
}

Test(exitlog, damaged_record_is_counted_and_left_out)
{
    write_three();
    overwrite(14, '7'); /* in the first record: {"n":1} */
    struct exitlog *log = open_log();
    cr_expect_eq(sum, 5);
    cr_expect_eq(exitlog_damaged(log), 1);
    exitlog_close(log);
}

Test(exitlog, zeros_at_the_end_are_a_torn_end)
{
    write_three();
    struct stat info;
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(truncate(path, info.st_size + 500), 0);
    struct exitlog *log = open_log();
    cr_expect_eq(sum, 6);
    cr_expect_eq(exitlog_damaged(log), 0);
    cr_expect_eq(exitlog_size(log), info.st_size);
    exitlog_close(log);
}

Test(exitlog, rewrite_replaces_all)
{
    write_three();
    struct exitlog *log = open_log();
    json_t *records = json_pack("[{s:i}]", "n", 40);
    struct error err;
    bool replaced;
    cr_assert_eq(exitlog_rewrite(log, records, &replaced, &err), 0, "%s", err.text);
    cr_assert(replaced);
    json_decref(records);
    add(log, 2);
    sync_log(log);
    exitlog_close(log);
    log = open_log();
    cr_expect_eq(sum, 42);
    cr_expect_eq(count, 2);
    exitlog_close(log);
}

Test(exitlog, rewrite_that_is_not_durable_is_the_log_and_is_said)
{
    write_three();
    struct exitlog *log = open_log();
    json_t *records = json_pack("[{s:i}]", "n", 40);
    struct error err;
    bool replaced = false;
    refuses_directories = true;
    cr_assert_eq(exitlog_rewrite(log, records, &replaced, &err), -1);
    refuses_directories = false;
    cr_assert(replaced);
    json_decref(records);
    add(log, 2);
    sync_log(log); /* not into the file without a name */
    exitlog_close(log);
    log = open_log();
    cr_expect_eq(sum, 42);
    exitlog_close(log);
}
