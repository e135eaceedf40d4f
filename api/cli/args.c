#include "api/cli/args.h"

#include "broker/core/alloc.h"
#include "broker/core/units.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64 };

static const struct flag *find(const struct args *args, const char *name, size_t length)
{
    for (size_t t = 0; t < args->table_count; t++) {
        for (const struct flag *flag = args->tables[t]; flag->name; flag++) {
            if (strlen(flag->name) == length && strncmp(flag->name, name, length) == 0) {
                return flag;
            }
        }
    }
    return NULL;
}

static const struct flag *find_letter(const struct args *args, char letter)
{
    for (size_t t = 0; t < args->table_count; t++) {
        for (const struct flag *flag = args->tables[t]; flag->name; flag++) {
            if (flag->letter == letter) {
                return flag;
            }
        }
    }
    return NULL;
}

static int unknown(const struct args *args, const char *word, struct error *err)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    char name[NAMES_MAX];
    for (size_t t = 0; t < args->table_count; t++) {
        for (const struct flag *flag = args->tables[t]; flag->name && count < NAMES_MAX; flag++) {
            names[count++] = flag->name;
        }
    }
    copy_text(name, sizeof name, word + strspn(word, "-"));
    name[strcspn(name, "=")] = '\0';
    error_set(err, ERROR_INVALID, "unknown option '%.100s'", word);
    const char *near = nearest_word(name, names, count);
    return near ? error_expect(err, "did you mean '--%s'?", near) : -1;
}

static int add(struct args *args, const struct flag *flag, const char *value, struct error *err)
{
    if (!flag->many && args_has(args, flag->name)) {
        return error_set(err, ERROR_INVALID, "--%s stands twice", flag->name);
    }
    args->given = xrealloc(args->given, args->given_count + 1, sizeof *args->given);
    args->given[args->given_count++] = (struct arg){flag, value};
    return 0;
}

/* A flag at argv[*at] with its value, which may be the next word. */
static int take_flag(struct args *args, int argc, char **argv, int *at, struct error *err)
{
    const char *word = argv[*at], *value = NULL;
    const struct flag *flag;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        flag = find(args, word + 2, length);
        value = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
    } else {
        flag = find_letter(args, word[1]);
        value = word[2] ? word + 2 : NULL;
    }
    if (!flag) {
        return unknown(args, word, err);
    }
    if (!flag->takes) {
        if (value) {
            return error_set(err, ERROR_INVALID, "--%s takes no value", flag->name);
        }
        return add(args, flag, NULL, err);
    }
    if (!value) {
        if (*at + 1 >= argc) {
            error_set(err, ERROR_INVALID, "--%s needs a value", flag->name);
            return error_expect(err, "--%s %s", flag->name, flag->takes);
        }
        value = argv[++*at];
    }
    return add(args, flag, value, err);
}

static void add_word(struct args *args, const char *word)
{
    args->words[args->word_count++] = word;
}

int args_parse(struct args *args, int argc, char **argv, bool stop, struct error *err)
{
    bool flags = true;
    args->words = xcalloc((size_t)argc + 1, sizeof *args->words);
    args->after = (size_t)argc + 1;
    for (int i = 0; i < argc; i++) {
        bool is_flag = flags && argv[i][0] == '-' && argv[i][1];
        if (is_flag && strcmp(argv[i], "--") == 0) {
            args->after = args->word_count;
            flags = false;
        } else if (is_flag) {
            if (take_flag(args, argc, argv, &i, err) < 0) {
                args_fini(args);
                return -1;
            }
        } else {
            if (flags && stop) {
                args->after = args->word_count;
                flags = false;
            }
            add_word(args, argv[i]);
        }
    }
    if (args->after > args->word_count) {
        args->after = args->word_count;
    }
    return 0;
}

void args_fini(struct args *args)
{
    free(args->given);
    free(args->words);
    args->given = NULL;
    args->words = NULL;
    args->given_count = args->word_count = args->after = 0;
}

const char *args_get(const struct args *args, const char *name)
{
    for (size_t i = args->given_count; i > 0; i--) {
        if (strcmp(args->given[i - 1].flag->name, name) == 0) {
            return args->given[i - 1].value ? args->given[i - 1].value : "";
        }
    }
    return NULL;
}

bool args_has(const struct args *args, const char *name)
{
    return args_get(args, name) != NULL;
}
