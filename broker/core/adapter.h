/* adapter.h - port: one kind of member cluster. One file and one table row make a new one.
 *
 * Direction: the broker calls an adapter; facts come back through the call's completion. An adapter
 * never calls into the broker. All calls and completions are on the loop thread. A completion may not
 * run before the call has returned.
 *
 * Everything remote is alive, gone or unknown. ADAPTER_UNKNOWN means "I cannot tell": lost or late
 * answers, 5xx without a known meaning, HTML, half bodies. A submit that might have been taken is
 * UNKNOWN, never FAILED. Callers use the wrappers in broker/member.h, never these slots: those keep the
 * deadline and complete each call exactly once. */
#ifndef BROKER_CORE_ADAPTER_H
#define BROKER_CORE_ADAPTER_H

#include "broker/core/clock.h"
#include "broker/core/cluster.h"
#include "broker/core/error.h"
#include "broker/core/job.h"
#include "broker/core/keys.h"
#include "broker/core/signal.h"
#include "broker/core/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct adapter;
struct http; /* broker/net/http.h */

struct adapter_env { /* what an adapter may use; outlives it */
    struct clock *clock;
    void *loop;        /* uv_loop_t *; NULL in the simulator */
    struct http *http; /* NULL in the simulator */
    const struct federation *federation;
    const char *state_dir; /* for sockets and logs of local members */
    const char *program;   /* path of this executable, to start `tieline supervise` */
    void (*log)(const char *level, const char *cluster,
                const char *text); /* level: info warn error */
};

/* Names one attempt. native_id "" when it is not known; name is always known. */
struct attempt_ref {
    char job_id[ID_SIZE];
    int attempt;
    char name[NAME_SIZE]; /* remote name */
    char native_id[NATIVE_SIZE];
    const struct place *place;
    int64_t intent_ms; /* wall time of the PLACE event: older natives are not ours */
};

struct submit { /* all borrowed for the time of the call */
    struct attempt_ref ref;
    const struct spec *spec; /* resolved for the place */
    const char *owner;
};

enum report_state { REPORT_PENDING, REPORT_RUNNING, REPORT_ENDED, REPORT_ABSENT };

struct report { /* what the member says of one attempt */
    char job_id[ID_SIZE];
    int attempt;
    char name[NAME_SIZE]; /* remote name, as the member shows it */
    char native_id[NATIVE_SIZE];
    enum report_state state;
    enum outcome outcome; /* ENDED only */
    int exit_code, signal;
    int64_t started_ms, ended_ms; /* wall of the member; 0: not stated */
    char reason[REASON_SIZE];     /* in the member's words; "" */
    char by[64];                  /* CANCELLED by a person there: who; "" when by us or unknown */
};

enum adapter_result {
    ADAPTER_OK,
    ADAPTER_FAILED,  /* positively refused or not done; err says why */
    ADAPTER_UNKNOWN, /* cannot tell; err says why */
};

struct adapter_call;
typedef void (*adapter_done_fn)(struct adapter_call *call);

/* One call. The caller owns it and keeps it until done() has run. The adapter fills the results, which
 * it owns until done() returns, and calls done exactly once, by the deadline. */
struct adapter_call {
    adapter_done_fn done;
    void *arg;
    int64_t deadline_ms; /* monotonic */
    enum adapter_result result;
    struct error err;
    char native_id[NATIVE_SIZE]; /* submit */
    struct report *reports; /* find: one (REPORT_ABSENT when proven not there); poll: all of ours */
    size_t report_count;
    struct condition *conditions; /* probe: one per place of the cluster, in its order */
    char *version;                /* probe: "Slurm 22.05.8, v0.0.38" */
    char *text;                   /* log: bytes; the adapter's until done() returns */
    size_t length;
    int64_t offset;    /* log: of the first byte of text */
    bool log_complete; /* log: nothing more will come */
    void *priv;        /* the adapter's own */
};

struct adapter_type {
    const char *name;    /* as in `adapter:` */
    const char *summary; /* one sentence for the docs */
    const struct key
        *cluster_rows;   /* keys of a cluster of this kind besides the common ones; or NULL */
    size_t cluster_size; /* of the struct they fill */
    const struct key *place_rows;
    size_t place_size;
    bool idempotent_create; /* a second submit of the same attempt is the same work */
    bool has_log;
    int64_t poll_ms; /* between two listings while something of ours is there; 0: 1 s */

    /* Makes the adapter. No network here: a member that is away is no error. */
    int (*open)(const struct adapter_env *env, const struct cluster *cluster, struct adapter **out,
                struct error *err);
    /* Completes what is outstanding as UNKNOWN before it returns, then frees. Work elsewhere goes on. */
    void (*close)(struct adapter *adapter);

    void (*probe)(struct adapter *adapter, struct adapter_call *call);
    /* Creates the attempt with native retries off and the full tag. */
    void (*submit)(struct adapter *adapter, const struct submit *submit, struct adapter_call *call);
    /* Looks one attempt up by tag, everywhere the member keeps such. OK with one report; ABSENT only
     * when that is proven. */
    void (*find)(struct adapter *adapter, const struct attempt_ref *ref, struct adapter_call *call);
    /* All attempts that carry the federation's tag and the member still shows. */
    void (*poll)(struct adapter *adapter, struct adapter_call *call);
    /* Ends the attempt: asked for politely, then for good after the grace. OK: asked, or already gone. */
    void (*cancel)(struct adapter *adapter, const struct attempt_ref *ref,
                   struct adapter_call *call);
    /* Reads at most LIMIT_LOG_READ bytes of the attempt's output from offset. NULL: no logs here. */
    void (*log)(struct adapter *adapter, const struct attempt_ref *ref, int64_t offset,
                struct adapter_call *call);
    /* The end of the attempt is on the broker's disk: the member may forget it. NULL: nothing to do. */
    void (*forget)(struct adapter *adapter, const struct attempt_ref *ref);
    /* Prints exactly what submit would send. text is the caller's. */
    int (*render)(const struct adapter_env *env, const struct submit *submit, char **text,
                  struct error *err);
};

/* Adapters embed this as their first member. */
struct adapter {
    const struct adapter_type *type;
    const struct cluster *cluster;
};

#endif
