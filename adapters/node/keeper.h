/* keeper.h - the process that starts one attempt, waits for it and ends it; one per running attempt.
 *
 * The supervisor forks it. It does not depend on the supervisor afterwards: it pumps the output into
 * capped files, holds the time limit and the grace, and leaves the exit in dir/exit.json. So an exit code
 * survives the death of the supervisor.
 *   dir/lock       locked as long as the keeper lives; the kernel lets go when it dies
 *   dir/run.json   who the keeper is: {pid, start, boot}; there before the job begins
 *   dir/exit.json  how the attempt ended; put there in one step, after all its processes are gone
 * Signals: TERM asks it to cancel; QUIT says that the job used too much memory.
 * When the exit cannot be written it tries again for ten minutes, and ends when TERM comes in that time; it
 * ends at once when the directory was removed. A program that is not there, or is none, is the job's own
 * fault: that is an exit with 127 or 126, as of a shell; other faults of a start are start-failed. */
#ifndef ADAPTERS_NODE_KEEPER_H
#define ADAPTERS_NODE_KEEPER_H

#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/job.h"

#include <jansson.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum { KEEPER_CANCEL = SIGTERM, KEEPER_MEMORY = SIGQUIT };

struct keeper_job {      /* borrowed; copied by the fork */
    struct clock *clock; /* wall time only */
    const char *dir;
    const char *cwd;
    const char *boot;
    char **argv, **envp;
    int64_t limit_ms, grace_ms, memory, output_cap;
    struct rlimit files; /* the job's RLIMIT_NOFILE: the supervisor's own is high */
    pid_t
        supervisor; /* while it is the parent, it makes exits durable; after that the keeper does */
    int lock_fd;
};

/* Runs the attempt in this process, which must be a fresh fork with all signals blocked. */
_Noreturn void keeper_run(const struct keeper_job *job);

/* Takes the lock of dir. Returns the descriptor; -1 with CONFLICT: a keeper lives there. */
int keeper_lock(const char *dir, struct error *err);

struct keeper_id {
    pid_t pid;
    uint64_t start;
};
/* Who keeps it. NOT_FOUND: no keeper ever began there. */
int keeper_id_read(const char *dir, struct keeper_id *out, struct error *err);

struct keeper_exit { /* how it ended */
    enum outcome outcome;
    int exit_code, signal;
    int64_t started_ms, ended_ms;
    pid_t pid; /* of the job's first process */
    uint64_t start;
    char reason[REASON_SIZE];
};
int keeper_exit_read(const char *dir, struct keeper_exit *out, struct error *err);

/* The same as JSON, for files and messages alike. */
json_t *keeper_exit_to_json(const struct keeper_exit *end);
int keeper_exit_from_json(const json_t *json, struct keeper_exit *out);

#endif
