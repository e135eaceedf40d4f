/* limits.h - every queue, body, buffer, retry and fan-out has a maximum: this is all of them. */
#ifndef BROKER_CORE_LIMITS_H
#define BROKER_CORE_LIMITS_H

#include <stdint.h>

/* X(constant, name, value, unit, what happens beyond it) */
#define LIMIT_LIST(X)                                                                              \
    X(BODY_BYTES, "body", 32 * 1024 * 1024, "bytes", "413")                                        \
    X(BODIES_BYTES, "bodies", 256 * 1024 * 1024, "bytes of all bodies at once",                    \
      "503 with Retry-After")                                                                      \
    X(JOB_BYTES, "job", 256 * 1024, "bytes of one job", "413 with its index")                      \
    X(BULK_JOBS, "bulk", 100000, "jobs in one request", "413")                                     \
    X(HEADER_BYTES, "headers", 32 * 1024, "bytes", "431")                                          \
    X(CONNECTIONS, "connections", 1024, "open at once", "not accepted until one closes")           \
    X(CONNECTION_IDLE, "connection idle", 60, "seconds", "closed")                                 \
    X(QUEUED_JOBS, "queued", 1000000, "jobs not finished", "429 with Retry-After")                 \
    X(APPENDS, "appends", 16384, "events not yet on disk", "503 with Retry-After")                 \
    X(APPENDS_RESERVED, "appends kept for members", 4096, "of the appends", "dispatch stops")      \
    X(BATCH, "store batch", 4096, "events in one commit", "the next commit")                       \
    X(READS, "store reads", 1024, "waiting in line", "503 with Retry-After")                       \
    X(READ_BYTES, "store page", 8 * 1024 * 1024, "bytes in one page", "next_cursor")               \
    X(READ_STEPS, "store search", 100000000, "steps of one query", "504, narrow it")               \
    X(SHAPES, "shapes", 65536, "interned at once", "jobs are decided singly")                      \
    X(KEY_BYTES, "idempotency key", 255, "bytes", "422")                                           \
    X(MEMBER_BODY, "member answer", 64 * 1024 * 1024, "bytes", "the call fails as unknown")        \
    X(MEMBER_CALLS, "member calls", 16, "under way at one member", "wait in line")                 \
    X(MEMBER_LINE, "member line", 256, "calls in line at one member", "asked again later")         \
    X(CALL_MS, "call", 30000, "ms for one call to a member", "the outcome is unknown")             \
    X(FIND_GRACE_MS, "find grace", 60000, "ms of looking for a lost submit", "proven absent")      \
    X(ATTEMPTS, "attempts", 32, "of one job", "the job fails as lost")                             \
    X(LOG_BYTES, "log", 16 * 1024 * 1024, "bytes kept of one attempt", "the middle is dropped")    \
    X(LOG_READ, "log read", 256 * 1024, "bytes in one answer", "read on from the offset")          \
    X(LIST_ROWS, "list", 1000, "rows in one page", "next_cursor")                                  \
    X(EVENT_ROWS, "events", 1000, "events in one page", "next_cursor")                             \
    X(FOLLOWERS, "followers", 256, "log or event followers", "503 with Retry-After")               \
    X(FOLLOW_MS, "follow", 30000, "ms without news", "an empty answer, ask again")                 \
    X(EXPLAINS, "explains", 64, "imagined jobs under way", "429")                                  \
    X(DECISION_PLACES, "decision", 4096, "places in one decision", "refused at start")             \
    X(SLICE_US, "pass slice", 2000, "us of one slice of a pass", "goes on in the next turn")       \
    X(TOMBSTONES, "tombstones", 100000, "deletes not yet confirmed", "dispatch stops")             \
    X(TOKENS, "tokens", 10000, "static tokens", "refused at `token add`")

enum limit {
#define X(constant, name, value, unit, beyond) LIMIT_##constant = (value),
    LIMIT_LIST(X)
#undef X
};

struct limit_row {
    const char *name;
    int64_t value;
    const char *unit;
    const char *beyond;
};
extern const struct limit_row limit_table[];
extern const int limit_count;

#endif
