/* keys.c - walking a document by a key table.
 *
 * Errors come in the order of the document, then what is missing. One reader goes through the whole
 * walk: it stops at the first error, or collects up to KEYS_ERRORS_MAX of them. The hook of a section
 * or item runs only when everything below was read without an error. */
#include "broker/core/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/keys_scalar.h"
#include "broker/core/texts.h"

enum { ROWS_MAX = 128, KEYS_ERRORS_MAX = 100 };

struct reader {
    const struct keys_context *context;
    struct error *err;
    void (*found)(void *arg, const struct error *err); /* NULL: the first error ends the walk */
    void *arg;
    int count; /* of errors */
    int (*rows)(struct reader *reader, const struct key *rows, const struct value *value,
                void *base);
};

static const struct key secret_rows[] = {
    {.name = "file", .type = KEY_TEXT, .offset = offsetof(struct secret, file)},
    {.name = "env", .type = KEY_TEXT, .offset = offsetof(struct secret, env)},
    {.name = "command", .type = KEY_TEXTS, .offset = offsetof(struct secret, command)},
    {0},
};

static void *field_of(const struct key *row, void *base)
{
    return (char *)base + row->offset;
}

static size_t row_count(const struct key *rows)
{
    size_t count = 0;
    while (rows[count].name) {
        count++;
    }
    return count;
}

/* Hands the error that was just set to whoever collects. Returns -1. */
static int report(struct reader *reader)
{
    reader->count++;
    if (reader->found) {
        reader->found(reader->arg, reader->err);
    }
    return -1;
}

static bool is_over(const struct reader *reader)
{
    return reader->count > 0 && (!reader->found || reader->count >= KEYS_ERRORS_MAX);
}

static void expect_key(struct error *err, const char *word, const struct key *rows)
{
    const char *names[ROWS_MAX];
    size_t count = row_count(rows);
    for (size_t i = 0; i < count; i++) {
        names[i] = rows[i].name;
    }
    const char *nearest = nearest_word(word, names, count);
    if (nearest) {
        error_expect(err, "did you mean '%s'?", nearest);
    } else {
        keys_expect_word(err, "", names, count);
    }
}

static int unknown_key(struct reader *reader, const struct key *rows, const struct value *item)
{
    value_key_error(item, reader->err, ERROR_INVALID, "unknown key '%.80s'", item->key);
    expect_key(reader->err, item->key, rows);
    return report(reader);
}

/* The rows of one map, then the hook of the row above. */
static int read_section(struct reader *reader, const struct key *row, const struct value *value,
                        void *field)
{
    int before = reader->count;
    if (value->kind != VALUE_MAP) {
        keys_misfit(row, value, reader->err);
        return report(reader);
    }
    if (reader->rows(reader, row->rows, value, field) != 0 || reader->count > before) {
        return -1;
    }
    if (row->read && row->read(value, field, reader->context, reader->err) != 0) {
        return report(reader);
    }
    return 0;
}

static int check_count(struct reader *reader, const struct key *row, const struct value *value)
{
    if (value->count <= keys_max_items(row)) {
        return 0;
    }
    value_error(value, reader->err, ERROR_INVALID, "'%s' has %zu entries", row->name, value->count);
    error_expect(reader->err, "at most %zu", keys_max_items(row));
    return report(reader);
}

static int read_name(struct reader *reader, const struct value *item, char **out)
{
    if (!name_is_valid(item->key)) {
        value_key_error(item, reader->err, ERROR_INVALID, "'%.80s' is not a name", item->key);
        error_expect(reader->err, "%s", keys_type_example(KEY_NAME));
        return report(reader);
    }
    *out = xstrdup(item->key);
    return 0;
}

/* NAMED and ITEMS: each item has its struct in the list. */
static int read_list(struct reader *reader, const struct key *row, const struct value *value,
                     void *field)
{
    struct list *list = field;
    bool named = row->type == KEY_NAMED;
    bool alone = !named && value->kind == VALUE_MAP;
    if (!alone && value->kind != (named ? VALUE_MAP : VALUE_LIST)) {
        keys_misfit(row, value, reader->err);
        return report(reader);
    }
    if (!alone && check_count(reader, row, value) != 0) {
        return -1;
    }
    size_t count = alone ? 1 : value->count;
    int before = reader->count;
    list->items = xcalloc(count, row->item_size);
    for (size_t i = 0; i < count && !is_over(reader); i++) {
        const struct value *item = alone ? value : value->items[i];
        char *base = (char *)list->items + i * row->item_size;
        list->count++;
        if (!named || read_name(reader, item, (char **)(void *)base) == 0) {
            (void)read_section(reader, row, item, base); /* counted by the reader */
        }
    }
    return reader->count > before ? -1 : 0;
}

