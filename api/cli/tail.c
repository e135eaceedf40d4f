#include "api/cli/tail.h"

#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/interrupt.h"
#include "broker/core/alloc.h"
#include "broker/core/job.h"
#include "broker/core/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_WAIT_MS = 2000, /* so that a job which waits soon says why */
    LOG_WAIT_MS = 10 * 1000,
    LOG_AGAIN_MS = 1000,
    LOG_LATE_MS = 20 * 1000, /* of a final job: longer nobody waits for the rest */
    IDLE_MS = 5 * 60 * 1000,
    WORDS_SIZE = 256
};

/* ---------------------------------------------------------------------------------------- what is said */

static void say_no_log(struct tail *tail, const char *place, const char *why)
{
    if (strcmp(tail->no_log_of, place) != 0) {
        copy_text(tail->no_log_of, sizeof tail->no_log_of, place);
        cli_say("%s; only the exit status will be known", why);
    }
}

/* Whether the place gives logs is said before the job starts there. */
static void look_for_log(struct tail *tail, const char *place)
{
    struct error err;
    json_t *body, *row;
    size_t i;
    char why[WORDS_SIZE];
    if (!tail->out || !*place || client_get(tail->client, "/v1/places", &body, &err) < 0) {
        return; /* the log itself will tell */
    }
    json_array_foreach(json_object_get(body, "places"), i, row)
    {
        if (strcmp(json_text(row, "place"), place) == 0 &&
            json_is_false(json_object_get(row, "log"))) {
            (void)snprintf(why, sizeof why, "no log comes back from %s", place);
            say_no_log(tail, place, why);
        }
    }
    json_decref(body);
}

static const json_t *attempt_at(const struct tail *tail, int number)
{
    return json_array_get(json_object_get(tail->job, "attempts"), (size_t)number - 1);
}

static void say_running(const struct tail *tail)
{
    char wait[UNITS_TEXT_SIZE];
    const char *id = json_text(tail->job, "id");
    int64_t waited = json_time(tail->job, "started") - json_time(tail->job, "submitted");
    size_t length = strlen(id);
    cli_say("running at %s after %s  (tieline explain %s)", json_text(tail->job, "place"),
            duration_short(waited > 0 ? waited : 0, wait),
            id + (length > ID_SUFFIX_MIN + 1 ? length - ID_SUFFIX_MIN - 1 : 0));
}

/* Attempts that ended and did not end the job. */
static void say_ended(struct tail *tail)
{
    int count = (int)json_array_size(json_object_get(tail->job, "attempts"));
    for (int number = tail->told_attempt + 1; number < count; number++) {
        char words[WORDS_SIZE];
        const json_t *attempt = attempt_at(tail, number);
        char reason[WORDS_SIZE];
        outcome_words(attempt, words, sizeof words);
        reason_words(attempt, reason, sizeof reason);
        cli_say("attempt %d at %s: %s%s%s; trying again", number, json_text(attempt, "place"),
                words, *reason ? ": " : "", reason);
        tail->told_attempt = number;
        tail->told[0] = '\0';
    }
}

static void say_state(struct tail *tail)
{
    const char *view = json_text(tail->job, "state"), *why = json_text(tail->job, "why");
    const char *place = json_text(tail->job, "place");
    if (!tail->speaks) {
        return;
    }
    say_ended(tail);
    if (strcmp(view, tail->told) == 0) {
        return;
    }
    if (strcmp(view, tail->seen) != 0) {
        copy_text(tail->seen, sizeof tail->seen, view);
        if (strcmp(view, "queued") == 0 || strcmp(view, "held") == 0 ||
            strcmp(view, "dispatched") == 0) {
            return; /* said when it lasts */
        }
    }
    if (strcmp(view, "queued") == 0 || strcmp(view, "held") == 0) {
        if (!*why) {
            return; /* nothing is known yet */
        }
        cli_say("%s: %s", view, why);
    } else if (strcmp(view, "placed") == 0) {
        look_for_log(tail, place);
    } else if (strcmp(view, "dispatched") == 0) {
        cli_say("waits at %s", place);
    } else if (strcmp(view, "running") == 0) {
        say_running(tail);
    } else if (strcmp(view, "unknown") == 0) {
        cli_say("%s cannot be reached; the job may go on there", place);
    } else if (strcmp(view, "cancelling") == 0) {
        cli_say("is being cancelled by %s", json_text(tail->job, "cancelled_by"));
    }
    copy_text(tail->told, sizeof tail->told, view);
}

