/* store.h - port: where events are made durable. sqlite: is the default (broker/store_sqlite.h).
 *
 * A batch is all or nothing. Completion runs on the loop thread once the batch is on disk, in the order
 * of the appends. Reads see every batch that was completed before. Appends and reads complete exactly
 * once, never from within the call; what is outstanding at close completes within close.
 *
 * A job comes into being by an item with its SUBMIT event and its row; a second one with the same id
 * fails its batch with CONFLICT. Later rows replace state, place, attempt, finished_ms and json. */
#ifndef BROKER_CORE_STORE_H
#define BROKER_CORE_STORE_H

#include "broker/core/error.h"
#include "broker/core/event.h"
#include "broker/core/id.h"
#include "broker/core/job.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct store;

enum store_result { STORE_OK, STORE_KEY_EXISTS, STORE_FENCED, STORE_FAILED };

struct store_row { /* the small row of a job, written with its event */
    char id[ID_SIZE];
    const char *owner, *team, *class_name, *name, *state, *place; /* borrowed until completion */
    int attempt;
    int64_t submitted_ms, finished_ms; /* finished_ms 0: live */
    char *json;                        /* job_to_row as text; owned */
};
/* Idempotency, checked in this commit; scope is the owner. A key holds until expires_ms, and after it
 * for as long as the store keeps the job. When it is held by another job nothing of the item is written. */
struct store_key {
    char *scope, *key, *fingerprint; /* fingerprint: of the body; owned */
    int64_t expires_ms;
};
enum store_table { STORE_DECISIONS, STORE_POLICIES, STORE_SIGNALS, STORE_META, STORE_TABLE_COUNT };
struct store_doc { /* a document beside the events */
    enum store_table table;
    char id[EVENT_ID_SIZE];
    int64_t at_ms;
    char *text; /* owned */
};

/* One item of a batch; parts that are NULL are not written. Tombstones need no part of their own: the
 * store keeps its table from TOMB_SET and TOMB_CLEAR. */
struct store_item {
    struct event *event;   /* owned; seq is filled in */
    struct store_row *row; /* owned */
    struct store_key *key; /* owned */
    struct store_doc *doc; /* owned */
    enum store_result result;
    char existing[ID_SIZE]; /* KEY_EXISTS: the job that has the key */
    bool same_body;         /* KEY_EXISTS: its fingerprint is the same */
    void *arg;              /* the caller's */
};

struct store_batch {
    struct store_item *items; /* owned; freed by store_batch_destroy */
    size_t count;
    /* Gives the batch back to the caller, who destroys it. err is never NULL; on success its code is
     * ERROR_NONE. STORE_FAILED in every item when the store could not commit; err then says why. */
    void (*done)(struct store_batch *batch, const struct error *err);
    void *arg;
    struct store_batch *next; /* the store's */
};
void store_batch_destroy(struct store_batch *batch); /* takes NULL */

enum { STORE_SIGNALS_MS = 14 * 24 * 3600 * 1000, STORE_DAY_MS = 24 * 3600 * 1000 };

struct store_filter {  /* of jobs; NULL or 0: any */
    const char *state; /* a state's name, or "live", "final" */
    const char *owner, *team, *class_name, *name, *place, *suffix; /* suffix: end of the id */
    int64_t since_ms, until_ms;                                    /* submitted */
    char cursor[ID_SIZE];                                          /* after this id, newest first */
    int limit;                                                     /* 1..LIMIT_LIST_ROWS */
};

struct store_stats {
    int64_t pending;           /* items not yet durable */
    int64_t commits, items;    /* since open */
    int64_t last_commit_ms;    /* monotonic time of the last good commit */
    int64_t oldest_pending_ms; /* monotonic time of the oldest item that waits; 0: none */
    int64_t commit_us;         /* moving mean of one commit */
    int64_t keys_hit;
    int64_t prunes; /* that ran to their end */
    bool failing;   /* the last commit failed */
    char error[ERROR_TEXT_MAX];
};

/* What a read hands over; valid during the call. rows: JSON array. more: there is a next page. */
typedef void (*store_read_fn)(void *arg, json_t *rows, bool more, const struct error *err);

/* What a restart needs, called once per thing before open returns. */
struct store_loader {
    void *arg;
    /* A live job: its row and its SUBMIT event. */
    int (*job)(void *arg, const json_t *row, const struct event *submit, struct error *err);
    /* Latest document of a table, or every one for DECISIONS newer than a day. */
    int (*doc)(void *arg, enum store_table table, const char *id, const char *text,
               struct error *err);
    /* An open tombstone: its TOMB_SET event. */
    int (*tombstone)(void *arg, const struct event *event, struct error *err);
    /* Last event of each burst, place (drain) and the sums settled by budget are in META documents. */
};

struct store_ops {
    /* Takes the batch. Fails only when more than LIMIT_APPENDS items would wait (TOO_MANY; a batch with
     * a SUBMIT may not use the LIMIT_APPENDS_RESERVED last) or when the store closes (UNAVAILABLE);
     * the batch is then untouched. */
    int (*append)(struct store *store, struct store_batch *batch, struct error *err);
    int (*load)(struct store *store, const struct store_loader *loader, struct error *err);
    /* Rows of jobs, newest first: {"id", "owner", "team", "class", "name", "state", "place", "attempt",
     * "submitted_ms", "finished_ms", "row": {...}, "submit": {data of SUBMIT}}. A page may end early
     * (LIMIT_READ_BYTES): `more` and the last id tell. */
    void (*jobs)(struct store *store, const struct store_filter *filter, store_read_fn done,
                 void *arg);
    /* Events of one job (id) or, id NULL, of all streams, after seq, as event_to_json gives them. */
    void (*events)(struct store *store, const char *id, int64_t after_seq, int limit,
                   store_read_fn done, void *arg);
    /* The documents with this id (one, but for SIGNALS), or of the whole table when id is NULL; the
     * newest `limit`, newest first: {"id", "at_ms", "text"}. */
    void (*docs)(struct store *store, enum store_table table, const char *id, int limit,
                 store_read_fn done, void *arg);
    /* For metrics and readiness. */
    void (*stats)(struct store *store, struct store_stats *out);
    /* Drops jobs that finished before, with their events; events of other streams as old, but for open
     * tombstones; keys whose time and job are over; decisions
     * older than that and than every live job; signals older than STORE_SIGNALS_MS. In slices, behind
     * the appends. */
    void (*prune)(struct store *store, int64_t finished_before_ms, int64_t now_ms);
    /* Commits and completes what is outstanding, then closes; the store is gone at return, but a store on
     * a loop needs one more turn of it. */
    void (*close)(struct store *store);
};

/* Stores embed this as their first member. */
struct store {
    const struct store_ops *ops;
};

#endif
