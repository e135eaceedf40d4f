/* test_value.c - documents as trees: JSON in and out, limits, and the place of a mistake. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/value.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct value *parse(const char *text)
{
    struct value *value = NULL;
    struct error err = {0};
    cr_assert_eq(value_from_json(text, strlen(text), &value, &err), 0, "%s: %s", text, err.text);
    return value;
}

static void check_refused(const char *text, size_t length, enum error_code code, const char *what)
{
    struct value *value = NULL;
    struct error err = {0};
    cr_assert_eq(value_from_json(text, length, &value, &err), -1, "accepted: %.60s", text);
    cr_assert_null(value);
    cr_assert_eq(err.code, code, "%.60s: %s: %s", text, error_name(err.code), err.text);
    cr_assert(strstr(err.text, what), "%.60s: %s", text, err.text);
}

static struct value *plain(const char *text)
{
    struct value *value = value_create(VALUE_SCALAR);
    value->text = xstrdup(text);
    return value;
}

/* depth times open, then depth times close */
static char *nested(const char *open, const char *close, int depth)
{
    size_t o = strlen(open), c = strlen(close), n = (size_t)depth;
    char *text = xcalloc(n * (o + c) + 1, 1);
    for (size_t i = 0; i < n; i++) {
        memcpy(text + i * o, open, o);
        memcpy(text + n * o + i * c, close, c);
    }
    return text;
}

Test(value, json_keeps_order_style_and_text)
{
    struct value *value =
        parse("{\"z\": \"4\", \"a\": 4, \"m\": [true, false, null, 1.5, -7], \"k\": {}}");
    cr_assert_eq(value->kind, VALUE_MAP);
    cr_assert_eq(value->count, 4);
    cr_assert_str_eq(value->items[0]->key, "z");
    cr_assert_eq(value->items[0]->style, VALUE_QUOTED);
    cr_assert_str_eq(value->items[0]->text, "4");
    cr_assert_eq(value->items[1]->style, VALUE_NUMBER);
    cr_assert_str_eq(value->items[1]->text, "4");
    const struct value *list = value_get(value, "m");
    cr_assert_eq(list->kind, VALUE_LIST);
    cr_assert_eq(list->items[0]->style, VALUE_TRUE);
    cr_assert_eq(list->items[1]->style, VALUE_FALSE);
    cr_assert_eq(list->items[2]->kind, VALUE_NULL);
    cr_assert_str_eq(list->items[3]->text, "1.5");
    cr_assert_str_eq(list->items[4]->text, "-7");
    cr_assert_eq(list->items[4]->parent, list);
    cr_assert_null(list->items[4]->key);
    cr_assert_eq(value_get(value, "k")->kind, VALUE_MAP);
    cr_assert_null(value_get(value, "nothing"));
    cr_assert_null(value_get(list, "m"));
    value_destroy(value);
    value_destroy(NULL);
}

Test(value, json_real_numbers_keep_their_digits)
{
    struct value *value = parse("[0.1, 1.0, 1e3, 123456.789, 1e300, 0.30000000000000004]");
    static const char *const texts[] = {"0.1",        "1.0",    "1000.0",
                                        "123456.789", "1e+300", "0.30000000000000004"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        cr_expect_str_eq(value->items[i]->text, texts[i]);
        cr_expect_eq(value_meaning(value->items[i]), VALUE_MEANS_REAL, "%s", texts[i]);
    }
    value_destroy(value);
}

