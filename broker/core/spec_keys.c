/* spec_keys.c - the keys of a job: the table, and the readers of those that have a shape of their own.
 * null is taken for every key and means that it is not set, so that `at` can take things away. */
#include "broker/core/spec_rows.h"

#include "broker/core/alloc.h"

#include <string.h>
#include <stdlib.h>

#define CPUS_MAX INT64_C(100000)
#define MEMORY_MIN (INT64_C(1) << 20)
#define MEMORY_MAX (INT64_C(1) << 50)
enum { RETRY_TIMES_MAX = 31, EXIT_CODE_MAX = 255 };

static int wants_map(const struct value *value, const char *of, struct error *err)
{
    if (value->kind == VALUE_MAP) {
        return 0;
    }
    (void)value_error(value, err, ERROR_INVALID, "not a map");
    return error_expect(err, "%s", of);
}

static bool env_name_is_valid(const char *name)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char digits[] = "0123456789";
    if (!*name || !strchr(first, *name)) {
        return false;
    }
    for (; *name; name++) {
        if (!strchr(first, *name) && !strchr(digits, *name)) {
            return false;
        }
    }
    return true;
}

static int check_env_name(const struct value *item, struct error *err)
{
    if (!env_name_is_valid(item->key)) {
        (void)value_key_error(item, err, ERROR_INVALID, "'%.64s' cannot be the name of a variable",
                              item->key);
        return error_expect(err, "letters, digits and '_', no digit first");
    }
    if (strncmp(item->key, "TIELINE_", strlen("TIELINE_")) == 0) {
        (void)value_key_error(item, err, ERROR_INVALID, "'%.64s' is set by Tieline", item->key);
        return error_expect(err, "a name that does not begin with TIELINE_");
    }
    return 0;
}

static int read_env(const struct value *value, void *field, const struct keys_context *context,
                    struct error *err)
{
    struct env *env = field;
    if (wants_map(value, "names and values: {LANGUAGE: en}", err) < 0) {
        return -1;
    }
    if (value->count > SPEC_ENV_MAX) {
        (void)value_error(value, err, ERROR_INVALID, "%zu variables", value->count);
        return error_expect(err, "at most %d", (int)SPEC_ENV_MAX);
    }
    env->items = xcalloc(value->count, sizeof *env->items);
    for (size_t i = 0; i < value->count; i++) {
        const struct value *item = value->items[i];
        if (check_env_name(item, err) < 0) {
            return -1;
        }
        const struct key row = {.name = item->key, .type = KEY_TEXT, .flags = KEY_NULL};
        char *text = NULL;
        if (keys_read_one(&row, item, &text, context, err) < 0) {
            return -1;
        }
        if (text) {
            env->items[env->count].name = xstrdup(item->key);
            env->items[env->count++].value = text;
        }
    }
    return 0;
}

static void free_env(void *field)
{
    struct env *env = field;
    for (size_t i = 0; i < env->count; i++) {
        free(env->items[i].name);
        free(env->items[i].value);
    }
    free(env->items);
    *env = (struct env){NULL, 0};
}

static int read_rerun(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    (void)context;
    if (value->kind != VALUE_SCALAR || strcmp(value->text, "never") != 0) {
        (void)value_error(value, err, ERROR_INVALID, "not a word that 'rerun' knows");
        return error_expect(err, "never, or leave the key out");
    }
    *(int *)field = RERUN_NEVER;
    return 0;
}

static const struct key times_key = {
    .type = KEY_INTEGER, .low = 0, .high = RETRY_TIMES_MAX, .help = "further attempts"};

static int read_exits(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct list *list = field;
    if (wants_map(value, "exit codes and times: {\"75\": 2}", err) < 0) {
        return -1;
    }
    if (value->count > SPEC_EXITS_MAX) {
        (void)value_error(value, err, ERROR_INVALID, "%zu exit codes", value->count);
        return error_expect(err, "at most %d", (int)SPEC_EXITS_MAX);
    }
    struct retry_exit *exits = xcalloc(value->count, sizeof *exits);
    list->items = exits;
    for (size_t i = 0; i < value->count; i++) {
        const struct value *item = value->items[i];
        int64_t code;
        if (integer_parse(item->key, 1, EXIT_CODE_MAX, &code, err) < 0) {
            (void)value_key_error(item, err, ERROR_INVALID, "'%.64s' is not an exit code",
                                  item->key);
            return error_expect(err, "1 to %d", (int)EXIT_CODE_MAX);
        }
        struct key row = times_key;
        row.name = item->key;
        if (keys_read_one(&row, item, &exits[list->count].times, context, err) < 0) {
            return -1;
        }
        exits[list->count++].name = xstrdup(item->key);
    }
    return 0;
}

