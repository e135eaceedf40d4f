/* slurm_ops.c - submit, find, poll, cancel.
 *
 * An attempt is known by its comment, which holds the federation, the job's id and the attempt's number;
 * where somebody has changed the comment, by its name and user. A job id of Slurm alone proves nothing:
 * ids are used again after a reset.
 * Slurm forgets an ended job after MinJobAge. What is not listed any more ended, if it was accepted
 * once; how it ended only accounting can tell. */
#include "adapters/slurm.h"
#include "adapters/slurm_result.h"
#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKEW_MS = 3600 * 1000 }; /* between the clocks of the broker and of the cluster */

/* ---- whose job it is */

/* Reads "<id>:<attempt>" or "<id>-<attempt>". */
static bool read_mark(const char *text, char separator, char id[ID_SIZE], int *attempt)
{
    const char *at = strchr(text, separator);
    size_t length = at ? (size_t)(at - text) : ID_SIZE;
    if (length >= ID_SIZE) {
        return false;
    }
    memcpy(id, text, length);
    id[length] = '\0';
    char *end;
    long number = strtol(at + 1, &end, 10);
    *attempt = (int)number;
    return end != at + 1 && !*end && number > 0 && number < INT32_MAX && id_is_valid(id);
}

static bool mark_of_name(const char *name, char id[ID_SIZE], int *attempt)
{
    const char *dot = strrchr(name, '.');
    return dot && read_mark(dot + 1, '-', id, attempt);
}

/* Whether the comment says that the job is another federation's. */
static bool is_foreign(const struct slurm *slurm, const struct slurm_job *job)
{
    return !strncmp(job->comment, "tieline:", 8) &&
           strncmp(job->comment, slurm->tag, strlen(slurm->tag)) != 0;
}

/* By the comment; by the name where somebody has changed the comment. */
static bool is_ours(const struct slurm *slurm, const struct slurm_job *job, char id[ID_SIZE],
                    int *attempt)
{
    if (is_foreign(slurm, job) || job->phase == SLURM_SIBLING) {
        return false;
    }
    size_t length = strlen(slurm->tag);
    if (!strncmp(job->comment, slurm->tag, length) &&
        read_mark(job->comment + length, ':', id, attempt)) {
        return true;
    }
    const char *user = slurm->settings->connect.user;
    bool same_user = !user || !job->user[0] || !strcmp(user, job->user);
    return same_user && mark_of_name(job->name, id, attempt);
}

static bool is_attempt(const struct slurm *slurm, const struct slurm_job *job,
                       const struct attempt_ref *ref)
{
    char id[ID_SIZE];
    int attempt;
    bool too_old = job->submit_ms && job->submit_ms < ref->intent_ms - SKEW_MS;
    return !too_old && is_ours(slurm, job, id, &attempt) && attempt == ref->attempt &&
           !strcmp(id, ref->job_id);
}

/* ---- reports */

static void fill_report(const struct slurm_job *job, struct report *report)
{
    static const enum report_state states[] = {[SLURM_PENDING] = REPORT_PENDING,
                                               [SLURM_RUNNING] = REPORT_RUNNING,
                                               [SLURM_ENDED] = REPORT_ENDED,
                                               [SLURM_SIBLING] = REPORT_PENDING};
    (void)snprintf(report->native_id, sizeof report->native_id, "%lld", (long long)job->id);
    report->state = states[job->phase];
    report->outcome = job->outcome;
    report->exit_code = job->exit_code;
    report->signal = job->signal;
    report->started_ms = job->phase != SLURM_PENDING ? job->start_ms : 0; /* else an estimate */
    report->ended_ms = job->phase == SLURM_ENDED ? job->end_ms : 0;
    copy_text(report->reason, sizeof report->reason, job->reason);
    copy_text(report->by, sizeof report->by, job->by);
}

