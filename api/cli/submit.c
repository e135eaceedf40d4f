/* submit.c - `tieline submit`. Every submit carries an Idempotency-Key, so that it may be sent again. */
#include "api/cli/submit.h"

#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/job_flags.h"
#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP_CREATED = 201, STATUS_PARTLY = 1 };

void key_random(struct cli *cli, char out[KEY_RANDOM_SIZE])
{
    (void)snprintf(out, KEY_RANDOM_SIZE, "cli-%016" PRIx64 "%016" PRIx64, clock_random(cli->clock),
                   clock_random(cli->clock));
}

int post_job(struct client *client, const json_t *job, const char *key, json_t **out,
             bool *existing, struct error *err)
{
    char *text = job_text(job);
    const struct call call = {
        .method = "POST", .path = "/v1/jobs", .body = text, .key = key, .repeat = true};
    int result = client_call(client, &call, out, err);
    free(text);
    if (result == 0 && !*json_text(*out, "id")) {
        json_decref(*out);
        *out = NULL;
        return error_set(err, ERROR_UPSTREAM, "the broker took the job and did not say its id");
    }
    *existing = result == 0 && client_status(client) != HTTP_CREATED;
    return result;
}

static void print_id(const struct cli *cli, const json_t *job)
{
    if (cli->json) {
        print_json(job);
    } else {
        (void)printf("%s\n", json_text(job, "id"));
    }
}

static int submit_single(struct cli *cli, const struct args *args, struct client *client,
                         const json_t *job, const char *key)
{
    struct error err;
    json_t *answer;
    bool existing;
    if (post_job(client, job, key, &answer, &existing, &err) < 0) {
        int status = exit_status_of_error(&err, client_status(client));
        job_locate(args, NULL, 0, &err);
        (void)cli_fail(&err);
        return status;
    }
    if (existing) {
        cli_say("this key has made the job before");
    }
    print_id(cli, answer);
    json_decref(answer);
    return 0;
}

/* The problem of one job of many. */
static void say_problem(const struct args *args, size_t index, const json_t *problem)
{
    char place[ERROR_PATH_MAX + 32];
    struct error err;
    error_set(&err, ERROR_INVALID, "%s", json_text(problem, "detail"));
    copy_text(err.pointer, sizeof err.pointer, json_text(problem, "pointer"));
    job_locate(args, NULL, index, &err);
    const char *expected = json_text(problem, "expected");
    cli_say("job %zu: %s%s%s%s", index + 1, cli_place(&err, place, sizeof place), err.text,
            *expected ? "; " : "", expected);
}

static int submit_many(struct cli *cli, const struct args *args, struct client *client,
                       const json_t *jobs, const char *key)
{
    struct error err;
    json_t *answer, *result;
    char *text = job_text(jobs);
    size_t i, taken = 0;
    const struct call call = {
        .method = "POST", .path = "/v1/jobs", .body = text, .key = key, .repeat = true};
    int status = client_call(client, &call, &answer, &err);
    free(text);
    if (status < 0) {
        status = exit_status_of_error(&err, client_status(client));
        (void)cli_fail(&err);
        return status;
    }
    json_array_foreach(json_object_get(answer, "jobs"), i, result)
    {
        json_t *problem = json_object_get(result, "problem");
        if (problem) {
            say_problem(args, i, problem);
            status = STATUS_REFUSED;
        } else {
            print_id(cli, result);
            taken++;
        }
    }
    if (taken < json_array_size(jobs)) {
        cli_say("%zu of %zu submitted", taken, json_array_size(jobs));
        status = taken ? STATUS_PARTLY : status;
    }
    if (json_array_size(json_object_get(answer, "jobs")) != json_array_size(jobs)) {
        cli_say("the broker answered for %zu of %zu jobs",
                json_array_size(json_object_get(answer, "jobs")), json_array_size(jobs));
        status = STATUS_UNABLE;
    }
    json_decref(answer);
    return status;
}

/* What is shown for a place that will never get the job is no promise. */
static void warn_removed(const json_t *answer, const char *place)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(json_object_get(answer, "decision"), "places"), i, row)
    {
        const char *verdict = json_text(row, "verdict");
        bool out = strcmp(verdict, "removed") == 0 || strcmp(verdict, "never") == 0;
        if (out && strcmp(json_text(row, "place"), place) == 0) {
            cli_say("it would not go to %s: %s", place, json_text(row, "why"));
        }
    }
}

static int render(struct cli *cli, const struct args *args, struct client *client,
                  const json_t *jobs, const char *place)
{
    size_t i;
    json_t *job;
    char *escaped = client_escape(place), *path = xasprintf("/v1/explain?render=%s", escaped);
    int status = 0;
    json_array_foreach(jobs, i, job)
    {
        struct error err;
        json_t *answer = NULL;
        char *text = job_text(job);
        const struct call call = {.method = "POST", .path = path, .body = text, .repeat = true};
        if (client_call(client, &call, &answer, &err) < 0) {
            status = exit_status_of_error(&err, client_status(client));
            job_locate(args, NULL, i, &err);
            (void)cli_fail(&err);
        } else if (cli->json) {
            print_json(answer);
        } else {
            const char *shown = json_text(answer, "render");
            warn_removed(answer, place);
            (void)fputs(shown, stdout);
            (void)fputs(*shown && shown[strlen(shown) - 1] != '\n' ? "\n" : "", stdout);
        }
        json_decref(answer);
        free(text);
    }
    free(path);
    free(escaped);
    return status;
}

int command_submit(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    json_t *jobs;
    char random[KEY_RANDOM_SIZE];
    const char *key = args_get(args, "key"), *place = args_get(args, "render");
    int status;
    if (jobs_read(args, &jobs, &err) < 0) {
        (void)cli_fail(&err);
        return STATUS_REFUSED;
    }
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        json_decref(jobs);
        (void)cli_fail(&err);
        return STATUS_UNABLE;
    }
    key_random(cli, random);
    if (place) {
        status = render(cli, args, client, jobs, place);
    } else if (json_array_size(jobs) == 1) {
        status = submit_single(cli, args, client, json_array_get(jobs, 0), key ? key : random);
    } else {
        status = submit_many(cli, args, client, jobs, key ? key : random);
    }
    client_close(client);
    json_decref(jobs);
    return status;
}
