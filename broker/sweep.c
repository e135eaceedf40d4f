#include "broker/sweep.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/map.h"
#include "broker/journal.h"
#include "broker/member.h"
#include "broker/picture.h"
#include "broker/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEP_EVERY_MS = 5000, PRUNE_EVERY_MS = 600000, LOOKUPS_MAX = 256 };

struct tombstone {
    char id[EVENT_ID_SIZE];
    struct attempt_ref ref;
    int64_t since_ms; /* wall */
    bool on_disk, busy, cancelled;
    struct sweep *sweep;
    struct tombstone *next;
};

struct lookup { /* a stray whose job the store is asked for */
    struct sweep *sweep;
    int cluster;
    struct report report;
};

struct sweep {
    struct context *context;
    struct timer *timer, *pruner;
    struct tombstone *first;
    struct map by_id;
    int64_t count;
    int lookups;
    bool stopped, world_accepted;
};

/* --------------------------------------------------------------------------------------- tombstones */

static struct tombstone *add(struct sweep *sweep, const char *id, const struct attempt_ref *ref,
                             int64_t since_ms)
{
    struct tombstone *tombstone = xcalloc(1, sizeof *tombstone);
    copy_text(tombstone->id, sizeof tombstone->id, id);
    tombstone->ref = *ref;
    tombstone->since_ms = since_ms;
    tombstone->sweep = sweep;
    tombstone->next = sweep->first;
    sweep->first = tombstone;
    sweep->count++;
    map_put(&sweep->by_id, tombstone->id, tombstone);
    return tombstone;
}

static void drop(struct sweep *sweep, struct tombstone *tombstone)
{
    struct tombstone **link = &sweep->first;
    while (*link != tombstone) {
        link = &(*link)->next;
    }
    *link = tombstone->next;
    sweep->count--;
    map_remove(&sweep->by_id, tombstone->id);
    free(tombstone);
}

static void set_done(void *arg, const struct event *event, const struct error *err)
{
    struct sweep *sweep = arg;
    struct tombstone *tombstone = map_get(&sweep->by_id, event->id);
    if (!tombstone) {
        return;
    }
    if (err->code) {
        drop(sweep, tombstone); /* the next listing shows it again */
    } else {
        tombstone->on_disk = true;
    }
}

static void clear_done(void *arg, const struct event *event, const struct error *err)
{
    struct sweep *sweep = arg;
    struct tombstone *tombstone = map_get(&sweep->by_id, event->id);
    if (tombstone) {
        tombstone->busy = false;
        if (!err->code) {
            context_log(sweep->context, "info", "%s is gone", tombstone->id);
            drop(sweep, tombstone);
        }
    }
}

/* A report of an old attempt is recorded, never applied. */
static void record_late(struct sweep *sweep, const struct attempt_ref *ref, const char *why)
{
    struct error err;
    json_t *data = json_pack("{s:s, s:s, s:i, s:s}", "cluster", ref->place->cluster->name, "native",
                             ref->native_id, "attempt", ref->attempt, "reason", why);
    if (journal_post_other(sweep->context->journal, EVENT_LATE, ref->job_id, data, NULL, NULL, NULL,
                           &err) < 0) {
        context_log(sweep->context, "warn", "a late report of job %s was not recorded: %s",
                    ref->job_id, err.text);
    }
}

