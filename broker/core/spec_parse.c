/* spec_parse.c - a job from its document: read by the table, given its defaults, checked.
 *
 * Three ways lead to a spec. spec_parse: everything, for a submit. spec_restore: from a SUBMIT event,
 * with the defaults that it holds; what was accepted once is not checked again. spec_at: spec_at.c. */
#include "broker/core/spec_rows.h"

#include "broker/core/alloc.h"
#include "broker/core/rules.h"
#include "broker/core/texts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CLASS "batch"
#define DEFAULT_LIMIT_MS INT64_C(28800000) /* 8h */
#define DEFAULT_CPUS INT64_C(1000)
#define DEFAULT_MEMORY (INT64_C(2) << 30)

/* Where a key stands in the source, or the nearest thing above it. */
static const struct value *source_at(const struct spec *spec, const char *section, const char *key)
{
    const struct value *above = section ? value_get(spec->source, section) : spec->source;
    const struct value *found = key ? value_get(above, key) : NULL;
    return found ? found : above ? above : spec->source;
}

/* ------------------------------------------------------------------------------------------ checks */

static int check_one_work(const struct spec *spec, struct error *err)
{
    if (!spec->run == !spec->command.count) {
        (void)value_error(source_at(spec, NULL, spec->run ? "command" : NULL), err, ERROR_INVALID,
                          spec->run ? "both 'run' and 'command'" : "nothing to run");
        return error_expect(err,
                            "exactly one of 'run' (a text for the shell) and 'command' (words)");
    }
    if (spec->run && !spec->run[strspn(spec->run, " \t\r\n")]) {
        (void)value_error(source_at(spec, NULL, "run"), err, ERROR_INVALID, "'run' is empty");
        return error_expect(err, "a text for the shell");
    }
    if (spec->command.count && !*spec->command.items[0]) {
        (void)value_error(source_at(spec, NULL, "command"), err, ERROR_INVALID,
                          "the first word of 'command' is empty");
        return error_expect(err, "the program's name");
    }
    return 0;
}

static int check_work_size(const struct spec *spec, struct error *err)
{
    size_t length = spec->run ? strlen(spec->run) : 0;
    for (size_t i = 0; i < spec->command.count; i++) {
        length += strlen(spec->command.items[i]) + 1;
    }
    if (length > SPEC_RUN_MAX) {
        const char *key = spec->run ? "run" : "command";
        (void)value_error(source_at(spec, NULL, key), err, ERROR_INVALID, "'%s' has %zu bytes", key,
                          length);
        return error_expect(err, "at most %d; put it into a file that the job reads",
                            (int)SPEC_RUN_MAX);
    }
    return 0;
}

static int check_env_size(const struct spec *spec, struct error *err)
{
    size_t length = 0;
    for (size_t i = 0; i < spec->env.count; i++) {
        length += strlen(spec->env.items[i].name) + strlen(spec->env.items[i].value) + 2;
    }
    if (length > SPEC_ENV_BYTES_MAX) {
        (void)value_error(source_at(spec, NULL, "env"), err, ERROR_INVALID,
                          "the environment has %zu bytes", length);
        return error_expect(err, "at most %d", (int)SPEC_ENV_BYTES_MAX);
    }
    return 0;
}

static int check_label(const struct value *labels, const struct label *label, struct error *err)
{
    const struct value *item = value_get(labels, label->name);
    if (!*label->name || strlen(label->name) >= NAME_SIZE) {
        (void)value_key_error(item, err, ERROR_INVALID, "the name of a label is empty or too long");
        return error_expect(err, "1 to %d bytes", NAME_SIZE - 1);
    }
    if (label->values.count != 1) {
        (void)value_error(item, err, ERROR_INVALID, "the label '%s' has %zu values", label->name,
                          label->values.count);
        return error_expect(err, "one text");
    }
    if (strlen(label->values.items[0]) > SPEC_LABEL_VALUE_MAX) {
        (void)value_error(item, err, ERROR_INVALID, "the value of the label '%s' has %zu bytes",
                          label->name, strlen(label->values.items[0]));
        return error_expect(err, "at most %d", (int)SPEC_LABEL_VALUE_MAX);
    }
    return 0;
}

