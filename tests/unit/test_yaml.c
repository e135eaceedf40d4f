/* YAML into values: where things stand, what is refused, and what hostile text costs. */
#include "config/yaml.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct value *parse(const char *text)
{
    struct value *value = NULL;
    struct error err;
    cr_assert_eq(yaml_parse(text, strlen(text), &value, &err), 0, "%d:%d %s", err.line, err.column,
                 err.text);
    return value;
}

/* Refused at this place, with a text that holds the words. */
static void refuse(const char *text, int line, int column, const char *words)
{
    struct value *value = NULL;
    struct error err;
    cr_assert_eq(yaml_parse(text, strlen(text), &value, &err), -1, "accepted: %s", text);
    cr_expect(strstr(err.text, words), "'%s' does not say '%s'", err.text, words);
    cr_expect(err.line == line && err.column == column, "%s: at %d:%d, not %d:%d", text, err.line,
              err.column, line, column);
    cr_assert_null(value);
}

static void at(const struct value *value, int line, int column, int width)
{
    cr_assert_not_null(value);
    cr_expect(value->line == line && value->column == column && value->width == width,
              "'%s' at %d:%d+%d, not %d:%d+%d", value->text ? value->text : "", value->line,
              value->column, value->width, line, column, width);
}

Test(yaml, places)
{
    struct value *root = parse("a: 1\n"
                               "b:  {x: \"é\", y: [1, 22]}\n"
                               "'c d':\n"
                               "  - q: 'it''s'\n"
                               "    r:\n"
                               "e: |\n"
                               "  text\n");
    at(value_get(root, "a"), 1, 4, 1);
    const struct value *b = value_get(root, "b");
    at(b, 2, 5, 20);
    cr_expect_eq(b->key_line, 2);
    cr_expect_eq(b->key_column, 1);
    at(value_get(b, "x"), 2, 9, 3); /* in characters, with the quotes */
    cr_expect_eq(value_get(b, "x")->style, VALUE_QUOTED);
    cr_expect_str_eq(value_get(b, "x")->text, "é");
    at(value_get(b, "y")->items[1], 2, 21, 2);
    const struct value *item = value_get(root, "c d")->items[0];
    at(item, 4, 5, 0);
    cr_expect_str_eq(value_get(item, "q")->text, "it's");
    at(value_get(item, "r"), 5, 5, 1); /* nothing stands there: the place of its key */
    cr_expect_eq(value_meaning(value_get(item, "r")), VALUE_MEANS_NULL);
    cr_expect_str_eq(value_get(root, "e")->text, "text\n");
    cr_expect_eq(value_get(root, "e")->style, VALUE_QUOTED);
    value_destroy(root);
}

Test(yaml, meanings)
{
    struct value *root = parse("[yes, no, true, 012, 1:30, '1', ~, 1e3]");
    static const enum value_meaning meanings[] = {
        VALUE_MEANS_TEXT, VALUE_MEANS_TEXT, VALUE_MEANS_TRUE, VALUE_MEANS_INTEGER,
        VALUE_MEANS_TEXT, VALUE_MEANS_TEXT, VALUE_MEANS_NULL, VALUE_MEANS_REAL};
    for (size_t i = 0; i < root->count; i++) {
        cr_expect_eq(value_meaning(root->items[i]), meanings[i], "%s", root->items[i]->text);
    }
    value_destroy(root);
}

Test(yaml, empty_documents)
{
    static const char *const texts[] = {"", "# nothing\n", "\n\n", "---\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct value *root = parse(texts[i]);
        cr_expect_eq(value_meaning(root), VALUE_MEANS_NULL, "%s", texts[i]);
        value_destroy(root);
    }
}

Test(yaml, aliases_are_copies_with_their_places)
{
    struct value *root =
        parse("base: &b {cpus: 4, memory: 8GiB}\nx: *b\ny: [*b, *b]\nz: &b 1\nw: *b\n");
    cr_expect_str_eq(value_get(value_get(root, "x"), "memory")->text, "8GiB");
    at(value_get(value_get(root, "x"), "memory"), 1, 28, 4);
    cr_expect_eq(value_get(root, "x")->key_line, 2);
    cr_expect_str_eq(value_get(value_get(root, "y")->items[1], "cpus")->text, "4");
    cr_expect_str_eq(value_get(root, "w")->text, "1"); /* the last anchor of a name counts */
    value_destroy(root);
}

Test(yaml, refused)
{
    refuse("a: 1\nb: 2\na: 3\n", 3, 1, "'a' stands here a second time");
    refuse("{x: 1, x: 2}", 1, 8, "'x' stands here a second time");
    refuse("<<: {a: 1}\n", 1, 1, "merge key");
    refuse("a: &x {b: 1}\nc:\n  <<: *x\n", 3, 3, "merge key");
    refuse("a: !!str 3\n", 1, 4, "a tag");
    refuse("!thing\na: 1\n", 1, 1, "a tag");
    refuse("a: *y\n", 1, 4, "names nothing");
    refuse("a: &x {b: *x}\n", 1, 11, "stands within what it names");
    refuse("a: &x 1\n*x : 2\n", 2, 1, "used as a key");
    refuse("? [a]\n: b\n", 1, 3, "as a key");
    refuse(": x\n", 1, 1, "a key is missing");
    refuse("---\na\n---\nb\n", 3, 1, "second document");
    refuse("a: \"x\\0y\"\n", 1, 4, "NUL");
}

