/* slurm.h - the state of one Slurm member, for the files of this adapter alone.
 *
 * An op is one call of the broker on its way: it may wait for the version, for the line, or for a
 * listing of all jobs. Every op ends by op_finish(), once. */
#ifndef ADAPTERS_SLURM_H
#define ADAPTERS_SLURM_H

#include "adapters/slurm_discover.h"
#include "adapters/slurm_line.h"
#include "adapters/slurm_submit.h"
#include "broker/core/adapter.h"

struct slurm_connect {
    int via;
    char *url, *user;
    struct secret token;
};
struct slurm_settings {
    struct slurm_connect connect;
    char *shell, *workdir;
    int64_t min_job_age; /* ms */
};

enum accounting { ACCOUNTING_UNKNOWN, ACCOUNTING_NONE, ACCOUNTING_THERE };

struct slurm {
    struct adapter base;
    const struct adapter_env *env;
    const struct slurm_settings *settings;
    struct slurm_line_config line_config;
    struct slurm_line *line;
    struct slurm_discovery *discovery; /* NULL: none under way */
    int version;                       /* 0: not known */
    bool serves_accounting;
    enum accounting accounting;
    bool is_warned; /* that exit codes are forgotten */
    struct slurm_op *ops;
    bool is_listing;
    char *tag;
    char *default_partition;  /* NULL: not known */
    struct condition *counts; /* per place: jobs there, as last listed */
    int64_t counted_ms;       /* monotonic; 0: never */
};

typedef void (*slurm_op_fn)(struct slurm_op *op);
/* answer is borrowed; NULL: err says why there is none. */
typedef void (*slurm_listed_fn)(struct slurm_op *op, const struct slurm_answer *answer,
                                const struct error *err);

enum slurm_op_wait {
    OP_SENT, /* the line will answer it */
    OP_FOR_VERSION,
    OP_FOR_LISTING, /* of the next listing: the one under way may be older than the question */
    OP_LISTED,      /* of the listing under way */
};

struct slurm_op {
    struct slurm *slurm;
    struct slurm_op *next, **prev;
    struct adapter_call *call;
    enum slurm_op_wait wait;
    slurm_op_fn run;            /* FOR_VERSION */
    enum adapter_result unsent; /* what it means that no version was found */
    slurm_listed_fn listed;     /* FOR_LISTING, LISTED */
    struct attempt_ref ref;
    struct slurm_batch *batch;       /* submit */
    struct slurm_answer *partitions; /* probe */
    struct slurm_answer *nodes;
    int deletes;               /* cancel: asked and not yet answered */
    enum adapter_result worst; /* cancel: of those that were answered; err is in the call */
};

struct slurm_op *slurm_op_create(struct slurm *slurm, struct adapter_call *call);
/* Completes the call with what stands in it, and frees the op. */
void slurm_op_finish(struct slurm_op *op, enum adapter_result result);
/* The same as UNKNOWN, with the error of a reply that cannot be used. */
void slurm_op_fail(struct slurm_op *op, const struct slurm_reply *reply);

/* Runs fn once the version is known, or finishes the op with op->unsent, as nothing was sent. */
void slurm_op_with_version(struct slurm_op *op, slurm_op_fn fn);
/* Sends a request of the op to /slurm/v0.0.N/<path>, or /slurmdb when accounting. */
void slurm_op_send(struct slurm_op *op, const char *method, bool accounting, const char *path,
                   const char *body, slurm_reply_fn done);
/* Calls fn with a listing of all jobs that was asked for after this call. Many share one. */
void slurm_op_list(struct slurm_op *op, slurm_listed_fn fn);

void slurm_probe(struct adapter *adapter, struct adapter_call *call);
void slurm_submit(struct adapter *adapter, const struct submit *submit, struct adapter_call *call);
void slurm_find(struct adapter *adapter, const struct attempt_ref *ref, struct adapter_call *call);
void slurm_poll(struct adapter *adapter, struct adapter_call *call);
void slurm_cancel(struct adapter *adapter, const struct attempt_ref *ref,
                  struct adapter_call *call);

#endif