/* The value is never repeated in a message: it may be the secret itself. */
static int read_secret(struct reader *reader, const struct key *row, const struct value *value,
                       struct secret *secret)
{
    if (value->kind == VALUE_SCALAR) {
        value_error(value, reader->err, ERROR_INVALID, "'%s' must not hold the secret itself",
                    row->name);
        error_expect(reader->err, "%s", keys_type_example(KEY_SECRET));
        return report(reader);
    }
    if (value->kind != VALUE_MAP) {
        keys_misfit(row, value, reader->err);
        return report(reader);
    }
    if (reader->rows(reader, secret_rows, value, secret) != 0) {
        return -1;
    }
    int given = (secret->file != NULL) + (secret->env != NULL) + (secret->command.count > 0);
    if (given != 1) {
        value_error(value, reader->err, ERROR_INVALID, "'%s' has %d sources, but must have one",
                    row->name, given);
        error_expect(reader->err, "%s", keys_type_example(KEY_SECRET));
        return report(reader);
    }
    return 0;
}

static int read_value(struct reader *reader, const struct key *row, const struct value *value,
                      void *field)
{
    switch (row->type) {
    case KEY_SECTION: return read_section(reader, row, value, field);
    case KEY_SECRET: return read_secret(reader, row, value, field);
    case KEY_NAMED:
    case KEY_ITEMS: return read_list(reader, row, value, field);
    default: break;
    }
    if (keys_read_scalar(row, value, field, reader->context, reader->err) != 0) {
        return report(reader);
    }
    return 0;
}

/* A key that does not stand there: its default, or those of what is below it. */
static int read_absent(struct reader *reader, const struct key *row, void *base)
{
    if (row->type == KEY_SECTION) {
        return reader->rows(reader, row->rows, NULL, field_of(row, base));
    }
    if (!row->standard) {
        return 0;
    }
    bool text = row->type == KEY_TEXT || row->type == KEY_NAME || row->type == KEY_TEXTS;
    char *standard = xstrdup(row->standard);
    struct value value = {.kind = VALUE_SCALAR, .text = standard};
    value.style = text ? VALUE_QUOTED : VALUE_PLAIN;
    int status = keys_read_scalar(row, &value, field_of(row, base), reader->context, reader->err);
    free(standard);
    if (status != 0) {
        error_prefix(reader->err, "default of '%s'", row->name);
        return report(reader);
    }
    return 0;
}

static int missing_key(struct reader *reader, const struct key *row, const struct value *map)
{
    value_error(map, reader->err, ERROR_INVALID, "key '%s' is missing", row->name);
    error_expect(reader->err, "%s: %s", row->name,
                 row->type == KEY_CUSTOM && row->type_words ? row->type_words
                                                            : keys_type_words(row->type));
    return report(reader);
}

/* One item of a map; notes in seen which rows have had theirs. */
static int read_item(struct reader *reader, const struct key *rows, const struct value *item,
                     bool seen[ROWS_MAX], void *base)
{
    size_t i = 0;
    while (rows[i].name && strcmp(rows[i].name, item->key) != 0) {
        i++;
    }
    const struct key *row = &rows[i];
    if (!row->name) {
        return strncmp(item->key, "x-", 2) == 0 ? 0 : unknown_key(reader, rows, item);
    }
    if (seen[i]) {
        value_key_error(item, reader->err, ERROR_INVALID, "key '%s' stands twice", row->name);
        return report(reader);
    }
    bool null = value_meaning(item) == VALUE_MEANS_NULL;
    if (null && (row->flags & KEY_NULL)) {
        return 0;
    }
    seen[i] = true;
    if (null && row->type != KEY_CUSTOM) {
        keys_misfit(row, item, reader->err);
        return report(reader);
    }
    if (row->given) {
        *((bool *)base + row->given - 1) = true;
    }
    return read_value(reader, row, item, field_of(row, base));
}

/* value NULL: only defaults, and nothing is required. */
static int read_rows(struct reader *reader, const struct key *rows, const struct value *value,
                     void *base)
{
    bool seen[ROWS_MAX] = {false};
    int before = reader->count;
    assert(row_count(rows) <= ROWS_MAX);
    for (size_t i = 0; value && i < value->count && !is_over(reader); i++) {
        (void)read_item(reader, rows, value->items[i], seen, base); /* counted by the reader */
    }
    for (size_t i = 0; rows[i].name && !is_over(reader); i++) {
        if (!seen[i] && value && (rows[i].flags & KEY_REQUIRED)) {
            (void)missing_key(reader, &rows[i], value);
        } else if (!seen[i]) {
            (void)read_absent(reader, &rows[i], base);
        }
    }
    return reader->count > before ? -1 : 0;
}