Test(value, malformed_json_says_where)
{
    static const char *const bad[] = {"",
                                      "  ",
                                      "{",
                                      "[1,]",
                                      "{\"a\":}",
                                      "{'a': 1}",
                                      "{a: 1}",
                                      "nul",
                                      "01",
                                      "+1",
                                      "1 2",
                                      "{} {}",
                                      "[1] x",
                                      "\"abc",
                                      "\"\\x\"",
                                      "\"\t\"",
                                      "{\"a\":1 \"b\":2}",
                                      "NaN",
                                      "Infinity",
                                      "1e999",
                                      "99999999999999999999",
                                      "// no\n1",
                                      "\xEF\xBB\xBF{}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        check_refused(bad[i], strlen(bad[i]), ERROR_MALFORMED, "");
    }
    struct value *value = NULL;
    struct error err = {0};
    const char *text = "{\n  \"a\": 1,\n  \"b\": oops\n}";
    cr_assert_eq(value_from_json(text, strlen(text), &value, &err), -1);
    cr_assert_eq(err.line, 3);
    cr_assert_geq(err.column, 8);
}

Test(value, json_keys_stand_once)
{
    check_refused("{\"a\": 1, \"a\": 2}", 16, ERROR_MALFORMED, "duplicate");
    check_refused("{\"x\": {\"a\": 1, \"\\u0061\": 2}}", 29, ERROR_MALFORMED, "duplicate");
}

Test(value, json_is_utf8_without_nul)
{
    check_refused("\"\xff\"", 3, ERROR_MALFORMED, "");
    check_refused("\"\xc0\xaf\"", 4, ERROR_MALFORMED, "");
    check_refused("\"\xed\xa0\x80\"", 5, ERROR_MALFORMED, "");
    check_refused("\"\\ud800\"", 8, ERROR_MALFORMED, "");
    check_refused("\"a\\u0000b\"", 10, ERROR_MALFORMED, "");
    check_refused("{\"a\\u0000b\": 1}", 15, ERROR_MALFORMED, "");
    check_refused("\"a\0b\"", 5, ERROR_MALFORMED, "");
    check_refused("{}\0", 3, ERROR_MALFORMED, "");
}

Test(value, depth_is_limited)
{
    char *text = nested("[", "]", VALUE_DEPTH_MAX);
    value_destroy(parse(text));
    free(text);
    text = nested("[", "]", VALUE_DEPTH_MAX + 1);
    check_refused(text, strlen(text), ERROR_INVALID, "deeper than 32");
    free(text);
    text = nested("{\"a\":[", "]}", 17);
    check_refused(text, strlen(text), ERROR_INVALID, "deeper than 32");
    free(text);
    text = nested("[", "", 100 * 1024);
    check_refused(text, strlen(text), ERROR_INVALID, "deeper than 32");
    free(text);
    value_destroy(parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\""));
}

Test(value, depth_says_where)
{
    struct value *value = NULL;
    struct error err = {0};
    const char *text = "[[\n\"\xC3\xA9\", [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    cr_assert_eq(value_from_json(text, strlen(text), &value, &err), -1);
    cr_assert_eq(err.line, 2);
    cr_assert_eq(err.column, 36, "%d", err.column);
}

Test(value, size_and_nodes_are_limited)
{
    size_t length = VALUE_BYTES_MAX + 1;
    char *text = xcalloc(length + 1, 1);
    memset(text, ' ', length);
    text[0] = '1';
    check_refused(text, length, ERROR_TOO_LARGE, "bytes");
    struct value *value = NULL;
    struct error err = {0};
    cr_assert_eq(value_from_json(text, length - 1, &value, &err), 0, "%s", err.text);
    value_destroy(value);
    text[0] = '[';
    for (size_t i = 1; i < 2 * VALUE_NODES_MAX; i += 2) {
        text[i] = '1';
        text[i + 1] = ',';
    }
    text[2 * VALUE_NODES_MAX] = ']';
    check_refused(text, 2 * VALUE_NODES_MAX + 1, ERROR_TOO_LARGE, "more than 100000 values");
    text[2 * VALUE_NODES_MAX - 2] = ']';
    cr_assert_eq(value_from_json(text, 2 * VALUE_NODES_MAX - 1, &value, &err), 0, "%s", err.text);
    cr_assert_eq(value->count, VALUE_NODES_MAX - 1);
    value_destroy(value);
    free(text);
}