static void free_exits(void *field)
{
    struct list *list = field;
    struct retry_exit *exits = list->items;
    for (size_t i = 0; i < list->count; i++) {
        free(exits[i].name);
    }
    free(exits);
    *list = (struct list){NULL, 0};
}

static int read_override(const struct value *item, const struct keys_context *context,
                         struct error *err)
{
    struct spec_override read = {.skip = false};
    if (wants_map(item, "what changes there: {needs: {memory: 4GiB}}", err) < 0) {
        return -1;
    }
    int result = keys_read(spec_override_keys, item, &read, context, err);
    keys_free(spec_override_keys, &read);
    return result;
}

static int read_at(const struct value *value, void *field, const struct keys_context *context,
                   struct error *err)
{
    struct list *list = field;
    if (wants_map(value, "adapters, clusters or places, and what changes there", err) < 0) {
        return -1;
    }
    if (value->count > SPEC_AT_MAX) {
        (void)value_error(value, err, ERROR_INVALID, "%zu names in 'at'", value->count);
        return error_expect(err, "at most %d", (int)SPEC_AT_MAX);
    }
    struct override *overrides = xcalloc(value->count, sizeof *overrides);
    list->items = overrides;
    for (size_t i = 0; i < value->count; i++) {
        if (strncmp(value->items[i]->key, "x-", 2) == 0) {
            continue; /* ignored, like any such key */
        }
        if (read_override(value->items[i], context, err) < 0) {
            return -1;
        }
        overrides[list->count].name = xstrdup(value->items[i]->key);
        overrides[list->count++].value = value->items[i];
    }
    return 0;
}

static void free_at(void *field)
{
    struct list *list = field;
    struct override *overrides = list->items;
    for (size_t i = 0; i < list->count; i++) {
        free(overrides[i].name);
    }
    free(overrides);
    *list = (struct list){NULL, 0};
}

const struct key spec_needs_keys[] = {
    {.name = "cpus",
     .type = KEY_CPUS,
     .flags = KEY_NULL,
     .offset = offsetof(struct needs, cpus),
     .given = offsetof(struct needs, has_cpus) + 1,
     .low = 1,
     .high = CPUS_MAX * 1000,
     .help = "CPUs, also parts: 0.5. Default: the class's, else 1"},
    {.name = "memory",
     .type = KEY_SIZE,
     .flags = KEY_NULL,
     .offset = offsetof(struct needs, memory),
     .given = offsetof(struct needs, has_memory) + 1,
     .low = MEMORY_MIN,
     .high = MEMORY_MAX,
     .help = "memory. Default: the class's, else 2GiB"},
    {.name = "gpus",
     .type = KEY_CPUS,
     .flags = KEY_NULL,
     .offset = offsetof(struct needs, gpus),
     .given = offsetof(struct needs, has_gpus) + 1,
     .low = 0,
     .high = CPUS_MAX * 1000,
     .help = "GPUs. Default: the class's, else none"},
    {.name = "gpu",
     .type = KEY_TEXTS,
     .flags = KEY_NULL,
     .offset = offsetof(struct needs, gpu),
     .max_items = SPEC_GPU_MAX,
     .help = "models of GPU that will do. Default: any"},
    {.name = NULL},
};

const struct key spec_time_keys[] = {
    {.name = "limit",
     .type = KEY_DURATION,
     .flags = KEY_NULL,
     .offset = offsetof(struct job_time, limit),
     .given = offsetof(struct job_time, has_limit) + 1,
     .help = "it is ended after so long. Default: the class's, else 8h"},
    {.name = "estimate",
     .type = KEY_DURATION,
     .flags = KEY_NULL,
     .offset = offsetof(struct job_time, estimate),
     .given = offsetof(struct job_time, has_estimate) + 1,
     .help = "how long it is expected to run. Default: the class's, else the limit"},
    {.name = NULL},
};

static const struct key where_keys[] = {
    {.name = "require",
     .type = KEY_LABELS,
     .flags = KEY_NULL,
     .offset = offsetof(struct where, require),
     .max_items = SPEC_LABELS_MAX,
     .help = "what the place must be: places, kind, adapter, or any label of it"},
    {.name = "forbid",
     .type = KEY_LABELS,
     .flags = KEY_NULL,
     .offset = offsetof(struct where, forbid),
     .max_items = SPEC_LABELS_MAX,
     .help = "what the place must not be"},
    {.name = NULL},
};

