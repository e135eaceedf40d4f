/* check.c - what `tieline policy check` prints: every mistake with its line of the source, a caret
 * under what is meant, what was probably meant instead, and the counts.
 *
 * All findings are collected first, then printed: errors, warnings, expectations, each by line. The
 * source is shown without control characters, and of a long line the part around the mistake. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 200, LINE_SHOWN_MAX = 110, LINE_BEFORE = 60, INDENT_MAX = 40 };

enum finding_kind { FINDING_ERROR, FINDING_WARNING, FINDING_EXPECTATION, FINDING_KINDS };

struct finding {
    enum finding_kind kind;
    size_t order; /* in which it was found: keeps the sort stable */
    struct error err;
};

struct check {
    const char *text, *file;
    const struct value *root;
    const struct rules *rules;
    struct finding *findings;
    size_t count, room;
    int counts[FINDING_KINDS];
};

static void add(struct check *check, enum finding_kind kind, const struct error *err)
{
    check->counts[kind]++;
    if (check->count == SHOWN_MAX) {
        return;
    }
    if (check->count == check->room) {
        check->room = check->room ? check->room * 2 : 16;
        check->findings = xrealloc(check->findings, check->room, sizeof *check->findings);
    }
    check->findings[check->count] = (struct finding){kind, check->count, *err};
    check->count++;
}

/* ------------------------------------------------------------------------------- printing */

/* Text of the user's, without what a terminal would obey. */
static void print_clean(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        (void)fputc(c == '\t' ? ' ' : c < ' ' || c == 0x7f ? '?' : c, out);
    }
}