static void bury(struct sweep *sweep, const struct attempt_ref *ref, const char *why)
{
    char id[EVENT_ID_SIZE];
    (void)snprintf(id, sizeof id, "%s/%s-%d", ref->place->cluster->name, ref->job_id, ref->attempt);
    if (map_get(&sweep->by_id, id)) {
        return;
    }
    if (sweep->count >= LIMIT_TOMBSTONES) {
        context_log(sweep->context, "error", "%s should be deleted, and %d deletes wait already",
                    id, LIMIT_TOMBSTONES);
        return;
    }
    json_t *data =
        json_pack("{s:s, s:s, s:s, s:i, s:s, s:s, s:I}", "why", why, "place", ref->place->name,
                  "job", ref->job_id, "attempt", ref->attempt, "name", ref->name, "native",
                  ref->native_id, "intent", (json_int_t)ref->intent_ms);
    struct error err;
    add(sweep, id, ref, clock_wall_ms(sweep->context->clock));
    if (journal_post_other(sweep->context->journal, EVENT_TOMB_SET, id, data, NULL, set_done, sweep,
                           &err) < 0) {
        drop(sweep, map_get(&sweep->by_id, id));
        return;
    }
    record_late(sweep, ref, why);
    context_log(sweep->context, "warn", "%s will be ended: %s", id, why);
}

/* ------------------------------------------------------------------------------------------ deleting */

/* Calls carry the tombstone's id: it may be gone when they complete. */
struct sweep_call {
    struct sweep *sweep;
    char id[EVENT_ID_SIZE];
};

static struct sweep_call *call_create(struct tombstone *tombstone)
{
    struct sweep_call *call = xcalloc(1, sizeof *call);
    call->sweep = tombstone->sweep;
    copy_text(call->id, sizeof call->id, tombstone->id);
    tombstone->busy = true;
    return call;
}

static struct tombstone *call_end(struct sweep_call *call)
{
    struct tombstone *tombstone = map_get(&call->sweep->by_id, call->id);
    if (tombstone) {
        tombstone->busy = false;
    }
    free(call);
    return tombstone;
}

static void cancel_done(void *arg, const struct adapter_call *result)
{
    struct tombstone *tombstone = call_end(arg);
    if (tombstone && result->result == ADAPTER_OK) {
        tombstone->cancelled = true;
    }
}

static void find_done(void *arg, const struct adapter_call *result)
{
    struct tombstone *tombstone = call_end(arg);
    if (!tombstone || result->result != ADAPTER_OK || !result->report_count) {
        return;
    }
    enum report_state state = result->reports[0].state;
    if (state != REPORT_ABSENT && state != REPORT_ENDED) {
        tombstone->cancelled = false; /* asked again */
        return;
    }
    struct error err;
    if (journal_post_other(tombstone->sweep->context->journal, EVENT_TOMB_CLEAR, tombstone->id,
                           json_object(), NULL, clear_done, tombstone->sweep, &err) == 0) {
        tombstone->busy = true;
    }
}

static void step(struct tombstone *tombstone)
{
    struct members *members = tombstone->sweep->context->members;
    struct sweep_call *call = call_create(tombstone);
    int result = tombstone->cancelled ? member_find(members, &tombstone->ref, find_done, call)
                                      : member_cancel(members, &tombstone->ref, cancel_done, call);
    if (result < 0) {
        (void)call_end(call);
    }
}

static void sweep_cb(void *arg)
{
    struct sweep *sweep = arg;
    if (!picture_is_recovering(sweep->context->picture) &&
        !picture_is_looking(sweep->context->picture)) {
        for (struct tombstone *tombstone = sweep->first; tombstone; tombstone = tombstone->next) {
            if (tombstone->on_disk && !tombstone->busy) {
                step(tombstone);
            }
        }
    }
    timer_start(sweep->timer, SWEEP_EVERY_MS);
}

static void prune_cb(void *arg)
{
    struct sweep *sweep = arg;
    int64_t now = clock_wall_ms(sweep->context->clock);
    sweep->context->store->ops->prune(sweep->context->store,
                                      now - sweep->context->federation->keep.jobs, now);
    timer_start(sweep->pruner, PRUNE_EVERY_MS);
}

/* ------------------------------------------------------------------------------------------- strays */

static void ref_of(const struct sweep *sweep, int cluster, const struct report *report,
                   struct attempt_ref *ref)
{
    memset(ref, 0, sizeof *ref);
    copy_text(ref->job_id, sizeof ref->job_id, report->job_id);
    ref->attempt = report->attempt;
    copy_text(ref->native_id, sizeof ref->native_id, report->native_id);
    copy_text(ref->name, sizeof ref->name, report->name);
    ref->place = &sweep->context->federation->clusters[cluster].places[0];
}

