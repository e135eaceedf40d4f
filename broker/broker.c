/* broker.c - puts the stages together; the only file that knows them all.
 *
 * An event that is on disk is shown to the picture, then the job is driven: its state says which stage
 * acts next. drive() may be called at any time and again: every stage's step is idempotent. */
#include "broker/broker.h"

#include "broker/burst.h"
#include "broker/context.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/dispatch.h"
#include "broker/explain.h"
#include "broker/finish.h"
#include "broker/follow.h"
#include "broker/journal.h"
#include "broker/lookup.h"
#include "broker/member.h"
#include "broker/metrics.h"
#include "broker/picture.h"
#include "broker/places.h"
#include "broker/present.h"
#include "broker/query.h"
#include "broker/queue.h"
#include "broker/recover.h"
#include "broker/reload.h"
#include "broker/schedule.h"
#include "broker/submit.h"
#include "broker/sweep.h"
#include "broker/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000, STORE_STUCK_MS = 30000, LOOK_EVERY_MS = 20, LOOK_MAX_MS = 10000 };

struct broker {
    struct broker_env env;
    struct context context;
    struct schedule *schedule;
    struct dispatch *dispatch;
    struct watch *watch;
    struct burst *burst;
    struct sweep *sweep;
    struct follow *follow;
    struct timer *again; /* steps that could not be written */
    struct timer *look;  /* the members are listed before anything is done */
    int64_t look_until_ms;
    struct reload *reload;
    int64_t questions;
    bool closing;
};

/* -------------------------------------------------------------------------------------------- drive */

static void try_again(struct broker *broker, struct entry *entry)
{
    entry->again = true;
    timer_start(broker->again, AGAIN_MS);
}

static int post_cancel(struct broker *broker, struct entry *entry)
{
    struct error err;
    char reason[REASON_SIZE];
    (void)snprintf(reason, sizeof reason, "cancelled by %s", entry->cancel_by);
    if (journal_post(broker->context.journal, entry, EVENT_CANCEL, 0,
                     json_pack("{s:s, s:s}", "by", entry->cancel_by, "reason", reason), NULL,
                     &err) < 0) {
        context_log(&broker->context, "warn", "job %s: its cancel was not written: %s",
                    entry->job->id, err.text);
        return -1;
    }
    return 0;
}

/* A current attempt, by its state. */
static void drive_attempt(struct broker *broker, struct entry *entry)
{
    switch (job_attempt(entry->job)->state) {
    case ATTEMPT_INTENDED:
    case ATTEMPT_UNSURE: dispatch_job(broker->dispatch, entry); break;
    case ATTEMPT_ACCEPTED:
    case ATTEMPT_RUNNING:
    case ATTEMPT_UNKNOWN:
        if (entry->job->state == JOB_CANCELLING) {
            dispatch_job(broker->dispatch, entry);
        }
        break;
    case ATTEMPT_ENDED:
        if (finish_attempt(&broker->context, entry) < 0) {
            try_again(broker, entry);
        }
        break;
    default: break;
    }
}

static bool may_cancel(const struct job *job)
{
    return job->state == JOB_QUEUED || job->state == JOB_HELD || job->state == JOB_ACTIVE;
}

static void drive(struct broker *broker, struct entry *entry)
{
    const struct job *job = entry->job;
    entry->again = false;
    if (broker->closing) {
        return;
    }
    if (entry->op != OP_NONE) {
        if (entry->want_cancel) { /* what is under way may end without an event */
            try_again(broker, entry);
        }
        return;
    }
    if (job_is_final(job)) {
        schedule_removed(broker->schedule, entry);
        schedule_kick(broker->schedule);
        journal_retire(broker->context.journal, entry);
        return;
    }
    if (entry->want_cancel && may_cancel(job)) {
        if (post_cancel(broker, entry) < 0) {
            try_again(broker, entry);
        }
        return;
    }
    if (job->state == JOB_QUEUED && !entry->shape) {
        schedule_queued(broker->schedule, entry);
    } else if (job->state == JOB_ACTIVE || job->state == JOB_CANCELLING) {
        drive_attempt(broker, entry);
    }
}

static void again_cb(void *arg)
{
    struct broker *broker = arg;
    struct entry *next;
    for (struct entry *entry = journal_first(broker->context.journal); entry; entry = next) {
        next = entry->next; /* drive may retire it */
        if (entry->again) {
            drive(broker, entry);
        }
    }
}

