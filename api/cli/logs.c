/* logs.c - `tieline logs`, `tieline wait`, `tieline cancel`. */
#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/tail.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_SIZE = 256 };

static int tail_open(struct cli *cli, const struct args *args, const char *id, int64_t patience_ms,
                     struct tail *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    out->cli = cli;
    out->attempt = 1;
    if (id_check(id, err) < 0) {
        return -1;
    }
    copy_text(out->id, sizeof out->id, id);
    return client_open(cli, args, patience_ms, &out->client, err);
}

/* What there is of one attempt's output. */
static int print_log(struct tail *tail, struct error *err)
{
    int64_t bytes = 1;
    while (bytes > 0 && !tail->log_done) {
        bytes = tail_read(tail, 0, err);
    }
    return bytes < 0 ? -1 : 0;
}

static int choose_attempt(const struct args *args, struct tail *tail, struct error *err)
{
    const char *text = args_get(args, "attempt");
    int64_t number = (int64_t)json_array_size(json_object_get(tail->job, "attempts"));
    if (text && integer_parse(text, 1, LIMIT_ATTEMPTS, &number, err) < 0) {
        return error_prefix(err, "--attempt");
    }
    tail->only_this = text != NULL;
    tail->attempt = number > 0 ? (int)number : 1;
    return 0;
}

int command_logs(struct cli *cli, const struct args *args)
{
    struct tail tail;
    struct error err;
    bool follow = args_has(args, "follow");
    if (tail_open(cli, args, args->words[0], follow ? PATIENCE_LONG_MS : PATIENCE_MS, &tail, &err) <
        0) {
        return cli_fail(&err);
    }
    tail.out = stdout;
    int result = tail_refresh(&tail, 0, &err);
    result = result < 0 ? -1 : choose_attempt(args, &tail, &err);
    if (result == 0 && follow) {
        result = tail_job(&tail, &err) == TAIL_END ? 0 : -1;
    } else if (result == 0 && json_array_size(json_object_get(tail.job, "attempts")) > 0) {
        result = print_log(&tail, &err);
    }
    client_close(tail.client);
    tail_fini(&tail);
    return result < 0 ? cli_fail(&err) : 0;
}

/* --------------------------------------------------------------------------------------------- wait */

static void print_end(const struct cli *cli, const json_t *job)
{
    char words[WORDS_SIZE], took[UNITS_TEXT_SIZE];
    int64_t ms;
    if (cli->json) {
        print_json(job);
        return;
    }
    end_words(job, words, sizeof words);
    bool ran = job_took(job, &ms);
    (void)printf("%s %s%s%s%s%s\n", json_text(job, "id"), json_text(job, "state"),
                 *words ? " " : "", words, ran ? " after " : "",
                 ran ? duration_short(ms, took) : "");
    (void)fflush(stdout);
}

int command_wait(struct cli *cli, const struct args *args)
{
    int status = 0;
    for (size_t i = 0; i < args->word_count; i++) {
        struct tail tail;
        struct error err;
        int one;
        if (tail_open(cli, args, args->words[i], PATIENCE_LONG_MS, &tail, &err) < 0) {
            (void)cli_fail(&err);
            one = STATUS_REFUSED;
        } else if (tail_job(&tail, &err) != TAIL_END) {
            one = exit_status_of_error(&err, client_status(tail.client));
            (void)cli_fail(&err);
        } else {
            one = exit_status_of_job(tail.job);
            print_end(cli, tail.job);
        }
        status = status ? status : one;
        client_close(tail.client);
        tail_fini(&tail);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------- cancel */

int command_cancel(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    int status = 0;
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    for (size_t i = 0; i < args->word_count; i++) {
        char *id = client_escape(args->words[i]), *path = xasprintf("/v1/jobs/%s", id);
        json_t *job = NULL;
        const struct call call = {.method = "DELETE", .path = path, .repeat = true};
        if (id_check(args->words[i], &err) < 0 || client_call(client, &call, &job, &err) < 0) {
            status = cli_fail(&err);
        } else if (cli->json) {
            print_json(job);
        } else {
            (void)printf("%s %s\n", json_text(job, "id"), json_text(job, "state"));
        }
        json_decref(job);
        free(path);
        free(id);
    }
    client_close(client);
    return status;
}
