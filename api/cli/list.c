/* list.c - `tieline list` and `tieline show`. */
#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/table.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_STANDARD = 100, WORDS_SIZE = 256, PATH_MAX_BYTES = 8192 };

static const char *const filters[] = {"state", "owner", "team",  "class",
                                      "name",  "place", "since", "until"};

/* States of the list that are all "active" to the broker: here the word that is shown is what counts. */
static bool is_shown_state(const char *state)
{
    static const char *const words[] = {"placed", "dispatched", "running", "unknown"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(state, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct args *args, const json_t *job)
{
    const char *state = args_get(args, "state");
    return !state || !is_shown_state(state) || strcmp(json_text(job, "state"), state) == 0;
}

static char *page_path(const struct args *args, const char *cursor, int64_t limit)
{
    struct strbuf path;
    strbuf_init(&path, PATH_MAX_BYTES);
    strbuf_printf(&path, "/v1/jobs?limit=%" PRId64,
                  limit < LIMIT_LIST_ROWS ? limit : LIMIT_LIST_ROWS);
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        const char *value = args_get(args, filters[i]);
        if (value) {
            bool shown = strcmp(filters[i], "state") == 0 && is_shown_state(value);
            char *escaped = client_escape(shown ? "active" : value);
            strbuf_printf(&path, "&%s=%s", filters[i], escaped);
            free(escaped);
        }
    }
    if (cursor) {
        strbuf_printf(&path, "&cursor=%s", cursor);
    }
    return strbuf_take(&path);
}

/* WHY: what a waiting job waits for, how a finished one ended. */
static void why_words(const json_t *job, char *out, size_t size)
{
    if (json_is_true(json_object_get(job, "final"))) {
        char outcome[WORDS_SIZE], reason[WORDS_SIZE];
        end_words(job, outcome, sizeof outcome);
        reason_words(job, reason, sizeof reason);
        (void)snprintf(out, size, "%s%s%s", outcome, *outcome && *reason ? ": " : "", reason);
    } else {
        const char *why = json_text(job, "why");
        copy_text(out, size, *why ? why_without_count(why) : json_text(job, "reason"));
    }
}

static void add_row(struct table *table, const json_t *job, int64_t now_ms)
{
    char age[UNITS_TEXT_SIZE] = "-", why[WORDS_SIZE * 2];
    int64_t submitted = json_time(job, "submitted");
    if (submitted) {
        (void)duration_short(now_ms > submitted ? now_ms - submitted : 0, age);
    }
    why_words(job, why, sizeof why);
    table_add(table, json_text(job, "id"));
    table_add(table, json_text(job, "name"));
    table_add(table, json_text(job, "state"));
    table_add(table, json_text(job, "place"));
    table_add(table, json_text(job, "class"));
    table_add(table, json_text(job, "team"));
    table_add(table, age);
    table_add(table, why);
}

/* Reads pages until limit jobs are shown. Returns -1, or whether there are more. */
static int read_pages(struct client *client, const struct args *args, int64_t limit, bool json,
                      struct table *table, int64_t now_ms, struct error *err)
{
    char *cursor = NULL;
    int more;
    do {
        json_t *page;
        char *path = page_path(args, cursor, limit);
        int result = client_get(client, path, &page, err);
        free(path);
        free(cursor);
        cursor = NULL;
        if (result < 0) {
            return -1;
        }
        size_t i;
        json_t *job;
        json_array_foreach(json_object_get(page, "jobs"), i, job)
        {
            if (limit == 0 || !is_wanted(args, job)) {
                continue;
            }
            limit--;
            if (json) {
                print_json(job);
            } else {
                add_row(table, job, now_ms);
            }
        }
        const char *next = json_string_value(json_object_get(page, "next_cursor"));
        more = next != NULL;
        cursor = xstrdup(next);
        json_decref(page);
    } while (more && limit > 0);
    free(cursor);
    return more;
}

int command_list(struct cli *cli, const struct args *args)
{
    static const char *const heads[] = {"ID",   "NAME", "STATE", "PLACE", "CLASS",
                                        "TEAM", "AGE",  "WHY",   NULL};
    struct client *client;
    struct error err;
    struct table table;
    int64_t limit = LIST_STANDARD;
    const char *text = args_get(args, "limit");
    if ((text && integer_parse(text, 1, INT32_MAX, &limit, &err) < 0) ||
        client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    table_init(&table, heads);
    int more = read_pages(client, args, limit, cli->json, &table, clock_wall_ms(cli->clock), &err);
    if (!cli->json && (more >= 0 || table.count)) {
        size_t width = terminal_width(stdout);
        table_print(&table, 0, width ? width : TEXT_WIDTH, stdout);
    }
    client_close(client);
    if (more > 0 && !text) {
        cli_say("there are more; --limit %" PRId64 " shows them", limit * 10);
    }
    return more < 0 ? cli_fail(&err) : 0;
}

/* --------------------------------------------------------------------------------------------- show */

static void print_field(const char *name, const char *value)
{
    if (*value) {
        (void)printf("%-12s ", name);
        print_wrapped(value, 13, TEXT_WIDTH, stdout);
    }
}

static void print_times(const json_t *object, const char *const *names, int64_t now_ms)
{
    char words[WORDS_SIZE];
    for (; *names; names++) {
        int64_t ms = json_time(object, *names);
        if (ms) {
            time_words(ms, now_ms, words, sizeof words);
            print_field(*names, words);
        }
    }
}

static void print_attempt(const json_t *attempt, int64_t now_ms)
{
    static const char *const times[] = {"placed", "accepted", "started", "ended", NULL};
    char words[WORDS_SIZE];
    (void)printf("\nattempt %" PRId64 " at %s: %s\n", json_int(attempt, "number"),
                 json_text(attempt, "place"), json_text(attempt, "state"));
    outcome_words(attempt, words, sizeof words);
    print_field("outcome", json_object_get(attempt, "outcome") ? words : "");
    print_field("reason", json_text(attempt, "reason"));
    print_field("id there", json_text(attempt, "native_id"));
    print_field("burst", json_text(attempt, "burst"));
    print_times(attempt, times, now_ms);
    if (json_object_get(attempt, "booked")) {
        (void)snprintf(words, sizeof words, "%s expected, %s booked, %s settled",
                       json_text(attempt, "rent_expected"), json_text(attempt, "booked"),
                       json_text(attempt, "settled"));
        print_field("rent", words);
    }
}

static void print_job(const json_t *job, int64_t now_ms)
{
    static const char *const fields[] = {"id",   "name", "state",  "place", "class",       "owner",
                                         "team", "key",  "reason", "why",   "cancelled_by"};
    static const char *const times[] = {"submitted", "queued", "started", "finished", NULL};
    char words[WORDS_SIZE];
    size_t i;
    json_t *attempt;
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        print_field(fields[i], json_text(job, fields[i]));
    }
    int64_t took;
    if (json_object_get(job, "outcome")) {
        outcome_words(job, words, sizeof words);
        print_field("outcome", words);
    }
    if (job_took(job, &took)) {
        print_field("ran for", duration_short(took, words));
    }
    print_times(job, times, now_ms);
    json_array_foreach(json_object_get(job, "attempts"), i, attempt)
    {
        print_attempt(attempt, now_ms);
    }
    char *spec = json_dumps(json_object_get(job, "spec"), JSON_INDENT(2));
    if (spec) {
        (void)printf("\n%s\n", spec);
    }
    free(spec);
}

int command_show(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    int status = 0;
    for (size_t i = 0; i < args->word_count; i++) {
        char *id = client_escape(args->words[i]), *path = xasprintf("/v1/jobs/%s", id);
        json_t *job = NULL;
        if (id_check(args->words[i], &err) < 0 || client_get(client, path, &job, &err) < 0) {
            status = cli_fail(&err);
        } else if (cli->json) {
            print_json(job);
        } else {
            (void)fputs(i ? "\n" : "", stdout);
            print_job(job, clock_wall_ms(cli->clock));
        }
        json_decref(job);
        free(path);
        free(id);
    }
    client_close(client);
    return status;
}
