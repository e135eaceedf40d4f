/* slurm_op.c - the way of one call: waiting for the version, sending, sharing a listing. */
#include "adapters/slurm.h"
#include "adapters/slurm_condition.h"
#include "adapters/slurm_result.h"
#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DISCOVERY_MS = 15000 };

static int64_t now_of(const struct slurm *slurm)
{
    return clock_mono_ms(slurm->env->clock);
}

struct slurm_op *slurm_op_create(struct slurm *slurm, struct adapter_call *call)
{
    struct slurm_op *op = xcalloc(1, sizeof *op);
    *op = (struct slurm_op){.slurm = slurm, .call = call, .unsent = ADAPTER_UNKNOWN};
    op->next = slurm->ops;
    op->prev = &slurm->ops;
    if (op->next) {
        op->next->prev = &op->next;
    }
    slurm->ops = op;
    return op;
}

void slurm_op_finish(struct slurm_op *op, enum adapter_result result)
{
    *op->prev = op->next;
    if (op->next) {
        op->next->prev = op->prev;
    }
    op->call->result = result;
    op->call->done(op->call);
    slurm_batch_destroy(op->batch);
    slurm_answer_destroy(op->partitions);
    slurm_answer_destroy(op->nodes);
    free(op);
}

void slurm_op_fail(struct slurm_op *op, const struct slurm_reply *reply)
{
    if (reply->answer && reply->answer->status == 404 && !reply->answer->is_json) {
        op->slurm->version = 0; /* upgraded meanwhile */
    }
    (void)slurm_reply_error(reply, &op->call->err);
    slurm_op_finish(op, ADAPTER_UNKNOWN);
}

/* ---- the version */

static struct slurm_op *first_waiting(const struct slurm *slurm, enum slurm_op_wait wait)
{
    struct slurm_op *op = slurm->ops;
    while (op && op->wait != wait) {
        op = op->next;
    }
    return op;
}

static void discovered_cb(void *arg, int version, bool accounting, const struct error *err)
{
    struct slurm *slurm = arg;
    struct slurm_op *op;
    slurm->discovery = NULL;
    slurm->version = version;
    slurm->serves_accounting = accounting;
    slurm->accounting = accounting ? ACCOUNTING_UNKNOWN : ACCOUNTING_NONE;
    while (!slurm->discovery && (op = first_waiting(slurm, OP_FOR_VERSION))) {
        op->wait = OP_SENT;
        if (version) {
            op->run(op);
        } else {
            op->call->err = *err;
            if (op->unsent == ADAPTER_FAILED && err->code != ERROR_UNAUTHORIZED) {
                op->call->err.code = ERROR_UNAVAILABLE;
            }
            slurm_op_finish(op, op->unsent);
        }
    }
}

void slurm_op_with_version(struct slurm_op *op, slurm_op_fn fn)
{
    struct slurm *slurm = op->slurm;
    if (slurm->version && !slurm->discovery) {
        fn(op);
        return;
    }
    op->run = fn;
    op->wait = OP_FOR_VERSION;
    if (!slurm->discovery) {
        int64_t latest = now_of(slurm) + DISCOVERY_MS;
        int64_t deadline = op->call->deadline_ms < latest ? op->call->deadline_ms : latest;
        slurm->discovery = slurm_discover(slurm->line, deadline, discovered_cb, slurm);
    }
}

void slurm_op_send(struct slurm_op *op, const char *method, bool accounting, const char *path,
                   const char *body, slurm_reply_fn done)
{
    char *whole =
        xasprintf("/%s/v0.0.%d/%s", accounting ? "slurmdb" : "slurm", op->slurm->version, path);
    slurm_line_send(op->slurm->line, method, whole, body, op->call->deadline_ms, done, op);
    free(whole);
}

/* ---- the listing that many share */

/* What the places' queues look like comes with every listing. */
static void count_jobs(struct slurm *slurm, const struct slurm_answer *answer)
{
    const struct cluster *cluster = slurm->base.cluster;
    for (size_t i = 0; i < cluster->place_count; i++) {
        const char *partition = slurm_partition_of(&cluster->places[i]);
        slurm_condition_count(partition ? partition : slurm->default_partition, answer,
                              &slurm->counts[i]);
    }
    slurm->counted_ms = now_of(slurm);
}

static void start_listing(struct slurm *slurm, slurm_reply_fn done)
{
    int64_t deadline = INT64_MAX;
    for (struct slurm_op *op = slurm->ops; op; op = op->next) {
        if (op->wait == OP_FOR_LISTING) {
            op->wait = OP_LISTED;
            deadline = op->call->deadline_ms < deadline ? op->call->deadline_ms : deadline;
        }
    }
    if (deadline == INT64_MAX) {
        return;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/slurm/v0.0.%d/jobs", slurm->version);
    slurm->is_listing = true;
    slurm_line_send(slurm->line, "GET", path, NULL, deadline, done, slurm);
}

static void listed_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm *slurm = arg;
    struct slurm_op *op;
    bool good =
        slurm_reply_is_good(reply) && reply->answer->has_jobs && !reply->answer->is_unchanged;
    struct error err;
    error_clear(&err);
    if (good) {
        count_jobs(slurm, reply->answer);
    } else {
        (void)slurm_reply_error(reply, &err);
        slurm->version = reply->answer && reply->answer->status == 404 ? 0 : slurm->version;
    }
    while ((op = first_waiting(slurm, OP_LISTED))) {
        op->wait = OP_SENT;
        op->listed(op, good ? reply->answer : NULL, &err);
    }
    slurm->is_listing = false;
    start_listing(slurm, listed_cb);
    slurm_answer_destroy(reply->answer);
}

void slurm_op_list(struct slurm_op *op, slurm_listed_fn fn)
{
    op->listed = fn;
    op->wait = OP_FOR_LISTING;
    if (!op->slurm->is_listing) {
        start_listing(op->slurm, listed_cb);
    }
}
