/* watch.c - two loops for each member: a probe (condition of its places) and a listing (our attempts).
 *
 * A listing is compared with what the journal holds; each difference becomes one event, if the job is
 * not busy; else the next listing says it again. What a complete listing does not show is not over: after
 * MISSES listings it is looked up by its tag, and only the answer to that counts. "I cannot reach it" is
 * unknown: after LOSE_AFTER_MS of silence the attempts there are UNKNOWN until the member answers.
 *
 * A report is compared with the journal as it is when the report arrives. So that a slow listing cannot
 * speak of what happened after it began, absence counts only for attempts accepted before it began. */
#include "broker/watch.h"

#include "broker/core/alloc.h"
#include "broker/member.h"
#include "broker/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POLL_BUSY_MS = 1000,   /* between two listings while something of ours is there */
    LOSE_AFTER_MS = 30000, /* of silence */
    MISSES = 2
};

struct member_watch {
    struct watch *watch;
    const struct cluster *cluster;
    struct timer *probe_timer, *poll_timer;
    int64_t probe_sent_ms, poll_sent_ms, poll_due_ms;
    bool probing, polling;
    bool looked; /* a listing has ended, well or not */
    int64_t round;
};

struct watch {
    struct context *context;
    struct watch_hooks hooks;
    struct member_watch *members;
    bool stopped;
    struct lateness lateness;
};

struct find_call { /* a look-up of one attempt that a listing did not show */
    struct watch *watch;
    char job_id[ID_SIZE];
    int attempt;
};

static int64_t mono(const struct watch *watch)
{
    return clock_mono_ms(watch->context->clock);
}

static void post(struct watch *watch, struct entry *entry, enum event_kind kind, json_t *data,
                 struct store_doc *doc)
{
    struct error err;
    if (journal_post(watch->context->journal, entry, kind, entry->job->attempt_count, data, doc,
                     &err) < 0) {
        context_log(watch->context, "warn", "job %s: %s was not written, will be seen again: %s",
                    entry->job->id, event_name(kind), err.text);
    }
}

/* ----------------------------------------------------------------------------------------- reports */

static void post_end(struct watch *watch, struct entry *entry, const struct report *report)
{
    struct context *context = watch->context;
    const struct attempt *attempt = job_attempt(entry->job);
    int64_t ended = report->ended_ms ? report->ended_ms : clock_wall_ms(context->clock);
    /* What cannot be known is settled as it was booked: a budget holds. */
    int64_t settled = report->outcome == OUTCOME_OUTCOME_UNKNOWN
                          ? attempt->booked
                          : picture_rent(attempt, report->started_ms, ended);
    char reason[REASON_SIZE];
    copy_text(reason, sizeof reason, report->reason);
    if (report->outcome == OUTCOME_CANCELLED && report->by[0]) {
        (void)snprintf(reason, sizeof reason, "cancelled there by %s", report->by);
    }
    struct store_doc *doc = picture_settle(context->picture, entry, settled);
    json_t *data = json_pack(
        "{s:s, s:i, s:i, s:s, s:I, s:I, s:I}", "outcome", outcome_name(report->outcome),
        "exit_code", report->exit_code, "signal", report->signal, "reason", reason, "started",
        (json_int_t)report->started_ms, "ended", (json_int_t)ended, "settled", (json_int_t)settled);
    struct error err;
    if (journal_post(context->journal, entry, EVENT_END, entry->job->attempt_count, data, doc,
                     &err) < 0) {
        store_doc_destroy(picture_settle(context->picture, entry, -settled));
        context_log(context, "warn", "job %s: its end was not written, will be seen again: %s",
                    entry->job->id, err.text);
    }
}

