#include "api/cli/job_flags.h"

#include "broker/core/alloc.h"
#include "broker/core/key_table.h"
#include "broker/core/spec.h"
#include "broker/core/units.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAGS_MAX = 64, REAL_DIGITS = 15 };

struct job_flag {        /* which key a flag sets */
    const char *section; /* NULL: of the job itself */
    const struct key *key;
};

static struct flag flags[FLAGS_MAX + 1];
static struct job_flag targets[FLAGS_MAX];
static size_t flag_count;

static bool is_map(const struct key *key)
{
    return key->type == KEY_LABELS || strcmp(key->name, "env") == 0 ||
           strcmp(key->name, "exit") == 0;
}

static const char *takes_of(const struct key *key)
{
    if (strcmp(key->name, "env") == 0) {
        return "NAME[=VALUE]";
    }
    if (is_map(key)) {
        return "NAME=VALUE";
    }
    switch (key->type) {
    case KEY_BOOL: return NULL;
    case KEY_DURATION: return "TIME";
    case KEY_SIZE: return "SIZE";
    case KEY_INTEGER:
    case KEY_CPUS: return "N";
    case KEY_NAME: return "NAME";
    default: return "TEXT";
    }
}

/* Where the words of a key's help speak of a file, a flag has its own. */
static const char *help_of(const struct key *key)
{
    static const struct {
        const char *name, *help;
    } rows[] = {
        {"exit", "further attempts by exit code, as 75=2: two more when it ends with 75"},
        {"env",
         "environment variable; without a value it is taken from here. No place for secrets: "
         "who may see the job sees it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(key->name, rows[i].name) == 0) {
            return rows[i].help;
        }
    }
    return key->help;
}

static void add_flag(const char *name, const char *section, const struct key *key)
{
    if (flag_count < FLAGS_MAX) {
        flags[flag_count] = (struct flag){.name = name,
                                          .takes = takes_of(key),
                                          .many = is_map(key) || key->type == KEY_TEXTS,
                                          .help = help_of(key)};
        targets[flag_count++] = (struct job_flag){section, key};
    }
}

static void add_rows(const char *section, const struct key *rows)
{
    for (const struct key *key = rows; key->name; key++) {
        bool is_shown = strcmp(key->name, "at") != 0 && strcmp(key->name, "command") != 0;
        if (key->type == KEY_SECTION) {
            add_rows(key->name, key->rows);
        } else if (is_shown && !(key->flags & KEY_HIDDEN)) {
            /* one label at a time is what a flag says */
            add_flag(strcmp(key->name, "labels") == 0 ? "label" : key->name, section, key);
        }
    }
}

const struct flag *job_flags(void)
{
    if (!flag_count) {
        add_rows(NULL, spec_keys);
    }
    return flags;
}

/* The object in object with this name; anything else there is replaced. */
static json_t *object_at(json_t *object, const char *name)
{
    json_t *at = json_object_get(object, name);
    if (!json_is_object(at)) {
        at = json_object();
        json_object_set_new(object, name, at);
    }
    return at;
}

static json_t *number_of(const char *text)
{
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (*text && !*end && errno == 0) {
        return json_integer(whole);
    }
    double real = strtod(text, &end);
    return *text && !*end && errno == 0 ? json_real(real) : NULL;
}

/* What a flag's value becomes; the broker checks it. */
static json_t *value_of(const struct key *key, const char *value)
{
    json_t *json = NULL;
    if (key->type == KEY_BOOL) {
        return json_true();
    }
    if (key->type == KEY_INTEGER || key->type == KEY_CPUS || strcmp(key->name, "exit") == 0) {
        json = number_of(value);
    }
    return json ? json : json_string(value);
}

/* NAME=VALUE; of env also NAME, whose value is taken from here. */
static int set_pair(json_t *map, const struct key *key, const char *pair, struct error *err)
{
    size_t length = strcspn(pair, "=");
    char *name = xstrndup(pair, length);
    const char *value = pair[length] ? pair + length + 1 : NULL;
    int result = 0;
    if (!value && strcmp(key->name, "env") == 0) {
        value = getenv(name);
        if (!value) {
            error_set(err, ERROR_INVALID, "--env %.100s: there is no such variable here", name);
            result = error_expect(err, "--env %.100s=VALUE", name);
        }
    } else if (!value || !*name) {
        error_set(err, ERROR_INVALID, "'%.100s' is no pair for %s", pair, key->name);
        result = error_expect(err, "NAME=VALUE");
    }
    if (result == 0) {
        json_object_set_new(map, name, value_of(key, value));
    }
    free(name);
    return result;
}

