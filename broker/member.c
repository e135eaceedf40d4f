/* member.c - the one place where adapters are called.
 *
 * A call is copied into a heap object that outlives both the caller's interest and a late adapter: when
 * the deadline passes, done runs with UNKNOWN; what the adapter answers later is dropped. A submit that
 * is late is therefore UNSURE, never aborted. */
#include "broker/member.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum verb { VERB_PROBE, VERB_POLL, VERB_SUBMIT, VERB_FIND, VERB_CANCEL, VERB_LOG };
static const char *const verb_names[] = {"probe", "poll", "submit", "find", "cancel", "log"};

struct member;
struct member_call {
    struct adapter_call call; /* first: the adapter hands it back */
    struct member *member;
    enum verb verb;
    struct submit submit;
    struct spec *spec;
    char *owner;
    int64_t offset;
    member_done_fn done; /* NULL once it has run */
    void *arg;
    struct timer *timer;
    int64_t start_ms;
    struct member_call *prev, *next;
};

struct member {
    struct members *members;
    struct adapter *adapter;
    struct member_call *active;           /* given to the adapter */
    struct member_call *line, *line_last; /* waiting, oldest first */
    struct member_stats stats;
};

struct members {
    struct context *context;
    struct adapter_env env;
    struct member *items;
    size_t count;
    bool closing;
};

static void call_free(struct member_call *call)
{
    timer_destroy(call->timer);
    spec_unref(call->spec);
    free(call->owner);
    free(call);
}

static void unlink_active(struct member_call *call)
{
    *(call->prev ? &call->prev->next : &call->member->active) = call->next;
    if (call->next) {
        call->next->prev = call->prev;
    }
    call->member->stats.under_way--;
}

static void finish(struct member_call *call)
{
    struct member *member = call->member;
    member_done_fn done = call->done;
    call->done = NULL;
    timer_stop(call->timer);
    member->stats.calls[call->call.result]++;
    member->stats.last_us =
        (clock_mono_ms(member->members->context->clock) - call->start_ms) * 1000;
    done(call->arg, &call->call);
}

/* The deadline. The adapter still owns the call and will answer it one day; the caller is told now. */
static void late_cb(void *arg)
{
    struct member_call *call = arg;
    struct adapter_call late = call->call;
    late.result = ADAPTER_UNKNOWN;
    late.reports = NULL;
    late.report_count = 0;
    late.conditions = NULL;
    late.text = NULL;
    error_set(&late.err, ERROR_TIMEOUT, "%s: no answer to %s within %d s",
              call->member->adapter->cluster->name, verb_names[call->verb], LIMIT_CALL_MS / 1000);
    call->member->stats.calls[ADAPTER_UNKNOWN]++;
    member_done_fn done = call->done;
    call->done = NULL;
    done(call->arg, &late);
}

static void start(struct member_call *call)
{
    struct member *member = call->member;
    struct adapter *adapter = member->adapter;
    call->next = member->active;
    call->prev = NULL;
    if (call->next) {
        call->next->prev = call;
    }
    member->active = call;
    member->stats.under_way++;
    call->start_ms = clock_mono_ms(member->members->context->clock);
    call->call.deadline_ms = call->start_ms + LIMIT_CALL_MS;
    timer_start(call->timer, LIMIT_CALL_MS);
    switch (call->verb) {
    case VERB_PROBE: adapter->type->probe(adapter, &call->call); break;
    case VERB_POLL: adapter->type->poll(adapter, &call->call); break;
    case VERB_SUBMIT: adapter->type->submit(adapter, &call->submit, &call->call); break;
    case VERB_FIND: adapter->type->find(adapter, &call->submit.ref, &call->call); break;
    case VERB_CANCEL: adapter->type->cancel(adapter, &call->submit.ref, &call->call); break;
    case VERB_LOG: adapter->type->log(adapter, &call->submit.ref, call->offset, &call->call); break;
    }
}

static void pump(struct member *member)
{
    while (member->line && member->stats.under_way < LIMIT_MEMBER_CALLS) {
        struct member_call *call = member->line;
        member->line = call->next;
        member->line_last = member->line ? member->line_last : NULL;
        member->stats.in_line--;
        start(call);
    }
}

/* The adapter's answer. */
static void answered_cb(struct adapter_call *adapter_call)
{
    struct member_call *call = (struct member_call *)adapter_call;
    struct member *member = call->member;
    unlink_active(call);
    if (call->done) {
        finish(call);
    }
    call_free(call);
    if (!member->members->closing) {
        pump(member);
    }
}