/* The store has never heard of it, or not of so late an attempt: it is older than the world. */
static void world_is_newer(struct sweep *sweep, int cluster, const struct report *report)
{
    if (picture_is_recovering(sweep->context->picture)) {
        return;
    }
    picture_set_recovering(sweep->context->picture, true);
    context_log(
        sweep->context, "error",
        "recovering: %s shows job %s attempt %d, of which the store knows nothing: it is older "
        "than the world. Nothing is submitted, cancelled or deleted until `tieline serve "
        "--accept-world` is started",
        sweep->context->federation->clusters[cluster].name, report->job_id, report->attempt);
}

/* The person who accepted the world wants the next attempt of a job to be the one that is there. It is
 * written down as placed and sent, so that dispatch looks it up and adopts it, however it goes on. */
static void adopt(struct sweep *sweep, int cluster, const struct report *report,
                  struct entry *entry)
{
    const struct context *context = sweep->context;
    const struct cluster *member = &context->federation->clusters[cluster];
    struct error err;
    if (entry->job->state != JOB_QUEUED || entry->op != OP_NONE ||
        report->attempt != entry->job->attempt_count + 1) {
        return; /* an earlier one comes first, or it is shown again */
    }
    queue_remove(context->queue, entry);
    entry->sent = true;
    if (journal_post(context->journal, entry, EVENT_PLACE, report->attempt,
                     json_pack("{s:s, s:s}", "place", member->places[0].name, "reason",
                               "it was found there"),
                     NULL, &err) < 0) {
        entry->sent = false;
        queue_add(context->queue, entry);
        context_log(context, "warn",
                    "job %s: what is at %s was not adopted, will be seen again: %s", entry->job->id,
                    member->name, err.text);
    }
}

/* There is more than the store knows of. entry: of the job, NULL when it is not live. */
static void unheard_of(struct sweep *sweep, int cluster, const struct report *report,
                       struct entry *entry)
{
    struct attempt_ref ref;
    if (!sweep->world_accepted) {
        world_is_newer(sweep, cluster, report);
    } else if (entry) {
        adopt(sweep, cluster, report, entry);
    } else if (report->state == REPORT_ENDED) {
        ref_of(sweep, cluster, report, &ref);
        member_forget(sweep->context->members, &ref);
    }
}

/* An attempt that was given up here and goes on there must end. */
static void end_old(struct sweep *sweep, int cluster, const struct report *report, int known,
                    struct entry *entry)
{
    struct attempt_ref ref;
    ref_of(sweep, cluster, report, &ref);
    if (report->attempt > known) {
        unheard_of(sweep, cluster, report, entry);
    } else if (report->state == REPORT_PENDING || report->state == REPORT_RUNNING) {
        bury(sweep, &ref, "its job has ended or is at another attempt");
    } else if (report->state == REPORT_ENDED) {
        member_forget(sweep->context->members, &ref);
    }
}

/* Whether the store, were it whole, would still hold the job. */
static bool is_kept(const struct sweep *sweep, const struct report *report)
{
    int64_t kept_since_ms =
        clock_wall_ms(sweep->context->clock) - sweep->context->federation->keep.jobs;
    return report->state != REPORT_ENDED || report->ended_ms > kept_since_ms + PRUNE_EVERY_MS;
}

static void lookup_done(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct lookup *lookup = arg;
    struct sweep *sweep = lookup->sweep;
    (void)more;
    sweep->lookups--;
    if (!err->code && !sweep->stopped &&
        !journal_find(sweep->context->journal, lookup->report.job_id)) {
        const json_t *row = json_array_get(rows, 0);
        int known = row ? (int)json_integer_value(json_object_get(row, "attempt")) : -1;
        if (known >= 0) {
            end_old(sweep, lookup->cluster, &lookup->report, known, NULL);
        } else if (is_kept(sweep, &lookup->report)) {
            unheard_of(sweep, lookup->cluster, &lookup->report, NULL);
        }
    }
    free(lookup);
}