/* One difference between a report and the current attempt becomes one event. */
static void apply_report(struct watch *watch, struct entry *entry, const struct report *report)
{
    enum attempt_state state = job_attempt(entry->job)->state;
    bool there = state == ATTEMPT_ACCEPTED || state == ATTEMPT_RUNNING || state == ATTEMPT_UNKNOWN;
    if (!there) {
        return; /* dispatch is still asking, or it has ended */
    }
    if (report->state == REPORT_ENDED) {
        post_end(watch, entry, report);
    } else if (report->state == REPORT_RUNNING && state != ATTEMPT_RUNNING) {
        post(watch, entry, EVENT_START, json_pack("{s:I}", "at", (json_int_t)report->started_ms),
             NULL);
    } else if (report->state == REPORT_PENDING && state == ATTEMPT_UNKNOWN) {
        post(watch, entry, EVENT_FOUND, json_object(), NULL);
    }
}

/* It was given up here, and goes on there all the same: a submit that came very late. */
static bool is_back(const struct attempt *attempt, const struct report *report)
{
    bool given_up = attempt->state == ATTEMPT_ENDED &&
                    (attempt->outcome == OUTCOME_ABSENT || attempt->outcome == OUTCOME_GONE ||
                     attempt->outcome == OUTCOME_REJECTED);
    return given_up && (report->state == REPORT_PENDING || report->state == REPORT_RUNNING);
}

static void take_report(struct member_watch *member, const struct report *report)
{
    struct watch *watch = member->watch;
    struct entry *entry = journal_find(watch->context->journal, report->job_id);
    if (!entry || entry->job->attempt_count != report->attempt) {
        watch->hooks.stray(watch->hooks.arg, member->cluster->index, report);
        return;
    }
    const struct attempt *attempt = job_attempt(entry->job);
    const struct place *place = federation_place(watch->context->federation, attempt->place);
    if (!place || place->cluster != member->cluster || is_back(attempt, report)) {
        watch->hooks.stray(watch->hooks.arg, member->cluster->index, report);
        return;
    }
    if (attempt->native_id[0] && report->native_id[0] &&
        strcmp(attempt->native_id, report->native_id) != 0) {
        return; /* a twin of the same name, or an id that was used again: never mistaken for it */
    }
    entry->round = member->round;
    entry->missed = 0;
    entry->waits = report->state == REPORT_PENDING ? report->attempt : 0;
    if (entry->op == OP_NONE) {
        apply_report(watch, entry, report);
    }
}

/* ----------------------------------------------------------------------------- what is not shown */

static void find_done(void *arg, const struct adapter_call *result)
{
    struct find_call *call = arg;
    struct watch *watch = call->watch;
    struct entry *entry = journal_find(watch->context->journal, call->job_id);
    bool same = entry && entry->job->attempt_count == call->attempt;
    free(call);
    if (!entry) {
        return;
    }
    entry->finding = false;
    if (!same || watch->stopped || result->result != ADAPTER_OK || !result->report_count ||
        entry->op != OP_NONE || !job_attempt(entry->job)) {
        return;
    }
    struct report report = result->reports[0];
    if (report.state == REPORT_ABSENT) {
        /* It was there and is there no more: nobody can say how it ended. It is not run again. */
        report.state = REPORT_ENDED;
        report.outcome = OUTCOME_OUTCOME_UNKNOWN;
        if (!report.reason[0]) {
            copy_text(report.reason, sizeof report.reason,
                      "the member no longer knows it, and not how it ended");
        }
    }
    apply_report(watch, entry, &report);
}

static void look_up(struct watch *watch, struct entry *entry)
{
    struct attempt_ref ref;
    attempt_ref_init(&ref, watch->context->federation, entry->job, job_attempt(entry->job));
    struct find_call *call = xcalloc(1, sizeof *call);
    call->watch = watch;
    copy_text(call->job_id, sizeof call->job_id, entry->job->id);
    call->attempt = entry->job->attempt_count;
    if (member_find(watch->context->members, &ref, find_done, call) < 0) {
        free(call);
        return;
    }
    entry->finding = true;
}