/* So that watchdogs for silent jobs stay calm. */
static void say_idle(struct tail *tail)
{
    char run[UNITS_TEXT_SIZE], idle[UNITS_TEXT_SIZE];
    int64_t now = client_now(tail->client);
    int64_t started = json_time(tail->job, "started");
    if (!tail->speaks || now - tail->idle_ms < IDLE_MS || !started) {
        return;
    }
    tail->idle_ms = now;
    cli_say("still running, %s, no output for %s",
            duration_short(clock_wall_ms(tail->cli->clock) - started, run),
            duration_short(now - tail->output_ms, idle));
}

/* ------------------------------------------------------------------------------------------------ job */

bool tail_is_final(const struct tail *tail)
{
    return json_is_true(json_object_get(tail->job, "final"));
}

int tail_refresh(struct tail *tail, int64_t wait_ms, struct error *err)
{
    json_t *job;
    const char *view = json_text(tail->job, "state");
    bool waits = wait_ms > 0 && *view;
    char *path = waits
                     ? xasprintf("/v1/jobs/%s?wait=%" PRId64 "ms&state=%s", tail->id, wait_ms, view)
                     : xasprintf("/v1/jobs/%s", tail->id);
    const struct call call = {
        .method = "GET", .path = path, .repeat = true, .wait_ms = waits ? wait_ms : 0};
    int result = client_call(tail->client, &call, &job, err);
    free(path);
    if (result < 0) {
        return -1;
    }
    json_decref(tail->job);
    tail->job = job;
    copy_text(tail->id, sizeof tail->id, json_text(job, "id"));
    return 0;
}

/* ------------------------------------------------------------------------------------------------ log */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Writes the bytes of a base64 text. Returns how many. */
static int64_t write_base64(const char *text, FILE *out)
{
    unsigned bits = 0;
    int have = 0;
    int64_t bytes = 0;
    for (; digit_of(*text) >= 0; text++) {
        bits = bits << 6 | (unsigned)digit_of(*text);
        have += 6;
        if (have >= 8) {
            have -= 8;
            (void)fputc((int)(bits >> have & 0xFF), out);
            bytes++;
        }
    }
    return bytes;
}

static int64_t write_piece(struct tail *tail, const json_t *piece)
{
    const json_t *text = json_object_get(piece, "text");
    int64_t bytes = (int64_t)json_string_length(text);
    if (text) {
        (void)fwrite(json_string_value(text), 1, (size_t)bytes, tail->out);
    } else {
        bytes = write_base64(json_text(piece, "base64"), tail->out);
    }
    (void)fflush(tail->out);
    return bytes;
}

/* How many bytes were dropped before this piece. Its line says so, and stands for some of them itself. */
static int64_t dropped_before(const json_t *piece, int64_t gap)
{
    static const char mark[] = "\n[tieline: ";
    const char *text = json_text(piece, "text");
    char *end;
    if (strncmp(text, mark, sizeof mark - 1) != 0) {
        return gap;
    }
    long long said = strtoll(text + sizeof mark - 1, &end, 10);
    return said > gap && strncmp(end, " bytes dropped]", 15) == 0 ? said : gap;
}

int64_t tail_read(struct tail *tail, int64_t wait_ms, struct error *err)
{
    json_t *piece;
    char *path = xasprintf("/v1/jobs/%s/log?attempt=%d&offset=%" PRId64 "%s", tail->id,
                           tail->attempt, tail->offset, wait_ms ? "&wait=10s" : "");
    /* Not repeated here: a member that gives no log now is no broker that is away. */
    const struct call call = {.method = "GET", .path = path, .wait_ms = wait_ms};
    int result = client_call(tail->client, &call, &piece, err);
    free(path);
    if (result < 0) {
        return -1;
    }
    int64_t offset = json_int(piece, "offset");
    if (offset > tail->offset && tail->speaks) {
        cli_say("%" PRId64 " bytes of the output were dropped",
                dropped_before(piece, offset - tail->offset));
    }
    int64_t bytes = write_piece(tail, piece);
    tail->offset = json_int(piece, "next_offset");
    tail->log_done = json_is_true(json_object_get(piece, "complete"));
    if (bytes > 0) {
        tail->output_ms = tail->idle_ms = client_now(tail->client);
    }
    json_decref(piece);
    return bytes;
}

