/* explain_table.c - the tables of an explanation. Real money and what is only weighed never share a
 * column; the terms and which of them are billed come from the policy's own list. */
#include "api/cli/explain_print.h"

#include "api/cli/commands.h"
#include "api/cli/table.h"
#include "broker/core/alloc.h"
#include "broker/core/texts.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"
#include "policy/decide.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACE_MIN = 13,
    PLACE_MAX = 24,
    TIER_WIDTH = 4,
    VERDICT_WIDTH = 8,
    TERM_WIDTH = 8,
    BAND_GAP = 2, /* between what is billed and what is weighed */
    SUM_WIDTH = 9,
};

/* Four significant digits, but no fewer than four decimals below one: 0.0237, 1.234, 412.6; two digits of
 * what is very small. At most seven characters up to a million. */
char *nano_words(int64_t nano, char *out, size_t size)
{
    int decimals = 4;
    double value = (double)nano / (double)MONEY_UNIT, magnitude = value < 0 ? -value : value;
    for (double limit = 0.99995; decimals > 0 && magnitude >= limit; limit *= 10.0) {
        decimals--;
    }
    if (magnitude > 0 && magnitude < 0.00995) {
        decimals = 5;
    }
    if (magnitude > 0 && magnitude < 0.000005) {
        (void)snprintf(out, size, "%s1e-5", value < 0 ? ">-" : "<");
        return out;
    }
    (void)snprintf(out, size, "%.*f", decimals, value);
    return out;
}

static size_t place_width(const json_t *places)
{
    size_t width = PLACE_MIN, i;
    json_t *row;
    json_array_foreach(places, i, row)
    {
        size_t length = strlen(json_text(row, "place"));
        width = length > width && length <= PLACE_MAX ? length : width;
    }
    return width;
}

/* Starts a line with the place; one that is longer than its column stands on a line of its own. */
static void print_place(const char *place, bool chosen, size_t width, FILE *out)
{
    (void)fputs(chosen ? "> " : "  ", out);
    if (strlen(place) > width) {
        (void)fprintf(out, "%s\n  %*s", place, (int)width, "");
    } else {
        (void)fprintf(out, "%-*s", (int)width, place);
    }
}

/* ------- billed -------   -------- weighed -------- */
static void print_band(const char *word, size_t columns, FILE *out)
{
    size_t width = columns * TERM_WIDTH - 1, length = strlen(word) + 2;
    size_t left = width > length ? (width - length) / 2 : 0;
    (void)fputc(' ', out);
    for (size_t i = 0; i < width; i++) {
        if (i == left) {
            (void)fprintf(out, " %s ", word);
            i += length - 1;
        } else {
            (void)fputc('-', out);
        }
    }
}

/* Width of a column of terms: the first of the second band stands apart. */
static int term_width(int term)
{
    bool apart = term > 0 &&
                 term_is_billed((enum term_kind)(term - 1)) != term_is_billed((enum term_kind)term);
    return TERM_WIDTH + (apart ? BAND_GAP : 0);
}

static void print_cost_heads(size_t width, FILE *out)
{
    size_t billed = 0;
    for (int i = 0; i < TERM_COUNT; i++) {
        billed += term_is_billed((enum term_kind)i);
    }
    (void)fprintf(out, "%*s", (int)(2 + width + 1 + TIER_WIDTH + 1 + VERDICT_WIDTH), "");
    print_band("billed", billed, out);
    (void)fprintf(out, "%*s", BAND_GAP, "");
    print_band("weighed", TERM_COUNT - billed, out);
    (void)fprintf(out, "\n  %-*s TIER %-*s", (int)width, "PLACE", VERDICT_WIDTH, "VERDICT");
    for (int i = 0; i < TERM_COUNT; i++) {
        (void)fprintf(out, "%*s", term_width(i), term_name((enum term_kind)i));
    }
    (void)fprintf(out, "%*s\n", SUM_WIDTH, "SUM");
}

static void print_terms(const json_t *row, FILE *out)
{
    const json_t *terms = json_object_get(row, "terms");
    char text[UNITS_TEXT_SIZE];
    for (int i = 0; i < TERM_COUNT; i++) {
        int64_t nano = json_int(terms, term_name((enum term_kind)i));
        bool absent = nano == 0 && term_is_billed((enum term_kind)i);
        (void)fprintf(out, "%*s", term_width(i),
                      absent ? "-" : nano_words(nano, text, sizeof text));
    }
}

