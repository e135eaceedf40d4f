/* query_log.c - the output of an attempt, read from its member. */
#include "broker/query.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"
#include "broker/lookup.h"
#include "broker/member.h"

#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 500 }; /* a running job that has written nothing new */

struct log_ask {
    struct reader reader;
    char id[ID_SIZE];
    int attempt;
    int64_t offset, deadline_ms;
    struct timer *timer;
    reply_fn reply;
    void *arg;
};

static void answer(struct log_ask *ask, json_t *body_take, const struct error *err)
{
    struct error none;
    error_clear(&none);
    ask->reply(ask->arg, body_take, err ? err : &none);
    json_decref(body_take);
    timer_destroy(ask->timer);
    free(ask);
}

static char *base64(const char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = xcalloc((length + 2) / 3 * 4 + 1, 1);
    char *end = out;
    for (size_t i = 0; i < length; i += 3) {
        size_t have = length - i < 3 ? length - i : 3;
        unsigned v = (unsigned)(unsigned char)bytes[i] << 16;
        v |= have > 1 ? (unsigned)(unsigned char)bytes[i + 1] << 8 : 0;
        v |= have > 2 ? (unsigned)(unsigned char)bytes[i + 2] : 0;
        *end++ = digits[v >> 18 & 63];
        *end++ = digits[v >> 12 & 63];
        *end++ = have > 1 ? digits[v >> 6 & 63] : '=';
        *end++ = have > 2 ? digits[v & 63] : '=';
    }
    return out;
}

static json_t *body_of(const struct log_ask *ask, const char *text, size_t length, int64_t offset,
                       bool complete)
{
    int64_t next = offset + (int64_t)length;
    json_t *body =
        json_pack("{s:i, s:I, s:I, s:b}", "attempt", ask->attempt, "offset", (json_int_t)offset,
                  "next_offset", (json_int_t)next, "complete", complete);
    if (length == 0 || utf8_is_valid(text, length)) {
        json_object_set_new(body, "text", json_stringn(length ? text : "", length));
    } else {
        char *encoded = base64(text, length);
        json_object_set_new(body, "base64", json_string(encoded));
        free(encoded);
    }
    return body;
}

static bool may_wait(struct log_ask *ask)
{
    int64_t left = ask->deadline_ms - clock_mono_ms(ask->reader.context->clock);
    if (left <= 0 || ask->reader.context->stopping) {
        return false;
    }
    timer_start(ask->timer, left < AGAIN_MS ? left : AGAIN_MS);
    return true;
}

static void log_done(void *arg, const struct adapter_call *call)
{
    struct log_ask *ask = arg;
    if (call->result != ADAPTER_OK) {
        answer(ask, NULL, &call->err);
        return;
    }
    if (call->length == 0 && !call->log_complete && may_wait(ask)) {
        return;
    }
    answer(ask, body_of(ask, call->text, call->length, call->offset, call->log_complete), NULL);
}

/* Which attempt is meant; NULL: none yet. */
static const struct attempt *attempt_of(struct log_ask *ask, const struct job *job)
{
    if (ask->attempt == 0) {
        ask->attempt = job->attempt_count;
    }
    return ask->attempt > 0 && ask->attempt <= job->attempt_count ? &job->attempts[ask->attempt - 1]
                                                                  : NULL;
}

static void read_log(struct log_ask *ask, const struct job *job, const struct attempt *attempt)
{
    struct members *members = ask->reader.context->members;
    struct attempt_ref ref;
    struct error err;
    attempt_ref_init(&ref, ask->reader.context->federation, job, attempt);
    if (!ref.place || !member_type(members, ref.place->cluster->index)->has_log) {
        error_set(&err, ERROR_NOT_FOUND, "no log comes back from %s: its member gives none",
                  attempt->place);
        answer(ask, NULL, &err);
        return;
    }
    if (member_log(members, &ref, ask->offset, log_done, ask) < 0) {
        error_set(&err, ERROR_UNAVAILABLE, "%s: too many calls wait there", attempt->place);
        answer(ask, NULL, &err);
    }
}

static void found(void *arg, const struct job *job, const struct error *err)
{
    struct log_ask *ask = arg;
    struct error mine;
    if (!job) {
        answer(ask, NULL, err);
        return;
    }
    copy_text(ask->id, sizeof ask->id, job->id);
    int asked = ask->attempt;
    const struct attempt *attempt = attempt_of(ask, job);
    bool begun = attempt && (attempt->started_ms || attempt->state == ATTEMPT_ENDED);
    if (begun && !(attempt->state == ATTEMPT_ENDED && !attempt->started_ms)) {
        read_log(ask, job, attempt);
        return;
    }
    if (!begun && !job_is_final(job) && asked <= job->attempt_count + 1) {
        ask->attempt = asked; /* it may come to an attempt while we wait */
        if (!may_wait(ask)) {
            answer(ask, body_of(ask, "", 0, ask->offset, false), NULL);
        }
        return;
    }
    if (attempt || asked == 0) { /* it ended before it ran */
        answer(ask, body_of(ask, "", 0, ask->offset, true), NULL);
        return;
    }
    error_set(&mine, ERROR_NOT_FOUND, "job %s has no attempt %d", job->id, asked);
    answer(ask, NULL, &mine);
}

static void again_cb(void *arg)
{
    struct log_ask *ask = arg;
    lookup_job(ask->reader.context, ask->id, found, ask);
}

void query_log(const struct reader *reader, const char *id, int attempt, int64_t offset,
               int64_t wait_ms, reply_fn reply, void *arg)
{
    struct log_ask *ask = xcalloc(1, sizeof *ask);
    int64_t wait = wait_ms < LIMIT_FOLLOW_MS ? wait_ms : LIMIT_FOLLOW_MS;
    ask->reader = *reader;
    copy_text(ask->id, sizeof ask->id, id);
    ask->attempt = attempt;
    ask->offset = offset;
    ask->deadline_ms = clock_mono_ms(reader->context->clock) + wait;
    ask->timer = clock_timer(reader->context->clock, again_cb, ask);
    ask->reply = reply;
    ask->arg = arg;
    lookup_job(reader->context, id, found, ask);
}
