#include "broker/explain.h"

#include "broker/admit.h"
#include "broker/core/alloc.h"
#include "broker/journal.h"
#include "broker/lookup.h"
#include "broker/member.h"
#include "broker/picture.h"
#include "broker/present.h"
#include "broker/queue.h"
#include "broker/subject.h"

#include <stdlib.h>
#include <string.h>

struct ask {
    struct context *context;
    json_t *body;
    struct error err;
    struct timer *timer;
    reply_fn reply;
    void *arg;
};

static void answer(struct ask *ask, const struct error *err)
{
    struct error none;
    error_clear(&none);
    ask->reply(ask->arg, err ? NULL : ask->body, err ? err : &none);
    json_decref(ask->body);
    timer_destroy(ask->timer);
    free(ask);
}

static json_t *bursts_to_json(struct context *context)
{
    const struct view *view = picture_view(context->picture);
    json_t *bursts = json_array();
    for (size_t i = 0; i < context->rules->bursts.count; i++) {
        const struct burst_rule *rule = RULES_AT(context->rules->bursts, struct burst_rule, i);
        const struct burst_memory *memory = picture_burst(context->picture, (int)i);
        json_t *burst = json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "name", rule->name, "state",
                                  burst_state_name(memory->state), "why", memory->why, "jobs",
                                  (json_int_t)view->bursts[i].jobs, "nodes_milli",
                                  (json_int_t)view->bursts[i].nodes, "budget",
                                  rule->budget ? rule->budget : "");
        present_time(burst, "since", picture_burst_since(context->picture, (int)i));
        json_array_append_new(bursts, burst);
    }
    return bursts;
}

static json_t *budgets_to_json(struct context *context)
{
    static const char *const pers[] = {"job", "day", "week", "month", "year"};
    const struct view *view = picture_view(context->picture);
    json_t *budgets = json_array();
    for (size_t i = 0; i < context->rules->budgets.count; i++) {
        const struct budget_rule *rule = RULES_AT(context->rules->budgets, struct budget_rule, i);
        const char *currency = context->rules->currency;
        json_t *budget = json_pack("{s:s, s:s}", "name", rule->name, "per", pers[rule->per]);
        present_money(budget, "limit", rule->limit.nano, currency);
        present_money(budget, "settled", view->budgets[i].settled, currency);
        present_money(budget, "booked", view->budgets[i].booked, currency);
        json_array_append_new(budgets, budget);
    }
    return budgets;
}

json_t *explain_money(struct context *context)
{
    return json_pack("{s:s, s:o, s:o}", "currency", context->rules->currency, "bursts",
                     bursts_to_json(context), "budgets", budgets_to_json(context));
}

static json_t *decision_now(struct context *context, const struct subject *subject)
{
    struct decision decision;
    memset(&decision, 0, sizeof decision);
    const struct view *view = picture_view(context->picture);
    decide(view, subject, &decision);
    json_t *json = decision_to_json(&decision, view);
    decision_fini(&decision);
    return json;
}

/* Everything but the decision. */
static json_t *frame(struct context *context)
{
    json_t *body = explain_money(context);
    char hash[RULES_HASH_SIZE];
    copy_text(hash, RULES_HASH_SHORT + 1, context->rules->hash);
    json_object_set_new(body, "policy", json_string(hash));
    return body;
}

static void put_position(struct context *context, json_t *body, const struct job *job)
{
    const struct entry *entry = journal_find(context->journal, job->id);
    int64_t before, of;
    if (entry && entry->shape) {
        queue_position(context->queue, entry, &before, &of);
        json_object_set_new(body, "position",
                            json_pack("{s:I, s:I, s:s}", "before", (json_int_t)before, "of",
                                      (json_int_t)of, "class", job->spec->class_name));
    }
}

static void decision_read(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct ask *ask = arg;
    (void)more;
    const char *text =
        err->code ? NULL : json_string_value(json_object_get(json_array_get(rows, 0), "text"));
    json_error_t json_err;
    json_t *decision = text ? json_loads(text, 0, &json_err) : NULL;
    json_object_set_new(ask->body, "decision", decision ? decision : json_null());
    json_object_set_new(ask->body, "decided", json_string("then"));
    answer(ask, err->code ? err : NULL);
}

