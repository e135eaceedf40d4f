/* keys_scalar.c - reading one value by one row: texts, numbers, units, words, lists of texts.
 *
 * A number or a truth value that stands where text is expected is refused, never turned into text: what
 * `4` or `true` meant would depend on who reads. What has a unit is text in YAML and JSON alike. */
#include "broker/core/keys_scalar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"
#include "broker/core/texts.h"

enum { LABEL_NAME_MAX = 127, ITEMS_STANDARD = 1000 };

static const char *const type_words[KEY_TYPE_COUNT] = {
#define X(constant, words, type) [KEY_##constant] = (words),
    KEY_TYPE_LIST(X)
#undef X
};

/* What to write, where the parser of the text has not said it. */
static const char *const type_examples[KEY_TYPE_COUNT] = {
    [KEY_TEXT] = "text; in quotes where it could be read as something else",
    [KEY_NAME] = "a name: letters, digits, '.', '_' and '-', up to 63, a letter or digit first",
    [KEY_BOOL] = "write true or false",
    [KEY_INTEGER] = "a whole number, without quotes",
    [KEY_CPUS] = "a number like 4 or 1.5",
    [KEY_DURATION] = "a duration like 45s, 15m, 2h, 7d or 1h30m",
    [KEY_SIZE] = "a size like 512MiB, 8GiB or 150GB",
    [KEY_MONEY] = "a sum like 25 EUR",
    [KEY_PRICE_HOUR] = "a price like 1.52 USD/h",
    [KEY_PRICE_KWH] = "a price like 0.31 EUR/kWh",
    [KEY_SHARE] = "a share like 80%",
    [KEY_RATE] = "a rate like 5/s or 20/5m",
    [KEY_POWER] = "a power like 350 W",
    [KEY_RANGE] = "a range like 4, 4.., ..8 or 4..8",
    [KEY_INSTANT] = "a date and time like 2026-03-10T06:00:00+01:00, in quotes",
    [KEY_ENUM] = "one of the words",
    [KEY_TEXTS] = "one text or a list of texts",
    [KEY_LABELS] = "a map like {site: lyon}",
    [KEY_SECRET] = "write {file: PATH}, {env: NAME} or {command: [prog, arg]}",
    [KEY_SECTION] = "a map of keys",
    [KEY_NAMED] = "a map: each name, and below it its keys",
    [KEY_ITEMS] = "a list of maps",
    [KEY_CUSTOM] = "",
};

static const char *meaning_words(const struct value *value)
{
    switch (value_meaning(value)) {
    case VALUE_MEANS_NULL: return "null";
    case VALUE_MEANS_TRUE: return "a truth value (true)";
    case VALUE_MEANS_FALSE: return "a truth value (false)";
    case VALUE_MEANS_INTEGER:
    case VALUE_MEANS_REAL: return "a number";
    case VALUE_MEANS_LIST: return "a list";
    case VALUE_MEANS_MAP: return "a map";
    default: return "a text";
    }
}

const char *keys_type_words(enum key_type type)
{
    return type_words[type];
}

const char *keys_type_example(enum key_type type)
{
    return type_examples[type];
}

size_t keys_max_items(const struct key *row)
{
    return row->max_items ? row->max_items : ITEMS_STANDARD;
}

int keys_misfit(const struct key *row, const struct value *value, struct error *err)
{
    const char *words = row->type == KEY_CUSTOM && row->type_words ? row->type_words
                        : row->type == KEY_ENUM                    ? "a word"
                        : row->type == KEY_SECRET                  ? "a reference to a secret"
                                                                   : type_words[row->type];
    value_error(value, err, ERROR_INVALID, "'%s' is %s, but must be %s", row->name,
                meaning_words(value), words);
    return error_expect(err, "%s", type_examples[row->type]);
}

int keys_expect_word(struct error *err, const char *word, const char *const *words, size_t count)
{
    struct strbuf list;
    strbuf_init(&list, ERROR_PATH_MAX * 4);
    for (size_t i = 0; i < count; i++) {
        strbuf_printf(&list, "%s%s", i ? ", " : "", words[i]);
    }
    const char *nearest = nearest_word(word, words, count);
    const char *all = list.text ? list.text : "";
    if (nearest && count > 1) {
        error_expect(err, "did you mean '%s'? there are: %s", nearest, all);
    } else if (nearest) {
        error_expect(err, "did you mean '%s'?", nearest);
    } else {
        error_expect(err, count ? "one of: %s" : "nothing is known here%s", all);
    }
    strbuf_fini(&list);
    return -1;
}

/* A scalar that means text, or -1. */
static int check_text(const struct key *row, const struct value *value, struct error *err)
{
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    if (value_meaning(value) != VALUE_MEANS_TEXT) {
        value_error(value, err, ERROR_INVALID, "'%s' is %s, but must be text", row->name,
                    meaning_words(value));
        return error_expect(err, "write it in quotes: \"%.60s\"", value->text);
    }
    return 0;
}

