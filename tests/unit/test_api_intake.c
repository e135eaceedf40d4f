#include "api/intake.h"

#include "broker/core/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes a body in steps of so many bytes. */
static int take(struct intake *intake, const char *text, bool lines, size_t step, struct error *err)
{
    int status = 1;
    intake_init(intake, text, strlen(text), lines);
    while (status > 0) {
        status = intake_step(intake, step, err);
    }
    return status;
}

/* How many items, whatever the size of the steps; -1 when it is refused. */
static long items_of(const char *text, bool lines)
{
    long count = -2;
    for (size_t step = 1; step <= 64; step += 7) {
        struct intake intake;
        struct error err;
        long now = take(&intake, text, lines, step, &err) < 0 ? -1 : (long)intake.count;
        cr_assert(count == -2 || count == now, "%s: %ld and %ld", text, count, now);
        count = now;
        intake_fini(&intake);
    }
    return count;
}

Test(api_intake, arrays)
{
    cr_assert_eq(items_of("[]", false), 0);
    cr_assert_eq(items_of(" [ \n ] ", false), 0);
    cr_assert_eq(items_of("[{}]", false), 1);
    cr_assert_eq(items_of("[{},{}, {} ]", false), 3);
    cr_assert_eq(items_of("[{\"run\":\"a,b]\"},{\"run\":\"\\\"]\\\\\"},[1,[2]]]", false), 3);
    cr_assert_eq(items_of("[1,\"x\",null,true]", false), 4);
}

Test(api_intake, what_is_no_array_is_refused)
{
    const char *const bad[] = {
        "[",     "[{}",     "[{},",   "[,]",   "[{},]", "[,{}]",
        "[{}]x", "[{}] []", "[{]}",   "[}",    "[\"x]", "[{\"a\":1,\"a\":2}]",
        "[1 2]", "[\"\\",   "[\xff]", "[tru]", "[{}}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(items_of(bad[i], false), -1, "%s was taken", bad[i]);
    }
}

Test(api_intake, a_mistake_has_its_place_in_the_body)
{
    struct intake intake;
    struct error err;
    cr_assert_eq(take(&intake, "[{\"run\":\"a\"},\n {\"run\": ?}]", false, 1000, &err), -1);
    cr_assert_eq(err.line, 2);
    cr_assert_geq(err.column, 9);
    intake_fini(&intake);
    cr_assert_eq(take(&intake, "[\n\n  1,,2]", false, 1000, &err), -1);
    cr_assert_eq(err.line, 3);
    cr_assert_eq(err.column, 5);
    intake_fini(&intake);
}

Test(api_intake, lines)
{
    cr_assert_eq(items_of("", true), 0);
    cr_assert_eq(items_of("\n \r\n\t\n", true), 0);
    cr_assert_eq(items_of("{}\n{}", true), 2);
    cr_assert_eq(items_of("{}\r\n\r\n{}\r\n", true), 2);
    cr_assert_eq(items_of("{\n{}\n", true), 2);
}

Test(api_intake, a_bad_line_keeps_its_index)
{
    struct intake intake;
    struct error err;
    cr_assert_eq(take(&intake, "{\"run\":\"1\"}\n{\n{\"run\":\"3\"}\n", true, 1000, &err), 0);
    cr_assert_eq(intake.count, 3);
    cr_assert_eq(intake.good, 2);
    cr_assert_eq(intake.items[1]->kind, VALUE_NULL);
    json_t *results = json_pack("[s, s, s]", "a", "b", "c");
    intake_add_problems(&intake, results);
    cr_assert_str_eq(json_string_value(json_array_get(results, 0)), "a");
    cr_assert_eq(json_integer_value(json_object_get(
                     json_object_get(json_array_get(results, 1), "problem"), "status")),
                 400);
    cr_assert_str_eq(json_string_value(json_array_get(results, 2)), "c");
    json_decref(results);
    intake_fini(&intake);
}

Test(api_intake, one_large_item_is_a_problem_of_its_own)
{
    struct intake intake;
    struct error err;
    char *text = malloc(LIMIT_JOB_BYTES + 64);
    (void)snprintf(text, 64, "[{\"run\":\"");
    size_t used = strlen(text);
    memset(text + used, 'x', LIMIT_JOB_BYTES);
    (void)snprintf(text + used + LIMIT_JOB_BYTES, 16, "\"},{}]");
    cr_assert_eq(take(&intake, text, false, 1000, &err), 0);
    cr_assert_eq(intake.count, 2);
    cr_assert_eq(json_array_size(intake.problems), 1);
    intake_fini(&intake);
    free(text);
}

Test(api_intake, depth_costs_nothing)
{
    enum { DEEP = 2000000 };
    struct intake intake;
    struct error err;
    char *text = malloc(DEEP + 1);
    memset(text, '[', DEEP);
    text[DEEP] = '\0';
    cr_assert_eq(take(&intake, text, false, 65536, &err), -1);
    cr_assert_eq(err.code, ERROR_MALFORMED);
    intake_fini(&intake);
    free(text);
}

static void expect_place(const struct intake *intake, size_t index, int line, int column)
{
    const json_t *problem = json_array_get(json_array_get(intake->problems, index), 1);
    cr_assert_eq(json_integer_value(json_object_get(problem, "line")), line);
    cr_assert_eq(json_integer_value(json_object_get(problem, "column")), column);
}

Test(api_intake, each_bad_item_has_its_place)
{
    struct intake intake;
    struct error err;
    char deep[VALUE_DEPTH_MAX * 4 + 3] = "", text[sizeof deep * 3 + 64];
    memset(deep, '[', VALUE_DEPTH_MAX * 2 + 1);
    memset(deep + VALUE_DEPTH_MAX * 2 + 1, ']', VALUE_DEPTH_MAX * 2 + 1);
    (void)snprintf(text, sizeof text, "[%s,\n{},\"\xc3\xa4\", %s,\n%s]", deep, deep, deep);
    cr_assert_eq(take(&intake, text, false, 16, &err), 0);
    cr_assert_eq(intake.count, 5);
    cr_assert_eq(json_array_size(intake.problems), 3);
    const json_t *first = json_array_get(json_array_get(intake.problems, 0), 1);
    int column = (int)json_integer_value(json_object_get(first, "column"));
    expect_place(&intake, 0, 1, column);
    expect_place(&intake, 1, 2, column + 7); /* an a with dots is one column */
    expect_place(&intake, 2, 3, column - 1);
    intake_fini(&intake);
}
