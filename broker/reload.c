#include "broker/reload.h"

#include "broker/core/alloc.h"
#include "broker/journal.h"
#include "broker/picture.h"
#include "broker/present.h"
#include "broker/queue.h"

#include <stdlib.h>
#include <string.h>

struct reload {
    struct context *context;
    rules_parse_fn parse;
    rules_destroy_fn destroy;
    void (*changed)(void *arg);
    void *arg;
    int64_t since_ms; /* wall; 0: this policy was never live */
    char by[PLACE_SIZE];
};

struct policy_op {
    struct reload *reload;
    struct rules *rules;
    char by[PLACE_SIZE];
    int64_t since_ms;
    reply_fn reply; /* NULL: at start */
    void *arg;
    struct error err;
    json_t *body;
    struct timer *timer;
};

static void policy_answer(struct policy_op *op)
{
    if (op->reply) {
        op->reply(op->arg, op->body, &op->err);
    }
    json_decref(op->body);
    timer_destroy(op->timer);
    free(op);
}

json_t *reload_present(const struct reload *reload)
{
    json_t *body =
        json_pack("{s:s, s:s, s:s}", "hash", reload->context->rules->hash, "by", reload->by, "text",
                  reload->context->rules->text ? reload->context->rules->text : "");
    present_time(body, "since", reload->since_ms);
    return body;
}

static void policy_live(void *arg, const struct event *event, const struct error *err)
{
    struct policy_op *op = arg;
    struct reload *reload = op->reload;
    (void)event;
    op->err = *err;
    if (err->code) {
        if (op->rules != reload->context->rules) {
            reload->destroy(op->rules);
        }
        policy_answer(op);
        return;
    }
    reload->since_ms = op->since_ms;
    copy_text(reload->by, sizeof reload->by, op->by);
    if (op->rules != reload->context->rules) {
        struct rules *old = reload->context->rules;
        json_t *sums = picture_budgets(reload->context->picture);
        reload->context->rules = op->rules;
        picture_rules_changed(reload->context->picture, sums);
        queue_rules_changed(reload->context->queue);
        json_decref(sums);
        reload->destroy(old);
        context_log(reload->context, "info", "policy %.*s is live", RULES_HASH_SHORT,
                    op->rules->hash);
    }
    reload->changed(reload->arg);
    op->body = reload_present(reload);
    policy_answer(op);
}

static void policy_post(struct policy_op *op)
{
    struct reload *reload = op->reload;
    op->since_ms = clock_wall_ms(reload->context->clock);
    json_t *doc =
        json_pack("{s:s, s:s, s:I, s:s}", "hash", op->rules->hash, "by", op->by, "since",
                  (json_int_t)op->since_ms, "text", op->rules->text ? op->rules->text : "");
    if (journal_post_other(reload->context->journal, EVENT_POLICY_LIVE, op->rules->hash,
                           json_pack("{s:s}", "by", op->by),
                           store_doc_create(STORE_POLICIES, op->rules->hash, op->since_ms, doc),
                           policy_live, op, &op->err) < 0) {
        if (op->rules != reload->context->rules) {
            reload->destroy(op->rules);
        }
        policy_answer(op);
    }
}

static void policy_set_cb(void *arg)
{
    struct policy_op *op = arg;
    if (op->err.code || op->body) {
        policy_answer(op);
    } else {
        policy_post(op);
    }
}

static struct policy_op *policy_op_create(struct reload *reload, const char *by, reply_fn reply,
                                          void *arg)
{
    struct policy_op *op = xcalloc(1, sizeof *op);
    op->reload = reload;
    copy_text(op->by, sizeof op->by, by);
    op->reply = reply;
    op->arg = arg;
    error_clear(&op->err);
    op->timer = clock_timer(reload->context->clock, policy_set_cb, op);
    return op;
}

void reload_set(struct reload *reload, const struct caller *caller, const char *text,
                const char *file, bool dry_run, reply_fn reply, void *arg)
{
    struct policy_op *op = policy_op_create(reload, caller->owner, reply, arg);
    if (reload->parse(text, file, reload->context->federation, &op->rules, &op->err) == 0 &&
        dry_run) {
        op->body = json_pack("{s:s, s:b}", "hash", op->rules->hash, "dry_run", 1);
        reload->destroy(op->rules);
    }
    timer_start(op->timer, 0);
}

void reload_load(struct reload *reload, const json_t *json)
{
    const char *hash = json_string_value(json_object_get(json, "hash"));
    if (hash && strcmp(hash, reload->context->rules->hash) == 0) {
        reload->since_ms = json_integer_value(json_object_get(json, "since"));
        copy_text(reload->by, sizeof reload->by, json_string_value(json_object_get(json, "by")));
    }
}

void reload_start(struct reload *reload)
{
    if (!reload->since_ms) {
        struct policy_op *op = policy_op_create(reload, "start", NULL, NULL);
        op->rules = reload->context->rules;
        policy_post(op);
    }
}

struct reload *reload_create(struct context *context, rules_parse_fn parse,
                             rules_destroy_fn destroy, void (*changed)(void *arg), void *arg)
{
    struct reload *reload = xcalloc(1, sizeof *reload);
    reload->context = context;
    reload->parse = parse;
    reload->destroy = destroy;
    reload->changed = changed;
    reload->arg = arg;
    return reload;
}

void reload_destroy(struct reload *reload)
{
    if (reload) {
        reload->destroy(reload->context->rules);
        free(reload);
    }
}
