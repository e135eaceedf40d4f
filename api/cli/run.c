/* run.c - `tieline run`: one call, the job's output, and its exit status.
 *
 * The key decides what is run: KEY, KEY.2, KEY.3 and so on are a chain, and its newest job counts. One that
 * waits or runs is attached to; one that succeeded gives its result again (--fresh: it does not); after any
 * other end the next key is tried. What is said goes to standard error; standard output is the job's alone. */
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/tail.h"
#include "api/cli/interrupt.h"
#include "api/cli/job_flags.h"
#include "api/cli/submit.h"

#include "broker/core/alloc.h"
#include "broker/core/job.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_TRIED_MAX = 1000,
    LEAVE_MS = 7 * 1000,
    LEAVE_STEP_MS = 2 * 1000,
    WORDS_SIZE = 256,
    KEY_BASE_MAX = 240
};

struct run {
    struct cli *cli;
    const struct args *args;
    struct tail tail;
    json_t *job; /* to be submitted */
    char key[256];
    bool was_final; /* the job of the key was over already */
    bool sent;      /* a submit may have reached the broker; false again: its job was over */
    bool was_done;  /* the result is an earlier job's */
    struct error err;
};

static bool has_state(const json_t *job, enum job_state state)
{
    return strcmp(json_text(job, "state"), job_state_name(state)) == 0;
}

/* Submits under KEY.number. Returns 1 when the job of that key is over and the next key's turn has come. */
static int submit_under(struct run *run, const char *base, int number)
{
    struct tail *tail = &run->tail;
    bool existing;
    json_t *job;
    if (number > 1) {
        (void)snprintf(run->key, sizeof run->key, "%.*s.%d", (int)KEY_BASE_MAX, base, number);
    } else {
        copy_text(run->key, sizeof run->key, base);
    }
    json_decref(tail->job); /* the chain's older job: an interrupt must not act on it */
    tail->job = NULL;
    tail->id[0] = '\0';
    run->sent = true;
    if (post_job(tail->client, run->job, run->key, &job, &existing, &run->err) < 0) {
        return -1;
    }
    tail->job = job;
    copy_text(tail->id, sizeof tail->id, json_text(job, "id"));
    run->was_final = existing && json_is_true(json_object_get(job, "final"));
    run->was_done = false;
    if (run->was_final) {
        run->was_done = has_state(job, JOB_SUCCEEDED) && !args_has(run->args, "fresh");
        return run->was_done ? 0 : 1;
    }
    if (existing) {
        cli_say("the key has made this job before: attached to it");
    }
    return 0;
}

/* Which job of the chain has this key: 1 for base, 7 for "base.7", 0 for none. */
static int number_in_chain(const char *base, const char *key)
{
    struct error err;
    int64_t number;
    size_t length = strlen(base) < KEY_BASE_MAX ? strlen(base) : KEY_BASE_MAX;
    if (strcmp(key, base) == 0) {
        return 1;
    }
    if (strncmp(key, base, length) != 0 || key[length] != '.' ||
        integer_parse(key + length + 1, 2, KEYS_TRIED_MAX, &number, &err) < 0) {
        return 0;
    }
    return (int)number;
}

/* The newest job of the chain on one page of the list, newest first; *cursor becomes the next page's. */
static int newest_on_page(struct run *run, const char *base, const char *query, char **cursor)
{
    json_t *page, *job;
    size_t i;
    int number = 0;
    char *path =
        xasprintf("/v1/jobs?%s%s%s", query, *cursor ? "&cursor=" : "", *cursor ? *cursor : "");
    int result = client_get(run->tail.client, path, &page, &run->err);
    free(path);
    free(*cursor);
    *cursor = NULL;
    if (result < 0) {
        return -1;
    }
    json_array_foreach(json_object_get(page, "jobs"), i, job)
    {
        if (number == 0) {
            number = number_in_chain(base, json_text(job, "key"));
        }
    }
    *cursor = xstrdup(json_string_value(json_object_get(page, "next_cursor")));
    json_decref(page);
    return number;
}