/* The attempt is over: what it held is free, and its member may forget it. */
static void attempt_over(struct broker *broker, struct entry *entry, const struct event *event)
{
    const struct attempt *attempt = job_attempt(entry->job);
    const struct place *place = federation_place(broker->context.federation, attempt->place);
    picture_release(broker->context.picture, entry);
    dispatch_forget(broker->dispatch, entry);
    if (place && attempt->started_ms && attempt->ended_ms > attempt->started_ms) {
        picture_ran(broker->context.picture, place->index, attempt->ended_ms - attempt->started_ms);
    }
    if (place && event->kind == EVENT_END && !broker->closing) {
        struct attempt_ref ref;
        attempt_ref_init(&ref, broker->context.federation, entry->job, attempt);
        member_forget(broker->context.members, &ref);
    }
    schedule_kick(broker->schedule);
}

static void show_picture(struct broker *broker, struct entry *entry, const struct event *event)
{
    switch (event->kind) {
    case EVENT_PLACE:
        if (!entry->booking.held) { /* nothing was decided: it was found there */
            picture_rebook(broker->context.picture, entry);
        }
        break;
    case EVENT_ACCEPT:
    case EVENT_ADOPT:
        picture_accepted(broker->context.picture, entry);
        watch_soon(broker->watch, job_attempt(entry->job)->place);
        break;
    case EVENT_START: picture_running(broker->context.picture, entry); break;
    case EVENT_REJECT:
    case EVENT_ABSENT:
    case EVENT_END:
    case EVENT_GONE: attempt_over(broker, entry, event); break;
    default: break;
    }
}

static void react(void *arg, struct entry *entry, const struct event *event)
{
    struct broker *broker = arg;
    show_picture(broker, entry, event);
    follow_wake(broker->follow, entry->job->id);
    drive(broker, entry);
}

static void failed(void *arg, struct entry *entry, const struct event *event,
                   const struct error *err)
{
    struct broker *broker = arg;
    context_log(&broker->context, "error", "job %s: %s was not stored: %s", entry->job->id,
                event_name(event->kind), err->text);
    if (event->kind == EVENT_PLACE) {
        entry->sent = false;
        schedule_undo(broker->schedule, entry);
    } else if (event->kind == EVENT_END) {
        store_doc_destroy(
            picture_settle(broker->context.picture, entry, -event_int(event, "settled")));
    }
    if (broker->closing) {
        return;
    }
    dispatch_again(broker->dispatch, entry);
    try_again(broker, entry);
}

/* ------------------------------------------------------------------------------------------ hooks */

static void picture_changed(void *arg)
{
    struct broker *broker = arg;
    schedule_kick(broker->schedule);
    follow_wake(broker->follow, "-"); /* readers of the federation's events */
}

static void stray(void *arg, int cluster, const struct report *report)
{
    struct broker *broker = arg;
    sweep_stray(broker->sweep, cluster, report);
}

static void load_doc(void *arg, enum store_table table, const char *id, const json_t *json)
{
    struct broker *broker = arg;
    if (table == STORE_POLICIES) {
        reload_load(broker->reload, json);
    } else if (table == STORE_META && strcmp(id, "budgets") == 0) {
        picture_budgets_from_json(broker->context.picture, json);
    } else if (table == STORE_META && strncmp(id, "burst:", 6) == 0) {
        burst_load(broker->burst, json);
    } else if (table == STORE_META && strncmp(id, "drain:", 6) == 0) {
        places_load_drain(&broker->context, json);
    }
}

static int load_tombstone(void *arg, const struct event *event, struct error *err)
{
    struct broker *broker = arg;
    return sweep_load(broker->sweep, event, err);
}

/* ------------------------------------------------------------------------------------------- asking */

struct question { /* counts what was asked and is not yet answered */
    struct broker *broker;
    reply_fn reply;
    void *arg;
};

static void question_answered(void *arg, json_t *body, const struct error *err)
{
    struct question question = *(struct question *)arg;
    free(arg);
    question.broker->questions--;
    question.reply(question.arg, body, err);
}

static struct question *ask(struct broker *broker, reply_fn reply, void *arg)
{
    struct question *question = xcalloc(1, sizeof *question);
    *question = (struct question){broker, reply, arg};
    broker->questions++;
    return question;
}

