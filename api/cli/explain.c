/* explain.c - `tieline explain ID` and `tieline explain --job FILE`. */
#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/explain_print.h"
#include "api/cli/job_flags.h"

#include "broker/core/alloc.h"

#include <stdlib.h>

static void show(const struct cli *cli, const json_t *record)
{
    if (cli->json) {
        print_json(record);
        return;
    }
    explain_print(record, clock_wall_ms(cli->clock), stdout);
}

static int explain_id(struct cli *cli, struct client *client, const char *id, struct error *err)
{
    json_t *record;
    if (id_check(id, err) < 0) {
        return -1;
    }
    char *escaped = client_escape(id), *path = xasprintf("/v1/jobs/%s/explain", escaped);
    int result = client_get(client, path, &record, err);
    free(path);
    free(escaped);
    if (result == 0) {
        show(cli, record);
        json_decref(record);
    }
    return result;
}

static int explain_spec(struct cli *cli, struct client *client, const json_t *job,
                        struct error *err)
{
    json_t *record;
    char *text = job_text(job);
    const struct call call = {
        .method = "POST", .path = "/v1/explain", .body = text, .repeat = true};
    int result = client_call(client, &call, &record, err);
    free(text);
    if (result == 0) {
        show(cli, record);
        json_decref(record);
    }
    return result;
}

static int explain_file(struct cli *cli, struct client *client, const struct args *args,
                        struct error *err)
{
    json_t *jobs = json_array(), *job;
    size_t i;
    int result = jobs_read_file(args, args_get(args, "job"), jobs, err);
    json_array_foreach(jobs, i, job)
    {
        if (result == 0) {
            (void)fputs(i && !cli->json ? "\n" : "", stdout);
            const char *path = args_get(args, "job");
            result = explain_spec(cli, client, job, err);
            if (result < 0) {
                job_locate(args, path ? path : "-", i, err);
            }
        }
    }
    json_decref(jobs);
    return result;
}

int command_explain(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    bool imagined = args_has(args, "job") || args->after < args->word_count;
    if (!imagined && args->word_count == 0) {
        error_set(&err, ERROR_INVALID, "explain what?");
        (void)error_expect(&err, "an id, --job FILE, or -- COMMAND");
        (void)cli_fail(&err);
        return EXIT_USAGE;
    }
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    int result = imagined ? explain_file(cli, client, args, &err) : 0;
    for (size_t i = 0; !imagined && result == 0 && i < args->word_count; i++) {
        (void)fputs(i && !cli->json ? "\n" : "", stdout);
        result = explain_id(cli, client, args->words[i], &err);
    }
    int status = result < 0 ? cli_fail(&err) : 0;
    if (result < 0 && imagined && client_status(client) >= 400 && client_status(client) < 500) {
        status = STATUS_REFUSED; /* as `run` would be */
    }
    client_close(client);
    return status;
}
