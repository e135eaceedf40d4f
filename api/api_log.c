/* api_log.c - the output of a job: one piece as JSON, or all of it as a text that grows.
 *
 * Following is a chain of questions to the broker, one at a time: a piece of the log (the broker holds
 * the question until there is news); when an attempt's log is complete, the job: final is the end, else
 * the log of the next attempt. Between two answers the connection sleeps. At most one piece is held for a
 * reader, and nothing is asked before it has taken it all: a reader that stalls is cut by the
 * connection's time limit. */
#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/alloc.h"
#include "broker/core/id.h"
#include "broker/core/limits.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000, ATTEMPT_MAX = LIMIT_ATTEMPTS };

struct follow {
    struct request *request;
    struct timer *timer;
    int64_t attempt; /* 0: the last */
    int64_t offset;
    bool only_this; /* the attempt was given */
    bool asked_job; /* the last question was for the job */
    bool job_final;
    char view[32]; /* of the job, as it was seen last */
    char *piece;
    size_t length, at;
    bool ended, failed;
    int64_t asked_ms;
};

static void follow_free(void *arg)
{
    struct follow *follow = arg;
    timer_destroy(follow->timer);
    free(follow->piece);
    free(follow);
}

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static char *from_base64(const char *text, size_t *length)
{
    char *out = xcalloc(strlen(text) + 1, 1);
    unsigned bits = 0;
    int have = 0;
    *length = 0;
    for (; digit_of(*text) >= 0; text++) {
        bits = (bits << 6 | (unsigned)digit_of(*text)) & 0xFFFFFF;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[(*length)++] = (char)(bits >> have & 0xFF);
        }
    }
    return out;
}

static void take_piece(struct follow *follow, const json_t *body)
{
    const char *encoded = json_string_value(json_object_get(body, "base64"));
    const json_t *text = json_object_get(body, "text");
    free(follow->piece);
    follow->at = 0;
    if (encoded) {
        follow->piece = from_base64(encoded, &follow->length);
    } else {
        follow->length = json_string_length(text);
        follow->piece =
            xstrndup(json_string_value(text) ? json_string_value(text) : "", follow->length);
    }
    follow->offset = json_integer_value(json_object_get(body, "next_offset"));
    int64_t attempt = json_integer_value(json_object_get(body, "attempt"));
    follow->attempt = attempt > 0 ? attempt : follow->attempt;
}

/* Asks the next question, at once or, when the last answer came empty and early, a little later. */
static void go_on(struct follow *follow, bool news)
{
    int64_t since = clock_mono_ms(follow->request->api->env.clock) - follow->asked_ms;
    timer_start(follow->timer, news || since >= AGAIN_MS ? 0 : AGAIN_MS - since);
}

static void end(struct follow *follow, bool failed)
{
    follow->ended = true;
    follow->failed = failed;
    request_wake(follow->request);
}

/* A sleeping reader has taken everything, so there is room for a piece. */
static void piece_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    struct follow *follow = request->state;
    if (err->code == ERROR_NOT_FOUND && follow->job_final) { /* there was no further attempt */
        end(follow, false);
        return;
    }
    if (err->code && !error_retry_helps(err->code)) {
        end(follow, true);
        return;
    }
    if (err->code) { /* the member is away for a while */
        go_on(follow, false);
        return;
    }
    take_piece(follow, body);
    if (json_is_true(json_object_get(body, "complete"))) {
        follow->ended = follow->only_this || follow->job_final;
        follow->asked_job = true;
    }
    if (follow->length > 0 || follow->ended) {
        request_wake(request);
    } else {
        go_on(follow, follow->asked_job);
    }
}