static void note_missing(struct member_watch *member)
{
    struct watch *watch = member->watch;
    for (size_t i = 0; i < member->cluster->place_count; i++) {
        struct entry *entry =
            picture_bookings(watch->context->picture, member->cluster->places[i].index);
        for (; entry; entry = entry->booking.next) {
            bool before =
                entry->booking.accepted_ms && entry->booking.accepted_ms < member->poll_sent_ms;
            if (!before || entry->round == member->round) {
                continue;
            }
            if (++entry->missed >= MISSES && !entry->finding && entry->op == OP_NONE) {
                look_up(watch, entry);
            }
        }
    }
}

/* --------------------------------------------------------------------------------------- silence */

static void post_cluster(struct watch *watch, const struct cluster *cluster, enum event_kind kind,
                         const char *reason)
{
    struct error err;
    if (journal_post_other(watch->context->journal, kind, cluster->name,
                           json_pack("{s:s}", "reason", reason), NULL, NULL, NULL, &err) < 0) {
        context_log(watch->context, "warn", "%s: %s was not written: %s", cluster->name,
                    event_name(kind), err.text);
    }
}

static void answered(struct member_watch *member)
{
    struct watch *watch = member->watch;
    if (!picture_is_reachable(watch->context->picture, member->cluster->index)) {
        context_log(watch->context, "info", "%s answers", member->cluster->name);
        post_cluster(watch, member->cluster, EVENT_UP, "it answers");
    }
}

static void silent(struct member_watch *member, const char *why)
{
    struct watch *watch = member->watch;
    if (picture_silent(watch->context->picture, member->cluster->index, why)) {
        context_log(watch->context, "warn", "%s does not answer: %s", member->cluster->name, why);
        post_cluster(watch, member->cluster, EVENT_DOWN, why);
        watch->hooks.changed(watch->hooks.arg);
    }
}

/* What is at a member that has been silent for long is unknown. Not when all members are dark: then
 * the broker suspects itself. */
static void lose(struct member_watch *member)
{
    struct watch *watch = member->watch;
    struct picture *picture = watch->context->picture;
    int dark, known;
    picture_dark(picture, &dark, &known);
    if ((known > 1 && dark == known) ||
        picture_silent_ms(picture, member->cluster->index) < LOSE_AFTER_MS) {
        return;
    }
    for (size_t i = 0; i < member->cluster->place_count; i++) {
        struct entry *entry = picture_bookings(picture, member->cluster->places[i].index);
        for (; entry; entry = entry->booking.next) {
            const struct attempt *attempt = job_attempt(entry->job);
            if (entry->op == OP_NONE && attempt &&
                (attempt->state == ATTEMPT_ACCEPTED || attempt->state == ATTEMPT_RUNNING)) {
                post(watch, entry, EVENT_LOSE,
                     json_pack("{s:s}", "reason", picture_fault(picture, member->cluster->index)),
                     NULL);
            }
        }
    }
}

/* ----------------------------------------------------------------------------------------- listing */

static int64_t busy_ms(const struct member_watch *member)
{
    int64_t own = member->cluster->adapter->poll_ms;
    return own ? own : POLL_BUSY_MS;
}

static bool has_work(const struct member_watch *member)
{
    for (size_t i = 0; i < member->cluster->place_count; i++) {
        if (picture_bookings(member->watch->context->picture, member->cluster->places[i].index)) {
            return true;
        }
    }
    return false;
}

static void plan_poll(struct member_watch *member, int64_t delay_ms)
{
    member->poll_due_ms = mono(member->watch) + delay_ms;
    timer_start(member->poll_timer, delay_ms);
}

static void poll_done(void *arg, const struct adapter_call *result)
{
    struct member_watch *member = arg;
    struct watch *watch = member->watch;
    member->polling = false;
    if (watch->stopped) {
        return;
    }
    member->looked = true;
    if (result->result == ADAPTER_OK) {
        for (size_t i = 0; i < result->report_count; i++) {
            take_report(member, &result->reports[i]);
        }
        note_missing(member);
    } else {
        silent(member, result->err.text);
        lose(member);
    }
    plan_poll(member, has_work(member) ? busy_ms(member) : member->cluster->probe);
}

