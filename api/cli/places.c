/* places.c - `tieline places`, `tieline bursts`, `tieline drain` and `tieline undrain`. */
#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/table.h"

#include "broker/core/alloc.h"
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_SIZE = 160, PLACES_LOOKED_AT = 1000 };

static const char *count_text(int64_t count, char *out, size_t size)
{
    (void)snprintf(out, size, count < 0 ? "?" : "%" PRId64, count);
    return out;
}

/* "2.5 of 4 cpu" */
static void add_free(struct table *table, const json_t *row)
{
    char free[UNITS_TEXT_SIZE], total[UNITS_TEXT_SIZE];
    int64_t cpus = json_int(json_object_get(row, "free"), "cpus_milli");
    int64_t of = json_int(json_object_get(row, "total"), "cpus_milli");
    if (of <= 0) {
        table_add(table, "-");
    } else {
        table_addf(table, "%s of %s cpu", cpus < 0 ? "?" : thousandths_text(cpus, free),
                   thousandths_text(of, total));
    }
}

/* Nothing that is stale looks like a value: the age stands beside it. */
static void add_place(struct table *table, const json_t *row)
{
    char all[UNITS_TEXT_SIZE], age[UNITS_TEXT_SIZE];
    const char *state = json_text(row, "state");
    bool silent = strcmp(state, "unreachable") == 0;
    int64_t round_trip = json_int(row, "round_trip_ms");
    table_add(table, json_text(row, "place"));
    table_add(table, state);
    table_add(table, json_text(row, "kind"));
    table_addf(table, "%" PRId64, json_int(row, "running"));
    table_addf(table, "%" PRId64 "/%s", json_int(row, "waiting"),
               silent ? "?" : count_text(json_int(row, "waiting_all"), all, sizeof all));
    add_free(table, row);
    if (round_trip > 0) {
        table_addf(table, "%" PRId64 " ms", round_trip);
    } else {
        table_add(table, "-");
    }
    table_add(table,
              duration_short(silent ? json_int(row, "silent_ms") : json_int(row, "age_ms"), age));
    table_add(table, json_text(row, "reason"));
}

static void print_places(const struct cli *cli, const json_t *body)
{
    static const char *const heads[] = {"PLACE", "STATE", "KIND", ">RUN", ">WAITING",
                                        "FREE",  ">RTT",  ">AGE", "NOTE", NULL};
    struct table table;
    size_t i;
    json_t *row;
    table_init(&table, heads);
    json_array_foreach(json_object_get(body, "places"), i, row)
    {
        if (cli->json) {
            print_json(row);
        } else {
            add_place(&table, row);
        }
    }
    if (!cli->json) {
        table_print(&table, 0, terminal_width(stdout), stdout);
    }
}

int command_places(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    json_t *body;
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    int result = client_get(client, "/v1/places", &body, &err);
    client_close(client);
    if (result < 0) {
        return cli_fail(&err);
    }
    print_places(cli, body);
    json_decref(body);
    return 0;
}

/* ------------------------------------------------------------------------------------------- bursts */

static void print_bursts(const json_t *body, int64_t now_ms)
{
    static const char *const heads[] = {"BURST", "STATE", ">JOBS", ">NODES", "SINCE", "WHY", NULL};
    struct table table;
    size_t i;
    json_t *row;
    char text[CELL_SIZE];
    table_init(&table, heads);
    json_array_foreach(json_object_get(body, "bursts"), i, row)
    {
        int64_t since = json_time(row, "since");
        table_add(&table, json_text(row, "name"));
        table_add(&table, json_text(row, "state"));
        table_addf(&table, "%" PRId64, json_int(row, "jobs"));
        table_add(&table, thousandths_text(json_int(row, "nodes_milli"), text));
        if (since) {
            time_words(since, now_ms, text, sizeof text);
        }
        table_add(&table, since ? text : "-");
        table_add(&table, json_text(row, "why"));
    }
    table_print(&table, 0, terminal_width(stdout), stdout);
}

static void print_budgets(const json_t *body)
{
    static const char *const heads[] = {"BUDGET", "PER", ">LIMIT", ">SETTLED", ">BOOKED", NULL};
    struct table table;
    size_t i;
    json_t *row;
    table_init(&table, heads);
    json_array_foreach(json_object_get(body, "budgets"), i, row)
    {
        table_add(&table, json_text(row, "name"));
        table_add(&table, json_text(row, "per"));
        table_add(&table, json_text(row, "limit"));
        table_add(&table, json_text(row, "settled"));
        table_add(&table, json_text(row, "booked"));
    }
    (void)fputc('\n', stdout);
    table_print(&table, 0, terminal_width(stdout), stdout);
}

/* One object per line, each with what it is. */
static void print_json_rows(const json_t *body, const char *list, const char *kind)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(body, list), i, row)
    {
        json_object_set_new(row, "kind", json_string(kind));
        print_json(row);
    }
}

int command_bursts(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    json_t *body;
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    int result = client_get(client, "/v1/bursts", &body, &err);
    client_close(client);
    if (result < 0) {
        return cli_fail(&err);
    }
    if (cli->json) {
        print_json_rows(body, "bursts", "burst");
        print_json_rows(body, "budgets", "budget");
    } else {
        print_bursts(body, clock_wall_ms(cli->clock));
        print_budgets(body);
    }
    json_decref(body);
    return 0;
}

/* ------------------------------------------------------------------------------------------- drains */

/* The place that was meant by a word that names none. */
static void suggest_place(struct client *client, const char *word, struct error *err)
{
    const char *names[PLACES_LOOKED_AT];
    struct error ignored;
    json_t *body, *row;
    size_t i, count = 0;
    if (client_get(client, "/v1/places", &body, &ignored) < 0) {
        return;
    }
    json_array_foreach(json_object_get(body, "places"), i, row)
    {
        if (count + 2 <= PLACES_LOOKED_AT) {
            names[count++] = json_text(row, "place");
            names[count++] = json_text(row, "cluster");
        }
    }
    const char *near = nearest_word(word, names, count);
    if (near) {
        (void)error_expect(err, "did you mean '%s'?", near);
    }
    json_decref(body);
}

static int set_drain(struct cli *cli, const struct args *args, const char *verb)
{
    struct client *client;
    struct error err;
    json_t *answer = NULL, *body = json_object();
    const char *note = args_get(args, "note");
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        json_decref(body);
        return cli_fail(&err);
    }
    json_object_set_new(body, "note", json_string(note ? note : ""));
    char *place = client_escape(args->words[0]);
    char *path = xasprintf("/v1/places/%s/%s", place, verb);
    char *text = json_dumps(body, JSON_COMPACT);
    bool drains = strcmp(verb, "drain") == 0;
    const struct call call = {
        .method = "POST", .path = path, .body = drains ? text : NULL, .repeat = true};
    int status = client_call(client, &call, &answer, &err) < 0 ? 1 : 0;
    if (status && client_status(client) == 404) {
        suggest_place(client, args->words[0], &err);
    }
    if (status) {
        (void)cli_fail(&err);
    } else if (cli->json) {
        print_json(answer);
    } else {
        (void)printf("%s %s\n", args->words[0],
                     drains ? "is drained: nothing new goes there, what runs ends"
                            : "takes jobs again");
    }
    json_decref(answer);
    json_decref(body);
    free(text);
    free(path);
    free(place);
    client_close(client);
    return status;
}

int command_drain(struct cli *cli, const struct args *args)
{
    return set_drain(cli, args, "drain");
}

int command_undrain(struct cli *cli, const struct args *args)
{
    return set_drain(cli, args, "undrain");
}