/* An attempt is complete: is the job? */
static void job_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    struct follow *follow = request->state;
    if (err->code && !error_retry_helps(err->code)) {
        end(follow, true);
        return;
    }
    int64_t last = json_integer_value(json_object_get(body, "attempt"));
    follow->job_final = json_is_true(json_object_get(body, "final"));
    const char *view = json_string_value(json_object_get(body, "state"));
    bool news = view && strcmp(view, follow->view) != 0;
    copy_text(follow->view, sizeof follow->view, view);
    if (!err->code && last <= follow->attempt && follow->job_final) {
        end(follow, false);
        return;
    }
    if (!err->code && last > follow->attempt) {
        follow->attempt++;
        follow->offset = 0;
        follow->asked_job = false;
        follow->view[0] = '\0';
        go_on(follow, true);
        return;
    }
    go_on(follow, news);
}

static void ask_cb(void *arg)
{
    struct follow *follow = arg;
    struct request *request = follow->request;
    struct broker *broker = request->api->env.broker;
    const char *id = request_path(request, "id");
    if (request->broken || request->api->stopping) {
        end(follow, true);
        return;
    }
    follow->asked_ms = clock_mono_ms(request->api->env.clock);
    if (follow->asked_job) {
        int64_t wait_ms = follow->view[0] ? LIMIT_FOLLOW_MS : 0;
        broker_job(broker, &request->caller, id, wait_ms ? follow->view : NULL, wait_ms, job_done,
                   request_call(request, wait_ms));
    } else {
        broker_log(broker, &request->caller, id, (int)follow->attempt, follow->offset,
                   LIMIT_FOLLOW_MS, piece_done, request_call(request, LIMIT_FOLLOW_MS));
    }
}

/* The library wants more text. */
static ssize_t read_cb(void *arg, uint64_t at, char *out, size_t room)
{
    (void)at;
    struct follow *follow = arg;
    size_t left = follow->length - follow->at;
    if (follow->request->broken || follow->failed) {
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (left > 0) {
        size_t length = left < room ? left : room;
        memcpy(out, follow->piece + follow->at, length);
        follow->at += length;
        return (ssize_t)length;
    }
    if (follow->ended) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    request_sleep(follow->request);
    timer_start(follow->timer, 0);
    return 0;
}

/* The first piece says whether there is a log at all: only then does the stream begin. */
static void first_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    struct follow *follow = request->state;
    if (err->code) {
        answer_error_with(request, err, body);
        return;
    }
    take_piece(follow, body);
    if (json_is_true(json_object_get(body, "complete"))) {
        follow->ended = follow->only_this;
        follow->asked_job = true;
    }
    answer_stream(request, request->match.route->status, "text/plain; charset=utf-8", read_cb,
                  follow);
}

static void start_follow(struct request *request, int64_t attempt, int64_t offset)
{
    struct follow *follow = xcalloc(1, sizeof *follow);
    follow->request = request;
    follow->attempt = attempt;
    follow->offset = offset;
    follow->only_this = attempt > 0;
    follow->timer = clock_timer(request->api->env.clock, ask_cb, follow);
    request->state = follow;
    request->state_free = follow_free;
    broker_log(request->api->env.broker, &request->caller, request_path(request, "id"),
               (int)attempt, offset, 0, first_done, request_call(request, 0));
}

void serve_log_read(struct request *request)
{
    struct error err;
    int64_t offset = 0, attempt = 0, wait_ms = 0;
    bool follow = false;
    if (request_query_integer(request, "offset", 0, INT64_MAX, &offset, &err) < 0 ||
        request_query_integer(request, "attempt", 1, ATTEMPT_MAX, &attempt, &err) < 0 ||
        request_query_bool(request, "follow", &follow, &err) < 0 ||
        request_query_duration(request, "wait", LIMIT_FOLLOW_MS, &wait_ms, &err) < 0 ||
        ((follow || wait_ms) && request_claim_wait(request, &err) < 0)) {
        answer_error(request, &err);
    } else if (follow) {
        start_follow(request, attempt, offset);
    } else {
        broker_log(request->api->env.broker, &request->caller, request_path(request, "id"),
                   (int)attempt, offset, wait_ms, answer_reply, request_call(request, wait_ms));
    }
}