static void start_report(const struct slurm_op *op, struct report *report)
{
    *report = (struct report){.attempt = op->ref.attempt};
    copy_text(report->job_id, sizeof report->job_id, op->ref.job_id);
    copy_text(report->native_id, sizeof report->native_id, op->ref.native_id);
}

static void finish_report(struct slurm_op *op, struct report *report)
{
    op->call->reports = report;
    op->call->report_count = 1;
    slurm_op_finish(op, ADAPTER_OK);
}

static void finish_job(struct slurm_op *op, const struct slurm_job *job)
{
    struct report report;
    start_report(op, &report);
    fill_report(job, &report);
    finish_report(op, &report);
}

/* ---- submit */

static void submitted_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    enum adapter_result result = slurm_submit_result(reply, &op->call->err);
    if (result == ADAPTER_OK) {
        (void)snprintf(op->call->native_id, sizeof op->call->native_id, "%lld",
                       (long long)reply->answer->job_id);
    } else if (reply->answer && reply->answer->status == 404) {
        op->slurm->version = 0;
    }
    slurm_answer_destroy(reply->answer);
    slurm_op_finish(op, result);
}

static void submit_start(struct slurm_op *op)
{
    char *body = slurm_batch_body(op->batch, op->slurm->version);
    slurm_op_send(op, "POST", false, "job/submit", body, submitted_cb);
    free(body);
}

void slurm_submit(struct adapter *adapter, const struct submit *submit, struct adapter_call *call)
{
    struct slurm *slurm = (struct slurm *)adapter;
    struct slurm_op *op = slurm_op_create(slurm, call);
    op->unsent = ADAPTER_FAILED;
    op->batch = slurm_batch_create(slurm->env->federation, slurm->settings->shell,
                                   slurm->settings->workdir, submit);
    slurm_op_with_version(op, submit_start);
}

/* ---- find */

static const struct slurm_job *lowest(const struct slurm_op *op, const struct slurm_answer *answer)
{
    const struct slurm_job *found = NULL;
    for (size_t i = 0; i < answer->job_count; i++) {
        const struct slurm_job *job = &answer->jobs[i];
        if (is_attempt(op->slurm, job, &op->ref) && (!found || job->id < found->id)) {
            found = job;
        }
    }
    return found;
}

static void finish_forgotten(struct slurm_op *op)
{
    struct report report;
    start_report(op, &report);
    int64_t age = clock_wall_ms(op->slurm->env->clock) - op->ref.intent_ms;
    bool was_there = op->ref.native_id[0];
    /* Without accounting, what could have run and been forgotten meanwhile is not proven absent. */
    if (was_there ||
        (op->slurm->accounting != ACCOUNTING_THERE && age >= op->slurm->settings->min_job_age)) {
        report.state = REPORT_ENDED;
        report.outcome = OUTCOME_OUTCOME_UNKNOWN;
        (void)snprintf(report.reason, sizeof report.reason, "%s, and %s",
                       was_there ? "Slurm has forgotten it after MinJobAge"
                                 : "it may have run and been forgotten after MinJobAge",
                       op->slurm->accounting == ACCOUNTING_THERE
                           ? "accounting does not say how it ended"
                           : "there is no slurmdbd to ask");
    } else {
        report.state = REPORT_ABSENT;
    }
    finish_report(op, &report);
}

static void accounted_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    if (!slurm_reply_is_good(reply) || !reply->answer->has_jobs) {
        slurm_op_fail(op, reply);
    } else {
        op->slurm->accounting = ACCOUNTING_THERE;
        const struct slurm_job *job = lowest(op, reply->answer);
        if (job && job->phase == SLURM_ENDED) {
            finish_job(op, job);
        } else if (job && !op->ref.native_id[0]) {
            /* It may run, or begin to: the controller's list can be older than accounting. */
            error_set(&op->call->err, ERROR_UNAVAILABLE,
                      "accounting knows '%s' as job %lld, the controller does not list it",
                      op->ref.name, (long long)job->id);
            slurm_op_finish(op, ADAPTER_UNKNOWN);
        } else {
            finish_forgotten(op);
        }
    }
    slurm_answer_destroy(reply->answer);
}