/* --------------------------------------------------------------------------------------- questions */

struct later { /* an answer that is ready, given in the next turn */
    struct timer *timer;
    json_t *body;
    reply_fn reply;
    void *arg;
};

static void later_cb(void *arg)
{
    struct later *later = arg;
    struct error none;
    error_clear(&none);
    later->reply(later->arg, later->body, &none);
    json_decref(later->body);
    timer_destroy(later->timer);
    free(later);
}

static void answer_later(struct broker *broker, json_t *body_take, reply_fn reply, void *arg)
{
    struct later *later = xcalloc(1, sizeof *later);
    *later =
        (struct later){clock_timer(broker->context.clock, later_cb, later), body_take, reply, arg};
    timer_start(later->timer, 0);
}

static struct reader reader_of(struct broker *broker)
{
    return (struct reader){&broker->context, broker->follow};
}

void broker_submit(struct broker *broker, const struct caller *caller,
                   struct submission *submission, reply_fn reply, void *arg)
{
    submit_jobs(&broker->context, caller, submission, question_answered, ask(broker, reply, arg));
}

void broker_job(struct broker *broker, const struct caller *caller, const char *id,
                const char *after_view, int64_t wait_ms, reply_fn reply, void *arg)
{
    struct reader reader = reader_of(broker);
    (void)caller;
    query_job(&reader, id, after_view, wait_ms, question_answered, ask(broker, reply, arg));
}

void broker_jobs(struct broker *broker, const struct caller *caller,
                 const struct store_filter *filter, reply_fn reply, void *arg)
{
    struct reader reader = reader_of(broker);
    (void)caller;
    query_jobs(&reader, filter, question_answered, ask(broker, reply, arg));
}

void broker_events(struct broker *broker, const struct caller *caller, const char *id,
                   int64_t after_seq, int limit, int64_t wait_ms, reply_fn reply, void *arg)
{
    struct reader reader = reader_of(broker);
    (void)caller;
    query_events(&reader, id, after_seq, limit, wait_ms, question_answered,
                 ask(broker, reply, arg));
}

void broker_log(struct broker *broker, const struct caller *caller, const char *id, int attempt,
                int64_t offset, int64_t wait_ms, reply_fn reply, void *arg)
{
    struct reader reader = reader_of(broker);
    (void)caller;
    query_log(&reader, id, attempt, offset, wait_ms, question_answered, ask(broker, reply, arg));
}

void broker_explain(struct broker *broker, const struct caller *caller, const char *id,
                    reply_fn reply, void *arg)
{
    struct reader reader = reader_of(broker);
    (void)caller;
    explain_job(&reader, id, question_answered, ask(broker, reply, arg));
}

void broker_explain_job(struct broker *broker, const struct caller *caller,
                        const struct value *value, const char *render, reply_fn reply, void *arg)
{
    explain_imagined(&broker->context, caller, value, render, question_answered,
                     ask(broker, reply, arg));
}

void broker_places(struct broker *broker, reply_fn reply, void *arg)
{
    answer_later(broker, places_present(&broker->context), question_answered,
                 ask(broker, reply, arg));
}

void broker_bursts(struct broker *broker, reply_fn reply, void *arg)
{
    answer_later(broker, explain_money(&broker->context), question_answered,
                 ask(broker, reply, arg));
}

void broker_policy_set(struct broker *broker, const struct caller *caller, const char *text,
                       const char *file, bool dry_run, reply_fn reply, void *arg)
{
    reload_set(broker->reload, caller, text, file, dry_run, question_answered,
               ask(broker, reply, arg));
}

void broker_policy(struct broker *broker, reply_fn reply, void *arg)
{
    answer_later(broker, reload_present(broker->reload), question_answered,
                 ask(broker, reply, arg));
}

void broker_drain(struct broker *broker, const struct caller *caller, const char *place, bool drain,
                  const char *note, reply_fn reply, void *arg)
{
    places_drain(&broker->context, caller, place, drain, note, question_answered,
                 ask(broker, reply, arg));
}

/* ------------------------------------------------------------------------------------------- cancel */

struct cancel_op { /* answered when CANCEL is on disk, or the job is final */
    struct broker *broker;
    char id[ID_SIZE];
    char by[PLACE_SIZE];
    enum role role;
    int64_t deadline_ms;
    void (*again)(void *arg);
    reply_fn reply;
    void *arg;
};