/* Several values of one flag, also with commas between them. */
static void add_texts(json_t *object, const char *name, const char *value, bool first)
{
    json_t *list = json_object_get(object, name);
    if (first || !json_is_array(list)) {
        list = json_array();
        json_object_set_new(object, name, list);
    }
    while (*value) {
        size_t length = strcspn(value, ",");
        json_array_append_new(list, json_stringn(value, length));
        value += length + (value[length] == ',');
    }
}

static bool is_first(const struct args *args, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (args->given[i].flag == args->given[at].flag) {
            return false;
        }
    }
    return true;
}

int job_flags_apply(const struct args *args, json_t *job, struct error *err)
{
    if (args_has(args, "run") && args->after < args->word_count) {
        error_set(err, ERROR_INVALID, "--run and a command: both say what is run");
        return error_expect(err, "--run TEXT for a shell, or -- COMMAND without one");
    }
    for (size_t i = 0; i < args->given_count; i++) {
        const struct arg *arg = &args->given[i];
        if (arg->flag < flags || arg->flag >= flags + flag_count) {
            continue;
        }
        const struct job_flag *target = &targets[arg->flag - flags];
        const struct key *key = target->key;
        json_t *object = target->section ? object_at(job, target->section) : job;
        if (is_map(key)) {
            if (set_pair(object_at(object, key->name), key, arg->value, err) < 0) {
                return -1;
            }
        } else if (key->type == KEY_TEXTS) {
            add_texts(object, key->name, arg->value, is_first(args, i));
        } else {
            json_object_set_new(object, key->name, value_of(key, arg->value));
        }
        if (strcmp(key->name, "run") == 0) {
            json_object_del(object, "command");
        }
    }
    if (args->after < args->word_count) {
        json_t *command = json_array();
        for (size_t i = args->after; i < args->word_count; i++) {
            if (json_array_append_new(command, json_string(args->words[i])) != 0) {
                json_decref(command);
                return error_set(err, ERROR_INVALID, "word %zu of the command is not UTF-8",
                                 i - args->after + 1);
            }
        }
        json_object_set_new(job, "command", command);
        json_object_del(job, "run");
    }
    return 0;
}

/* Whether a text is NDJSON: more than one line, and each begins an object. */
static bool is_lines(const char *text)
{
    size_t lines = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (*text != '{' && strspn(text, " \t\r") < length) {
            return false;
        }
        lines += *text == '{';
        text += length + (text[length] == '\n');
    }
    return lines > 1;
}

static int read_lines(const char *text, const char *path, json_t *jobs, struct error *err)
{
    for (int number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        struct value *value = NULL;
        if (*text == '{') {
            if (value_from_json(text, length, &value, err) < 0) {
                copy_text(err->file, sizeof err->file, path);
                err->line = number;
                return -1;
            }
            json_array_append_new(jobs, value_to_json(value));
            value_destroy(value);
        }
        text += length + (text[length] == '\n');
    }
    return 0;
}

static int read_documents(const char *path, json_t *jobs, struct error *err)
{
    struct value *value = NULL;
    char *text;
    size_t length;
    if (config_file_read(path, &text, &length, err) < 0) {
        return -1;
    }
    int result;
    if (is_lines(text)) {
        result = read_lines(text, path, jobs, err);
    } else {
        result = config_job_parse(text, length, path, &value, err);
    }
    free(text);
    if (value) {
        json_t *json = value_to_json(value);
        if (json_is_array(json)) {
            json_array_extend(jobs, json);
        } else {
            json_array_append(jobs, json);
        }
        json_decref(json);
        value_destroy(value);
    }
    return result;
}