/* The controller does not know it (any more). */
static void ask_accounting(struct slurm_op *op)
{
    if (op->slurm->accounting == ACCOUNTING_NONE) {
        finish_forgotten(op);
        return;
    }
    long long since = (op->ref.intent_ms - SKEW_MS) / 1000;
    char *path =
        xasprintf("jobs?job_name=%s&start_time=uts%lld", op->ref.name, since > 0 ? since : 0);
    slurm_op_send(op, "GET", true, path, NULL, accounted_cb);
    free(path);
}

static void found_by_id_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    const struct slurm_job *job = NULL;
    bool good = slurm_reply_is_good(reply) && reply->answer->has_jobs;
    for (size_t i = 0; good && i < reply->answer->job_count; i++) {
        if (is_attempt(op->slurm, &reply->answer->jobs[i], &op->ref)) {
            job = &reply->answer->jobs[i];
        }
    }
    if (job) {
        finish_job(op, job);
    } else if (good || slurm_reply_is_no_job(reply)) {
        ask_accounting(op);
    } else {
        slurm_op_fail(op, reply);
    }
    slurm_answer_destroy(reply->answer);
}

static void duplicate_ended_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm *slurm = arg;
    struct error err;
    if (slurm_cancel_result(reply, &err) != ADAPTER_OK) {
        char *text = xasprintf("a duplicate could not be cancelled: %s", err.text);
        slurm->env->log("error", slurm->base.cluster->name, text);
        free(text);
    }
    slurm_answer_destroy(reply->answer);
}

/* One attempt, two jobs: something between here and slurmctld has sent the submit twice. */
static void end_duplicates(struct slurm_op *op, const struct slurm_answer *answer,
                           const struct slurm_job *kept)
{
    struct slurm *slurm = op->slurm;
    for (size_t i = 0; i < answer->job_count; i++) {
        const struct slurm_job *job = &answer->jobs[i];
        if (job == kept || job->phase == SLURM_ENDED || !is_attempt(slurm, job, &op->ref)) {
            continue;
        }
        char *text = xasprintf("%s exists twice: %lld is kept, %lld is cancelled", op->ref.name,
                               (long long)kept->id, (long long)job->id);
        slurm->env->log("warn", slurm->base.cluster->name, text);
        free(text);
        char *path = xasprintf("/slurm/v0.0.%d/job/%lld", slurm->version, (long long)job->id);
        slurm_line_send(slurm->line, "DELETE", path, NULL, op->call->deadline_ms,
                        duplicate_ended_cb, slurm);
        free(path);
    }
}

static void find_listed(struct slurm_op *op, const struct slurm_answer *answer,
                        const struct error *err)
{
    if (!answer) {
        op->call->err = *err;
        slurm_op_finish(op, ADAPTER_UNKNOWN);
        return;
    }
    const struct slurm_job *job = lowest(op, answer);
    if (job) {
        end_duplicates(op, answer, job);
        finish_job(op, job);
    } else {
        ask_accounting(op);
    }
}

/* Native ids are made here, of digits; anything else in a path would be another request. */
static bool has_native_id(const struct attempt_ref *ref)
{
    size_t length = strlen(ref->native_id);
    return length && strspn(ref->native_id, "0123456789") == length;
}

static void find_start(struct slurm_op *op)
{
    if (!has_native_id(&op->ref)) {
        slurm_op_list(op, find_listed);
        return;
    }
    char path[NATIVE_SIZE + 8];
    (void)snprintf(path, sizeof path, "job/%s", op->ref.native_id);
    slurm_op_send(op, "GET", false, path, NULL, found_by_id_cb);
}