static const char *line_at(const char *text, int line)
{
    for (int i = 1; i < line && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* Moves over so many characters, not past the end of the line. */
static const char *skip(const char *text, int characters)
{
    while (characters > 0 && *text && *text != '\n' && *text != '\r') {
        text++;
        while (((unsigned char)*text & 0xC0) == 0x80) {
            text++;
        }
        characters--;
    }
    return text;
}

/* "   52 | source". Returns the column of the source that stands at the left edge, less one. */
static int print_line(const struct check *check, const struct error *err, FILE *out)
{
    static const char dots[] = "...";
    const char *line = line_at(check->text, err->line);
    if (!line) {
        return 0;
    }
    bool is_long = skip(line, LINE_SHOWN_MAX) != skip(line, LINE_SHOWN_MAX + 1);
    int before = is_long && err->column > LINE_BEFORE ? err->column - LINE_BEFORE : 0;
    const char *start = skip(line, before), *end = skip(start, LINE_SHOWN_MAX);
    (void)fprintf(out, "%5d | %s", err->line, before ? dots : "");
    print_clean(out, start, (size_t)(end - start));
    (void)fprintf(out, "%s\n", skip(end, 1) != end ? dots : "");
    return before ? before - (int)strlen(dots) : 0;
}

static void print_caret(const struct check *check, const struct error *err, FILE *out)
{
    int before = print_line(check, err, out);
    int width = err->width < LINE_SHOWN_MAX ? err->width : LINE_SHOWN_MAX;
    (void)fprintf(out, "      | %*s^", err->column - 1 - before, "");
    for (int i = 1; i < width; i++) {
        (void)fputc('~', out);
    }
    if (err->expected[0]) {
        (void)fputc(' ', out);
        print_clean(out, err->expected, strlen(err->expected));
    }
    (void)fputc('\n', out);
}

static void print_text_below(const struct check *check, const struct error *err, const char *text,
                             FILE *out)
{
    int indent = err->column - 1;
    print_line(check, err, out);
    (void)fprintf(out, "      | %*s", indent < INDENT_MAX ? indent : 0, "");
    print_clean(out, text, strlen(text));
    (void)fputc('\n', out);
}

static void print_finding(const struct check *check, const struct finding *finding, FILE *out)
{
    static const char *const words[] = {"error: ", "warning: ", "expectation failed"};
    const struct error *err = &finding->err;
    print_clean(out, check->file, strlen(check->file));
    if (err->line > 0) {
        (void)fprintf(out, ":%d:%d", err->line, err->column);
    }
    (void)fprintf(out, ": %s", words[finding->kind]);
    if (finding->kind == FINDING_EXPECTATION) {
        (void)fputc('\n', out);
        print_text_below(check, err, err->text, out);
        return;
    }
    print_clean(out, err->text, strlen(err->text));
    (void)fputc('\n', out);
    if (err->line > 0 && err->width > 0) {
        print_caret(check, err, out);
    } else if (err->line > 0 && err->expected[0]) {
        print_text_below(check, err, err->expected, out);
    }
}

static void print_count(int count, const char *one, const char *many, bool *first, FILE *out)
{
    if (count > 0) {
        (void)fprintf(out, "%s%d %s", *first ? "" : ", ", count, count == 1 ? one : many);
        *first = false;
    }
}

static void print_counts(const struct check *check, const char *live, FILE *out)
{
    bool first = true;
    int all = 0;
    for (int i = 0; i < FINDING_KINDS; i++) {
        all += check->counts[i];
    }
    if ((size_t)all > check->count) {
        (void)fprintf(out, "%zu more are not shown.\n", (size_t)all - check->count);
    }
    print_count(check->counts[FINDING_ERROR], "error", "errors", &first, out);
    print_count(check->counts[FINDING_WARNING], "warning", "warnings", &first, out);
    print_count(check->counts[FINDING_EXPECTATION], "failed expectation", "failed expectations",
                &first, out);
    if (!first) {
        (void)fputs(".\n", out);
    }
    if (check->counts[FINDING_ERROR] + check->counts[FINDING_EXPECTATION] > 0) {
        if (live) {
            (void)fprintf(out, "The running policy (%s) is unchanged.\n", live);
        }
        return;
    }
    (void)fprintf(out, "%s: good (%.*s), %zu expectation%s hold%s.\n", check->file,
                  (int)RULES_HASH_SHORT, check->rules->hash, check->rules->expects.count,
                  check->rules->expects.count == 1 ? "" : "s",
                  check->rules->expects.count == 1 ? "s" : "");
}

static int compare(const void *a, const void *b)
{
    const struct finding *left = a, *right = b;
    if (left->kind != right->kind) {
        return left->kind < right->kind ? -1 : 1;
    }
    if (left->err.line != right->err.line) {
        return left->err.line < right->err.line ? -1 : 1;
    }
    if (left->err.column != right->err.column) {
        return left->err.column < right->err.column ? -1 : 1;
    }
    return left->order < right->order ? -1 : 1;
}

/* ------------------------------------------------------------------------------- checking */

static void found_cb(void *arg, enum severity severity, const struct error *err)
{
    add(arg, severity == SEVERITY_ERROR ? FINDING_ERROR : FINDING_WARNING, err);
}

/* Whether something in the lines of this item is wrong already: then what follows from it is no news. */
static bool is_wrong_already(const struct check *check, const struct value *list, size_t index)
{
    int first = value_item(list, index)->line;
    bool has_next = index + 1 < value_item_count(list);
    int next = has_next ? value_item(list, index + 1)->line : first + 1;
    next = next > first ? next : first + 1;
    for (size_t i = 0; i < check->count; i++) {
        const struct finding *finding = &check->findings[i];
        if (finding->kind == FINDING_ERROR && finding->err.line >= first &&
            finding->err.line < next) {
            return true;
        }
    }
    return false;
}

static void check_covered(struct check *check, const struct config_hooks *hooks)
{
    const struct value *routes = value_get(check->root, "routes");
    const struct rules *rules = check->rules;
    for (size_t i = 1; routes && i < rules->routes.count; i++) {
        const struct route *route = RULES_AT(rules->routes, struct route, i);
        for (size_t j = 0; j < i && !is_wrong_already(check, routes, i); j++) {
            const struct route *earlier = RULES_AT(rules->routes, struct route, j);
            if (hooks->covers(&earlier->match, &route->match)) {
                struct error err;
                value_error(value_item(routes, i), &err, ERROR_INVALID,
                            "route '%s' can never match: '%s' (line %d) takes all before it",
                            route->name, earlier->name, earlier->line);
                err.width = 0;
                add(check, FINDING_WARNING, &err);
                break;
            }
        }
    }
}

static void failed_cb(void *arg, const struct expectation *expectation, const struct error *err)
{
    struct check *check = arg;
    const struct value *expects = value_get(check->root, "expect");
    struct error at = *err;
    for (size_t i = 0; i < check->rules->expects.count; i++) {
        if (RULES_AT(check->rules->expects, const struct expectation, i) == expectation) {
            if (is_wrong_already(check, expects, i)) {
                return;
            }
            at.line = value_item(expects, i)->line;
            at.column = value_item(expects, i)->column;
        }
    }
    add(check, FINDING_EXPECTATION, &at);
}

static void run_check(struct check *check, const struct value *root,
                      const struct federation *federation, const struct config_hooks *hooks,
                      struct rules **rules)
{
    struct findings findings = {.found = found_cb, .arg = check};
    *rules = policy_read(check->text, root, federation, &findings);
    check->root = root;
    check->rules = *rules;
    if (hooks->covers) {
        check_covered(check, hooks);
    }
    if (hooks->expect_run) {
        (void)hooks->expect_run(*rules, federation, hooks->now_ms, failed_cb, check);
    }
}

int config_policy_check(const char *text, const char *file, const struct federation *federation,
                        const struct config_hooks *hooks, const char *live, FILE *out,
                        struct config_check *counts)
{
    struct check check = {.text = text, .file = file};
    struct value *root = NULL;
    struct rules *rules = NULL;
    struct error err;
    if (yaml_parse(text, strlen(text), &root, &err) != 0) {
        add(&check, FINDING_ERROR, &err);
    } else {
        run_check(&check, root, federation, hooks, &rules);
    }
    if (check.count) {
        qsort(check.findings, check.count, sizeof *check.findings, compare);
    }
    for (size_t i = 0; i < check.count; i++) {
        print_finding(&check, &check.findings[i], out);
    }
    print_counts(&check, live, out);
    counts->errors = check.counts[FINDING_ERROR];
    counts->warnings = check.counts[FINDING_WARNING];
    counts->failed = check.counts[FINDING_EXPECTATION];
    free(check.findings);
    value_destroy(root);
    rules_destroy(rules);
    return counts->errors + counts->failed;
}