Test(value, jansson_trees_are_checked_too)
{
    struct value *value = NULL;
    struct error err = {0};
    json_t *deep = json_array();
    json_t *inner = deep;
    for (int i = 0; i < VALUE_DEPTH_MAX; i++) {
        json_array_append_new(inner, json_array());
        inner = json_array_get(inner, 0);
    }
    cr_assert_eq(value_from_jansson(deep, &value, &err), -1);
    cr_assert_eq(err.code, ERROR_INVALID);
    json_decref(deep);
    json_t *nul = json_stringn("a\0b", 3);
    cr_assert_eq(value_from_jansson(nul, &value, &err), -1);
    cr_assert_eq(err.code, ERROR_INVALID);
    json_decref(nul);
    cr_assert_null(value);
}

Test(value, json_read_takes_its_limits)
{
    json_t *json = NULL;
    struct error err = {0};
    cr_assert_eq(json_read("[[1]]", 5, 5, 2, &json, &err), 0, "%s", err.text);
    json_decref(json);
    json = NULL;
    cr_assert_eq(json_read("[[1]]", 5, 4, 2, &json, &err), -1);
    cr_assert_eq(err.code, ERROR_TOO_LARGE);
    cr_assert_eq(json_read("[[1]]", 5, 5, 1, &json, &err), -1);
    cr_assert_eq(err.code, ERROR_INVALID);
    cr_assert_null(json);
}

Test(value, plain_text_means_what_yaml_says)
{
    static const struct {
        const char *text;
        enum value_meaning meaning;
    } cases[] = {
        {"", VALUE_MEANS_NULL},        {"~", VALUE_MEANS_NULL},
        {"null", VALUE_MEANS_NULL},    {"NULL", VALUE_MEANS_NULL},
        {"nUll", VALUE_MEANS_TEXT},    {"true", VALUE_MEANS_TRUE},
        {"True", VALUE_MEANS_TRUE},    {"FALSE", VALUE_MEANS_FALSE},
        {"yes", VALUE_MEANS_TEXT},     {"on", VALUE_MEANS_TEXT},
        {"4", VALUE_MEANS_INTEGER},    {"-4", VALUE_MEANS_INTEGER},
        {"+4", VALUE_MEANS_INTEGER},   {"0o17", VALUE_MEANS_INTEGER},
        {"0x1F", VALUE_MEANS_INTEGER}, {"0b1", VALUE_MEANS_TEXT},
        {"0x", VALUE_MEANS_TEXT},      {"0o8", VALUE_MEANS_TEXT},
        {"1.5", VALUE_MEANS_REAL},     {".5", VALUE_MEANS_REAL},
        {"5.", VALUE_MEANS_REAL},      {"1e3", VALUE_MEANS_REAL},
        {"1e", VALUE_MEANS_TEXT},      {"-.inf", VALUE_MEANS_REAL},
        {".nan", VALUE_MEANS_REAL},    {".", VALUE_MEANS_TEXT},
        {"-", VALUE_MEANS_TEXT},       {"90s", VALUE_MEANS_TEXT},
        {"1:30", VALUE_MEANS_TEXT},    {"4..8", VALUE_MEANS_TEXT},
        {"1_000", VALUE_MEANS_TEXT},   {"2026-03-10", VALUE_MEANS_TEXT},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct value *value = plain(cases[i].text);
        cr_expect_eq(value_meaning(value), cases[i].meaning, "'%s'", cases[i].text);
        value->style = VALUE_QUOTED;
        cr_expect_eq(value_meaning(value), VALUE_MEANS_TEXT, "'%s' in quotes", cases[i].text);
        value_destroy(value);
    }
}

