/* table.h - columns of text for people. A cell never holds a line break. */
#ifndef API_CLI_TABLE_H
#define API_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 12, TEXT_WIDTH = 100 };

struct table {
    size_t columns;
    const char *heads[TABLE_COLUMNS_MAX];
    bool right[TABLE_COLUMNS_MAX]; /* aligned to the right */
    char **cells;
    size_t count;
};

/* heads ends with NULL; a head that begins with ">" aligns its column to the right. */
void table_init(struct table *table, const char *const *heads);
/* The next cell, row by row; NULL counts as "-". */
void table_add(struct table *table, const char *text);
void table_addf(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints and frees. The last column is cut at width; 0: it is not cut. */
void table_print(struct table *table, size_t indent, size_t width, FILE *out);

/* Columns of the terminal that out is; 0: it is none. */
size_t terminal_width(FILE *out);

/* Prints text over as many lines as it takes; the first stands at column `at` already, later ones are
 * indented so far. Ends the line. */
void print_wrapped(const char *text, size_t at, size_t width, FILE *out);

/* How many columns a text takes. */
size_t text_columns(const char *text);

#endif