Test(yaml, malformed)
{
    refuse("a: [1\nb: 2\n", 3, 1, "without a closing bracket");
    refuse("a: b: c\n", 1, 5, "nested block mapping");
    refuse("a: \"x\n", 1, 5, "closing quote");
    refuse("a:\n  b: |\n\tx\n", 3, 1, "tab");
    refuse("ok: ä\nk: \xff\n", 2, 4, "not UTF-8");
    struct value *value = NULL;
    struct error err;
    cr_assert_eq(yaml_parse("a: 1\n\tb: 2\n", 11, &value, &err), -1);
    cr_expect_eq(err.code, ERROR_MALFORMED);
    cr_assert_eq(yaml_parse("a\0b", 3, &value, &err), -1);
    cr_expect_eq(err.code, ERROR_MALFORMED);
}

/* Milliseconds of processor time of this process. */
static long used_ms(void)
{
    struct rusage usage;
    cr_assert_eq(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000;
}

static char *repeat(const char *head, const char *unit, size_t times)
{
    struct strbuf buf;
    strbuf_init(&buf, (size_t)4 * 1024 * 1024);
    strbuf_puts(&buf, head);
    for (size_t i = 0; i < times; i++) {
        strbuf_puts(&buf, unit);
    }
    return strbuf_take(&buf);
}

/* What costs quadratic time elsewhere. The bound is wide: sanitizers, and a machine that is shared. */
Test(yaml, hostile_text_is_refused_soon)
{
    static const struct {
        const char *head, *unit;
        size_t times;
    } texts[] = {
        {"", "[", 100000},     {"", "{a: ", 100000},  {"", "- ", 400000},
        {"", "? ", 400000},    {"", "[]: ", 200000},  {"", "*a : ", 200000},
        {"", "&a ", 300000},   {"[", "a,", 400000},   {"", "a: b\n", 150000},
        {"", "---\n", 200000}, {"\"", "a\n", 400000}, {"%TAG ! a\n", "%TAG ! a\n", 90000},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *text = repeat(texts[i].head, texts[i].unit, texts[i].times);
        struct value *value = NULL;
        struct error err;
        long before = used_ms();
        cr_expect_eq(yaml_parse(text, strlen(text), &value, &err), -1, "%zu accepted", i);
        cr_expect_lt(used_ms() - before, 5000, "'%s' took %ld ms", texts[i].unit,
                     used_ms() - before);
        free(text);
    }
}

Test(yaml, limits)
{
    struct value *value = NULL;
    struct error err;
    char *text = repeat("a: ", "x", VALUE_BYTES_MAX);
    cr_expect_eq(yaml_parse(text, strlen(text), &value, &err), -1);
    cr_expect_eq(err.code, ERROR_TOO_LARGE);
    free(text);
    text = repeat("", "[", VALUE_DEPTH_MAX);
    char *whole = repeat(text, "]", VALUE_DEPTH_MAX);
    cr_expect_eq(yaml_parse(whole, strlen(whole), &value, &err), 0, "%s", err.text);
    value_destroy(value);
    free(whole);
    free(text);
}

Test(yaml, alias_bombs)
{
    struct strbuf buf;
    strbuf_init(&buf, (size_t)64 * 1024);
    strbuf_puts(&buf, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for (int i = 1; i < 20; i++) {
        strbuf_printf(&buf, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i,
                      i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    struct value *value = NULL;
    struct error err;
    cr_expect_eq(yaml_parse(buf.text, buf.length, &value, &err), -1);
    cr_expect_eq(err.code, ERROR_TOO_LARGE);
    strbuf_fini(&buf);
    /* few nodes, much text */
    char *text = repeat("a: &a ", "x", 500000);
    char *whole = xasprintf("%s\nb: [*a, *a, *a]\n", text);
    cr_expect_eq(yaml_parse(whole, strlen(whole), &value, &err), -1);
    cr_expect_eq(err.code, ERROR_TOO_LARGE);
    free(whole);
    free(text);
    /* within the limits by itself, too deep where the alias stands */
    text = repeat("a: &a ", "[", VALUE_DEPTH_MAX - 1);
    char *closed = repeat(text, "]", VALUE_DEPTH_MAX - 1);
    whole = xasprintf("%s\nb: {c: *a}\n", closed);
    cr_expect_eq(yaml_parse(whole, strlen(whole), &value, &err), -1);
    cr_expect(strstr(err.text, "nested deeper"), "%s", err.text);
    free(whole);
    free(closed);
    free(text);
}
