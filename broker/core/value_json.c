/* value_json.c - documents from and to JSON, within the limits of value.h. */
#include "broker/core/value.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/units.h"

enum { REAL_TEXT_SIZE = 40, REAL_DIGITS_MIN = 15, REAL_DIGITS_MAX = 17 };

/* What a conversion from JSON counts. */
struct conversion {
    size_t nodes;
    struct error *err;
};

/* The shortest text that reads back as the same double, never looking like a whole number. */
static char *real_text(double number)
{
    char text[REAL_TEXT_SIZE];
    for (int digits = REAL_DIGITS_MIN; digits <= REAL_DIGITS_MAX; digits++) {
        (void)snprintf(text, sizeof text - 2, "%.*g", digits, number);
        if (strtod(text, NULL) == number) {
            break;
        }
    }
    const char *end = strpbrk(text, ".eEn") ? "" : ".0";
    return xasprintf("%s%s", text, end);
}

static struct value *scalar_create(enum value_style style, char *text)
{
    struct value *value = value_create(VALUE_SCALAR);
    value->style = style;
    value->text = text;
    return value;
}

static struct value *scalar_from_json(const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_STRING:
        return scalar_create(VALUE_QUOTED,
                             xstrndup(json_string_value(json), json_string_length(json)));
    case JSON_INTEGER:
        return scalar_create(VALUE_NUMBER,
                             xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(json)));
    case JSON_REAL: return scalar_create(VALUE_NUMBER, real_text(json_real_value(json)));
    case JSON_TRUE: return scalar_create(VALUE_TRUE, xstrdup("true"));
    case JSON_FALSE: return scalar_create(VALUE_FALSE, xstrdup("false"));
    default: return value_create(VALUE_NULL);
    }
}

static int text_check(const char *text, size_t length, struct error *err)
{
    if (!utf8_is_valid(text, length)) {
        return error_set(err, ERROR_INVALID, "a text is not UTF-8 or holds a NUL");
    }
    return 0;
}

static int convert(struct conversion *conversion, const json_t *json, int depth, struct value **out)
{
    struct error *err = conversion->err;
    if (++conversion->nodes > VALUE_NODES_MAX) {
        error_set(err, ERROR_TOO_LARGE, "more than %d values", (int)VALUE_NODES_MAX);
        return error_expect(err, "split the document");
    }
    bool nested = json_is_object(json) || json_is_array(json);
    if (nested && depth > VALUE_DEPTH_MAX) {
        error_set(err, ERROR_INVALID, "nested deeper than %d levels", (int)VALUE_DEPTH_MAX);
        return error_expect(err, "at most %d levels of lists and maps", (int)VALUE_DEPTH_MAX);
    }
    if (json_is_string(json) &&
        text_check(json_string_value(json), json_string_length(json), err) != 0) {
        return -1;
    }
    if (!nested) {
        *out = scalar_from_json(json);
        return 0;
    }
    struct value *value = value_create(json_is_object(json) ? VALUE_MAP : VALUE_LIST);
    struct value *item = NULL;
    int status = 0;
    if (json_is_array(json)) {
        for (size_t i = 0; status == 0 && i < json_array_size(json); i++) {
            status = convert(conversion, json_array_get(json, i), depth + 1, &item);
            if (status == 0) {
                value_add_take(value, NULL, item);
            }
        }
    } else {
        /* jansson's iterators take a mutable object but change nothing */
        json_t *object = (json_t *)(uintptr_t)json;
        for (void *at = json_object_iter(object); status == 0 && at;
             at = json_object_iter_next(object, at)) {
            status = convert(conversion, json_object_iter_value(at), depth + 1, &item);
            if (status == 0) {
                value_add_take(value, json_object_iter_key(at), item);
            }
        }
    }
    if (status != 0) {
        value_destroy(value);
        return -1;
    }
    *out = value;
    return 0;
}

/* Finds the first bracket beyond depth_max, without parsing. Returns its offset, or length. */
static size_t too_deep_at(const char *text, size_t length, int depth_max)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            if (++depth > depth_max) {
                return i;
            }
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return length;
}

static void place_at(struct error *err, const char *text, size_t offset)
{
    err->line = err->column = err->width = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            err->line++;
            err->column = 1;
        } else if (((unsigned char)text[i] & 0xC0) != 0x80) {
            err->column++;
        }
    }
}

static int malformed(struct error *err, const json_error_t *from)
{
    error_set(err, ERROR_MALFORMED, "%s", from->text);
    err->line = from->line > 0 ? from->line : 1;
    err->column = from->column > 0 ? from->column : 1;
    return error_expect(err, "one JSON document in UTF-8, each key once");
}

static json_t *integer_to_json(const char *text)
{
    int base = text[0] == '0' && text[1] == 'o' ? 8 : text[0] == '0' && text[1] == 'x' ? 16 : 10;
    errno = 0;
    long long number = strtoll(base == 8 ? text + 2 : text, NULL, base);
    return errno ? json_real(strtod(text, NULL)) : json_integer(number);
}

static json_t *scalar_to_json(const struct value *value)
{
    double number = 0;
    switch (value_meaning(value)) {
    case VALUE_MEANS_NULL: return json_null();
    case VALUE_MEANS_TRUE: return json_true();
    case VALUE_MEANS_FALSE: return json_false();
    case VALUE_MEANS_INTEGER: return integer_to_json(value->text);
    case VALUE_MEANS_REAL:
        number = strtod(value->text, NULL);
        if (isfinite(number) && !strpbrk(value->text, "iInN")) {
            return json_real(number);
        }
        break; /* JSON has no infinity */
    default: break;
    }
    return json_string(value->text);
}

int json_read(const char *text, size_t length, size_t bytes_max, int depth_max, json_t **out,
              struct error *err)
{
    if (length > bytes_max) {
        error_set(err, ERROR_TOO_LARGE, "%zu bytes", length);
        return error_expect(err, "at most %zu bytes", bytes_max);
    }
    size_t deep = too_deep_at(text, length, depth_max);
    if (deep < length) {
        error_set(err, ERROR_INVALID, "nested deeper than %d levels", depth_max);
        place_at(err, text, deep);
        return error_expect(err, "at most %d levels of lists and maps", depth_max);
    }
    json_error_t from;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &from);
    if (!json) {
        return malformed(err, &from);
    }
    *out = json;
    return 0;
}

int value_from_json(const char *text, size_t length, struct value **out, struct error *err)
{
    json_t *json = NULL;
    if (json_read(text, length, VALUE_BYTES_MAX, VALUE_DEPTH_MAX, &json, err) != 0) {
        return -1;
    }
    assert(json);
    int status = value_from_jansson(json, out, err);
    json_decref(json);
    return status;
}

int value_from_jansson(const json_t *json, struct value **out, struct error *err)
{
    struct conversion conversion = {.err = err};
    return convert(&conversion, json, 1, out);
}

json_t *value_to_json(const struct value *value)
{
    if (value->kind == VALUE_LIST) {
        json_t *list = json_array();
        for (size_t i = 0; i < value->count; i++) {
            json_array_append_new(list, value_to_json(value->items[i]));
        }
        return list;
    }
    if (value->kind == VALUE_MAP) {
        json_t *map = json_object();
        for (size_t i = 0; i < value->count; i++) {
            json_object_set_new(map, value->items[i]->key, value_to_json(value->items[i]));
        }
        return map;
    }
    return value->kind == VALUE_NULL ? json_null() : scalar_to_json(value);
}