/* The output of the next attempt begins at its own byte 0. */
static void next_attempt(struct tail *tail)
{
    tail->attempt++;
    tail->offset = 0;
    tail->log_done = tail->only_this;
    tail->failing_ms = 0;
}

/* Whether there may be output of the attempt whose turn it is. */
static bool has_output(const struct tail *tail)
{
    const json_t *attempt = attempt_at(tail, tail->attempt);
    if (!tail->out || tail->log_done || !attempt) {
        return false;
    }
    return json_time(attempt, "started") || strcmp(json_text(attempt, "state"), "ended") == 0;
}

/* No piece came: it may never come. Returns whether to go on with this attempt. */
static bool read_failed(struct tail *tail, const struct error *err)
{
    const json_t *attempt = attempt_at(tail, tail->attempt);
    int64_t now = client_now(tail->client);
    if (client_status(tail->client) == 404) {
        say_no_log(tail, json_text(attempt, "place"), err->text);
        return false;
    }
    tail->failing_ms = tail->failing_ms ? tail->failing_ms : now;
    bool ended = strcmp(json_text(attempt, "state"), "ended") == 0;
    if (!ended || now - tail->failing_ms < LOG_LATE_MS) {
        client_sleep(tail->client, LOG_AGAIN_MS);
        return true;
    }
    cli_say("the output of attempt %d could not be read to its end: %s", tail->attempt, err->text);
    return false;
}

/* Reads on. Whether it comes late and the attempt is over decides how long it is tried. */
static enum tail_result read_output(struct tail *tail, struct error *err)
{
    struct error log_err = {.code = ERROR_NONE};
    error_set(&log_err, ERROR_NOT_FOUND, "its member does not say that it is complete");
    bool over = strcmp(json_text(attempt_at(tail, tail->attempt), "state"), "ended") == 0;
    int64_t bytes = tail_read(tail, over ? 0 : LOG_WAIT_MS, &log_err);
    if (bytes < 0 && client_was_interrupted(tail->client)) {
        return TAIL_INTERRUPTED;
    }
    bool silent = bytes < 0 || (bytes == 0 && !tail->log_done);
    if (!silent) {
        tail->failing_ms = 0;
    }
    if (tail->log_done || (silent && (bytes < 0 || over) && !read_failed(tail, &log_err))) {
        next_attempt(tail);
    }
    if (silent || tail->offset == 0) {
        if (tail_refresh(tail, 0, err) < 0) {
            return client_was_interrupted(tail->client) ? TAIL_INTERRUPTED : TAIL_FAILED;
        }
        say_state(tail);
        say_idle(tail);
    }
    return TAIL_END;
}

/* A state that was not said yet is looked at again soon. */
static int64_t wait_of(const struct tail *tail)
{
    bool told = !tail->speaks || strcmp(json_text(tail->job, "state"), tail->told) == 0;
    return told ? HOLD_MS : FIRST_WAIT_MS;
}

enum tail_result tail_job(struct tail *tail, struct error *err)
{
    tail->output_ms = tail->idle_ms = client_now(tail->client);
    tail->told_attempt = tail->attempt - 1;
    if (!tail->job && tail_refresh(tail, 0, err) < 0) {
        return client_was_interrupted(tail->client) ? TAIL_INTERRUPTED : TAIL_FAILED;
    }
    for (;;) {
        enum tail_result result = TAIL_END;
        say_state(tail);
        if (interrupt_signal()) {
            return TAIL_INTERRUPTED;
        }
        if (has_output(tail)) {
            result = read_output(tail, err);
        } else if (tail_is_final(tail) || (tail->only_this && tail->log_done)) {
            return TAIL_END;
        } else if (tail_refresh(tail, wait_of(tail), err) < 0) {
            result = client_was_interrupted(tail->client) ? TAIL_INTERRUPTED : TAIL_FAILED;
        } else {
            say_idle(tail);
        }
        if (result != TAIL_END) {
            return result;
        }
    }
}

void tail_fini(struct tail *tail)
{
    json_decref(tail->job);
    tail->job = NULL;
}