static void poll_cb(void *arg)
{
    struct member_watch *member = arg;
    struct watch *watch = member->watch;
    if (member->polling || watch->stopped) {
        return;
    }
    member->poll_sent_ms = mono(watch);
    lateness_note(&watch->lateness, member->poll_sent_ms - member->poll_due_ms);
    member->round++;
    if (member_poll(watch->context->members, member->cluster->index, poll_done, member) < 0) {
        plan_poll(member, POLL_BUSY_MS);
        return;
    }
    member->polling = true;
}

void watch_soon(struct watch *watch, const char *place_name)
{
    const struct place *place = federation_place(watch->context->federation, place_name);
    if (!place) {
        return;
    }
    struct member_watch *member = &watch->members[place->cluster->index];
    if (!member->polling && member->poll_due_ms - mono(watch) > busy_ms(member)) {
        plan_poll(member, busy_ms(member));
    }
}

/* ------------------------------------------------------------------------------------------ probes */

static void probe_done(void *arg, const struct adapter_call *result)
{
    struct member_watch *member = arg;
    struct watch *watch = member->watch;
    member->probing = false;
    if (watch->stopped) {
        return;
    }
    if (result->result == ADAPTER_OK && result->conditions) {
        answered(member);
        if (picture_condition(watch->context->picture, member->cluster->index, result->conditions,
                              result->version, member->probe_sent_ms,
                              mono(watch) - member->probe_sent_ms)) {
            watch->hooks.changed(watch->hooks.arg);
        }
    } else {
        silent(member, result->err.text);
        lose(member);
    }
    timer_start(member->probe_timer, member->cluster->probe);
}

static void probe_cb(void *arg)
{
    struct member_watch *member = arg;
    struct watch *watch = member->watch;
    if (member->probing || watch->stopped) {
        return;
    }
    member->probe_sent_ms = mono(watch);
    if (member_probe(watch->context->members, member->cluster->index, probe_done, member) < 0) {
        timer_start(member->probe_timer, POLL_BUSY_MS);
        return;
    }
    member->probing = true;
}

bool watch_has_seen_all(const struct watch *watch)
{
    for (size_t i = 0; i < watch->context->federation->cluster_count; i++) {
        if (!watch->members[i].looked) {
            return false;
        }
    }
    return true;
}

const struct lateness *watch_lateness(const struct watch *watch)
{
    return &watch->lateness;
}

struct watch *watch_create(struct context *context, const struct watch_hooks *hooks)
{
    struct watch *watch = xcalloc(1, sizeof *watch);
    watch->context = context;
    watch->hooks = *hooks;
    watch->members = xcalloc(context->federation->cluster_count, sizeof *watch->members);
    for (size_t i = 0; i < context->federation->cluster_count; i++) {
        struct member_watch *member = &watch->members[i];
        member->watch = watch;
        member->cluster = &context->federation->clusters[i];
        member->probe_timer = clock_timer(context->clock, probe_cb, member);
        member->poll_timer = clock_timer(context->clock, poll_cb, member);
    }
    return watch;
}

void watch_start(struct watch *watch)
{
    for (size_t i = 0; i < watch->context->federation->cluster_count; i++) {
        timer_start(watch->members[i].probe_timer, 0);
        plan_poll(&watch->members[i], 0);
    }
}

void watch_stop(struct watch *watch)
{
    watch->stopped = true;
    for (size_t i = 0; i < watch->context->federation->cluster_count; i++) {
        timer_stop(watch->members[i].probe_timer);
        timer_stop(watch->members[i].poll_timer);
    }
}

void watch_destroy(struct watch *watch)
{
    if (!watch) {
        return;
    }
    for (size_t i = 0; i < watch->context->federation->cluster_count; i++) {
        timer_destroy(watch->members[i].probe_timer);
        timer_destroy(watch->members[i].poll_timer);
    }
    free(watch->members);
    free(watch);
}
