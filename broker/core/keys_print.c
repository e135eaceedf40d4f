/* keys_print.c - a key table as documentation: one Markdown table, nested keys with dots. */
#include "broker/core/keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/keys_scalar.h"

static void print_escaped(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '|') {
            (void)fputs("\\|", out);
        } else {
            (void)fputc(*text == '\n' ? ' ' : *text, out);
        }
    }
}

static void print_bounds(const struct key *row, FILE *out)
{
    char low[UNITS_TEXT_SIZE], high[UNITS_TEXT_SIZE];
    char *(*text)(int64_t number, char out[UNITS_TEXT_SIZE]) =
        row->type == KEY_SIZE       ? size_text
        : row->type == KEY_DURATION ? duration_text
        : row->type == KEY_CPUS     ? thousandths_text
                                    : NULL;
    if (row->low == 0 && row->high == 0) {
        return;
    }
    if (text) {
        text(row->low, low);
        text(row->high, high);
    } else {
        (void)snprintf(low, sizeof low, "%" PRId64, row->low);
        (void)snprintf(high, sizeof high, "%" PRId64, row->high);
    }
    if (row->high == 0 || row->high == INT64_MAX) {
        (void)fprintf(out, ", at least %s", low);
    } else {
        (void)fprintf(out, ", %s to %s", low, high);
    }
}

static void print_type(const struct key *row, FILE *out)
{
    const char *words =
        row->type == KEY_CUSTOM && row->type_words ? row->type_words : keys_type_words(row->type);
    if (row->type == KEY_ENUM) {
        for (size_t i = 0; row->words[i]; i++) {
            (void)fprintf(out, "%s`", i ? " " : "");
            print_escaped(row->words[i], out);
            (void)fputs("`", out);
        }
    } else {
        print_escaped(words, out);
    }
    if (row->type == KEY_INTEGER || row->type == KEY_CPUS || row->type == KEY_SIZE ||
        row->type == KEY_DURATION) {
        print_bounds(row, out);
    }
    (void)fputs(row->flags & KEY_TEMPLATE ? ", template" : "", out);
    (void)fputs(row->flags & KEY_NULL ? ", or null" : "", out);
}

/* What holds when the key is absent, or NULL when that is nothing. */
static const char *standard_of(const struct key *row)
{
    if (row->standard || row->given) {
        return row->standard;
    }
    return row->type == KEY_BOOL ? "false" : row->type == KEY_ENUM ? row->words[0] : NULL;
}

static void print_row(const struct key *row, const char *key, FILE *out)
{
    const char *standard = standard_of(row);
    (void)fputs("| `", out);
    print_escaped(key, out);
    (void)fputs(row->flags & KEY_PLACE ? "` P | " : "` | ", out);
    print_type(row, out);
    (void)fputs(" | ", out);
    if (row->flags & KEY_REQUIRED) {
        (void)fputs("required", out);
    } else if (standard) {
        (void)fputs("`", out);
        print_escaped(standard, out);
        (void)fputs("`", out);
    } else {
        (void)fputs("—", out);
    }
    (void)fputs(" | ", out);
    print_escaped(row->help ? row->help : "", out);
    (void)fputs(" |\n", out);
}

static void print_rows(const struct key *rows, const char *prefix, int depth, FILE *out)
{
    for (size_t i = 0; rows[i].name; i++) {
        if (rows[i].flags & KEY_HIDDEN) {
            continue;
        }
        char *key = xasprintf("%s%s", prefix, rows[i].name);
        print_row(&rows[i], key, out);
        if (rows[i].rows && depth < VALUE_DEPTH_MAX) {
            const char *below = rows[i].type == KEY_NAMED   ? ".NAME."
                                : rows[i].type == KEY_ITEMS ? "[]."
                                                            : ".";
            char *nested = xasprintf("%s%s", key, below);
            print_rows(rows[i].rows, nested, depth + 1, out);
            free(nested);
        }
        free(key);
    }
}

void keys_print(const struct key *rows, const char *prefix, FILE *out)
{
    (void)fputs("| key | type | default | meaning |\n|---|---|---|---|\n", out);
    print_rows(rows, prefix ? prefix : "", 0, out);
}