void slurm_find(struct adapter *adapter, const struct attempt_ref *ref, struct adapter_call *call)
{
    struct slurm_op *op = slurm_op_create((struct slurm *)adapter, call);
    op->ref = *ref;
    slurm_op_with_version(op, find_start);
}

/* ---- poll */

static void poll_listed(struct slurm_op *op, const struct slurm_answer *answer,
                        const struct error *err)
{
    if (!answer) {
        op->call->err = *err;
        slurm_op_finish(op, ADAPTER_UNKNOWN);
        return;
    }
    struct report *reports = xcalloc(answer->job_count, sizeof *reports);
    size_t count = 0;
    for (size_t i = 0; i < answer->job_count; i++) {
        struct report *report = &reports[count];
        if (is_ours(op->slurm, &answer->jobs[i], report->job_id, &report->attempt)) {
            fill_report(&answer->jobs[i], report);
            count++;
        } else {
            *report = (struct report){0};
        }
    }
    op->call->reports = reports;
    op->call->report_count = count;
    slurm_op_finish(op, ADAPTER_OK);
    free(reports);
}

static void poll_start(struct slurm_op *op)
{
    slurm_op_list(op, poll_listed);
}

void slurm_poll(struct adapter *adapter, struct adapter_call *call)
{
    slurm_op_with_version(slurm_op_create((struct slurm *)adapter, call), poll_start);
}

/* ---- cancel */

static void cancelled_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    struct error err;
    enum adapter_result result = slurm_cancel_result(reply, &err);
    if (result != ADAPTER_OK && op->worst != ADAPTER_UNKNOWN) {
        op->worst = result;
        op->call->err = err;
    }
    slurm_answer_destroy(reply->answer);
    if (!--op->deletes) {
        slurm_op_finish(op, op->worst);
    }
}

/* Without a signal Slurm ends the whole job: TERM, then KILL after its KillWait. */
static void cancel_jobs(struct slurm_op *op, const struct slurm_answer *answer)
{
    for (size_t i = 0; i < answer->job_count; i++) {
        const struct slurm_job *job = &answer->jobs[i];
        if (job->phase != SLURM_ENDED && is_attempt(op->slurm, job, &op->ref)) {
            char path[64];
            (void)snprintf(path, sizeof path, "job/%lld", (long long)job->id);
            op->deletes++;
            slurm_op_send(op, "DELETE", false, path, NULL, cancelled_cb);
        }
    }
    if (!op->deletes) {
        slurm_op_finish(op, ADAPTER_OK);
    }
}

static void cancel_looked_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_op *op = arg;
    if (slurm_reply_is_good(reply) && reply->answer->has_jobs) {
        cancel_jobs(op, reply->answer);
    } else if (slurm_reply_is_no_job(reply)) {
        slurm_op_finish(op, ADAPTER_OK);
    } else {
        slurm_op_fail(op, reply);
    }
    slurm_answer_destroy(reply->answer);
}

static void cancel_listed(struct slurm_op *op, const struct slurm_answer *answer,
                          const struct error *err)
{
    if (answer) {
        cancel_jobs(op, answer);
        return;
    }
    op->call->err = *err;
    slurm_op_finish(op, ADAPTER_UNKNOWN);
}

static void cancel_start(struct slurm_op *op)
{
    if (!has_native_id(&op->ref)) {
        slurm_op_list(op, cancel_listed);
        return;
    }
    char path[NATIVE_SIZE + 8];
    (void)snprintf(path, sizeof path, "job/%s", op->ref.native_id);
    slurm_op_send(op, "GET", false, path, NULL, cancel_looked_cb);
}

void slurm_cancel(struct adapter *adapter, const struct attempt_ref *ref, struct adapter_call *call)
{
    struct slurm_op *op = slurm_op_create((struct slurm *)adapter, call);
    op->ref = *ref;
    slurm_op_with_version(op, cancel_start);
}
