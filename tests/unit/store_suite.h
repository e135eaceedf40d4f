/* store_suite.h - what every store must do, as cases that run on any of them. */
#ifndef TESTS_UNIT_STORE_SUITE_H
#define TESTS_UNIT_STORE_SUITE_H

#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A store under test. turn lets it get on: one turn of its loop, or the next timer of its clock. */
struct suite {
    struct store *store;
    struct clock *clock;
    void (*turn)(struct suite *suite);
    void (*reopen)(struct suite *suite); /* closes, if it is open, and opens again */
    void *arg;
};

#define SUITE_WALL_MS INT64_C(1790000000000)

/* X(case) */
#define STORE_SUITE_LIST(X)                                                                        \
    X(completes_in_order)                                                                          \
    X(numbers_have_no_gaps)                                                                        \
    X(gives_rows_back)                                                                             \
    X(updates_rows)                                                                                \
    X(filters_jobs)                                                                                \
    X(pages_jobs)                                                                                  \
    X(pages_events)                                                                                \
    X(ends_pages_by_bytes)                                                                         \
    X(checks_keys)                                                                                 \
    X(checks_keys_of_one_batch)                                                                    \
    X(keeps_keys_with_their_job)                                                                   \
    X(refuses_a_second_job_alone)                                                                  \
    X(refuses_rows_without_submit)                                                                 \
    X(keeps_documents)                                                                             \
    X(loads_what_a_restart_needs)                                                                  \
    X(loads_nothing_from_an_empty_store)                                                           \
    X(passes_on_what_a_loader_says)                                                                \
    X(goes_on_after_reopen)                                                                        \
    X(prunes)                                                                                      \
    X(prunes_many)                                                                                 \
    X(never_gives_a_number_twice)                                                                  \
    X(bounds_appends)                                                                              \
    X(bounds_reads)                                                                                \
    X(completes_at_close)                                                                          \
    X(appends_from_completions)                                                                    \
    X(closes_from_a_completion)                                                                    \
    X(refuses_while_closing)                                                                       \
    X(takes_an_empty_batch)                                                                        \
    X(counts)

#define X(name) void store_suite_##name(struct suite *suite);
STORE_SUITE_LIST(X)
#undef X

/* Registers every case with Criterion; open and close are functions of the test file. */
#define STORE_SUITE_TEST(name)                                                                     \
    Test(SUITE_NAME, name)                                                                         \
    {                                                                                              \
        struct suite *suite = suite_open();                                                        \
        store_suite_##name(suite);                                                                 \
        suite_close(suite);                                                                        \
    }

/* A batch and, once it is done, its results. Several may be under way. */
struct put {
    struct store_batch *batch; /* NULL once appended */
    bool done;
    int order; /* of its completion, from 1 */
    struct error err;
    size_t count;
    struct put_item {
        enum store_result result;
        int64_t seq;
        char existing[ID_SIZE];
        bool same_body;
    } * items;
};
extern int put_completions; /* since the process started: orders completions */

void put_init(struct put *put);
void put_fini(struct put *put);
struct store_item *put_submit(struct put *put, const char *id, const char *owner, int64_t at_ms);
struct store_item *put_event(struct put *put, enum event_kind kind, const char *id, int attempt,
                             int64_t at_ms);
struct store_item *put_update(struct put *put, enum event_kind kind, const char *id,
                              const char *state, int64_t finished_ms, int64_t at_ms);
struct store_item *put_doc(struct put *put, enum store_table table, const char *id, int64_t at_ms,
                           const char *text);
void put_key(struct store_item *item, const char *scope, const char *key, const char *fingerprint,
             int64_t expires_ms);
int put_append(struct put *put, struct suite *suite, struct error *err);
void put_append_ok(struct put *put, struct suite *suite);
void put_wait(struct put *put, struct suite *suite);
/* Appends and waits; every item must be OK. */
void put_now(struct put *put, struct suite *suite);

struct got {
    bool done, more;
    int times;
    json_t *rows;
    struct error err;
};
void got_done(void *got, json_t *rows, bool more, const struct error *err);
void got_wait(struct got *got, struct suite *suite);
void got_fini(struct got *got);
/* Reads and waits. */
void got_jobs(struct got *got, struct suite *suite, const struct store_filter *filter);
void got_events(struct got *got, struct suite *suite, const char *id, int64_t after_seq, int limit);
void got_docs(struct got *got, struct suite *suite, enum store_table table, const char *id,
              int limit);

/* Runs a seeded load of every kind of item, with reopenings and pruning, and gives all that can be
 * read afterwards as one text: two stores must give the same. The caller frees it. */
char *store_suite_workload(struct suite *suite, uint64_t seed);

#endif