static void labels_fini(struct labels *labels)
{
    for (size_t i = 0; i < labels->count; i++) {
        free(labels->items[i].name);
        texts_fini(&labels->items[i].values);
    }
    free(labels->items);
    *labels = (struct labels){NULL, 0};
}

static void secret_fini(struct secret *secret)
{
    free(secret->file);
    free(secret->env);
    texts_fini(&secret->command);
    *secret = (struct secret){0};
}

static void free_list(const struct key *row, struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        char *item = (char *)list->items + i * row->item_size;
        if (row->free) {
            row->free(item);
        }
        keys_free(row->rows, item);
        if (row->type == KEY_NAMED) {
            free(*(char **)(void *)item);
        }
    }
    free(list->items);
    *list = (struct list){NULL, 0};
}

static void free_text(char **text)
{
    free(*text);
    *text = NULL;
}

static size_t plain_size(enum key_type type)
{
    switch (type) {
    case KEY_BOOL: return sizeof(bool);
    case KEY_ENUM: return sizeof(int);
    case KEY_MONEY:
    case KEY_PRICE_HOUR:
    case KEY_PRICE_KWH: return sizeof(struct money);
    case KEY_RATE: return sizeof(struct rate);
    case KEY_RANGE: return sizeof(struct range);
    default: return sizeof(int64_t);
    }
}

static void free_field(const struct key *row, void *field)
{
    switch (row->type) {
    case KEY_TEXT:
    case KEY_NAME: free_text(field); break;
    case KEY_TEXTS: texts_fini(field); break;
    case KEY_LABELS: labels_fini(field); break;
    case KEY_SECRET: secret_fini(field); break;
    case KEY_NAMED:
    case KEY_ITEMS: free_list(row, field); break;
    case KEY_SECTION:
        if (row->free) {
            row->free(field);
        }
        keys_free(row->rows, field);
        break;
    case KEY_CUSTOM:
        if (row->free) {
            row->free(field);
        }
        break;
    default: memset(field, 0, plain_size(row->type)); break;
    }
}

static int walk(struct reader *reader, const struct key *rows, const struct value *value,
                void *base)
{
    static const struct keys_context none;
    reader->context = reader->context ? reader->context : &none;
    reader->rows = read_rows;
    if (value && value->kind != VALUE_MAP) {
        value_error(value, reader->err, ERROR_INVALID, "a map of keys must stand here");
        expect_key(reader->err, "", rows);
        return report(reader);
    }
    return read_rows(reader, rows, value, base);
}

const char *labels_get(const struct labels *labels, const char *name)
{
    for (size_t i = 0; i < labels->count; i++) {
        const struct label *label = &labels->items[i];
        if (strcmp(label->name, name) == 0) {
            return label->values.count ? label->values.items[0] : NULL;
        }
    }
    return NULL;
}

int keys_read(const struct key *rows, const struct value *value, void *base,
              const struct keys_context *context, struct error *err)
{
    struct reader reader = {.context = context, .err = err};
    return walk(&reader, rows, value, base);
}

int keys_read_all(const struct key *rows, const struct value *value, void *base,
                  const struct keys_context *context,
                  void (*found)(void *arg, const struct error *err), void *arg)
{
    struct error err = {0};
    struct reader reader = {.context = context, .err = &err, .found = found, .arg = arg};
    (void)walk(&reader, rows, value, base); /* counted by the reader */
    return reader.count;
}

int keys_read_one(const struct key *row, const struct value *value, void *field,
                  const struct keys_context *context, struct error *err)
{
    static const struct keys_context none;
    struct reader reader = {.context = context ? context : &none, .err = err, .rows = read_rows};
    if (value_meaning(value) == VALUE_MEANS_NULL && row->type != KEY_CUSTOM) {
        return row->flags & KEY_NULL ? 0 : keys_misfit(row, value, err);
    }
    return read_value(&reader, row, value, field);
}

void keys_free(const struct key *rows, void *base)
{
    for (size_t i = 0; rows[i].name; i++) {
        free_field(&rows[i], field_of(&rows[i], base));
        if (rows[i].given) {
            *((bool *)base + rows[i].given - 1) = false;
        }
    }
}