/* Looks are asked again by their own timers; submits and cancels wait in line. */
static int enqueue(struct members *members, int cluster, enum verb verb,
                   const struct attempt_ref *ref, struct spec *spec, const char *owner,
                   int64_t offset, member_done_fn done, void *arg)
{
    struct member *member = &members->items[cluster];
    /* A look at the member, one of each kind at most, goes before all work: it tells whether it hangs. */
    bool look = verb == VERB_PROBE || verb == VERB_POLL;
    if (members->closing || (!look && member->stats.in_line >= LIMIT_MEMBER_LINE)) {
        return -1;
    }
    struct member_call *call = xcalloc(1, sizeof *call);
    call->member = member;
    call->verb = verb;
    if (ref) {
        call->submit.ref = *ref;
    }
    call->spec = spec ? spec_ref(spec) : NULL;
    call->owner = xstrdup(owner);
    call->submit.spec = call->spec;
    call->submit.owner = call->owner;
    call->offset = offset;
    call->done = done;
    call->arg = arg;
    call->call.done = answered_cb;
    call->timer = clock_timer(members->context->clock, late_cb, call);
    call->next = look ? member->line : NULL;
    *(look || !member->line_last ? &member->line : &member->line_last->next) = call;
    member->line_last = call->next ? member->line_last : call;
    member->stats.in_line++;
    pump(member);
    return 0;
}

int member_probe(struct members *members, int cluster, member_done_fn done, void *arg)
{
    return enqueue(members, cluster, VERB_PROBE, NULL, NULL, NULL, 0, done, arg);
}

int member_poll(struct members *members, int cluster, member_done_fn done, void *arg)
{
    return enqueue(members, cluster, VERB_POLL, NULL, NULL, NULL, 0, done, arg);
}

int member_submit(struct members *members, const struct attempt_ref *ref, struct spec *spec,
                  const char *owner, member_done_fn done, void *arg)
{
    return enqueue(members, ref->place->cluster->index, VERB_SUBMIT, ref, spec, owner, 0, done,
                   arg);
}

int member_find(struct members *members, const struct attempt_ref *ref, member_done_fn done,
                void *arg)
{
    return enqueue(members, ref->place->cluster->index, VERB_FIND, ref, NULL, NULL, 0, done, arg);
}

int member_cancel(struct members *members, const struct attempt_ref *ref, member_done_fn done,
                  void *arg)
{
    return enqueue(members, ref->place->cluster->index, VERB_CANCEL, ref, NULL, NULL, 0, done, arg);
}

int member_log(struct members *members, const struct attempt_ref *ref, int64_t offset,
               member_done_fn done, void *arg)
{
    return enqueue(members, ref->place->cluster->index, VERB_LOG, ref, NULL, NULL, offset, done,
                   arg);
}

void member_forget(struct members *members, const struct attempt_ref *ref)
{
    struct adapter *adapter = members->items[ref->place->cluster->index].adapter;
    if (adapter->type->forget) {
        adapter->type->forget(adapter, ref);
    }
}

int member_render(struct members *members, const struct attempt_ref *ref, struct spec *spec,
                  const char *owner, char **text, struct error *err)
{
    struct adapter *adapter = members->items[ref->place->cluster->index].adapter;
    if (!adapter->type->render) {
        return error_set(err, ERROR_INVALID, "%s: jobs there cannot be rendered", ref->place->name);
    }
    struct submit submit = {.ref = *ref, .spec = spec, .owner = owner};
    return adapter->type->render(&members->env, &submit, text, err);
}

const struct adapter_type *member_type(const struct members *members, int cluster)
{
    return members->items[cluster].adapter->type;
}

bool member_has_room(const struct members *members, int cluster)
{
    const struct member_stats *stats = &members->items[cluster].stats;
    return stats->under_way + stats->in_line < LIMIT_MEMBER_CALLS;
}

void member_stats(const struct members *members, int cluster, struct member_stats *out)
{
    *out = members->items[cluster].stats;
}

void attempt_ref_init(struct attempt_ref *ref, const struct federation *federation,
                      const struct job *job, const struct attempt *attempt)
{
    memset(ref, 0, sizeof *ref);
    copy_text(ref->job_id, sizeof ref->job_id, job->id);
    ref->attempt = attempt->number;
    attempt_remote_name(job, attempt->number, ref->name);
    copy_text(ref->native_id, sizeof ref->native_id, attempt->native_id);
    ref->place = federation_place(federation, attempt->place);
    ref->intent_ms = attempt->placed_ms;
}

int members_create(struct context *context, const struct adapter_env *env, struct members **out,
                   struct error *err)
{
    const struct federation *federation = context->federation;
    struct members *members = xcalloc(1, sizeof *members);
    members->context = context;
    members->env = *env;
    members->items = xcalloc(federation->cluster_count, sizeof *members->items);
    for (size_t i = 0; i < federation->cluster_count; i++) {
        const struct cluster *cluster = &federation->clusters[i];
        members->items[i].members = members;
        if (cluster->adapter->open(&members->env, cluster, &members->items[i].adapter, err) < 0) {
            error_prefix(err, "clusters.%s", cluster->name);
            members_destroy(members);
            return -1;
        }
        members->count++;
    }
    *out = members;
    return 0;
}

void members_destroy(struct members *members)
{
    if (!members) {
        return;
    }
    members->closing = true;
    for (size_t i = 0; i < members->count; i++) {
        struct member *member = &members->items[i];
        while (member->line) {
            struct member_call *call = member->line;
            member->line = call->next;
            call->call.result = ADAPTER_UNKNOWN;
            error_set(&call->call.err, ERROR_UNAVAILABLE, "the broker stops");
            finish(call);
            call_free(call);
        }
        member->adapter->type->close(member->adapter);
    }
    free(members->items);
    free(members);
}