int jobs_read_file(const struct args *args, const char *path, json_t *jobs, struct error *err)
{
    size_t i = json_array_size(jobs);
    if (!path) {
        json_array_append_new(jobs, json_object());
    } else if (read_documents(path, jobs, err) < 0) {
        return -1;
    }
    for (; i < json_array_size(jobs); i++) {
        if (!json_is_object(json_array_get(jobs, i))) {
            error_set(err, ERROR_INVALID, "%.150s: a job is a map", path ? path : "-");
            return error_expect(err, "run: or command:, and what it needs; or a list of such maps");
        }
        if (job_flags_apply(args, json_array_get(jobs, i), err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------------------------- where it stands */

/* The flag that set what the pointer names; its name takes the pointer's place. */
static bool locate_flag(const struct args *args, struct error *err)
{
    for (size_t i = 0; i < args->given_count; i++) {
        const struct flag *flag = args->given[i].flag;
        if (flag < flags || flag >= flags + flag_count) {
            continue;
        }
        const struct job_flag *target = &targets[flag - flags];
        char *at = xasprintf("%s%s/%s", target->section ? "/" : "",
                             target->section ? target->section : "", target->key->name);
        size_t length = strlen(at);
        bool fits = strncmp(err->pointer, at, length) == 0 &&
                    (!err->pointer[length] || err->pointer[length] == '/');
        free(at);
        if (fits) {
            (void)snprintf(err->pointer, sizeof err->pointer, "--%s", flag->name);
            return true;
        }
    }
    return false;
}

/* The deepest value on the way of a pointer; a key that is too much stands where its map does. */
static const struct value *value_at(const struct value *value, const char *pointer)
{
    while (*pointer == '/') {
        size_t length = strcspn(pointer + 1, "/"), index = 0;
        char *name = xstrndup(pointer + 1, length);
        const struct value *next = NULL;
        struct error err;
        int64_t number;
        if (value->kind == VALUE_MAP) {
            next = value_get(value, name);
        } else if (value->kind == VALUE_LIST &&
                   integer_parse(name, 0, VALUE_NODES_MAX, &number, &err) == 0) {
            index = (size_t)number;
            next = index < value->count ? value->items[index] : NULL;
        }
        free(name);
        if (!next) {
            break;
        }
        value = next;
        pointer += 1 + length;
    }
    return value;
}

/* The line of the index-th job of an NDJSON text; 0: it has fewer, *count of them. */
static int line_of_job(const char *text, size_t index, size_t *count)
{
    *count = 0;
    for (int number = 1; *text; number++) {
        size_t length = strcspn(text, "\n");
        if (*text == '{' && (*count)++ == index) {
            return number;
        }
        text += length + (text[length] == '\n');
    }
    return 0;
}

/* Looks for the index-th job in one file. Returns 0 when it has that many, and how many it has in *count. */
static int locate_in_file(const char *path, size_t index, struct error *err, size_t *count)
{
    struct value *value = NULL;
    struct error ignored;
    char *text;
    size_t length;
    *count = 0;
    if (strcmp(path, "-") == 0 || config_file_read(path, &text, &length, &ignored) < 0) {
        return 0; /* it cannot be read twice: the pointer must do */
    }
    const struct value *at = NULL;
    int line = 0;
    if (is_lines(text)) {
        line = line_of_job(text, index, count);
    } else if (config_job_parse(text, length, path, &value, &ignored) == 0) {
        bool list = value->kind == VALUE_LIST;
        *count = list ? value->count : 1;
        at = index < *count ? list ? value->items[index] : value : NULL;
    }
    if (at) {
        at = value_at(at, err->pointer);
        line = at->line;
    }
    if (line > 0) {
        copy_text(err->file, sizeof err->file, path);
        err->line = line;
        err->column = at ? at->column : 1;
    }
    free(text);
    value_destroy(value);
    return line > 0 ? 0 : -1;
}

void job_locate(const struct args *args, const char *path, size_t index, struct error *err)
{
    size_t count;
    if (!err->pointer[0] || locate_flag(args, err)) {
        return;
    }
    if (path) {
        (void)locate_in_file(path, index, err, &count);
        return;
    }
    for (size_t i = 0; i < args->after && locate_in_file(args->words[i], index, err, &count) < 0;
         i++) {
        index -= count;
    }
}

int jobs_read(const struct args *args, json_t **out, struct error *err)
{
    json_t *jobs = json_array();
    int result = args->after == 0 ? jobs_read_file(args, NULL, jobs, err) : 0;
    for (size_t i = 0; result == 0 && i < args->after; i++) {
        result = jobs_read_file(args, args->words[i], jobs, err);
    }
    if (result < 0) {
        json_decref(jobs);
        return -1;
    }
    *out = jobs;
    return 0;
}

char *job_text(const json_t *json)
{
    return json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(REAL_DIGITS));
}