static void cancel_answer(struct cancel_op *op, const struct job *job, const struct error *err)
{
    struct error none;
    error_clear(&none);
    json_t *body = job ? job_present(job, op->broker->context.rules->currency, NULL, false) : NULL;
    op->reply(op->arg, body, err ? err : &none);
    json_decref(body);
    free(op);
}

static void cancel_ask(struct broker *broker, struct cancel_op *op)
{
    struct entry *entry = journal_find(broker->context.journal, op->id);
    if (entry && !entry->want_cancel) {
        entry->want_cancel = true;
        copy_text(entry->cancel_by, sizeof entry->cancel_by, op->by);
        drive(broker, entry);
    }
}

static void cancel_found(void *arg, const struct job *job, const struct error *err)
{
    struct cancel_op *op = arg;
    struct broker *broker = op->broker;
    struct error mine;
    if (!job) {
        cancel_answer(op, NULL, err);
        return;
    }
    copy_text(op->id, sizeof op->id, job->id);
    if (op->role < ROLE_OPERATE && strcmp(job->owner, op->by) != 0) {
        error_set(&mine, ERROR_FORBIDDEN, "job %s is another owner's", job->id);
        cancel_answer(op, NULL, &mine);
        return;
    }
    int64_t left = op->deadline_ms - clock_mono_ms(broker->context.clock);
    if (job_is_final(job) || job->state == JOB_CANCELLING) {
        cancel_answer(op, job, NULL);
        return;
    }
    cancel_ask(broker, op); /* also when nobody can wait for it */
    if (left <= 0 || follow_wait(broker->follow, op->id, left, op->again, op) < 0) {
        error_set(&mine, ERROR_UNAVAILABLE, "the cancel of %s is not on disk yet: ask again",
                  job->id);
        cancel_answer(op, NULL, &mine);
        return;
    }
}

static void cancel_look(void *arg)
{
    struct cancel_op *op = arg;
    lookup_job(&op->broker->context, op->id, cancel_found, op);
}

void broker_cancel(struct broker *broker, const struct caller *caller, const char *id,
                   reply_fn reply, void *arg)
{
    struct cancel_op *op = xcalloc(1, sizeof *op);
    op->broker = broker;
    copy_text(op->id, sizeof op->id, id);
    copy_text(op->by, sizeof op->by, caller->owner);
    op->role = caller->role;
    op->deadline_ms = clock_mono_ms(broker->context.clock) + LIMIT_FOLLOW_MS;
    op->again = cancel_look;
    op->reply = question_answered;
    op->arg = ask(broker, reply, arg);
    cancel_look(op);
}

/* ------------------------------------------------------------------------------------------- itself */

int broker_ready(struct broker *broker, struct error *err)
{
    struct store_stats stats;
    broker->context.store->ops->stats(broker->context.store, &stats);
    int64_t now = clock_mono_ms(broker->context.clock);
    if (stats.failing) {
        return error_set(err, ERROR_STORE, "the store cannot commit: %s", stats.error);
    }
    if (stats.oldest_pending_ms && now - stats.oldest_pending_ms > STORE_STUCK_MS) {
        return error_set(err, ERROR_STORE, "the store has not committed for %d s",
                         STORE_STUCK_MS / 1000);
    }
    if (picture_is_recovering(broker->context.picture)) {
        return error_set(err, ERROR_UNAVAILABLE,
                         "recovering: the store is older than what the members show");
    }
    if (broker->closing) {
        return error_set(err, ERROR_UNAVAILABLE, "the broker stops");
    }
    return 0;
}

void broker_metrics(struct broker *broker, FILE *out)
{
    struct metrics_source source = {.context = &broker->context,
                                    .lateness = *watch_lateness(broker->watch),
                                    .tombstones = sweep_count(broker->sweep),
                                    .oldest_tombstone_ms = sweep_oldest_ms(broker->sweep),
                                    .followers = follow_count(broker->follow)};
    schedule_stats(broker->schedule, &source.passes, &source.decisions, &source.slice_ms);
    metrics_print(&source, out);
}

int broker_followers(const struct broker *broker)
{
    return follow_count(broker->follow);
}

void broker_wake_all(struct broker *broker)
{
    broker->context.stopping = true;
    follow_wake_all(broker->follow);
}

int64_t broker_questions(const struct broker *broker)
{
    return broker->questions;
}

