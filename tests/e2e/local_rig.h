/* local_rig.h - a `local` member on a fresh directory, driven through its adapter, one call at a time. */
#ifndef TESTS_E2E_LOCAL_RIG_H
#define TESTS_E2E_LOCAL_RIG_H

#include "broker/core/adapter.h"

#include <sys/types.h>
#include <uv.h>

enum { RIG_PLACES = 2, RIG_WAIT_MS = 30000 };

struct rig {
    uv_loop_t loop;
    struct clock *clock;
    char state_dir[64];
    char dir[96]; /* of the member */
    struct federation federation;
    struct cluster cluster;
    struct place places[RIG_PLACES];
    struct adapter_env env;
    struct adapter *adapter;
    int jobs;
};

struct rig_job { /* what is left out: 1 CPU, 64 MiB, 60 s, place 0 */
    const char *run;
    char *command[8];
    int64_t cpus, memory, limit_ms;
    int place;
};

/* Results that stay after the call. */
struct rig_result {
    enum adapter_result result;
    struct error err;
    struct report report;
    struct condition conditions[RIG_PLACES];
    char version[128];
    size_t report_count;
    char *text;
    size_t length;
    int64_t offset;
    bool log_complete;
};

/* capacity: of place 0; place 1 has 1 CPU and 256 MiB. Grace is 500 ms. */
void rig_open(struct rig *rig, int64_t cpus, int64_t memory);
/* Closes the adapter as the broker does, waits until the supervisor has left, checks its stderr. */
void rig_close(struct rig *rig);
/* Closes the adapter without a farewell: as if the broker had been killed. Then opens it anew. */
void rig_restart_broker(struct rig *rig);

struct attempt_ref rig_ref(struct rig *rig, int attempt);
struct rig_result rig_submit_ref(struct rig *rig, const struct attempt_ref *ref,
                                 const struct rig_job *job);
/* Submits a new job as attempt 1; asserts that it is taken. */
struct attempt_ref rig_submit(struct rig *rig, const struct rig_job *job);

struct rig_result rig_find(struct rig *rig, const struct attempt_ref *ref, int64_t timeout_ms);
struct rig_result rig_poll(struct rig *rig, int64_t timeout_ms);
struct rig_result rig_probe(struct rig *rig, int64_t timeout_ms);
struct rig_result rig_cancel(struct rig *rig, const struct attempt_ref *ref);
struct rig_result rig_log(struct rig *rig, const struct attempt_ref *ref, int64_t offset);
void rig_forget(struct rig *rig, const struct attempt_ref *ref);

/* Asks until the attempt is in this state. Asserts that it gets there. */
struct report rig_await(struct rig *rig, const struct attempt_ref *ref, enum report_state state);
/* Runs the loop until file has this many bytes at least. */
void rig_await_file(struct rig *rig, const char *path, long bytes);
/* Whether the process is no more, but for its parent to take note. */
bool rig_is_gone(pid_t pid);
/* Runs the loop until the process is gone. */
void rig_await_gone(struct rig *rig, pid_t pid);

pid_t rig_supervisor(const struct rig *rig);
pid_t rig_pid_in(const char *path);               /* the number that the file holds */
char *rig_read(const char *path, size_t *length); /* the caller frees it; NULL: none */

#endif