/* The number of the newest job of the chain; all of them have the body, and so the name, of the first. */
static int newest_of_chain(struct run *run, const char *base)
{
    const json_t *first = run->tail.job;
    char *name = client_escape(json_text(first, "name"));
    char *owner = client_escape(json_text(first, "owner"));
    char *since = client_escape(json_text(first, "submitted"));
    char *query =
        xasprintf("limit=%d&name=%s&owner=%s&since=%s", (int)LIMIT_LIST_ROWS, name, owner, since);
    char *cursor = NULL;
    int number;
    do {
        number = newest_on_page(run, base, query, &cursor);
    } while (number == 0 && cursor);
    free(cursor);
    free(query);
    free(since);
    free(owner);
    free(name);
    return number == 0 ? 1 : number;
}

static int submit(struct run *run)
{
    char random[KEY_RANDOM_SIZE];
    const char *key = args_get(run->args, "key"), *base = key ? key : random;
    key_random(run->cli, random);
    int number = 1, result = submit_under(run, base, number);
    if (key && result >= 0 && run->was_final) {
        run->sent = false; /* that job needs no cancelling */
        number = newest_of_chain(run, base);
        result = number > 1 ? submit_under(run, base, number) : number < 0 ? -1 : result;
    }
    while (result > 0 && number < KEYS_TRIED_MAX) {
        result = submit_under(run, base, ++number);
    }
    if (result <= 0) {
        return result;
    }
    return error_set(&run->err, ERROR_CONFLICT, "%d jobs with this key have ended already",
                     (int)KEYS_TRIED_MAX);
}

static void say_id(const struct run *run)
{
    const struct tail *tail = &run->tail;
    char text[UNITS_TEXT_SIZE];
    if (run->was_done) {
        int64_t age = clock_wall_ms(run->cli->clock) - json_time(tail->job, "finished");
        cli_say("%s  has succeeded %s ago under this key: its result; --fresh runs it again",
                tail->id, duration_short(age > 0 ? age : 0, text));
    } else {
        bool url = client_is_url(tail->client);
        cli_say("submitted %s%s%s", tail->id, url ? "  " : "",
                url ? client_where(tail->client) : "");
    }
}

static void say_end(const struct run *run)
{
    const json_t *job = run->tail.job;
    char words[WORDS_SIZE], more[WORDS_SIZE * 2], state[32], time[UNITS_TEXT_SIZE];
    const char *place = json_text(job, "place");
    int64_t took;
    bool ran = job_took(job, &took);
    end_words(job, words, sizeof words);
    reason_words(job, more, sizeof more);
    copy_text(state, sizeof state, json_text(job, "state"));
    for (char *c = state; *c; c++) {
        *c = (char)toupper((unsigned char)*c);
    }
    cli_say("%s%s%s%s%s%s%s%s%s", state, *words ? ": " : "", words, ran ? " after " : "",
            ran ? duration_short(took, time) : "", *place ? " at " : "", place, *more ? "; " : "",
            more);
}

/* ------------------------------------------------------------------------------------------ interrupt */

/* The submit was cut off: the same key tells whether there is a job, and which. */
static int learn_id(struct run *run)
{
    bool existing;
    json_t *job;
    if (run->tail.id[0]) {
        return 0;
    }
    if (!run->sent ||
        post_job(run->tail.client, run->job, run->key, &job, &existing, &run->err) < 0) {
        return -1;
    }
    json_decref(run->tail.job);
    run->tail.job = job;
    copy_text(run->tail.id, sizeof run->tail.id, json_text(job, "id"));
    return 0;
}

static int ask_cancel(struct run *run)
{
    char *path = xasprintf("/v1/jobs/%s", run->tail.id);
    const struct call call = {.method = "DELETE", .path = path, .repeat = true};
    json_t *job = NULL;
    int result = client_call(run->tail.client, &call, &job, &run->err);
    json_decref(job);
    free(path);
    return result;
}

