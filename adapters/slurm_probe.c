/* slurm_probe.c - the condition of all places, by at most three requests: partitions, nodes, and jobs
 * unless they were listed a moment ago. Whether there is accounting is asked until it is there. */
#include "adapters/slurm.h"
#include "adapters/slurm_condition.h"
#include "adapters/slurm_result.h"
#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNTS_GOOD_MS = 5000 };

static void finish(struct slurm_op *op)
{
    struct slurm *slurm = op->slurm;
    const struct cluster *cluster = slurm->base.cluster;
    struct condition *conditions = xcalloc(cluster->place_count, sizeof *conditions);
    for (size_t i = 0; i < cluster->place_count; i++) {
        const struct place *place = &cluster->places[i];
        const char *partition = slurm_partition_of(place);
        conditions[i] = slurm->counts[i];
        slurm_condition_fill(slurm->env->federation, place,
                             partition ? partition : slurm->default_partition, op->partitions,
                             op->nodes, &conditions[i]);
    }
    char *version = xasprintf("Slurm %s, v0.0.%d",
                              op->nodes->release[0] ? op->nodes->release : "of unknown release",
                              slurm->version);
    op->call->conditions = conditions;
    op->call->version = version;
    slurm_op_finish(op, ADAPTER_OK);
    free(conditions);
    free(version);
}

static void listed(struct slurm_op *op, const struct slurm_answer *answer, const struct error *err)
{
    if (answer) {
        finish(op);
        return;
    }
    op->call->err = *err;
    slurm_op_finish(op, ADAPTER_UNKNOWN);
}

static void nodes_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    struct slurm *slurm = op->slurm;
    if (!slurm_reply_is_good(reply) || !reply->answer->has_nodes) {
        slurm_op_fail(op, reply);
        slurm_answer_destroy(reply->answer);
        return;
    }
    op->nodes = reply->answer;
    int64_t now = clock_mono_ms(slurm->env->clock);
    if (slurm->counted_ms && now - slurm->counted_ms < COUNTS_GOOD_MS) {
        finish(op);
    } else {
        slurm_op_list(op, listed);
    }
}

static void partitions_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    if (!slurm_reply_is_good(reply) || !reply->answer->has_partitions) {
        slurm_op_fail(op, reply);
        slurm_answer_destroy(reply->answer);
        return;
    }
    op->partitions = reply->answer;
    const char *name = slurm_default_partition(op->partitions);
    free(op->slurm->default_partition);
    op->slurm->default_partition = xstrdup(name);
    slurm_op_send(op, "GET", false, "nodes", NULL, nodes_cb);
}

static void warn_once(struct slurm *slurm)
{
    if (slurm->accounting == ACCOUNTING_NONE && !slurm->is_warned) {
        slurm->is_warned = true;
        slurm->env->log(
            "warn", slurm->base.cluster->name,
            "no slurmdbd: exit codes are forgotten after MinJobAge; a job that ends while "
            "the broker is away for longer gets the outcome outcome-unknown");
    }
}

static void accounting_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    if (reply->answer) {
        op->slurm->accounting = slurm_reply_is_good(reply) ? ACCOUNTING_THERE : ACCOUNTING_NONE;
    }
    slurm_answer_destroy(reply->answer);
    warn_once(op->slurm);
    slurm_op_send(op, "GET", false, "partitions", NULL, partitions_cb);
}

static void probe_start(struct slurm_op *op)
{
    struct slurm *slurm = op->slurm;
    warn_once(slurm);
    if (slurm->serves_accounting && slurm->accounting != ACCOUNTING_THERE) {
        slurm_op_send(op, "GET", true, "diag", NULL, accounting_cb);
    } else {
        slurm_op_send(op, "GET", false, "partitions", NULL, partitions_cb);
    }
}

void slurm_probe(struct adapter *adapter, struct adapter_call *call)
{
    slurm_op_with_version(slurm_op_create((struct slurm *)adapter, call), probe_start);
}
