/* The job: defaults, checks with their places, `at`, and what an accepted job keeps. */
#include "broker/core/alloc.h"
#include "broker/core/rules.h"
#include "broker/core/spec.h"
#include "tests/unit/small_federation.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *h100[] = {"h100"};
static struct class_rule classes[] = {
    {.name = "ci",
     .time = {.limit = 3600000, .estimate = 600000, .has_limit = true, .has_estimate = true},
     .needs = {.cpus = 2000, .memory = INT64_C(4) << 30, .has_cpus = true, .has_memory = true}},
    {.name = "training", .needs = {.gpus = 1000, .gpu = {h100, 1}}},
    {.name = "batch"},
};
static struct rules rules = {.default_class = "batch", .classes = {classes, 3}};

static struct value *value_of(const char *text)
{
    struct error err;
    struct value *value = NULL;
    cr_assert_eq(value_from_json(text, strlen(text), &value, &err), 0, "%s: %s", text, err.text);
    return value;
}

static struct spec *parse(const char *text)
{
    struct error err;
    struct spec *spec = NULL;
    struct value *value = value_of(text);
    cr_assert_eq(spec_parse(value, &rules, small_federation(), &spec, &err), 0, "%s: %s %s: %s",
                 text, err.pointer, err.text, err.expected);
    value_destroy(value);
    return spec;
}

static json_t *fixture(const char *name)
{
    json_error_t why;
    char *path = xasprintf("%s/jobs/%s", FIXTURES, name);
    json_t *json = json_load_file(path, 0, &why);
    cr_assert_not_null(json, "%s: %s", path, why.text);
    free(path);
    return json;
}

static struct spec *parse_fixture(const char *name)
{
    json_t *json = fixture(name);
    char *text = json_dumps(json, 0);
    struct spec *spec = parse(text);
    free(text);
    json_decref(json);
    return spec;
}

static const char *env_of(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->env.count; i++) {
        if (strcmp(spec->env.items[i].name, name) == 0) {
            return spec->env.items[i].value;
        }
    }
    return NULL;
}

static struct spec *at(struct spec *spec, const char *name)
{
    return spec_at(spec, federation_place(small_federation(), name));
}

Test(spec, built_in_defaults)
{
    struct spec *spec = parse_fixture("smallest.json");
    cr_assert_str_eq(spec->name, "make");
    cr_assert_str_eq(spec->class_name, "batch");
    cr_assert_null(spec->team);
    cr_assert_eq(spec->needs.cpus, 1000);
    cr_assert_eq(spec->needs.memory, INT64_C(2) << 30);
    cr_assert_eq(spec->needs.gpus, 0);
    cr_assert_eq(spec->time.limit, INT64_C(8) * 3600000);
    cr_assert_eq(spec->time.estimate, spec->time.limit);
    cr_assert_eq(spec->priority, 50);
    cr_assert_eq(spec->retry.lost, 3);
    cr_assert_eq(spec->retry.start_failed, 2);
    cr_assert_eq(spec->retry.out_of_memory, 0);
    cr_assert_eq(spec->rerun, RERUN_DEFAULT);
    spec_set_team(spec, "ml");
    cr_assert_str_eq(spec->team, "ml");
    spec_unref(spec);
}

Test(spec, defaults_of_the_class)
{
    struct spec *spec = parse("{\"run\": \"make\", \"class\": \"ci\"}");
    cr_assert_str_eq(spec->name, "job");
    cr_assert_eq(spec->needs.cpus, 2000);
    cr_assert_eq(spec->time.limit, 3600000);
    cr_assert_eq(spec->time.estimate, 600000);
    spec_unref(spec);
    spec = parse("{\"run\": \"make\", \"class\": \"ci\", \"time\": {\"limit\": \"5m\"}}");
    cr_assert_eq(spec->time.estimate, 300000, "a default estimate stays within the limit");
    spec_unref(spec);
    spec = parse("{\"run\": \"make\", \"class\": \"training\"}");
    cr_assert_eq(spec->needs.gpus, 1000);
    cr_assert_str_eq(spec->needs.gpu.items[0], "h100");
    spec_unref(spec);
    spec = parse("{\"run\": \"make\", \"class\": \"training\", \"needs\": {\"gpus\": 0}}");
    cr_assert_eq(spec->needs.gpus, 0);
    cr_assert_eq(spec->needs.gpu.count, 0, "no model where no GPU is wanted");
    spec_unref(spec);
}

