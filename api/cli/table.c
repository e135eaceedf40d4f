#include "api/cli/table.h"

#include "broker/core/alloc.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { GAP = 2, CELL_MAX = 1024, LAST_MIN = 30 };

static const char dots[] = " ...";

size_t text_columns(const char *text)
{
    size_t columns = 0;
    for (; *text; text++) {
        columns += ((unsigned char)*text & 0xC0) != 0x80;
    }
    return columns;
}

/* The byte length of the first so many characters. */
static size_t bytes_of(const char *text, size_t columns)
{
    size_t at = 0;
    while (text[at] && columns > 0) {
        at++;
        while (((unsigned char)text[at] & 0xC0) == 0x80) {
            at++;
        }
        columns--;
    }
    return at;
}

size_t terminal_width(FILE *out)
{
    struct winsize size;
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) {
        return 0;
    }
    return size.ws_col;
}

void table_init(struct table *table, const char *const *heads)
{
    memset(table, 0, sizeof *table);
    for (; heads[table->columns] && table->columns < TABLE_COLUMNS_MAX; table->columns++) {
        const char *head = heads[table->columns];
        table->right[table->columns] = *head == '>';
        table->heads[table->columns] = head + (*head == '>');
    }
}

void table_add(struct table *table, const char *text)
{
    char *cell = xstrdup(text && *text ? text : "-");
    for (char *c = cell; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 127) {
            *c = ' '; /* what others wrote must not steer a terminal */
        }
    }
    table->cells = xrealloc(table->cells, table->count + 1, sizeof *table->cells);
    table->cells[table->count++] = cell;
}

void table_addf(struct table *table, const char *format, ...)
{
    char text[CELL_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_add(table, text);
}

static void print_spaces(size_t count, FILE *out)
{
    (void)fprintf(out, "%*s", (int)count, "");
}

static void print_cell(const char *text, size_t width, bool right, bool last, FILE *out)
{
    size_t columns = text_columns(text), pad = width > columns ? width - columns : 0;
    if (right) {
        print_spaces(pad, out);
    }
    (void)fputs(text, out);
    if (!right && !last) {
        print_spaces(pad, out);
    }
}

/* A last cell that is too wide ends at a word, with dots: a list keeps one line per row. */
static void print_short(const char *text, size_t room, FILE *out)
{
    size_t fits = bytes_of(text, room > sizeof dots ? room - (sizeof dots - 1) : 1), cut = fits;
    while (cut > 0 && text[cut] != ' ') {
        cut--;
    }
    (void)fwrite(text, 1, cut ? cut : fits, out);
    (void)fputs(dots, out);
}

static void print_row(const struct table *table, char *const *cells, const size_t *widths,
                      size_t indent, size_t width, FILE *out)
{
    size_t at = indent;
    print_spaces(indent, out);
    for (size_t c = 0; c < table->columns; c++) {
        bool last = c + 1 == table->columns;
        size_t room = width > at + LAST_MIN ? width - at : LAST_MIN;
        if (last && width > 0 && text_columns(cells[c]) > room) {
            print_short(cells[c], room, out);
        } else {
            print_cell(cells[c], widths[c], table->right[c], last, out);
        }
        at += widths[c] + GAP;
        if (!last) {
            print_spaces(GAP, out);
        }
    }
    (void)fputc('\n', out);
}

void table_print(struct table *table, size_t indent, size_t width, FILE *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    assert(table->columns > 0);
    for (size_t c = 0; c < table->columns; c++) {
        widths[c] = text_columns(table->heads[c]);
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t columns = text_columns(table->cells[i]);
        if (columns > widths[i % table->columns]) {
            widths[i % table->columns] = columns;
        }
    }
    print_row(table, (char *const *)table->heads, widths, indent, width, out);
    for (size_t i = 0; i + table->columns <= table->count; i += table->columns) {
        print_row(table, table->cells + i, widths, indent, width, out);
    }
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    memset(table, 0, sizeof *table);
}

/* How many bytes of text go into this line: up to the last blank that fits, else as many as fit. */
static size_t line_of(const char *text, size_t room)
{
    size_t fits = bytes_of(text, room), cut = fits;
    if (!text[fits]) {
        return fits;
    }
    while (cut > 0 && text[cut] != ' ') {
        cut--;
    }
    return cut ? cut : fits;
}

void print_wrapped(const char *text, size_t at, size_t width, FILE *out)
{
    size_t room = width > at + 10 ? width - at : 10;
    for (;;) {
        size_t length = line_of(text, room);
        for (size_t i = 0; i < length; i++) {
            (void)fputc((unsigned char)text[i] < ' ' || text[i] == 127 ? ' ' : text[i], out);
        }
        (void)fputc('\n', out);
        text += length;
        text += strspn(text, " ");
        if (!*text) {
            return;
        }
        print_spaces(at, out);
    }
}