Test(value, json_comes_out_as_it_went_in)
{
    const char *text =
        "{\"b\":\"4\",\"a\":[4,-1.5,true,false,null,{\"c\":\"\xC3\xA9\"}],\"n\":9223372036854775807}";
    struct value *value = parse(text);
    json_t *json = value_to_json(value);
    char *back = json_dumps(json, JSON_COMPACT);
    cr_assert_str_eq(back, text);
    free(back);
    json_decref(json);
    value_destroy(value);
}

Test(value, plain_text_becomes_typed_json)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"4", "4"},
        {"+4", "4"},
        {"0x1F", "31"},
        {"0o17", "15"},
        {"true", "true"},
        {"False", "false"},
        {"~", "null"},
        {"1.5", "1.5"},
        {".5", "0.5"},
        {".inf", "\".inf\""},
        {"90s", "\"90s\""},
        {"yes", "\"yes\""},
        {"-.INF", "\"-.INF\""},
        {".nan", "\".nan\""},
        {"99999999999999999999", "1e20"},
        {"1e999", "\"1e999\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct value *value = plain(cases[i].text);
        json_t *json = value_to_json(value);
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
        cr_expect_str_eq(text, cases[i].json, "%s: %s", cases[i].text, text);
        free(text);
        json_decref(json);
        value_destroy(value);
    }
}

Test(value, clones_are_whole_and_apart)
{
    struct value *value = parse("{\"a\": [1, {\"b\": \"x\"}]}");
    value->items[0]->line = 7;
    value->items[0]->column = 3;
    value->items[0]->width = 2;
    value->items[0]->key_line = 6;
    value->items[0]->key_column = 1;
    struct value *clone = value_clone(value);
    json_t *before = value_to_json(value), *after = value_to_json(clone);
    cr_assert(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    value_destroy(value);
    const struct value *a = value_get(clone, "a");
    cr_assert_eq(a->parent, clone);
    cr_assert_eq(a->line, 7);
    cr_assert_eq(a->column, 3);
    cr_assert_eq(a->width, 2);
    cr_assert_eq(a->key_line, 6);
    cr_assert_eq(a->key_column, 1);
    cr_assert_str_eq(value_get(a->items[1], "b")->text, "x");
    cr_assert_null(clone->parent);
    value_destroy(clone);
}

Test(value, errors_point_at_values_and_keys)
{
    struct value *value = parse("{\"jobs\": [1, {\"a/b~c\": {\"deep\": 2}}]}");
    struct value *inner = value->items[0]->items[1]->items[0];
    struct value *deep = inner->items[0];
    struct error err = {0};
    cr_assert_eq(value_error(deep, &err, ERROR_INVALID, "no %s", "good"), -1);
    cr_assert_str_eq(err.pointer, "/jobs/1/a~1b~0c/deep");
    cr_assert_str_eq(err.text, "no good");
    cr_assert_eq(err.code, ERROR_INVALID);
    cr_assert_eq(err.line, 0);
    deep->line = 4;
    deep->column = 12;
    deep->width = 1;
    deep->key_line = 4;
    deep->key_column = 6;
    value_error(deep, &err, ERROR_INVALID, "x");
    cr_assert_eq(err.line, 4);
    cr_assert_eq(err.column, 12);
    cr_assert_eq(err.width, 1);
    value_key_error(deep, &err, ERROR_INVALID, "x");
    cr_assert_eq(err.column, 6);
    cr_assert_eq(err.width, 4);
    cr_assert_str_eq(err.pointer, "/jobs/1/a~1b~0c/deep");
    value_error(value, &err, ERROR_INVALID, "x");
    cr_assert_str_eq(err.pointer, "");
    value_destroy(value);
}

Test(value, long_pointers_are_cut)
{
    char key[400];
    memset(key, '/', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    struct value *map = value_create(VALUE_MAP);
    value_add_take(map, key, plain("4"));
    struct error err = {0};
    value_error(map->items[0], &err, ERROR_INVALID, "x");
    cr_assert_eq(strlen(err.pointer), ERROR_PATH_MAX - 1);
    value_destroy(map);
}
