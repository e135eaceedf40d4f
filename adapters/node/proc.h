/* proc.h - processes as /proc shows them: who lives, who descends from whom, how much memory they use.
 *
 * A process is known by pid, start time and boot. A pid alone is used again; with its start time it is
 * not, until the next boot. The boot is the kernel's boot id and the start of process 1: a container
 * that starts anew counts as a boot. */
#ifndef ADAPTERS_NODE_PROC_H
#define ADAPTERS_NODE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_BOOT_SIZE = 64 };

struct proc {
    pid_t pid, parent;
    char state;     /* as in /proc/PID/stat: 'Z' is dead and waits for its parent */
    uint64_t start; /* ticks after boot, field 22 */
    int64_t memory; /* bytes resident */
    pid_t root;     /* proc_tree: the given root it descends from; 0: none */
};
struct proc_list { /* sorted by pid */
    struct proc *items;
    size_t count, room;
};

void proc_boot(char out[PROC_BOOT_SIZE]);

/* Fills out for one process. -1 when there is none. */
int proc_read(pid_t pid, struct proc *out);

/* All processes of the machine, or -1 when /proc cannot be read. */
int proc_scan(struct proc_list *list);
void proc_list_fini(struct proc_list *list);
const struct proc *proc_find(const struct proc_list *list, pid_t pid);

/* Says of each process which of the roots it descends from: the nearest one. Sorts the roots. */
void proc_tree(struct proc_list *list, pid_t *roots, size_t count);

/* Memory in proportion, where shared pages are counted once; the resident size when that is hidden. */
int64_t proc_memory_shared(const struct proc *proc);

/* Whether the process was started with this line ("NAME=value") in its environment. */
bool proc_has_env(pid_t pid, const char *line);

/* Sends a signal to this very process, never to a later one with its pid. -1 when it is gone. */
int proc_signal(const struct proc *proc, int number);

/* A pidfd of the process with this start time, or -1 when it is gone. */
int proc_open(pid_t pid, uint64_t start);

#endif
