#include "tests/unit/engine_lab.h"

#include "broker/core/alloc.h"
#include "broker/sim/adapter_sim.h"
#include "config/config.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define A_MONDAY INT64_C(1773036000000)

static const char federation_text[] =
    "version: 1\n"
    "clusters:\n"
    "  a: {adapter: sim, capacity: {cpus: 8, memory: 32GiB}}\n"
    "  b: {adapter: sim, capacity: {cpus: 8, memory: 32GiB}}\n"
    "  r: {adapter: sim, kind: on-demand, capacity: {cpus: 8, memory: 32GiB},\n"
    "      nodes: {vm: {cpus: 4, memory: 16GiB, price: 1 EUR/h, at_most: 2}}}\n";

static void no_log(const char *level, const char *text)
{
    (void)level, (void)text;
}

static struct rules *parse_rules(const struct engine *engine, const char *policy)
{
    char *text = xasprintf("version: 1\n%s", policy);
    struct rules *rules;
    struct error err;
    cr_assert_eq(config_rules_parse(text, "policy.yaml", engine->federation, &rules, &err), 0,
                 "%d: %s", err.line, err.text);
    free(text);
    return rules;
}

struct engine *engine_open(const char *policy)
{
    static const struct adapter_type *const adapters[] = {&adapter_sim, NULL};
    struct engine *engine = xcalloc(1, sizeof *engine);
    struct context *context = &engine->context;
    struct error err;
    cr_assert_eq(config_federation_parse(federation_text, "tieline.yaml", adapters,
                                         &engine->federation, &err),
                 0, "%d: %s", err.line, err.text);
    context->federation = engine->federation;
    context->clock = clock_sim_create(A_MONDAY, 1);
    context->log = no_log;
    context->rules = parse_rules(engine, policy);
    context->journal = journal_create(context, NULL, NULL, NULL);
    context->picture = picture_create(context);
    context->queue = queue_create(context);
    return engine;
}

void engine_close(struct engine *engine)
{
    struct context *context = &engine->context;
    picture_destroy(context->picture);
    queue_destroy(context->queue);
    journal_destroy(context->journal);
    rules_destroy(context->rules);
    clock_sim_destroy(context->clock);
    federation_destroy(engine->federation);
    free(engine);
}

void engine_apply(struct engine *engine, struct entry *entry, enum event_kind kind,
                  json_t *data_take)
{
    struct error err;
    int attempt = kind == EVENT_PLACE ? entry->job->attempt_count + 1 : entry->job->attempt_count;
    struct event *event = event_create(kind, entry->job->id, attempt,
                                       clock_wall_ms(engine->context.clock), data_take);
    cr_assert_eq(job_apply(entry->job, event, &err), 0, "%s", err.text);
    event_destroy(event);
}

struct entry *engine_job(struct engine *engine, const char *class_name, int cpus, const char *extra)
{
    char *text =
        xasprintf("{\"name\": \"x\", \"run\": \"true\", \"class\": \"%s\", \"needs\": "
                  "{\"cpus\": %d, \"memory\": \"%dGiB\"}, \"time\": {\"limit\": \"1h\"}%s}",
                  class_name, cpus, cpus, extra);
    struct value *value;
    struct spec *spec;
    struct error err;
    char id[ID_SIZE];
    cr_assert_eq(value_from_json(text, strlen(text), &value, &err), 0, "%s", err.text);
    cr_assert_eq(spec_parse(value, engine->context.rules, engine->federation, &spec, &err), 0, "%s",
                 err.text);
    clock_sim_pass(engine->context.clock, 1); /* so that ids are in order */
    id_make(engine->context.clock, 'j', id);
    struct entry *entry = journal_add_take(engine->context.journal, job_create(id));
    engine_apply(engine, entry, EVENT_SUBMIT, job_submit_data(spec, "ada", spec->team, NULL, NULL));
    spec_unref(spec);
    value_destroy(value);
    free(text);
    return entry;
}

void engine_reload(struct engine *engine, const char *policy)
{
    struct context *context = &engine->context;
    struct rules *old = context->rules;
    json_t *sums = picture_budgets(context->picture);
    context->rules = parse_rules(engine, policy);
    picture_rules_changed(context->picture, sums);
    queue_rules_changed(context->queue);
    json_decref(sums);
    rules_destroy(old);
}