static const struct key retry_keys[] = {
    {.name = "lost",
     .type = KEY_INTEGER,
     .flags = KEY_NULL,
     .offset = offsetof(struct retry, lost),
     .standard = "3",
     .high = RETRY_TIMES_MAX,
     .help = "further attempts when the member lost it or took the machine away"},
    {.name = "start-failed",
     .type = KEY_INTEGER,
     .flags = KEY_NULL,
     .offset = offsetof(struct retry, start_failed),
     .standard = "2",
     .high = RETRY_TIMES_MAX,
     .help = "further attempts when the member could not start it"},
    {.name = "out-of-memory",
     .type = KEY_INTEGER,
     .flags = KEY_NULL,
     .offset = offsetof(struct retry, out_of_memory),
     .standard = "0",
     .high = RETRY_TIMES_MAX,
     .help = "further attempts when it used more memory than it asked for"},
    {.name = "exit",
     .type = KEY_CUSTOM,
     .flags = KEY_NULL,
     .offset = offsetof(struct retry, exits),
     .read = read_exits,
     .free = free_exits,
     .type_words = "map of exit codes to times",
     .help = "further attempts by exit code: {\"75\": 2}"},
    {.name = NULL},
};

/* What stands in the job itself and in an entry of `at` alike. */
#define WORK_ROWS(holder)                                                                          \
    {.name = "run",                                                                                \
     .type = KEY_TEXT,                                                                             \
     .flags = KEY_NULL,                                                                            \
     .offset = offsetof(holder, run),                                                              \
     .help = "what runs, as text for a shell; exactly one of `run` and `command`"},                \
        {.name = "command",                                                                        \
         .type = KEY_TEXTS,                                                                        \
         .flags = KEY_NULL,                                                                        \
         .offset = offsetof(holder, command),                                                      \
         .max_items = SPEC_COMMAND_MAX,                                                            \
         .help = "what runs, as words without a shell"},                                           \
        {.name = "env",                                                                            \
         .type = KEY_CUSTOM,                                                                       \
         .flags = KEY_NULL,                                                                        \
         .offset = offsetof(holder, env),                                                          \
         .read = read_env,                                                                         \
         .free = free_env,                                                                         \
         .type_words = "map of texts",                                                             \
         .help = "environment variables"},                                                         \
    {                                                                                              \
        .name = "needs", .type = KEY_SECTION, .flags = KEY_NULL,                                   \
        .offset = offsetof(holder, needs), .rows = spec_needs_keys,                                \
        .help = "what it takes to run it"                                                          \
    }

const struct key spec_override_keys[] = {
    {.name = "skip",
     .type = KEY_BOOL,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec_override, skip),
     .help = "not to be used for this job"},
    WORK_ROWS(struct spec_override),
    {.name = NULL},
};

const struct key spec_keys[] = {
    {.name = "name",
     .type = KEY_NAME,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, name),
     .help = "shown everywhere, also at the member. Default: the command's"},
    {.name = "class",
     .type = KEY_NAME,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, class_name),
     .help = "class of the queue. Default: the policy's `default_class`"},
    {.name = "team",
     .type = KEY_NAME,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, team),
     .help = "team that it is counted to. Default: the caller's"},
    {.name = "labels",
     .type = KEY_LABELS,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, labels),
     .max_items = SPEC_LABELS_MAX,
     .help = "names and values that the policy may match"},
    WORK_ROWS(struct spec),
    {.name = "time",
     .type = KEY_SECTION,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, time),
     .rows = spec_time_keys,
     .help = "how long it runs"},
    {.name = "where",
     .type = KEY_SECTION,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, where),
     .rows = where_keys,
     .help = "which places will do"},
    {.name = "priority",
     .type = KEY_INTEGER,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, priority),
     .standard = "50",
     .high = 100,
     .help = "orders a team's own jobs, higher first; never overtakes another team"},
    {.name = "protected",
     .type = KEY_BOOL,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, is_protected),
     .help = "never on spot, never moved or preempted"},
    {.name = "rerun",
     .type = KEY_CUSTOM,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, rerun),
     .read = read_rerun,
     .type_words = "never",
     .help = "never: at most once, a second attempt is not made whatever `retry` says"},
    {.name = "retry",
     .type = KEY_SECTION,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, retry),
     .rows = retry_keys,
     .help = "further attempts, by cause"},
    {.name = "at",
     .type = KEY_CUSTOM,
     .flags = KEY_NULL,
     .offset = offsetof(struct spec, at),
     .read = read_at,
     .free = free_at,
     .type_words = "map of adapter, cluster or place",
     .help = "what changes there: `skip`, `run`, `command`, `env`, `needs`"},
    {.name = NULL},
};
