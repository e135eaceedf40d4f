/* The pages of `tieline explain` for recorded answers of a broker. To record a page anew after looking at
 * it: set TIELINE_RECORD=1. */
#include "api/cli/explain_print.h"
#include "api/cli/table.h"
#include "broker/core/units.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const pages[] = {"running", "queued", "imagined", "imagined-waits", "wide"};

static json_t *record(const char *name)
{
    char path[512];
    json_error_t err;
    (void)snprintf(path, sizeof path, FIXTURES "/explain/%s.json", name);
    json_t *json = json_load_file(path, 0, &err);
    cr_assert(json, "%s: %s", path, err.text);
    return json;
}

/* Ten seconds after the decision's job was submitted, so that ages are the same for ever. */
static int64_t now_of(const json_t *json)
{
    struct error err;
    int64_t ms = 0;
    const char *text =
        json_string_value(json_object_get(json_object_get(json, "job"), "submitted"));
    if (text) {
        cr_assert_eq(instant_parse(text, NULL, &ms, &err), 0);
    }
    return ms + 10 * 1000;
}

static char *page_of(const char *name)
{
    char *text = NULL;
    size_t length;
    json_t *json = record(name);
    (void)setenv("TZ", "UTC", 1);
    tzset();
    FILE *out = open_memstream(&text, &length);
    explain_print(json, now_of(json), out);
    (void)fclose(out);
    json_decref(json);
    return text;
}

static char *read_file(const char *path)
{
    char *text = NULL, chunk[4096];
    size_t length, n;
    FILE *in = fopen(path, "r");
    FILE *out = open_memstream(&text, &length);
    while (in && (n = fread(chunk, 1, sizeof chunk, in)) > 0) {
        (void)fwrite(chunk, 1, n, out);
    }
    if (in) {
        (void)fclose(in);
    }
    (void)fclose(out);
    return text;
}

static void check_page(const char *name)
{
    char path[512];
    char *page = page_of(name);
    (void)snprintf(path, sizeof path, FIXTURES "/explain/%s.txt", name);
    if (getenv("TIELINE_RECORD")) {
        FILE *out = fopen(path, "w");
        cr_assert(out);
        (void)fputs(page, out);
        (void)fclose(out);
    }
    char *wanted = read_file(path);
    cr_expect_str_eq(page, wanted, "%s differs from what is printed:\n%s", path, page);
    free(wanted);
    free(page);
}

Test(cli_explain, pages_are_as_recorded)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        check_page(pages[i]);
    }
}

Test(cli_explain, no_line_is_wider_than_100_columns)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char *page = page_of(pages[i]);
        for (char *line = page; *line;) {
            size_t length = strcspn(line, "\n");
            bool more = line[length] == '\n';
            line[length] = '\0';
            cr_expect(text_columns(line) <= TEXT_WIDTH, "%s: %zu columns: %s", pages[i],
                      text_columns(line), line);
            line += length + more;
        }
        free(page);
    }
}

Test(cli_explain, the_chosen_place_is_marked_and_alone)
{
    char *page = page_of("running");
    size_t marks = 0;
    for (const char *at = page; (at = strstr(at, "\n> ")) != NULL; at++) {
        marks++;
        cr_expect(strstr(at, "cloud") == at + 3);
    }
    cr_expect_eq(marks, 1);
    free(page);
}

Test(cli_explain, four_digits_and_no_row_of_zeros)
{
    static const struct {
        int64_t nano;
        const char *text;
    } rows[] = {
        {0, "0.0000"},           {23700000, "0.0237"},    {9940000, "0.00994"},
        {120000, "0.00012"},     {3000, "<1e-5"},         {-3000, ">-1e-5"},
        {1234560000, "1.235"},   {412600000000, "412.6"}, {1234000000000, "1234"},
        {-1500000000, "-1.500"}, {999960000, "1.000"},
    };
    char text[UNITS_TEXT_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_str_eq(nano_words(rows[i].nano, text, sizeof text), rows[i].text);
    }
}