/* Cancels, and waits a little for the end. Returns the exit status. */
static int cancel(struct run *run)
{
    struct tail *tail = &run->tail;
    int signal = interrupt_signal();
    int64_t until = client_now(tail->client) + LEAVE_MS;
    client_hurry(tail->client, LEAVE_MS);
    if (!run->sent) {
        return STATUS_SIGNAL + signal; /* nothing was submitted */
    }
    if (learn_id(run) < 0 || ask_cancel(run) < 0) {
        cli_say("the job may still run: %s", run->err.text);
        cli_say("end it with: tieline cancel %s",
                tail->id[0] ? tail->id : "ID (tieline list shows it)");
        return STATUS_SIGNAL + signal;
    }
    cli_say("interrupted: %s is being cancelled", tail->id);
    while (!tail_is_final(tail) && client_now(tail->client) < until) {
        if (tail_refresh(tail, LEAVE_STEP_MS, &run->err) < 0) {
            break;
        }
    }
    if (!tail_is_final(tail)) {
        return STATUS_SIGNAL + signal;
    }
    say_end(run);
    bool ran = json_object_get(tail->job, "exit_code") && !has_state(tail->job, JOB_CANCELLED);
    return ran ? exit_status_of_job(tail->job) : STATUS_SIGNAL + signal;
}

/* --------------------------------------------------------------------------------------------- result */

static json_t *result_of(const struct run *run, int status)
{
    const json_t *job = run->tail.job;
    json_t *result = json_object();
    static const char *const fields[] = {
        "id",      "name",   "state",     "outcome", "exit_code", "signal",      "place",
        "attempt", "reason", "submitted", "started", "finished",  "cancelled_by"};
    json_object_set_new(result, "exit_status", json_integer(status));
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        json_t *value = json_object_get(job, fields[i]);
        if (value) {
            json_object_set(result, fields[i], value);
        }
    }
    json_object_set_new(result, "key", json_string(run->key));
    json_object_set_new(result, "earlier", json_boolean(run->was_done));
    json_object_set_new(result, "interrupted", json_boolean(interrupt_signal() != 0));
    if (run->err.code && !tail_is_final(&run->tail)) {
        json_object_set_new(result, "error", json_string(run->err.text));
    }
    return result;
}

static int write_result(const struct run *run, int status)
{
    const char *path = args_get(run->args, "result");
    json_t *result = result_of(run, status);
    if (run->cli->json) {
        (void)json_dumpf(result, stderr, JSON_COMPACT);
        (void)fputc('\n', stderr);
    }
    if (path && json_dump_file(result, path, JSON_INDENT(2)) != 0) {
        cli_say("the result could not be written to %s: %s", path, strerror(errno));
    }
    json_decref(result);
    return status;
}

/* ------------------------------------------------------------------------------------------------- run */

static int fail(struct run *run)
{
    int status = exit_status_of_error(&run->err, client_status(run->tail.client));
    job_locate(run->args, args_has(run->args, "job") ? args_get(run->args, "job") : "-", 0,
               &run->err);
    (void)cli_fail(&run->err);
    if (run->tail.id[0]) {
        cli_say("the job may still run; go on with: tieline logs -f %s", run->tail.id);
    }
    return run->tail.id[0] ? STATUS_UNABLE : status;
}

static int run_job(struct run *run)
{
    struct tail *tail = &run->tail;
    interrupt_arm();
    if (submit(run) < 0) {
        return client_was_interrupted(tail->client) ? cancel(run) : fail(run);
    }
    say_id(run);
    switch (tail_job(tail, &run->err)) {
    case TAIL_INTERRUPTED: return cancel(run);
    case TAIL_FAILED: return fail(run);
    default: break;
    }
    say_end(run);
    return exit_status_of_job(tail->job);
}

int command_run(struct cli *cli, const struct args *args)
{
    struct run run = {.cli = cli, .args = args, .err = {.code = ERROR_NONE}};
    json_t *jobs = json_array();
    int status = STATUS_REFUSED;
    run.tail = (struct tail){.cli = cli, .out = stdout, .attempt = 1, .speaks = true};
    if (jobs_read_file(args, args_get(args, "job"), jobs, &run.err) < 0) {
        (void)cli_fail(&run.err);
    } else if (json_array_size(jobs) != 1) {
        cli_say("--job: run takes one job, there are %zu", json_array_size(jobs));
    } else if (client_open(cli, args, PATIENCE_LONG_MS, &run.tail.client, &run.err) < 0) {
        (void)cli_fail(&run.err);
        status = run.err.code == ERROR_INVALID ? STATUS_REFUSED : STATUS_UNABLE;
    } else {
        run.job = json_array_get(jobs, 0);
        status = run_job(&run);
    }
    status = write_result(&run, status);
    client_close(run.tail.client);
    tail_fini(&run.tail);
    json_decref(jobs);
    return status;
}
