/* value.c - the tree of a parsed document: what a node means, and where a mistake stands.
 *
 * Invariants: parent and key are set by value_add_take() alone; a tree made by a parser is never deeper
 * than VALUE_DEPTH_MAX, so recursion over it is bounded. The array of items grows at powers of two. */
#include "broker/core/value.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

/* A tree made by hand may be a little deeper than one that was parsed. */
enum { PATH_DEPTH_MAX = VALUE_DEPTH_MAX + 2 };

static bool is_one_of(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static size_t count_of(const char *text, const char *accepted)
{
    return strspn(text, accepted);
}

/* [-+]?[0-9]+ | 0o[0-7]+ | 0x[0-9a-fA-F]+ */
static bool is_core_integer(const char *text)
{
    if (strncmp(text, "0o", 2) == 0 || strncmp(text, "0x", 2) == 0) {
        const char *digits = text[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF";
        size_t n = count_of(text + 2, digits);
        return n > 0 && text[2 + n] == '\0';
    }
    const char *p = text + (*text == '-' || *text == '+');
    size_t n = count_of(p, "0123456789");
    return n > 0 && p[n] == '\0';
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? | [-+]?\.inf | \.nan */
static bool is_core_real(const char *text)
{
    static const char *const odd[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN", NULL};
    const char *p = text + (*text == '-' || *text == '+');
    if (is_one_of(p, odd)) {
        return true;
    }
    size_t whole = count_of(p, "0123456789");
    p += whole;
    size_t part = *p == '.' ? count_of(p + 1, "0123456789") : 0;
    p += *p == '.' ? part + 1 : 0;
    if (whole + part == 0) {
        return false;
    }
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        size_t n = count_of(p, "0123456789");
        p += n;
        return n > 0 && *p == '\0';
    }
    return *p == '\0';
}

static enum value_meaning plain_meaning(const char *text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    if (is_one_of(text, nulls)) {
        return VALUE_MEANS_NULL;
    }
    if (is_one_of(text, trues)) {
        return VALUE_MEANS_TRUE;
    }
    if (is_one_of(text, falses)) {
        return VALUE_MEANS_FALSE;
    }
    if (is_core_integer(text)) {
        return VALUE_MEANS_INTEGER;
    }
    return is_core_real(text) ? VALUE_MEANS_REAL : VALUE_MEANS_TEXT;
}

static size_t index_in(const struct value *parent, const struct value *value)
{
    size_t i = 0;
    while (i < parent->count && parent->items[i] != value) {
        i++;
    }
    return i;
}

static void add_escaped(struct strbuf *buf, const char *key)
{
    for (const char *p = key; *p; p++) {
        if (*p == '~' || *p == '/') {
            strbuf_puts(buf, *p == '~' ? "~0" : "~1");
        } else {
            strbuf_add(buf, p, 1);
        }
    }
}

static void pointer_write(const struct value *value, char out[ERROR_PATH_MAX])
{
    const struct value *path[PATH_DEPTH_MAX];
    size_t depth = 0;
    for (; value && value->parent && depth < PATH_DEPTH_MAX; value = value->parent) {
        path[depth++] = value;
    }
    struct strbuf buf;
    strbuf_init(&buf, (size_t)64 * 1024);
    while (depth-- > 0) {
        strbuf_puts(&buf, "/");
        if (path[depth]->key) {
            add_escaped(&buf, path[depth]->key);
        } else {
            strbuf_printf(&buf, "%zu", index_in(path[depth]->parent, path[depth]));
        }
    }
    copy_text(out, ERROR_PATH_MAX, buf.text);
    strbuf_fini(&buf);
}

static int characters(const char *text)
{
    int count = 0;
    for (; *text; text++) {
        count += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return count;
}

struct value *value_create(enum value_kind kind)
{
    struct value *value = xcalloc(1, sizeof *value);
    value->kind = kind;
    return value;
}

void value_destroy(struct value *value)
{
    if (!value) {
        return;
    }
    for (size_t i = 0; i < value->count; i++) {
        value_destroy(value->items[i]);
    }
    free(value->items);
    free(value->text);
    free(value->key);
    free(value);
}

void value_add_take(struct value *parent, const char *key, struct value *item)
{
    if ((parent->count & (parent->count - 1)) == 0) {
        size_t room = parent->count ? parent->count * 2 : 1;
        struct value **items = xrealloc(parent->items, room, sizeof(struct value *));
        parent->items = items;
    }
    free(item->key);
    item->key = xstrdup(key);
    item->parent = parent;
    parent->items[parent->count++] = item;
}

const struct value *value_get(const struct value *map, const char *key)
{
    for (size_t i = 0; map && map->kind == VALUE_MAP && i < map->count; i++) {
        if (strcmp(map->items[i]->key, key) == 0) {
            return map->items[i];
        }
    }
    return NULL;
}

enum value_meaning value_meaning(const struct value *value)
{
    if (value->kind == VALUE_NULL) {
        return VALUE_MEANS_NULL;
    }
    if (value->kind != VALUE_SCALAR) {
        return value->kind == VALUE_LIST ? VALUE_MEANS_LIST : VALUE_MEANS_MAP;
    }
    switch (value->style) {
    case VALUE_QUOTED: return VALUE_MEANS_TEXT;
    case VALUE_TRUE: return VALUE_MEANS_TRUE;
    case VALUE_FALSE: return VALUE_MEANS_FALSE;
    case VALUE_NUMBER: return is_core_integer(value->text) ? VALUE_MEANS_INTEGER : VALUE_MEANS_REAL;
    default: return plain_meaning(value->text);
    }
}

struct value *value_clone(const struct value *value)
{
    struct value *clone = value_create(value->kind);
    clone->style = value->style;
    clone->line = value->line;
    clone->column = value->column;
    clone->width = value->width;
    clone->key_line = value->key_line;
    clone->key_column = value->key_column;
    clone->text = xstrdup(value->text);
    for (size_t i = 0; i < value->count; i++) {
        value_add_take(clone, value->items[i]->key, value_clone(value->items[i]));
    }
    return clone;
}

int value_error(const struct value *value, struct error *err, enum error_code code,
                const char *format, ...)
{
    error_set(err, code, "%s", "");
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return value_locate(value, err);
}

int value_key_error(const struct value *value, struct error *err, enum error_code code,
                    const char *format, ...)
{
    error_set(err, code, "%s", "");
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    value_locate(value, err);
    if (value && value->key_line) {
        err->line = value->key_line;
        err->column = value->key_column;
        err->width = value->key ? characters(value->key) : 0;
    }
    return -1;
}

int value_locate(const struct value *value, struct error *err)
{
    if (value) {
        err->line = value->line;
        err->column = value->column;
        err->width = value->width;
        pointer_write(value, err->pointer);
    }
    return -1;
}