/* {word} must be known; a brace that opens must close. */
static int check_template(const struct value *value, struct error *err)
{
    static const char *const words[] = {"owner", "user", "team", "class", "name", "id", "attempt"};
    enum { WORDS = sizeof words / sizeof *words, WORD_SIZE = 32 };
    for (const char *p = strchr(value->text, '{'); p; p = strchr(p, '{')) {
        char word[WORD_SIZE];
        size_t length = strcspn(++p, "}");
        if (p[length] == '\0') {
            value_error(value, err, ERROR_INVALID, "a '{' is not closed");
            return error_expect(err, "a template word like {owner}");
        }
        copy_text(word, length + 1 < WORD_SIZE ? length + 1 : WORD_SIZE, p);
        bool known = false;
        for (size_t i = 0; i < WORDS; i++) {
            known = known || strcmp(word, words[i]) == 0;
        }
        if (!known) {
            value_error(value, err, ERROR_INVALID, "unknown template word '{%s}'", word);
            return keys_expect_word(err, word, words, WORDS);
        }
        p += length;
    }
    return 0;
}

static int read_text(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    (void)context;
    if (check_text(row, value, err) != 0 ||
        ((row->flags & KEY_TEMPLATE) && check_template(value, err) != 0)) {
        return -1;
    }
    *(char **)field = xstrdup(value->text);
    return 0;
}

static int read_name(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    (void)context;
    if (check_text(row, value, err) != 0) {
        return -1;
    }
    if (!name_is_valid(value->text)) {
        value_error(value, err, ERROR_INVALID, "'%.80s' is not a name", value->text);
        return error_expect(err, "%s", type_examples[KEY_NAME]);
    }
    *(char **)field = xstrdup(value->text);
    return 0;
}

static int read_bool(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    static const char *const yes[] = {"yes", "Yes", "YES", "on", "On", "ON", "y", "Y"};
    static const char *const no[] = {"no", "No", "NO", "off", "Off", "OFF", "n", "N"};
    (void)context;
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    bool is_true = strcmp(value->text, "true") == 0, is_false = strcmp(value->text, "false") == 0;
    if (value->style != VALUE_QUOTED && (is_true || is_false)) {
        *(bool *)field = is_true;
        return 0;
    }
    value_error(value, err, ERROR_INVALID, "'%s' must be true or false, not '%.40s'%s", row->name,
                value->text, is_true || is_false ? " in quotes" : "");
    enum value_meaning meaning = value_meaning(value);
    is_true = is_true || meaning == VALUE_MEANS_TRUE;
    is_false = is_false || meaning == VALUE_MEANS_FALSE;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        is_true = is_true || strcmp(value->text, yes[i]) == 0;
        is_false = is_false || strcmp(value->text, no[i]) == 0;
    }
    return error_expect(err, "write %s", is_true ? "true" : is_false ? "false" : "true or false");
}

/* The upper end: a row that states none has none. */
static int64_t highest(const struct key *row)
{
    return row->high == 0 && row->low >= 0 ? INT64_MAX : row->high;
}

static int read_integer(const struct key *row, const struct value *value, void *field,
                        const struct keys_context *context, struct error *err)
{
    (void)context;
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    if (value->style == VALUE_QUOTED) {
        value_error(value, err, ERROR_INVALID, "'%s' is a text, but must be a whole number",
                    row->name);
        return error_expect(err, "write it without quotes");
    }
    if (integer_parse(value->text, row->low, highest(row), field, err) != 0) {
        return value_locate(value, err);
    }
    return 0;
}

/* Whether number lies in the row's range; text prints an end of it. */
static int check_range(const struct key *row, const struct value *value, int64_t number,
                       char *(*text)(int64_t number, char out[UNITS_TEXT_SIZE]), struct error *err)
{
    char low[UNITS_TEXT_SIZE], high[UNITS_TEXT_SIZE];
    int64_t most = highest(row);
    if (number >= row->low && number <= most) {
        return 0;
    }
    value_error(value, err, ERROR_INVALID, "'%s' is out of range: %.40s", row->name, value->text);
    if (most == INT64_MAX) {
        return error_expect(err, "at least %s", text(row->low, low));
    }
    return error_expect(err, "from %s to %s", text(row->low, low), text(most, high));
}

/* Numbers of one int64_t: parsed by parse, held to the row's range. */
static int read_number(const struct key *row, const struct value *value, void *field,
                       range_bound_fn parse,
                       char *(*text)(int64_t number, char out[UNITS_TEXT_SIZE]), struct error *err)
{
    int64_t number = 0;
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    if (parse(value->text, &number, err) != 0) {
        return value_locate(value, err);
    }
    if (check_range(row, value, number, text, err) != 0) {
        return -1;
    }
    *(int64_t *)field = number;
    return 0;
}

static int read_cpus(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    (void)context;
    return read_number(row, value, field, thousandths_parse, thousandths_text, err);
}

static int read_duration(const struct key *row, const struct value *value, void *field,
                         const struct keys_context *context, struct error *err)
{
    (void)context;
    return read_number(row, value, field, duration_parse, duration_text, err);
}