static void print_cost_row(const json_t *row, const char *currency, size_t width, FILE *out)
{
    const char *verdict = json_text(row, "verdict"), *why = json_text(row, "why");
    bool chosen = strcmp(verdict, "chosen") == 0;
    char text[UNITS_TEXT_SIZE], tier[UNITS_TEXT_SIZE] = "-";
    size_t at = 2 + width + 1 + TIER_WIDTH + 1 + VERDICT_WIDTH + 1;
    if (json_int(row, "tier") > 0) {
        (void)snprintf(tier, sizeof tier, "%" PRId64, json_int(row, "tier"));
    }
    print_place(json_text(row, "place"), chosen, width, out);
    (void)fprintf(out, " %*s %-*s", TIER_WIDTH, tier, VERDICT_WIDTH, verdict);
    if (!json_object_get(row, "terms")) {
        (void)fputc(' ', out);
        print_wrapped(*why ? why : "-", at, TEXT_WIDTH, out);
        return;
    }
    print_terms(row, out);
    if (*why) {
        (void)fputs("   ", out);
        print_wrapped(why, at - 1 + TERM_COUNT * TERM_WIDTH + BAND_GAP + 3, TEXT_WIDTH, out);
    } else {
        (void)fprintf(out, "%*s%s%s\n", SUM_WIDTH,
                      nano_words(json_int(row, "sum"), text, sizeof text), chosen ? " " : "",
                      chosen ? currency : "");
    }
}

static int rank_of(const json_t *row)
{
    static const char *const order[] = {"chosen", "dearer",  "full", "closed",
                                        "later",  "removed", "never"};
    int count = (int)(sizeof order / sizeof order[0]);
    for (int i = 0; i < count; i++) {
        if (strcmp(order[i], json_text(row, "verdict")) == 0) {
            return i;
        }
    }
    return count;
}

struct ranked {
    const json_t *row;
    int rank;
    size_t index;
};

