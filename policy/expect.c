/* expect.c - the tests that a policy carries: each decided in a federation where all is well but for
 * what is given. */
#include "policy/expect.h"

#include "policy/internal.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLENTY_CPUS INT64_C(1000000000) /* thousandths, of GPUs too */
#define PLENTY_MEMORY (INT64_C(1) << 60)

enum { DOWN_MS = 10 * 60 * 1000 };

/* Of no owner that a policy could name. */
static const char *const nobody = "";

static bool names_place(const struct texts *patterns, const struct place *place)
{
    for (size_t i = 0; i < patterns->count; i++) {
        if (place_is_named(place, patterns->items[i])) {
            return true;
        }
    }
    return false;
}

static int model_index(const struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->gpu_count; i++) {
        if (strcmp(federation->gpus[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool states_gpus(const struct place *place)
{
    for (size_t i = 0; i < place->nodes.count; i++) {
        if (RULES_AT(place->nodes, struct node_shape, i)->gpus > 0) {
            return true;
        }
    }
    return place->gpus.count > 0 || place->max_gpus > 0;
}

/* A place that lists no GPUs has none, unless no place of the federation lists any. */
static bool has_gpus(const struct federation *federation, const struct place *place)
{
    for (size_t i = 0; i < federation->place_count; i++) {
        if (states_gpus(federation->places[i])) {
            return states_gpus(place);
        }
    }
    return true;
}

static void add_model(struct condition *now, const struct federation *federation, const char *name)
{
    int model = name ? model_index(federation, name) : -1;
    for (int i = 0; i < now->gpu_count; i++) {
        if (now->gpus[i].model == model) {
            return;
        }
    }
    if (model >= 0 && now->gpu_count < GPU_MODELS_MAX) {
        now->gpus[now->gpu_count++] = (struct gpu_count){model, PLENTY_CPUS, PLENTY_CPUS};
    }
}

/* The models that the place lists; when nobody lists any, all that there are. */
static void add_models(struct condition *now, const struct federation *federation,
                       const struct place *place)
{
    for (size_t i = 0; i < place->gpus.count; i++) {
        add_model(now, federation, RULES_AT(place->gpus, struct gpu_name, i)->name);
    }
    for (size_t i = 0; i < place->nodes.count; i++) {
        add_model(now, federation, RULES_AT(place->nodes, struct node_shape, i)->gpu);
    }
    for (size_t i = 0; !states_gpus(place) && i < federation->gpu_count; i++) {
        add_model(now, federation, federation->gpus[i].name);
    }
}

static void fill_up(struct place_view *view)
{
    struct condition *now = &view->condition;
    now->free = (struct resources){0};
    for (int i = 0; i < now->gpu_count; i++) {
        now->gpus[i].free = 0;
    }
    view->waiting_ours = now->waiting = view->place->max_waiting;
}

static void imagine_place(struct place_view *view, const struct federation *federation,
                          const struct place *place, const struct expect_given *given)
{
    struct condition *now = &view->condition;
    *view = (struct place_view){.place = place,
                                .known = true,
                                .reachable = true,
                                .good_for_ms = UNLIMITED,
                                .health = SHARE_ONE};
    now->up = true;
    now->total.cpus = place->capacity.cpus ? place->capacity.cpus : PLENTY_CPUS;
    now->total.memory = place->capacity.memory ? place->capacity.memory : PLENTY_MEMORY;
    if (has_gpus(federation, place)) {
        now->total.gpus = PLENTY_CPUS;
        add_models(now, federation, place);
    }
    now->free = now->total;
    view->drained = names_place(&given->drained, place);
    if (names_place(&given->full, place)) {
        fill_up(view);
    }
    if (names_place(&given->down, place)) {
        view->reachable = false;
        view->silent_ms = DOWN_MS;
    }
}

static void view_create(struct view *view, const struct rules *rules,
                        const struct federation *federation, const struct expect_given *given,
                        int64_t now_ms)
{
    *view = (struct view){.now_ms = now_ms, .rules = rules, .federation = federation};
    view->places = xcalloc(federation->place_count + 1, sizeof *view->places);
    view->bursts = xcalloc(rules->bursts.count + 1, sizeof *view->bursts);
    view->budgets = xcalloc(rules->budgets.count + 1, sizeof *view->budgets);
    for (size_t i = 0; i < federation->place_count; i++) {
        imagine_place(&view->places[i], federation, federation->places[i], given);
    }
    for (size_t i = 0; i < rules->bursts.count; i++) {
        const struct burst_rule *rule = RULES_AT(rules->bursts, struct burst_rule, i);
        view->bursts[i].rule = rule;
        view->bursts[i].state = texts_match(&given->open, rule->name) ? BURST_OPEN : BURST_CLOSED;
    }
    for (size_t i = 0; i < rules->budgets.count; i++) {
        const struct budget_rule *budget = RULES_AT(rules->budgets, struct budget_rule, i);
        if (texts_match(&given->spent, budget->name)) {
            view->budgets[i].settled = budget->limit.nano;
        }
    }
}

static void view_destroy(struct view *view)
{
    free(view->places);
    free(view->bursts);
    free(view->budgets);
}

/* The job as it could be submitted: what it runs does not matter here. */
static int parse_job(const struct expectation *expectation, const struct rules *rules,
                     const struct federation *federation, struct spec **out, struct error *err)
{
    struct value *job = expectation->job ? value_clone(expectation->job) : value_create(VALUE_MAP);
    if (job->kind == VALUE_MAP && !value_get(job, "run") && !value_get(job, "command")) {
        struct value *run = value_create(VALUE_SCALAR);
        run->style = VALUE_QUOTED;
        run->text = xstrdup("true");
        value_add_take(job, "run", run);
    }
    int status = spec_parse(job, rules, federation, out, err);
    value_destroy(job);
    return status < 0 ? error_prefix(err, "its job") : 0;
}

/* Of the places where it should go, the one that came closest. NULL: none is asked for. */
static const struct verdict_row *closest(const struct decision *decision,
                                         const struct texts *goes_to)
{
    const struct verdict_row *best = NULL;
    for (size_t i = 0; i < decision->row_count; i++) {
        const struct verdict_row *row = &decision->rows[i];
        if (names_place(goes_to, row->place) && (!best || row->verdict < best->verdict)) {
            best = row;
        }
    }
    return best;
}

/* Where it went and why: what speaks against the place that was expected; else the guard that all but
 * applied to the place where it went; else why it went there. */
static int went_wrong(const struct decision *decision, const struct expectation *expectation,
                      const struct rules *rules, const struct spec *spec, struct error *err)
{
    char guard[WHY_SIZE];
    if (decision->chosen < 0) {
        return error_set(err, ERROR_INVALID, "it waits: %s", decision->summary);
    }
    const struct place *place = decision->rows[decision->chosen].place;
    const struct verdict_row *wanted = closest(decision, &expectation->goes_to);
    if (wanted && wanted->verdict != VERDICT_CHOSEN && wanted->why[0]) {
        return error_set(err, ERROR_INVALID, "went to %s; %s: %s", place->name, wanted->place->name,
                         wanted->why);
    }
    guard_near_miss(rules, spec, nobody, place, guard, sizeof guard);
    return error_set(err, ERROR_INVALID, "went to %s: %s", place->name,
                     guard[0] ? guard : decision->summary);
}

static bool holds(const struct expectation *expectation, const struct decision *decision)
{
    const struct place *place =
        decision->chosen < 0 ? NULL : decision->rows[decision->chosen].place;
    if (expectation->has_waits && expectation->waits != !place) {
        return false;
    }
    if (place && names_place(&expectation->never, place)) {
        return false;
    }
    return expectation->goes_to.count == 0 || (place && names_place(&expectation->goes_to, place));
}

static int check(const struct expectation *expectation, const struct rules *rules,
                 const struct federation *federation, int64_t now_ms, struct error *err)
{
    struct decision decision = {0};
    struct spec *spec;
    struct view view;
    int status = 0;
    if (parse_job(expectation, rules, federation, &spec, err) < 0) {
        return -1;
    }
    view_create(&view, rules, federation, &expectation->given, now_ms);
    decide(&view, &(struct subject){.spec = spec, .owner = nobody}, &decision);
    if (!holds(expectation, &decision)) {
        status = went_wrong(&decision, expectation, rules, spec, err);
    }
    decision_fini(&decision);
    view_destroy(&view);
    spec_unref(spec);
    return status;
}

int expect_run(const struct rules *rules, const struct federation *federation, int64_t now_ms,
               void (*failed)(void *arg, const struct expectation *expectation,
                              const struct error *err),
               void *arg)
{
    int count = 0;
    for (size_t i = 0; i < rules->expects.count; i++) {
        const struct expectation *expectation = RULES_AT(rules->expects, struct expectation, i);
        struct error err;
        if (check(expectation, rules, federation, now_ms, &err) < 0) {
            err.line = expectation->line;
            failed(arg, expectation, &err);
            count++;
        }
    }
    return count;
}