static int read_size(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    (void)context;
    return read_number(row, value, field, size_parse, size_text, err);
}

/* The types with a parser of their own shape; their errors get a place. */
static int read_unit(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    int status = -1;
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    switch (row->type) {
    case KEY_MONEY: status = money_parse(value->text, field, err); break;
    case KEY_PRICE_HOUR: status = price_parse(value->text, PRICE_PER_HOUR, field, err); break;
    case KEY_PRICE_KWH: status = price_parse(value->text, PRICE_PER_KWH, field, err); break;
    case KEY_SHARE: status = share_parse(value->text, field, err); break;
    case KEY_RATE: status = rate_parse(value->text, field, err); break;
    case KEY_POWER: status = power_parse(value->text, field, err); break;
    case KEY_RANGE: status = range_parse(value->text, field, err); break;
    default: status = instant_parse(value->text, context->zone, field, err); break;
    }
    return status == 0 ? 0 : value_locate(value, err);
}

static int read_enum(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    size_t count = 0;
    (void)context;
    if (value->kind != VALUE_SCALAR) {
        return keys_misfit(row, value, err);
    }
    for (; row->words[count]; count++) {
        if (strcmp(row->words[count], value->text) == 0) {
            *(int *)field = (int)count;
            return 0;
        }
    }
    value_error(value, err, ERROR_INVALID, "'%s' cannot be '%.60s'", row->name, value->text);
    return keys_expect_word(err, value->text, row->words, count);
}

static int too_many(const struct key *row, const struct value *value, struct error *err)
{
    value_error(value, err, ERROR_INVALID, "'%s' has %zu entries", row->name, value->count);
    return error_expect(err, "at most %zu", keys_max_items(row));
}

static int read_texts(const struct key *row, const struct value *value, void *field,
                      const struct keys_context *context, struct error *err)
{
    struct texts texts = {0};
    (void)context;
    bool list = value->kind == VALUE_LIST;
    if (list && value->count > keys_max_items(row)) {
        return too_many(row, value, err);
    }
    for (size_t i = 0; i < (list ? value->count : 1); i++) {
        const struct value *item = list ? value->items[i] : value;
        if (check_text(row, item, err) != 0 ||
            ((row->flags & KEY_TEMPLATE) && check_template(item, err) != 0)) {
            texts_fini(&texts);
            return -1;
        }
        texts_add(&texts, item->text);
    }
    *(struct texts *)field = texts;
    return 0;
}

static bool is_label_name(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f) {
            return false;
        }
    }
    return length > 0 && length <= LABEL_NAME_MAX;
}

static int read_labels(const struct key *row, const struct value *value, void *field,
                       const struct keys_context *context, struct error *err)
{
    struct labels *labels = field;
    if (value->kind != VALUE_MAP) {
        return keys_misfit(row, value, err);
    }
    if (value->count > keys_max_items(row)) {
        return too_many(row, value, err);
    }
    labels->items = xcalloc(value->count, sizeof *labels->items);
    for (size_t i = 0; i < value->count; i++) {
        const struct value *item = value->items[i];
        struct label *label = &labels->items[i];
        if (!is_label_name(item->key)) {
            value_key_error(item, err, ERROR_INVALID, "'%.80s' is not a name in '%s'", item->key,
                            row->name);
            return error_expect(err, "up to %d characters without blanks", (int)LABEL_NAME_MAX);
        }
        labels->count++;
        label->name = xstrdup(item->key);
        /* in messages the entry is called by its own name */
        struct key entry = {.name = item->key, .type = KEY_TEXTS, .flags = row->flags};
        if (read_texts(&entry, item, &label->values, context, err) != 0) {
            return -1;
        }
    }
    return 0;
}

static int read_custom(const struct key *row, const struct value *value, void *field,
                       const struct keys_context *context, struct error *err)
{
    return row->read(value, field, context, err);
}

int keys_read_scalar(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err)
{
    static int (*const readers[KEY_TYPE_COUNT])(const struct key *row, const struct value *value,
                                                void *field, const struct keys_context *context,
                                                struct error *err) = {
        [KEY_TEXT] = read_text,       [KEY_NAME] = read_name,   [KEY_BOOL] = read_bool,
        [KEY_INTEGER] = read_integer, [KEY_CPUS] = read_cpus,   [KEY_DURATION] = read_duration,
        [KEY_SIZE] = read_size,       [KEY_MONEY] = read_unit,  [KEY_PRICE_HOUR] = read_unit,
        [KEY_PRICE_KWH] = read_unit,  [KEY_SHARE] = read_unit,  [KEY_RATE] = read_unit,
        [KEY_POWER] = read_unit,      [KEY_RANGE] = read_unit,  [KEY_INSTANT] = read_unit,
        [KEY_ENUM] = read_enum,       [KEY_TEXTS] = read_texts, [KEY_LABELS] = read_labels,
        [KEY_CUSTOM] = read_custom,
    };
    return readers[row->type](row, value, field, context, err);
}