void sweep_stray(struct sweep *sweep, int cluster, const struct report *report)
{
    const struct context *context = sweep->context;
    struct entry *entry = journal_find(context->journal, report->job_id);
    bool alive = report->state == REPORT_PENDING || report->state == REPORT_RUNNING;
    if (entry) {
        end_old(sweep, cluster, report, entry->job->attempt_count, entry);
        return;
    }
    /* A member that has no `forget` goes on showing what has ended for a while: that is no stray, and
     * asked for only once, at the start. Beyond LOOKUPS_MAX the ones that were asked stand for the rest. */
    bool known_to_stay = !alive && !member_type(context->members, cluster)->forget &&
                         !picture_is_looking(context->picture);
    if (known_to_stay || sweep->lookups >= LOOKUPS_MAX) {
        return;
    }
    struct lookup *lookup = xcalloc(1, sizeof *lookup);
    lookup->sweep = sweep;
    lookup->cluster = cluster;
    lookup->report = *report;
    sweep->lookups++;
    struct store_filter filter = {.suffix = lookup->report.job_id, .limit = 1};
    context->store->ops->jobs(context->store, &filter, lookup_done, lookup);
}

int sweep_load(struct sweep *sweep, const struct event *event, struct error *err)
{
    struct attempt_ref ref;
    memset(&ref, 0, sizeof ref);
    (void)err;
    copy_text(ref.job_id, sizeof ref.job_id, event_str(event, "job"));
    copy_text(ref.name, sizeof ref.name, event_str(event, "name"));
    copy_text(ref.native_id, sizeof ref.native_id, event_str(event, "native"));
    ref.attempt = (int)event_int(event, "attempt");
    ref.intent_ms = event_int(event, "intent");
    ref.place = federation_place(sweep->context->federation, event_str(event, "place"));
    if (!ref.place) {
        context_log(sweep->context, "error",
                    "%s should be deleted, and its member is not configured", event->id);
        return 0;
    }
    add(sweep, event->id, &ref, event->at_ms)->on_disk = true;
    return 0;
}

void sweep_accept_world(struct sweep *sweep)
{
    sweep->world_accepted = true;
}

bool sweep_is_settled(const struct sweep *sweep)
{
    return sweep->lookups == 0;
}

int64_t sweep_count(const struct sweep *sweep)
{
    return sweep->count;
}

int64_t sweep_oldest_ms(const struct sweep *sweep)
{
    int64_t oldest = 0;
    int64_t now = clock_wall_ms(sweep->context->clock);
    for (const struct tombstone *tombstone = sweep->first; tombstone; tombstone = tombstone->next) {
        oldest = now - tombstone->since_ms > oldest ? now - tombstone->since_ms : oldest;
    }
    return oldest;
}

struct sweep *sweep_create(struct context *context)
{
    struct sweep *sweep = xcalloc(1, sizeof *sweep);
    sweep->context = context;
    map_init(&sweep->by_id);
    sweep->timer = clock_timer(context->clock, sweep_cb, sweep);
    sweep->pruner = clock_timer(context->clock, prune_cb, sweep);
    return sweep;
}

void sweep_start(struct sweep *sweep)
{
    timer_start(sweep->timer, SWEEP_EVERY_MS);
    timer_start(sweep->pruner, PRUNE_EVERY_MS);
}

void sweep_stop(struct sweep *sweep)
{
    sweep->stopped = true;
    timer_stop(sweep->timer);
    timer_stop(sweep->pruner);
}

void sweep_destroy(struct sweep *sweep)
{
    if (!sweep) {
        return;
    }
    while (sweep->first) {
        drop(sweep, sweep->first);
    }
    map_fini(&sweep->by_id);
    timer_destroy(sweep->timer);
    timer_destroy(sweep->pruner);
    free(sweep);
}