static int compare_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    if (x->rank <= 1 && json_int(x->row, "sum") != json_int(y->row, "sum")) {
        return json_int(x->row, "sum") < json_int(y->row, "sum") ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* The rows with the chosen one first, then as near as they came to it. The caller frees. */
static struct ranked *rank_rows(const json_t *places, size_t *count)
{
    size_t i;
    json_t *row;
    struct ranked *rows = xcalloc(json_array_size(places) + 1, sizeof *rows);
    *count = 0;
    json_array_foreach(places, i, row)
    {
        rows[(*count)++] = (struct ranked){row, rank_of(row), i};
    }
    qsort(rows, *count, sizeof *rows, compare_rank);
    return rows;
}

void explain_print_costs(const json_t *decision, FILE *out)
{
    const json_t *places = json_object_get(decision, "places");
    size_t width = place_width(places), count;
    struct ranked *rows = rank_rows(places, &count);
    print_cost_heads(width, out);
    for (size_t i = 0; i < count; i++) {
        print_cost_row(rows[i].row, json_text(decision, "currency"), width, out);
    }
    free(rows);
}

/* ------------------------------------------------------------------------------------------ reasons */

static bool says_same(const json_t *a, const json_t *b)
{
    return strcmp(json_text(a, "verdict"), json_text(b, "verdict")) == 0 &&
           strcmp(json_text(a, "why"), json_text(b, "why")) == 0;
}

/* Places that say the same share a line: "hpc/cpu k8s/ci   never    no GPU". */
static void print_group(const struct ranked *rows, size_t count, size_t width, FILE *out)
{
    const json_t *first = rows[0].row;
    const char *why = json_text(first, "why");
    size_t at = 2 + width + 1 + VERDICT_WIDTH + 1, length = 0;
    struct strbuf names;
    strbuf_init(&names, 64 * 1024);
    for (size_t i = 0; i < count; i++) {
        const char *place = json_text(rows[i].row, "place");
        bool breaks = length > 0 && length + 1 + strlen(place) > TEXT_WIDTH - 2;
        strbuf_printf(&names, "%s%s", length == 0 ? "" : breaks ? "\n  " : " ", place);
        length = breaks ? strlen(place) : length + (length > 0) + strlen(place);
    }
    char *text = strbuf_take(&names);
    (void)fprintf(out, "  %s", text);
    if (length > width || strchr(text, '\n')) {
        (void)fprintf(out, "\n%*s", (int)(2 + width), "");
    } else {
        (void)fprintf(out, "%*s", (int)(width - length), "");
    }
    (void)fprintf(out, " %-*s ", VERDICT_WIDTH, json_text(first, "verdict"));
    print_wrapped(*why ? why : "-", at, TEXT_WIDTH, out);
    free(text);
}

void explain_print_reasons(const json_t *decision, FILE *out)
{
    const json_t *places = json_object_get(decision, "places");
    size_t width = place_width(places), count;
    struct ranked *rows = rank_rows(places, &count);
    bool *done = xcalloc(count + 1, sizeof *done);
    struct ranked *group = xcalloc(count + 1, sizeof *group);
    (void)fprintf(out, "  %-*s %-*s WHY\n", (int)width, "PLACE", VERDICT_WIDTH, "VERDICT");
    for (size_t i = 0; i < count; i++) {
        size_t members = 0;
        for (size_t k = i; k < count && !done[i]; k++) {
            if (!done[k] && says_same(rows[i].row, rows[k].row)) {
                group[members++] = rows[k];
                done[k] = k != i;
            }
        }
        if (members) {
            print_group(group, members, width, out);
        }
    }
    free(group);
    free(done);
    free(rows);
}

/* -------------------------------------------------------------------------------------------- facts */

enum { FACT_COLUMNS = 4, FACT_GAP = 2 };
static const size_t fact_widths[FACT_COLUMNS] = {36, 30, 20, 8}; /* at most; with gaps 100 */

struct fact_line {
    const char *cells[FACT_COLUMNS];
    char age[UNITS_TEXT_SIZE];
};

static void read_fact(const json_t *fact, struct fact_line *out)
{
    const json_t *age = json_object_get(fact, "age_ms");
    copy_text(out->age, sizeof out->age, "-");
    if (json_is_integer(age)) {
        (void)duration_short(json_integer_value(age), out->age);
    }
    out->cells[0] = json_text(fact, "what");
    out->cells[1] = json_text(fact, "value");
    out->cells[2] = json_text(fact, "from");
    out->cells[3] = out->age;
}

/* A cell that is wider than its column goes on under itself, the next one then on a new line. */
static void print_fact(const struct fact_line *line, const size_t *widths, FILE *out)
{
    size_t at = 0, column = 0;
    for (size_t c = 0; c < FACT_COLUMNS; c++) {
        size_t indent = c == 0 ? FACT_GAP : 0;
        (void)fprintf(out, "%*s", (int)(column + indent - at), "");
        if (text_columns(line->cells[c]) + indent > widths[c]) {
            print_wrapped(line->cells[c], column + indent, column + widths[c], out);
            at = 0;
        } else {
            (void)fputs(line->cells[c], out);
            at = column + indent + text_columns(line->cells[c]);
        }
        column += widths[c] + FACT_GAP;
    }
    (void)fputc('\n', out);
}

void explain_print_facts(const json_t *decision, FILE *out)
{
    static const struct fact_line head = {.cells = {"Facts used", "VALUE", "FROM", "AGE"}};
    const json_t *facts = json_object_get(decision, "facts");
    size_t widths[FACT_COLUMNS], i;
    struct fact_line line;
    json_t *fact;
    if (json_array_size(facts) == 0) {
        return;
    }
    for (size_t c = 0; c < FACT_COLUMNS; c++) {
        widths[c] = strlen(head.cells[c]);
    }
    json_array_foreach(facts, i, fact)
    {
        read_fact(fact, &line);
        for (size_t c = 0; c < FACT_COLUMNS; c++) {
            size_t width = text_columns(line.cells[c]) + (c == 0 ? FACT_GAP : 0);
            width = width < fact_widths[c] ? width : fact_widths[c];
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    (void)fprintf(out, "\n%-*s  %-*s  %-*s  %s\n", (int)widths[0], head.cells[0], (int)widths[1],
                  head.cells[1], (int)widths[2], head.cells[2], head.cells[3]);
    json_array_foreach(facts, i, fact)
    {
        read_fact(fact, &line);
        print_fact(&line, widths, out);
    }
}
