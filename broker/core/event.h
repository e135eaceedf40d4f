/* event.h - what happened: the only thing that changes state, and the only thing that is stored.
 *
 * An event is {v, seq, at_ms, stream, kind, id, attempt, data}. data is compact JSON with integers and
 * text, never doubles, in a fixed key order. Readers ignore unknown fields and refuse unknown kinds. */
#ifndef BROKER_CORE_EVENT_H
#define BROKER_CORE_EVENT_H

#include "broker/core/error.h"
#include "broker/core/id.h"

#include <jansson.h>
#include <stdint.h>

enum { EVENT_VERSION = 1, EVENT_ID_SIZE = 160 };

/* X(constant, name) */
#define STREAM_LIST(X)                                                                             \
    X(JOB, "job")                                                                                  \
    X(CLUSTER, "cluster")                                                                          \
    X(BURST, "burst")                                                                              \
    X(BUDGET, "budget")                                                                            \
    X(POLICY, "policy")                                                                            \
    X(TOMBSTONE, "tombstone")

/* X(constant, name, stream, what it says) */
#define EVENT_LIST(X)                                                                              \
    X(SUBMIT, "submit", JOB, "accepted; data is the job as received, its owner and defaults")      \
    X(RELEASE, "release", JOB, "no longer held")                                                   \
    X(HOLD, "hold", JOB, "held, with the reason")                                                  \
    X(PLACE, "place", JOB, "a placement: attempt, place, terms, decision, booking")                \
    X(ACCEPT, "accept", JOB, "the member has it, under this native id")                            \
    X(REJECT, "reject", JOB, "the member refused it")                                              \
    X(UNSURE, "unsure", JOB, "sent, answer lost")                                                  \
    X(ADOPT, "adopt", JOB, "found at the member after a lost answer")                              \
    X(ABSENT, "absent", JOB, "proven not to be at the member")                                     \
    X(START, "start", JOB, "it runs there since")                                                  \
    X(LOSE, "lose", JOB, "the member cannot be asked")                                             \
    X(FOUND, "found", JOB, "the member can be asked again and has it")                             \
    X(GONE, "gone", JOB, "positive evidence that it is gone, or its lease ran out")                \
    X(END, "end", JOB, "it ended, with its outcome and what was settled")                          \
    X(REQUEUE, "requeue", JOB, "to be placed again")                                               \
    X(FINISH, "finish", JOB, "final: state, outcome, exit code, reason")                           \
    X(CANCEL, "cancel", JOB, "cancel asked, by whom")                                              \
    X(EXPIRE, "expire", JOB, "not started in time")                                                \
    X(UPSTREAM, "upstream", JOB, "what it waited for can no longer come true")                     \
    X(LATE, "late", JOB, "a report of an old attempt: recorded, never applied")                    \
    X(UP, "up", CLUSTER, "the member answers")                                                     \
    X(DOWN, "down", CLUSTER, "the member does not answer, since")                                  \
    X(DRAIN, "drain", CLUSTER, "nothing new there, by whom and why")                               \
    X(UNDRAIN, "undrain", CLUSTER, "open again")                                                   \
    X(BURST_STATE, "burst-state", BURST, "closed, opening, open or closing, with the figure")      \
    X(POLICY_LIVE, "policy-live", POLICY, "this version of the policy is live")                    \
    X(TOMB_SET, "tomb-set", TOMBSTONE, "this must be deleted elsewhere")                           \
    X(TOMB_CLEAR, "tomb-clear", TOMBSTONE, "its absence was confirmed")

enum stream {
#define X(constant, name) STREAM_##constant,
    STREAM_LIST(X)
#undef X
        STREAM_COUNT
};

enum event_kind {
#define X(constant, name, stream, says) EVENT_##constant,
    EVENT_LIST(X)
#undef X
        EVENT_COUNT
};

struct event {
    int64_t seq; /* given by the store when durable; from 1, without gaps in what is read back */
    int64_t at_ms;
    enum event_kind kind;
    int attempt;            /* 0: of the job as a whole */
    char id[EVENT_ID_SIZE]; /* job id, place, burst, policy hash or tombstone */
    json_t *data;           /* owned; an object, never NULL */
};

/* data is taken. id may be NULL. */
struct event *event_create(enum event_kind kind, const char *id, int attempt, int64_t at_ms,
                           json_t *data_take);
void event_destroy(struct event *event); /* takes NULL */

/* The data, or the whole event, as one line of compact JSON; the caller frees it. */
char *event_data_text(const struct event *event);
json_t *event_to_json(const struct event *event);
int event_from_text(int64_t seq, int64_t at_ms, const char *kind, const char *id, int attempt,
                    const char *data, struct event **out, struct error *err);

const char *event_name(enum event_kind kind);
const char *event_says(enum event_kind kind);
enum stream event_stream(enum event_kind kind);
const char *stream_name(enum stream stream);

/* Fields of data: absent is 0 or "". */
int64_t event_int(const struct event *event, const char *name);
const char *event_str(const struct event *event, const char *name);

#endif
