#include "api/intake.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/problem.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct intake *intake)
{
    while (intake->at < intake->length && is_blank(intake->text[intake->at])) {
        intake->at++;
    }
}

bool intake_is_array(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && is_blank(text[i])) {
        i++;
    }
    return i < length && text[i] == '[';
}

void intake_init(struct intake *intake, const char *text, size_t length, bool lines)
{
    *intake = (struct intake){.text = text, .length = length, .lines = lines, .mark = {0, 1, 1}};
    intake->problems = json_array();
    if (!lines) {
        skip_blanks(intake);
        intake->at++; /* the bracket */
    }
}

void intake_fini(struct intake *intake)
{
    for (size_t i = 0; i < intake->count; i++) {
        value_destroy(intake->items[i]);
    }
    free(intake->items);
    json_decref(intake->problems);
    *intake = (struct intake){0};
}

/* Lines and columns of the item at `at` become those of the body. Places come in their order. */
static void place_in_body(struct intake *intake, size_t at, struct error *err)
{
    struct intake_mark *mark = &intake->mark;
    for (; mark->at < at; mark->at++) {
        unsigned char c = (unsigned char)intake->text[mark->at];
        bool ends = c == '\n';
        mark->line += ends;
        mark->column = ends ? 1 : mark->column + ((c & 0xC0) != 0x80);
    }
    err->column = err->line <= 1 ? err->column + mark->column - 1 : err->column;
    err->line += mark->line - 1;
}

int intake_one(const char *text, size_t length, struct value **out, struct error *err)
{
    if (length > LIMIT_JOB_BYTES) {
        error_set(err, ERROR_TOO_LARGE, "the job has %zu bytes", length);
        return error_expect(err, "at most %d", LIMIT_JOB_BYTES);
    }
    return value_from_json(text, length, out, err);
}

static int add_item(struct intake *intake, const char *text, size_t length, struct error *err)
{
    struct value *value = NULL;
    if (intake->count == LIMIT_BULK_JOBS) {
        error_set(err, ERROR_TOO_LARGE, "more than %d jobs in one request", LIMIT_BULK_JOBS);
        return error_expect(err, "send them in several requests");
    }
    if (intake_one(text, length, &value, err) < 0) {
        if (err->line && !intake->lines) {
            place_in_body(intake, (size_t)(text - intake->text), err);
        }
        if (err->code == ERROR_MALFORMED && !intake->lines) {
            return -1;
        }
        json_array_append_new(intake->problems, json_pack("[I, o]", (json_int_t)intake->count,
                                                          error_to_problem(err)));
        value = value_create(VALUE_NULL);
    } else {
        intake->good++;
    }
    if (intake->count == intake->room) {
        intake->room = intake->room ? intake->room * 2 : 64;
        intake->items = xrealloc(intake->items, intake->room, sizeof(struct value *));
    }
    intake->items[intake->count++] = value;
    return 0;
}

/* The end of the item that begins at `from`: the comma or bracket after it, or length. */
static size_t item_end(const struct intake *intake, size_t from)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = from; i < intake->length; i++) {
        char c = intake->text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            return i;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
    }
    return intake->length;
}

static int broken(struct intake *intake, const char *what, struct error *err)
{
    size_t at = intake->at < intake->length ? intake->at : intake->length;
    error_set(err, ERROR_MALFORMED, "%s", what);
    err->line = err->column = 1;
    place_in_body(intake, at, err);
    return error_expect(err, "one JSON array of jobs");
}

static int array_end(struct intake *intake, struct error *err)
{
    intake->at++;
    skip_blanks(intake);
    return intake->at < intake->length ? broken(intake, "text after the array", err) : 0;
}

/* One item and the comma after it. */
static int array_step(struct intake *intake, struct error *err)
{
    skip_blanks(intake);
    if (intake->at >= intake->length) {
        return broken(intake, "the array has no end", err);
    }
    if (intake->text[intake->at] == ']' && intake->count == 0) {
        return array_end(intake, err);
    }
    size_t from = intake->at;
    size_t end = item_end(intake, from);
    if (end == from) {
        return broken(intake, "an item is missing", err);
    }
    if (end >= intake->length) {
        intake->at = end;
        return broken(intake, "the array has no end", err);
    }
    if (add_item(intake, intake->text + from, end - from, err) < 0) {
        return -1;
    }
    intake->at = end;
    if (intake->text[end] == ']') {
        return array_end(intake, err);
    }
    intake->at++;
    return 1;
}

/* One line; blank lines count for nothing. */
static int line_step(struct intake *intake, struct error *err)
{
    skip_blanks(intake);
    if (intake->at >= intake->length) {
        return 0;
    }
    const char *from = intake->text + intake->at;
    size_t left = intake->length - intake->at;
    const char *end = memchr(from, '\n', left);
    size_t length = end ? (size_t)(end - from) : left;
    intake->at += length;
    while (length > 0 && is_blank(from[length - 1])) {
        length--;
    }
    return add_item(intake, from, length, err) < 0 ? -1 : 1;
}

int intake_step(struct intake *intake, size_t bytes, struct error *err)
{
    size_t until = intake->at + bytes;
    int status = 1;
    while (status == 1 && intake->at < until) {
        status = intake->lines ? line_step(intake, err) : array_step(intake, err);
    }
    return status;
}

void intake_add_problems(const struct intake *intake, json_t *results)
{
    size_t i;
    const json_t *pair;
    json_array_foreach(intake->problems, i, pair)
    {
        size_t index = (size_t)json_integer_value(json_array_get(pair, 0));
        json_t *result = json_pack("{s:O}", "problem", json_array_get(pair, 1));
        if (index < json_array_size(results)) {
            json_array_set_new(results, index, result);
        } else { /* nothing but problems: there were no results */
            json_array_append_new(results, result);
        }
    }
}