static void found(void *arg, const struct job *job, const struct error *err)
{
    struct ask *ask = arg;
    struct context *context = ask->context;
    if (!job) {
        answer(ask, err);
        return;
    }
    ask->body = frame(context);
    json_object_set_new(ask->body, "job", job_present(job, context->rules->currency, NULL, true));
    put_position(context, ask->body, job);
    const struct attempt *attempt = job_attempt(job);
    bool waits = job->state == JOB_QUEUED || job->state == JOB_HELD;
    if (!waits && attempt) {
        context->store->ops->docs(context->store, STORE_DECISIONS, attempt->decision, 1,
                                  decision_read, ask);
        return;
    }
    if (waits) {
        struct subject subject;
        subject_init(&subject, job, clock_wall_ms(context->clock));
        json_object_set_new(ask->body, "decision", decision_now(context, &subject));
        json_object_set_new(ask->body, "decided", json_string("now"));
        subject_fini(&subject);
    } else {
        json_object_set_new(ask->body, "decision", json_null());
    }
    answer(ask, NULL);
}

static struct ask *ask_create(struct context *context, reply_fn reply, void *arg)
{
    struct ask *ask = xcalloc(1, sizeof *ask);
    ask->context = context;
    ask->reply = reply;
    ask->arg = arg;
    return ask;
}

void explain_job(const struct reader *reader, const char *id, reply_fn reply, void *arg)
{
    lookup_job(reader->context, id, found, ask_create(reader->context, reply, arg));
}

/* ---------------------------------------------------------------------------------------- imagined */

/* What would be sent for the first attempt of this job. */
static int render_text(struct context *context, const struct caller *caller, struct spec *spec,
                       const char *place_name, char **text, struct error *err)
{
    const struct place *place = federation_place(context->federation, place_name);
    if (!place) {
        return error_set(err, ERROR_INVALID, "there is no place '%s'", place_name);
    }
    char id[ID_SIZE];
    id_make(context->clock, 'j', id);
    struct job *job = job_create(id);
    struct event *event =
        event_create(EVENT_SUBMIT, id, 0, clock_wall_ms(context->clock),
                     job_submit_data(spec, caller->owner, spec->team, NULL, NULL));
    struct attempt attempt = {.number = 1, .placed_ms = clock_wall_ms(context->clock)};
    copy_text(attempt.place, sizeof attempt.place, place->name);
    int result = job_apply(job, event, err);
    if (result == 0) {
        struct attempt_ref ref;
        struct spec *resolved = spec_at(spec, place);
        attempt_ref_init(&ref, context->federation, job, &attempt);
        result = member_render(context->members, &ref, resolved, caller->owner, text, err);
        spec_unref(resolved);
    }
    event_destroy(event);
    job_unref(job);
    return result;
}

static void later_cb(void *arg)
{
    struct ask *ask = arg;
    answer(ask, ask->err.code ? &ask->err : NULL);
}

static int imagine(struct ask *ask, const struct caller *caller, const struct value *value,
                   const char *render)
{
    struct context *context = ask->context;
    struct spec *spec;
    char *text = NULL;
    if (admit(context, caller, value, &spec, &ask->err) < 0) {
        return -1;
    }
    if (render && render_text(context, caller, spec, render, &text, &ask->err) < 0) {
        spec_unref(spec);
        return -1;
    }
    struct subject subject = {.spec = spec, .owner = caller->owner};
    ask->body = frame(context);
    json_object_set_new(ask->body, "spec", spec_to_json(spec));
    json_object_set_new(ask->body, "decision", decision_now(context, &subject));
    json_object_set_new(ask->body, "decided", json_string("now"));
    if (text) {
        json_object_set_new(ask->body, "render", json_string(text));
        free(text);
    }
    spec_unref(spec);
    return 0;
}

void explain_imagined(struct context *context, const struct caller *caller,
                      const struct value *value, const char *render, reply_fn reply, void *arg)
{
    struct ask *ask = ask_create(context, reply, arg);
    error_clear(&ask->err);
    (void)imagine(ask, caller, value, render); /* its error is the answer */
    ask->timer = clock_timer(context->clock, later_cb, ask);
    timer_start(ask->timer, 0);
}
