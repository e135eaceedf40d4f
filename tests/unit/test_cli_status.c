/* Exit statuses of `tieline run` and `tieline wait`: the table of the reference, line by line. */
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"

#include <criterion/criterion.h>
#include <string.h>

static int status_of(const char *text)
{
    json_error_t err;
    json_t *job = json_loads(text, 0, &err);
    cr_assert(job, "%s: %s", text, err.text);
    int status = exit_status_of_job(job);
    json_decref(job);
    return status;
}

Test(cli_status, of_jobs)
{
    static const struct {
        const char *job;
        int status;
    } rows[] = {
        {"{\"state\":\"succeeded\",\"outcome\":\"exit\",\"exit_code\":0}", 0},
        {"{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":2}", 2},
        {"{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":123}", 123},
        {"{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":124}", 124},
        {"{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":127}", 127},
        {"{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":255}", 255},
        {"{\"state\":\"failed\",\"outcome\":\"signal\",\"signal\":11}", 139},
        {"{\"state\":\"failed\",\"outcome\":\"signal\",\"signal\":15}", 143},
        {"{\"state\":\"failed\",\"outcome\":\"out-of-memory\",\"signal\":9}", 137},
        {"{\"state\":\"failed\",\"outcome\":\"out-of-memory\"}", 137},
        {"{\"state\":\"failed\",\"outcome\":\"time-limit\",\"signal\":9}", 124},
        {"{\"state\":\"failed\",\"outcome\":\"start-failed\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"reclaimed\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"absent\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"gone\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"outcome-unknown\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"rejected\"}", 126},
        {"{\"state\":\"failed\"}", 125},
        {"{\"state\":\"cancelled\",\"outcome\":\"cancelled\"}", 125},
        {"{\"state\":\"cancelled\",\"outcome\":\"exit\",\"exit_code\":3}", 125},
        {"{\"state\":\"expired\"}", 125},
        {"{\"state\":\"running\"}", 125},
        {"{\"state\":\"failed\",\"outcome\":\"of a later release\"}", 125},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(status_of(rows[i].job), rows[i].status, "%s gives %d", rows[i].job,
                     status_of(rows[i].job));
    }
}

Test(cli_status, of_calls)
{
    static const struct {
        enum error_code code;
        long http;
        int status;
    } rows[] = {
        {ERROR_IMPOSSIBLE, 422, 126}, {ERROR_INVALID, 422, 126},     {ERROR_FORBIDDEN, 403, 126},
        {ERROR_TOO_MANY, 429, 126},   {ERROR_UNAVAILABLE, 503, 125}, {ERROR_INTERNAL, 500, 125},
        {ERROR_UNAVAILABLE, 0, 125},  {ERROR_INVALID, 0, 126},       {ERROR_STORE, 503, 125},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = {.code = rows[i].code};
        cr_expect_eq(exit_status_of_error(&err, rows[i].http), rows[i].status, "row %zu", i);
    }
}

static void expect_words(const char *text, const char *words)
{
    char out[128];
    json_t *job = json_loads(text, 0, NULL);
    outcome_words(job, out, sizeof out);
    cr_expect_str_eq(out, words);
    json_decref(job);
}

static void expect_end(const char *text, const char *words)
{
    char out[128];
    json_t *job = json_loads(text, 0, NULL);
    end_words(job, out, sizeof out);
    cr_expect_str_eq(out, words);
    json_decref(job);
}

static void expect_reason(const char *text, const char *words)
{
    char out[128];
    json_t *job = json_loads(text, 0, NULL);
    cr_assert(job, "%s", text);
    reason_words(job, out, sizeof out);
    cr_expect_str_eq(out, words);
    json_decref(job);
}

/* What outcome and place say already is not said again. */
Test(cli_status, reasons_without_what_is_said)
{
    expect_reason(
        "{\"outcome\":\"exit\",\"exit_code\":2,\"place\":\"hpc\",\"reason\":\"exit 2 at hpc\"}",
        "");
    expect_reason("{\"outcome\":\"signal\",\"signal\":11,\"place\":\"hpc\","
                  "\"reason\":\"died of signal 11 at hpc\"}",
                  "");
    expect_reason("{\"outcome\":\"time-limit\",\"place\":\"hpc\","
                  "\"reason\":\"time-limit at hpc: its time limit of 2s was reached\"}",
                  "");
    expect_reason("{\"outcome\":\"start-failed\",\"place\":\"hpc\","
                  "\"reason\":\"start-failed at hpc: no such program\"}",
                  "no such program");
    expect_reason(
        "{\"outcome\":\"exit\",\"exit_code\":2,\"place\":\"hpc\",\"reason\":\"other words\"}",
        "other words");
    expect_reason("{\"reason\":\"upstream\"}", "");
}

static void expect_took(const char *text, int64_t wanted)
{
    int64_t ms;
    json_t *job = json_loads(text, 0, NULL);
    cr_assert(job, "%s", text);
    bool ran = job_took(job, &ms);
    cr_expect_eq(ran ? ms : -1, wanted, "%s", text);
    json_decref(job);
}

/* The last attempt's own times, not when the broker heard of them. */
Test(cli_status, how_long_it_ran)
{
    expect_took(
        "{\"started\":\"2026-03-09T13:00:00.000Z\",\"finished\":\"2026-03-09T13:00:01.500Z\","
        "\"attempts\":[{\"started\":\"2026-03-09T12:00:00.000Z\",\"ended\":\"2026-03-09T12:10:00.000Z\"},"
        "{\"started\":\"2026-03-09T13:00:00.000Z\",\"ended\":\"2026-03-09T13:00:00.002Z\"}]}",
        2);
    expect_took("{\"attempts\":[{\"started\":\"2026-03-09T13:00:00.000Z\"}]}", -1);
    expect_took("{\"attempts\":[{\"ended\":\"2026-03-09T13:00:00.000Z\"}]}", -1);
    expect_took("{\"attempts\":[]}", -1);
    expect_took("{}", -1);
}

Test(cli_status, ids)
{
    struct error err;
    cr_expect_eq(id_check("7x4qv", &err), 0);
    cr_expect_eq(id_check("", &err), -1);
    cr_expect_str_eq(err.text, "an empty id");
    cr_expect_eq(id_check("../x", &err), -1);
    cr_expect_str_eq(err.text, "'../x' is not an id");
    cr_expect_eq(
        id_check("j0123456789012345678901234567890123456789012345678901234567890123", &err), -1);
}

Test(cli_status, in_words)
{
    expect_words("{\"outcome\":\"exit\",\"exit_code\":2}", "exit 2");
    expect_words("{\"outcome\":\"signal\",\"signal\":9}", "signal 9 SIGKILL");
    expect_words("{\"outcome\":\"time-limit\"}", "time limit");
    expect_words("{\"outcome\":\"out-of-memory\"}", "out of memory");
    expect_words("{\"reason\":\"upstream\"}", "upstream");
    expect_words("{\"state\":\"cancelled\",\"outcome\":\"cancelled\"}", "cancelled");
    expect_end("{\"state\":\"cancelled\",\"outcome\":\"cancelled\"}", "");
    expect_end("{\"state\":\"failed\",\"outcome\":\"exit\",\"exit_code\":2}", "exit 2");
}