/* Takes up every job where the last broker left it. */
static void take_up(struct broker *broker)
{
    struct entry *next;
    struct error err;
    for (struct entry *entry = journal_first(broker->context.journal); entry; entry = next) {
        next = entry->next;
        bool active = entry->job->state == JOB_ACTIVE || entry->job->state == JOB_CANCELLING;
        if (!active || !recover_is_unsure(&broker->context, entry->job)) {
            entry->inherited = active;
            drive(broker, entry);
            continue;
        }
        json_t *data = json_pack("{s:s}", "reason", "the broker died; it may have been sent");
        if (journal_post(broker->context.journal, entry, EVENT_UNSURE, entry->job->attempt_count,
                         data, NULL, &err) < 0) {
            entry->sent = true; /* looked up, not sent, once the store takes it */
            try_again(broker, entry);
        }
    }
}

/* A store from a backup shows itself when the members are listed. Whoever cannot be listed in time holds
 * up nobody. */
static void look_cb(void *arg)
{
    struct broker *broker = arg;
    bool done = watch_has_seen_all(broker->watch) && sweep_is_settled(broker->sweep);
    if (done || clock_mono_ms(broker->context.clock) >= broker->look_until_ms) {
        picture_set_looking(broker->context.picture, false);
        schedule_kick(broker->schedule);
    } else {
        timer_start(broker->look, LOOK_EVERY_MS);
    }
}

static void start(struct broker *broker)
{
    picture_set_looking(broker->context.picture, true);
    broker->look_until_ms = clock_mono_ms(broker->context.clock) + LOOK_MAX_MS;
    timer_start(broker->look, LOOK_EVERY_MS);
    recover_bookings(&broker->context);
    take_up(broker);
    reload_start(broker->reload);
    watch_start(broker->watch);
    burst_start(broker->burst);
    sweep_start(broker->sweep);
}

int broker_create(const struct broker_env *env, struct broker **out, struct error *err)
{
    struct broker *broker = xcalloc(1, sizeof *broker);
    struct context *context = &broker->context;
    broker->env = *env;
    *context = (struct context){.clock = env->clock,
                                .store = env->store,
                                .federation = env->federation,
                                .rules = env->rules,
                                .log = env->log};
    context->picture = picture_create(context);
    context->queue = queue_create(context);
    context->journal = journal_create(context, react, failed, broker);
    broker->schedule = schedule_create(context);
    broker->dispatch = dispatch_create(context);
    struct watch_hooks watch_hooks = {broker, picture_changed, stray};
    broker->watch = watch_create(context, &watch_hooks);
    broker->burst = burst_create(context, picture_changed, broker);
    broker->sweep = sweep_create(context);
    broker->follow = follow_create(context);
    broker->reload =
        reload_create(context, env->rules_parse, env->rules_destroy, picture_changed, broker);
    broker->again = clock_timer(env->clock, again_cb, broker);
    broker->look = clock_timer(env->clock, look_cb, broker);
    struct recover_hooks recover_hooks = {broker, load_doc, load_tombstone};
    if (members_create(context, &env->adapter_env, &context->members, err) < 0 ||
        recover_load(context, &recover_hooks, err) < 0) {
        broker_destroy(broker);
        return -1;
    }
    if (env->accept_world) {
        sweep_accept_world(broker->sweep);
    }
    start(broker);
    *out = broker;
    return 0;
}

void broker_destroy(struct broker *broker)
{
    if (!broker) {
        return;
    }
    struct context *context = &broker->context;
    /* Nothing new is sent; calls under way end as unknown and are written down as such. */
    dispatch_stop(broker->dispatch);
    watch_stop(broker->watch);
    burst_stop(broker->burst);
    sweep_stop(broker->sweep);
    follow_wake_all(broker->follow);
    members_destroy(context->members);
    broker->closing = true;
    context->store->ops->close(context->store);
    schedule_destroy(broker->schedule);
    watch_destroy(broker->watch);
    burst_destroy(broker->burst);
    sweep_destroy(broker->sweep);
    follow_destroy(broker->follow);
    picture_destroy(context->picture);
    queue_destroy(context->queue);
    journal_destroy(context->journal);
    dispatch_destroy(broker->dispatch);
    timer_destroy(broker->again);
    timer_destroy(broker->look);
    reload_destroy(broker->reload);
    free(broker);
}