Test(spec, names_come_from_the_command)
{
    static const char *const pairs[][2] = {{"/opt/a b/run me.sh", "run-me.sh"},
                                           {"./-x", "x"},
                                           {"/", "job"},
                                           {"caf\xc3\xa9", "caf--"},
                                           {"a", "a"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char *text = xasprintf("{\"command\": [\"%s\"]}", pairs[i][0]);
        struct spec *spec = parse(text);
        cr_assert_str_eq(spec->name, pairs[i][1]);
        spec_unref(spec);
        free(text);
    }
}

Test(spec, null_means_not_set)
{
    struct spec *spec = parse("{\"run\": \"a\", \"command\": null, \"needs\": {\"cpus\": null}, "
                              "\"env\": {\"A\": null}, \"at\": null, \"team\": null}");
    cr_assert_eq(spec->needs.cpus, 1000);
    cr_assert_eq(spec->env.count, 0);
    spec_unref(spec);
}

Test(spec, refused_jobs_say_where_and_what)
{
    json_t *cases = fixture("refused.json"), *each;
    size_t i;
    cr_assert_gt(json_array_size(cases), 50);
    json_array_foreach(cases, i, each)
    {
        struct error err;
        struct value *value;
        struct spec *spec = NULL;
        const char *pointer, *text, *expected = "";
        json_t *job;
        cr_assert_eq(json_unpack(each, "{s:o, s:s, s:s, s?s}", "job", &job, "pointer", &pointer,
                                 "text", &text, "expected", &expected),
                     0);
        char *shown = json_dumps(job, JSON_ENCODE_ANY);
        cr_assert_eq(value_from_jansson(job, &value, &err), 0);
        cr_assert_eq(spec_parse(value, &rules, small_federation(), &spec, &err), -1, "%s", shown);
        cr_expect_eq(err.code, ERROR_INVALID, "%s", shown);
        cr_expect_str_eq(err.pointer, pointer, "%s: at %s, not %s", shown, err.pointer, pointer);
        cr_expect(strstr(err.text, text), "%s: '%s' lacks '%s'", shown, err.text, text);
        cr_expect(strstr(err.expected, expected), "%s: '%s' lacks '%s'", shown, err.expected,
                  expected);
        cr_expect(*err.expected, "%s: says nothing of what was expected: %s", shown, err.text);
        value_destroy(value);
        free(shown);
    }
    json_decref(cases);
}

static void assert_refused(char *text_take, const char *lacks)
{
    struct error err;
    struct spec *spec;
    struct value *value = value_of(text_take);
    cr_assert_eq(spec_parse(value, NULL, NULL, &spec, &err), -1);
    cr_assert(strstr(err.text, lacks), "%s", err.text);
    value_destroy(value);
    free(text_take);
}

static void assert_taken(char *text_take)
{
    spec_unref(parse(text_take));
    free(text_take);
}

static char *filled(char fill, size_t length)
{
    char *text = xcalloc(length + 1, 1);
    memset(text, fill, length);
    return text;
}

static char *with_long(const char *format, size_t length)
{
    char *text = filled('a', length);
    const char *at = strchr(format, '@');
    char *out = xasprintf("%.*s%s%s", (int)(at - format), format, text, at + 1);
    free(text);
    return out;
}

Test(spec, sizes_are_bounded)
{
    assert_taken(with_long("{\"run\": \"@\"}", SPEC_RUN_MAX));
    assert_refused(with_long("{\"run\": \"@\"}", SPEC_RUN_MAX + 1), "'run' has 98305 bytes");
    assert_refused(with_long("{\"command\": [\"@\"]}", SPEC_RUN_MAX), "'command' has 98305 bytes");
    assert_taken(with_long("{\"run\": \"x\", \"name\": \"@\"}", 63));
    assert_refused(with_long("{\"run\": \"x\", \"name\": \"@\"}", 64), "is not a name");
    assert_taken(with_long("{\"run\": \"x\", \"labels\": {\"@\": \"\"}}", 63));
    assert_refused(with_long("{\"run\": \"x\", \"labels\": {\"@\": \"\"}}", 64), "too long");
    assert_taken(with_long("{\"run\": \"x\", \"labels\": {\"a\": \"@\"}}", 255));
    assert_refused(with_long("{\"run\": \"x\", \"labels\": {\"a\": \"@\"}}", 256), "256 bytes");
    assert_refused(with_long("{\"run\": \"x\", \"env\": {\"A\": \"@\"}}", SPEC_ENV_BYTES_MAX),
                   "environment");
}

static char *with_many(const char *head, const char *item, int count, const char *tail)
{
    char *out = xstrdup(head);
    for (int i = 0; i < count; i++) {
        char *longer = xasprintf("%s%s\"A%d\": %s", out, i ? ", " : "", i, item);
        free(out);
        out = longer;
    }
    char *all = xasprintf("%s%s", out, tail);
    free(out);
    return all;
}

Test(spec, counts_are_bounded)
{
    assert_taken(with_many("{\"run\": \"x\", \"env\": {", "\"\"", SPEC_ENV_MAX, "}}"));
    assert_refused(with_many("{\"run\": \"x\", \"env\": {", "\"\"", SPEC_ENV_MAX + 1, "}}"),
                   "513 variables");
    assert_taken(with_many("{\"run\": \"x\", \"labels\": {", "\"\"", SPEC_LABELS_MAX, "}}"));
    assert_refused(with_many("{\"run\": \"x\", \"labels\": {", "\"\"", SPEC_LABELS_MAX + 1, "}}"),
                   "65");
    assert_refused(with_many("{\"run\": \"x\", \"at\": {", "{}", SPEC_AT_MAX + 1, "}}"),
                   "65 names");
}

Test(spec, most_specific_override_wins)
{
    struct spec *spec = parse_fixture("transcribe.json");
    struct spec *cpu = at(spec, "hpc/cpu"), *gpu = at(spec, "hpc/gpu"), *edge = at(spec, "edge");
    struct spec *large = at(spec, "cloud/large");
    cr_assert_not(cpu->skip);
    cr_assert_eq(cpu->needs.memory, INT64_C(7) << 30);
    cr_assert_eq(cpu->needs.cpus, 4000, "maps merge key by key");
    cr_assert_null(env_of(cpu, "OMP_PROC_BIND"), "null removes");
    cr_assert_str_eq(env_of(cpu, "SCRATCH"), "/scratch");
    cr_assert_str_eq(env_of(cpu, "LANGUAGE"), "en");
    cr_assert(gpu->skip);
    cr_assert_eq(edge->needs.cpus, 2000, "the cluster wins over its adapter");
    cr_assert_null(edge->run, "command takes run away");
    cr_assert_str_eq(edge->command.items[1], "--tiny");
    cr_assert_str_eq(edge->name, "transcribe");
    cr_assert_eq(large->needs.cpus, 500);
    cr_assert_eq(large->needs.memory, INT64_C(6) << 30);
    cr_assert_str_eq(env_of(spec, "OMP_PROC_BIND"), "true", "the base is unchanged");
    spec_unref(cpu);
    spec_unref(gpu);
    spec_unref(edge);
    spec_unref(large);
    spec_unref(spec);
}

Test(spec, without_override_the_spec_is_shared)
{
    struct spec *spec = parse_fixture("finetune.json");
    struct spec *same = at(spec, "hpc/gpu"), *cloud = at(spec, "cloud/spot");
    cr_assert_eq(same, spec);
    cr_assert_eq(cloud->needs.gpus, 0);
    cr_assert_eq(cloud->needs.gpu.count, 0);
    cr_assert_eq(cloud->time.limit, INT64_C(12) * 3600000);
    cr_assert_eq(cloud->rerun, RERUN_NEVER);
    spec_unref(cloud);
    spec_unref(same);
    spec_unref(spec);
}

Test(spec, skip_can_be_taken_back_by_the_more_specific)
{
    struct spec *spec = parse(
        "{\"run\": \"a\", \"at\": {\"hpc\": {\"skip\": true}, \"hpc/gpu\": {\"skip\": false}}}");
    struct spec *cpu = at(spec, "hpc/cpu"), *gpu = at(spec, "hpc/gpu");
    cr_assert(cpu->skip && !gpu->skip);
    spec_unref(cpu);
    spec_unref(gpu);
    spec_unref(spec);
}

Test(spec, class_defaults_hold_at_a_place_too)
{
    struct spec *spec = parse("{\"run\": \"a\", \"class\": \"ci\", \"needs\": {\"cpus\": 8}, "
                              "\"at\": {\"edge\": {\"needs\": {\"cpus\": null}}}}");
    struct spec *edge = at(spec, "edge");
    cr_assert_eq(edge->needs.cpus, 2000);
    cr_assert_eq(edge->time.estimate, 600000);
    spec_unref(edge);
    spec_unref(spec);
}

Test(spec, overrides_that_no_longer_fit_skip_the_place)
{
    struct error err;
    struct spec *spec;
    /* Each is right by itself: without a federation nobody knows that they meet. */
    struct value *value = value_of(
        "{\"run\": \"a\", \"needs\": {\"gpus\": 1}, \"at\": {\"slurm\": {\"needs\": {\"gpu\": \"h100\"}}, "
        "\"hpc\": {\"needs\": {\"gpus\": 0}}}}");
    cr_assert_eq(spec_parse(value, NULL, NULL, &spec, &err), 0, "%s", err.text);
    struct spec *cpu = at(spec, "hpc/cpu");
    cr_assert(cpu->skip);
    cr_assert_str_eq(cpu->run, "a");
    spec_unref(cpu);
    spec_unref(spec);
    value_destroy(value);
}

static char *dump(json_t *json_take)
{
    char *text = json_dumps(json_take, JSON_COMPACT);
    json_decref(json_take);
    return text;
}

static void assert_no_reals(const json_t *json)
{
    const char *key;
    json_t *item;
    size_t i;
    cr_assert_not(json_is_real(json), "events hold no reals");
    json_array_foreach(json, i, item)
    {
        assert_no_reals(item);
    }
    json_object_foreach((json_t *)(uintptr_t)json, key, item)
    {
        assert_no_reals(item);
    }
}

static void assert_restored(const char *name)
{
    struct error err;
    struct spec *spec = parse_fixture(name), *again = NULL;
    json_t *source = spec_source_to_json(spec), *defaults = spec_defaults_to_json(spec);
    assert_no_reals(source);
    assert_no_reals(defaults);
    cr_assert_eq(spec_restore(source, defaults, spec->team, &again, &err), 0, "%s", err.text);
    char *before = dump(spec_to_json(spec)), *after = dump(spec_to_json(again));
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    json_decref(source);
    json_decref(defaults);
    spec_unref(again);
    spec_unref(spec);
}

Test(spec, what_was_accepted_is_restored_without_a_policy)
{
    assert_restored("smallest.json");
    assert_restored("transcribe.json");
    assert_restored("finetune.json");
}

Test(spec, restoring_asks_nobody)
{
    struct error err;
    struct spec *spec =
        parse("{\"run\": \"a\", \"class\": \"ci\", \"time\": {\"estimate\": \"30m\"}, "
              "\"at\": {\"hpc\": {\"skip\": true}}}");
    json_t *source = spec_source_to_json(spec), *defaults = spec_defaults_to_json(spec);
    struct spec *again;
    (void)json_object_set_new(json_object_get(json_object_get(source, "at"), "gone-cluster"), "a",
                              json_null());
    (void)json_object_set_new(defaults, "limit_ms", json_integer(60000));
    cr_assert_eq(spec_restore(source, defaults, "", &again, &err), 0, "%s", err.text);
    cr_assert_str_eq(again->class_name, "ci");
    cr_assert_eq(again->time.limit, 60000);
    cr_assert_eq(again->time.estimate, 1800000, "no check turns an accepted job down");
    cr_assert_null(again->team);
    spec_unref(again);
    (void)json_object_del(defaults, "cpus");
    again = NULL;
    cr_assert_eq(spec_restore(source, defaults, "", &again, &err), -1);
    cr_assert_eq(spec_restore(json_null(), defaults, "", &again, &err), -1);
    cr_assert_null(again);
    json_decref(source);
    json_decref(defaults);
    spec_unref(spec);
}

Test(spec, whole_job_parses_to_itself)
{
    static const char *const names[] = {"smallest.json", "transcribe.json", "finetune.json"};
    for (size_t i = 0; i < 3; i++) {
        struct spec *spec = parse_fixture(names[i]);
        char *whole = dump(spec_to_json(spec));
        struct spec *again = parse(whole);
        char *twice = dump(spec_to_json(again));
        cr_assert_str_eq(whole, twice);
        free(whole);
        free(twice);
        spec_unref(again);
        spec_unref(spec);
    }
}

Test(spec, whole_job_shows_every_default)
{
    struct spec *spec = parse_fixture("smallest.json");
    char *whole = dump(spec_to_json(spec));
    cr_assert_str_eq(whole,
                     "{\"name\":\"make\",\"class\":\"batch\",\"labels\":{},"
                     "\"command\":[\"/usr/bin/make\",\"test\"],\"env\":{},"
                     "\"needs\":{\"cpus\":1,\"memory\":\"2GiB\",\"gpus\":0},"
                     "\"time\":{\"limit\":\"8h\",\"estimate\":\"8h\"},"
                     "\"where\":{\"require\":{},\"forbid\":{}},\"priority\":50,\"protected\":false,"
                     "\"retry\":{\"lost\":3,\"start-failed\":2,\"out-of-memory\":0,\"exit\":{}},"
                     "\"at\":{}}");
    free(whole);
    spec_unref(spec);
}
