#include "broker/places.h"

#include "broker/core/adapter.h"
#include "broker/core/alloc.h"
#include "broker/journal.h"
#include "broker/member.h"
#include "broker/picture.h"
#include "broker/present.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *state_of(const struct place_view *view)
{
    /* The first that holds is what keeps jobs away. */
    const struct {
        bool holds;
        const char *state;
    } states[] = {{view->recovering, "recovering"},
                  {view->looking, "not probed"},
                  {!view->known && !view->silent_ms, "not probed"},
                  {!view->reachable, "unreachable"},
                  {view->drained, "drained"},
                  {view->age_ms > view->good_for_ms, "stale"},
                  {!view->condition.up, "down"},
                  {view->place->cluster->mode == CLUSTER_OBSERVE, "observed"},
                  {true, "ok"}};
    size_t i = 0;
    while (!states[i].holds) {
        i++;
    }
    return states[i].state;
}

static json_t *resources_to_json(const struct resources *resources)
{
    return json_pack("{s:I, s:I, s:I}", "cpus_milli", (json_int_t)resources->cpus, "memory_bytes",
                     (json_int_t)resources->memory, "gpus_milli", (json_int_t)resources->gpus);
}

static json_t *gpus_to_json(const struct context *context, const struct condition *condition)
{
    json_t *gpus = json_object();
    for (int i = 0; i < condition->gpu_count; i++) {
        const struct gpu_count *count = &condition->gpus[i];
        json_object_set_new(gpus, context->federation->gpus[count->model].name,
                            json_pack("{s:I, s:I}", "total_milli", (json_int_t)count->total,
                                      "free_milli", (json_int_t)count->free));
    }
    return gpus;
}

static json_t *place_present(struct context *context, const struct place_view *view)
{
    const struct place *place = view->place;
    int cluster = place->cluster->index;
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s}", "place", place->name, "cluster",
                               place->cluster->name, "adapter", place->cluster->adapter->name,
                               "kind", place_kind_words[place->kind], "state", state_of(view));
    const char *reason = !view->reachable ? picture_fault(context->picture, cluster)
                         : view->drained  ? view->drain_note
                                          : view->condition.reason;
    json_object_set_new(object, "reason", json_string(reason));
    json_object_set_new(object, "running", json_integer(view->running_ours));
    json_object_set_new(object, "waiting", json_integer(view->waiting_ours));
    json_object_set_new(object, "max_waiting", json_integer(place->max_waiting));
    json_object_set_new(object, "running_all", json_integer(view->condition.running));
    json_object_set_new(object, "waiting_all", json_integer(view->condition.waiting));
    json_object_set_new(object, "total", resources_to_json(&view->condition.total));
    json_object_set_new(object, "free", resources_to_json(&view->condition.free));
    json_object_set_new(object, "unseen", resources_to_json(&view->unseen));
    json_object_set_new(object, "gpus", gpus_to_json(context, &view->condition));
    json_object_set_new(object, "health_ppm", json_integer(view->health));
    json_object_set_new(object, "age_ms", json_integer(view->known ? view->age_ms : 0));
    json_object_set_new(object, "silent_ms", json_integer(view->silent_ms));
    json_object_set_new(object, "round_trip_ms",
                        json_integer(picture_round_trip_ms(context->picture, cluster)));
    json_object_set_new(object, "version", json_string(picture_version(context->picture, cluster)));
    json_object_set_new(object, "log", json_boolean(place->cluster->adapter->has_log));
    json_t *drain = picture_drain_to_json(context->picture, place->index);
    if (drain) {
        json_object_set_new(object, "drain", drain);
    }
    return object;
}

json_t *places_present(struct context *context)
{
    const struct view *view = picture_view(context->picture);
    json_t *places = json_array();
    for (size_t i = 0; i < context->federation->place_count; i++) {
        json_array_append_new(places, place_present(context, &view->places[i]));
    }
    return json_pack("{s:o}", "places", places);
}

/* ------------------------------------------------------------------------------------------- drains */

struct drain_op { /* one request over the places of a name, one after the other */
    struct context *context;
    char name[PLACE_NAME_SIZE], by[NAME_SIZE], note[WHY_SIZE];
    bool drain;
    size_t next; /* place index that is tried next */
    size_t done;
    int64_t since_ms;
    struct error err;
    struct timer *timer;
    reply_fn reply;
    void *arg;
};

static void finish(struct drain_op *op)
{
    json_t *body = op->err.code ? NULL : places_present(op->context);
    op->reply(op->arg, body, &op->err);
    json_decref(body);
    timer_destroy(op->timer);
    free(op);
}

static void drained(void *arg, const struct event *event, const struct error *err)
{
    struct drain_op *op = arg;
    (void)event;
    if (err->code) {
        op->err = *err;
    } else {
        picture_drain(op->context->picture, (int)op->next, op->drain, op->by, op->note,
                      op->since_ms);
        op->done++;
    }
    op->next++;
    timer_start(op->timer, 0);
}

static json_t *drain_doc(const struct drain_op *op, const struct place *place)
{
    return op->drain ? json_pack("{s:s, s:s, s:s, s:I}", "place", place->name, "by", op->by, "note",
                                 op->note, "since", (json_int_t)op->since_ms)
                     : json_pack("{s:s}", "place", place->name);
}

static void step_cb(void *arg)
{
    struct drain_op *op = arg;
    const struct federation *federation = op->context->federation;
    while (!op->err.code && op->next < federation->place_count &&
           !place_is_named(federation->places[op->next], op->name)) {
        op->next++;
    }
    if (op->err.code || op->next >= federation->place_count) {
        if (!op->err.code && op->done == 0) {
            (void)error_set(&op->err, ERROR_NOT_FOUND, "there is no place '%s'", op->name);
        }
        finish(op);
        return;
    }
    const struct place *place = federation->places[op->next];
    char id[EVENT_ID_SIZE];
    (void)snprintf(id, sizeof id, "drain:%s", place->name);
    struct store_doc *doc = store_doc_create(STORE_META, id, op->since_ms, drain_doc(op, place));
    if (journal_post_other(op->context->journal, op->drain ? EVENT_DRAIN : EVENT_UNDRAIN,
                           place->name, drain_doc(op, place), doc, drained, op, &op->err) < 0) {
        finish(op);
    }
}

void places_drain(struct context *context, const struct caller *caller, const char *name,
                  bool drain, const char *note, reply_fn reply, void *arg)
{
    struct drain_op *op = xcalloc(1, sizeof *op);
    op->context = context;
    copy_text(op->name, sizeof op->name, name);
    copy_text(op->by, sizeof op->by, caller->owner);
    copy_text(op->note, sizeof op->note, note);
    op->drain = drain;
    op->since_ms = clock_wall_ms(context->clock);
    op->reply = reply;
    op->arg = arg;
    error_clear(&op->err);
    op->timer = clock_timer(context->clock, step_cb, op);
    timer_start(op->timer, 0);
}

void places_load_drain(struct context *context, const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "place"));
    const struct place *place = name ? federation_place(context->federation, name) : NULL;
    if (place) {
        picture_drain_from_json(context->picture, place->index, json);
    }
}
