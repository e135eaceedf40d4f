/* spec_json.c - a job as JSON: as received, as its defaults, and whole as it will be taken.
 *
 * What goes into events holds no reals: a number with a point is kept as its text, which the key table
 * reads just as well. */
#include "broker/core/spec_rows.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <string.h>

static json_t *scalar_source(const struct value *value)
{
    json_t *json = value_to_json(value);
    if (json_is_real(json)) {
        json_decref(json);
        return json_string(value->text);
    }
    return json;
}

static json_t *source_to_json(const struct value *value)
{
    if (value->kind == VALUE_MAP) {
        json_t *map = json_object();
        for (size_t i = 0; i < value->count; i++) {
            (void)json_object_set_new(map, value->items[i]->key, source_to_json(value->items[i]));
        }
        return map;
    }
    if (value->kind == VALUE_LIST) {
        json_t *list = json_array();
        for (size_t i = 0; i < value->count; i++) {
            (void)json_array_append_new(list, source_to_json(value->items[i]));
        }
        return list;
    }
    return scalar_source(value);
}

json_t *spec_source_to_json(const struct spec *spec)
{
    return source_to_json(spec->source);
}

json_t *spec_defaults_to_json(const struct spec *spec)
{
    const struct spec_defaults *standard = &spec->defaults;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "name", standard->name, "class",
                     standard->class_name, "limit_ms", (json_int_t)standard->limit, "estimate_ms",
                     (json_int_t)standard->estimate, "cpus", (json_int_t)standard->needs.cpus,
                     "memory", (json_int_t)standard->needs.memory, "gpus",
                     (json_int_t)standard->needs.gpus, "gpu", texts_to_json(&standard->needs.gpu));
}

static int defaults_from_json(const json_t *json, const char *team, struct spec_defaults *out,
                              struct error *err)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const char *class = json_string_value(json_object_get(json, "class"));
    out->limit = json_integer_value(json_object_get(json, "limit_ms"));
    out->estimate = json_integer_value(json_object_get(json, "estimate_ms"));
    out->needs.cpus = json_integer_value(json_object_get(json, "cpus"));
    out->needs.memory = json_integer_value(json_object_get(json, "memory"));
    out->needs.gpus = json_integer_value(json_object_get(json, "gpus"));
    if (!name || !*name || strlen(name) >= NAME_SIZE || !class || out->limit <= 0 ||
        out->needs.cpus <= 0 || out->needs.memory <= 0 ||
        texts_from_json(json_object_get(json, "gpu"), &out->needs.gpu) < 0) {
        return error_set(err, ERROR_INVALID, "the defaults of a submitted job cannot be read");
    }
    out->name = xstrdup(name);
    out->class_name = xstrdup(class);
    out->team = team && *team ? xstrdup(team) : NULL;
    return 0;
}

int spec_restore(const json_t *source, const json_t *defaults, const char *team, struct spec **out,
                 struct error *err)
{
    struct value *value;
    struct spec *spec;
    if (!json_is_object(source)) {
        return error_set(err, ERROR_INVALID, "the spec of a submitted job is no object");
    }
    if (value_from_jansson(source, &value, err) < 0 || spec_read_take(value, &spec, err) < 0) {
        return -1;
    }
    if (defaults_from_json(defaults, team, &spec->defaults, err) < 0) {
        spec_unref(spec);
        return -1;
    }
    spec_fill(spec);
    *out = spec;
    return 0;
}

/* ------------------------------------------------------------------------------------- as it is taken */

static void set_text(json_t *map, const char *key, const char *text)
{
    if (text) {
        (void)json_object_set_new(map, key, json_string(text));
    }
}

static json_t *number_to_json(int64_t thousandths)
{
    char text[UNITS_TEXT_SIZE];
    return thousandths % 1000 ? json_string(thousandths_text(thousandths, text))
                              : json_integer(thousandths / 1000);
}

static json_t *labels_to_json(const struct labels *labels)
{
    json_t *map = json_object();
    for (size_t i = 0; i < labels->count; i++) {
        const struct texts *values = &labels->items[i].values;
        (void)json_object_set_new(map, labels->items[i].name,
                                  values->count == 1 ? json_string(values->items[0])
                                                     : texts_to_json(values));
    }
    return map;
}

static json_t *env_to_json(const struct env *env)
{
    json_t *map = json_object();
    for (size_t i = 0; i < env->count; i++) {
        set_text(map, env->items[i].name, env->items[i].value);
    }
    return map;
}

static json_t *needs_to_json(const struct needs *needs)
{
    char memory[UNITS_TEXT_SIZE];
    json_t *map = json_object();
    (void)json_object_set_new(map, "cpus", number_to_json(needs->cpus));
    set_text(map, "memory", size_text(needs->memory, memory));
    (void)json_object_set_new(map, "gpus", number_to_json(needs->gpus));
    if (needs->gpu.count) {
        (void)json_object_set_new(map, "gpu", texts_to_json(&needs->gpu));
    }
    return map;
}

static json_t *time_to_json(const struct job_time *time)
{
    char limit[UNITS_TEXT_SIZE], estimate[UNITS_TEXT_SIZE];
    return json_pack("{s:s, s:s}", "limit", duration_text(time->limit, limit), "estimate",
                     duration_text(time->estimate, estimate));
}

static json_t *retry_to_json(const struct retry *retry)
{
    json_t *exits = json_object();
    for (size_t i = 0; i < retry->exits.count; i++) {
        const struct retry_exit *exit = &((const struct retry_exit *)retry->exits.items)[i];
        (void)json_object_set_new(exits, exit->name, json_integer(exit->times));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "lost", (json_int_t)retry->lost, "start-failed",
                     (json_int_t)retry->start_failed, "out-of-memory",
                     (json_int_t)retry->out_of_memory, "exit", exits);
}

static json_t *at_to_json(const struct list *at)
{
    json_t *map = json_object();
    for (size_t i = 0; i < at->count; i++) {
        const struct override *override = &((const struct override *)at->items)[i];
        (void)json_object_set_new(map, override->name, source_to_json(override->value));
    }
    return map;
}

json_t *spec_to_json(const struct spec *spec)
{
    json_t *job = json_object();
    set_text(job, "name", spec->name);
    set_text(job, "class", spec->class_name);
    set_text(job, "team", spec->team);
    (void)json_object_set_new(job, "labels", labels_to_json(&spec->labels));
    set_text(job, "run", spec->run);
    if (spec->command.count) {
        (void)json_object_set_new(job, "command", texts_to_json(&spec->command));
    }
    (void)json_object_set_new(job, "env", env_to_json(&spec->env));
    (void)json_object_set_new(job, "needs", needs_to_json(&spec->needs));
    (void)json_object_set_new(job, "time", time_to_json(&spec->time));
    (void)json_object_set_new(job, "where",
                              json_pack("{s:o, s:o}", "require",
                                        labels_to_json(&spec->where.require), "forbid",
                                        labels_to_json(&spec->where.forbid)));
    (void)json_object_set_new(job, "priority", json_integer(spec->priority));
    (void)json_object_set_new(job, "protected", json_boolean(spec->is_protected));
    if (spec->rerun == RERUN_NEVER) {
        set_text(job, "rerun", "never");
    }
    (void)json_object_set_new(job, "retry", retry_to_json(&spec->retry));
    (void)json_object_set_new(job, "at", at_to_json(&spec->at));
    return job;
}
