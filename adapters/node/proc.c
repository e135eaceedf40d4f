/* proc.c - see proc.h.
 *
 * /proc/PID/task/TID/children would be cheaper than a scan, but kernels may be built without it, and it
 * skips children while others exit. */
#include "adapters/node/proc.h"

#include "broker/core/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { STAT_SIZE = 1024, ENV_SIZE = 256 * 1024 };

/* Reads a small file whole; returns its length, or -1. out is always ended. */
static ssize_t read_small(const char *path, char *out, size_t size)
{
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t length = 0;
    ssize_t n = 0;
    while (length < size - 1 && (n = read(fd, out + length, size - 1 - length)) > 0) {
        length += (size_t)n;
    }
    close(fd);
    out[length] = '\0';
    return n < 0 ? -1 : (ssize_t)length;
}

/* The name in field 2 may hold anything, blanks and brackets too: the fields begin after its last ')'. */
static int parse_stat(const char *text, struct proc *out)
{
    const char *rest = strrchr(text, ')');
    int parent = 0;
    unsigned long long start = 0;
    long pages = 0;
    if (!rest ||
        sscanf(rest + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
               "%llu %*u %ld",
               &out->state, &parent, &start, &pages) != 4) {
        return -1;
    }
    out->parent = parent;
    out->start = start;
    out->memory = (int64_t)pages * sysconf(_SC_PAGESIZE);
    out->root = 0;
    return 0;
}

int proc_read(pid_t pid, struct proc *out)
{
    char path[64];
    char text[STAT_SIZE];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (read_small(path, text, sizeof text) <= 0) {
        return -1;
    }
    out->pid = pid;
    return parse_stat(text, out);
}

void proc_boot(char out[PROC_BOOT_SIZE])
{
    char id[48];
    struct proc first = {.start = 0};
    (void)read_small("/proc/sys/kernel/random/boot_id", id, sizeof id);
    id[strcspn(id, "\n")] = '\0';
    if (proc_read(1, &first)) {
        first.start = 0; /* hidden from us: the boot id alone must do */
    }
    (void)snprintf(out, PROC_BOOT_SIZE, "%s/%llu", id, (unsigned long long)first.start);
}

static int by_pid(const void *a, const void *b)
{
    const struct proc *left = a;
    const struct proc *right = b;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

int proc_scan(struct proc_list *list)
{
    memset(list, 0, sizeof *list);
    DIR *dir = opendir("/proc");
    if (!dir) {
        return -1;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        struct proc proc;
        if (pid <= 0 || *end || proc_read((pid_t)pid, &proc)) {
            continue;
        }
        if (list->count == list->room) {
            list->room = list->room * 2 + 256;
            list->items = xrealloc(list->items, list->room, sizeof *list->items);
        }
        list->items[list->count++] = proc;
    }
    closedir(dir);
    if (list->count) {
        qsort(list->items, list->count, sizeof *list->items, by_pid);
    }
    return 0;
}

void proc_list_fini(struct proc_list *list)
{
    free(list->items);
    memset(list, 0, sizeof *list);
}

const struct proc *proc_find(const struct proc_list *list, pid_t pid)
{
    struct proc key = {.pid = pid};
    return list->count ? bsearch(&key, list->items, list->count, sizeof key, by_pid) : NULL;
}

static int compare_pids(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a;
    pid_t right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

static bool is_root(pid_t pid, const pid_t *roots, size_t count)
{
    return bsearch(&pid, roots, count, sizeof pid, compare_pids) != NULL;
}

/* Walks up. The scan is no snapshot, so the chain may be odd: its length is bounded. */
static pid_t root_of(const struct proc_list *list, const struct proc *proc, const pid_t *roots,
                     size_t count)
{
    for (size_t steps = 0; proc && steps < list->count; steps++) {
        if (is_root(proc->parent, roots, count)) {
            return proc->parent;
        }
        proc = proc->parent > 1 ? proc_find(list, proc->parent) : NULL;
    }
    return 0;
}

void proc_tree(struct proc_list *list, pid_t *roots, size_t count)
{
    qsort(roots, count, sizeof *roots, compare_pids);
    for (size_t i = 0; i < list->count; i++) {
        list->items[i].root = root_of(list, &list->items[i], roots, count);
    }
}

int64_t proc_memory_shared(const struct proc *proc)
{
    char path[64];
    char text[2048];
    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)proc->pid);
    if (read_small(path, text, sizeof text) <= 0) {
        return proc->memory;
    }
    const char *line = strstr(text, "\nPss:");
    long long kib = 0;
    if (!line || sscanf(line, "\nPss: %lld kB", &kib) != 1) {
        return proc->memory;
    }
    return (int64_t)kib * 1024;
}

bool proc_has_env(pid_t pid, const char *line)
{
    char path[64];
    char *text = xcalloc(1, ENV_SIZE);
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    ssize_t length = read_small(path, text, ENV_SIZE);
    bool found = false;
    for (const char *at = text; length > 0 && !found && at < text + length; at += strlen(at) + 1) {
        found = strcmp(at, line) == 0;
    }
    free(text);
    return found;
}

int proc_open(pid_t pid, uint64_t start)
{
    int fd = pidfd_open(pid, 0);
    struct proc now;
    /* The order matters: once the pidfd is open, the start time is that of its process. */
    if (fd >= 0 && (proc_read(pid, &now) || now.start != start)) {
        close(fd);
        errno = ESRCH;
        return -1;
    }
    return fd;
}

int proc_signal(const struct proc *proc, int number)
{
    int fd = proc_open(proc->pid, proc->start);
    if (fd < 0) {
        return -1;
    }
    int result = pidfd_send_signal(fd, number, NULL, 0);
    close(fd);
    return result;
}