static int check_labels(const struct spec *spec, struct error *err)
{
    for (size_t i = 0; i < spec->labels.count; i++) {
        if (check_label(value_get(spec->source, "labels"), &spec->labels.items[i], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_gpu(const struct spec *spec, struct error *err)
{
    if (spec->needs.gpu.count && spec->needs.gpus == 0) {
        (void)value_error(source_at(spec, "needs", "gpu"), err, ERROR_INVALID,
                          "'gpu' names a model, but no GPUs are asked for");
        return error_expect(err, "gpus: how many, or no 'gpu'");
    }
    return 0;
}

static int check_time(const struct spec *spec, struct error *err)
{
    char limit[UNITS_TEXT_SIZE], estimate[UNITS_TEXT_SIZE];
    if (spec->time.estimate > spec->time.limit) {
        (void)value_error(source_at(spec, "time", "estimate"), err, ERROR_INVALID,
                          "the estimate %s is longer than the limit %s",
                          duration_text(spec->time.estimate, estimate),
                          duration_text(spec->time.limit, limit));
        return error_expect(err, "an estimate within the limit, or a longer 'limit'");
    }
    return 0;
}

static int (*const checks[])(const struct spec *spec, struct error *err) = {
    check_one_work, check_work_size, check_env_size, check_labels, check_gpu, check_time};

int spec_check(const struct spec *spec, struct error *err)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i](spec, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_class(const struct spec *spec, const struct rules *rules, struct error *err)
{
    if (!rules || rules_class(rules, spec->class_name)) {
        return 0;
    }
    size_t count = rules->classes.count;
    const char **names = xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        names[i] = RULES_AT(rules->classes, const struct class_rule, i)->name;
    }
    const char *near = nearest_word(spec->class_name, names, count);
    (void)value_error(source_at(spec, NULL, "class"), err, ERROR_INVALID, "no class '%s'",
                      spec->class_name);
    (void)error_expect(err, near ? "did you mean '%s'?" : "a class of the policy", near);
    free(names);
    return -1;
}

/* One word of `where`: what is known must be named rightly. Labels are free: any place may have any. */
static int check_where_word(const struct spec *spec, const char *list, const char *key,
                            const char *word, const struct federation *federation,
                            struct error *err)
{
    bool known = true;
    const char *near = NULL;
    if (strcmp(key, "kind") == 0) {
        known = false;
        for (int i = 0; i < PLACE_KIND_COUNT; i++) {
            known = known || glob_match(word, place_kind_words[i]);
        }
        near = nearest_word(word, place_kind_words, PLACE_KIND_COUNT);
    } else if (strcmp(key, "places") == 0 && federation) {
        known = false;
        for (size_t i = 0; i < federation->place_count; i++) {
            known = known || place_is_named(federation->places[i], word);
        }
        near = federation_nearest(federation, word, false);
    }
    if (known) {
        return 0;
    }
    const struct value *map = value_get(value_get(spec->source, "where"), list);
    (void)value_error(value_get(map, key), err, ERROR_INVALID, "no %s '%.128s'",
                      strcmp(key, "kind") == 0 ? "kind" : "place", word);
    return error_expect(err, near ? "did you mean '%s'?" : "a name that `tieline places` shows",
                        near);
}

static int check_selector(const struct spec *spec, const char *list, const struct labels *selector,
                          const struct federation *federation, struct error *err)
{
    for (size_t i = 0; i < selector->count; i++) {
        const struct label *label = &selector->items[i];
        for (size_t v = 0; v < label->values.count; v++) {
            if (check_where_word(spec, list, label->name, label->values.items[v], federation, err) <
                0) {
                return -1;
            }
        }
    }
    return 0;
}

static int check_where(const struct spec *spec, const struct federation *federation,
                       struct error *err)
{
    if (check_selector(spec, "require", &spec->where.require, federation, err) < 0) {
        return -1;
    }
    return check_selector(spec, "forbid", &spec->where.forbid, federation, err);
}

/* ---------------------------------------------------------------------------------------- defaults */

/* What a name may be made of; what else stands there becomes '-'. */
static char *name_from_command(const struct texts *command)
{
    const char *word = command->count ? command->items[0] : "";
    const char *slash = strrchr(word, '/');
    word = slash ? slash + 1 : word;
    while (*word && !isalnum((unsigned char)*word)) {
        word++;
    }
    char *name = xstrndup(*word ? word : "job", NAME_SIZE - 1);
    for (char *c = name; *c; c++) {
        if ((unsigned char)*c >= 128 || (!isalnum((unsigned char)*c) && !strchr("._-", *c))) {
            *c = '-';
        }
    }
    return name;
}

static void defaults_make(const struct spec *spec, const struct rules *rules,
                          struct spec_defaults *out)
{
    const char *name = spec->class_name                ? spec->class_name
                       : rules && rules->default_class ? rules->default_class
                                                       : DEFAULT_CLASS;
    const struct class_rule *class = rules ? rules_class(rules, name) : NULL;
    out->name = spec->name ? xstrdup(spec->name) : name_from_command(&spec->command);
    out->class_name = xstrdup(name);
    out->team = xstrdup(spec->team);
    out->limit = class && class->time.limit ? class->time.limit : DEFAULT_LIMIT_MS;
    out->estimate = class ? class->time.estimate : 0;
    out->needs.cpus = class && class->needs.cpus ? class->needs.cpus : DEFAULT_CPUS;
    out->needs.memory = class && class->needs.memory ? class->needs.memory : DEFAULT_MEMORY;
    out->needs.gpus = class ? class->needs.gpus : 0;
    if (class) {
        texts_copy(&out->needs.gpu, &class->needs.gpu);
    }
}

void spec_defaults_copy(struct spec_defaults *out, const struct spec_defaults *from)
{
    *out = *from;
    out->name = xstrdup(from->name);
    out->class_name = xstrdup(from->class_name);
    out->team = xstrdup(from->team);
    texts_copy(&out->needs.gpu, &from->needs.gpu);
}

static void fill_text(char **text, const char *standard)
{
    if (!*text) {
        *text = xstrdup(standard);
    }
}

static void fill_needs(struct needs *needs, const struct needs *standard)
{
    if (!needs->has_cpus) {
        needs->cpus = standard->cpus;
    }
    if (!needs->has_memory) {
        needs->memory = standard->memory;
    }
    bool no_gpus = needs->has_gpus && needs->gpus == 0;
    if (!needs->has_gpus) {
        needs->gpus = standard->gpus;
    }
    if (!needs->gpu.count && !no_gpus) {
        texts_copy(&needs->gpu, &standard->gpu);
    }
}

void spec_fill(struct spec *spec)
{
    const struct spec_defaults *standard = &spec->defaults;
    fill_text(&spec->name, standard->name);
    fill_text(&spec->class_name, standard->class_name);
    fill_text(&spec->team, standard->team);
    fill_needs(&spec->needs, &standard->needs);
    struct job_time *time = &spec->time;
    if (!time->has_limit) {
        time->limit = standard->limit;
    }
    if (!time->has_estimate) { /* a default never lies beyond the limit that the user gave */
        int64_t estimate = standard->estimate;
        time->estimate = estimate && estimate < time->limit ? estimate : time->limit;
    }
}

/* ----------------------------------------------------------------------------------- life of a spec */

int spec_read_take(struct value *source, struct spec **out, struct error *err)
{
    struct spec *spec = xcalloc(1, sizeof *spec);
    const struct keys_context context = {NULL, NULL};
    spec->refs = 1;
    spec->source = source;
    if (source->kind != VALUE_MAP) {
        (void)value_error(source, err, ERROR_INVALID, "a job is a map");
        (void)error_expect(err, "{\"command\": [\"hostname\"]}");
        spec_unref(spec);
        return -1;
    }
    if (keys_read(spec_keys, source, spec, &context, err) < 0) {
        spec_unref(spec);
        return -1;
    }
    *out = spec;
    return 0;
}

int spec_parse(const struct value *value, const struct rules *rules,
               const struct federation *federation, struct spec **out, struct error *err)
{
    struct spec *spec;
    if (spec_read_take(value_clone(value), &spec, err) < 0) {
        return -1;
    }
    defaults_make(spec, rules, &spec->defaults);
    spec_fill(spec);
    if (spec_check(spec, err) < 0 || check_class(spec, rules, err) < 0 ||
        check_where(spec, federation, err) < 0 || spec_check_at(spec, federation, err) < 0) {
        spec_unref(spec);
        return -1;
    }
    *out = spec;
    return 0;
}
