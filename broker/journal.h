/* journal.h - all live jobs, and the only way to change one: append -> on disk -> apply -> react.
 *
 * A job has at most one operation outstanding: an append or a call to its member. A fact that meets a
 * busy job is not queued here: whoever brought it asks again (watch polls, a cancel is remembered). */
#ifndef BROKER_JOURNAL_H
#define BROKER_JOURNAL_H

#include "broker/context.h"
#include "broker/core/event.h"
#include "broker/core/job.h"
#include "broker/core/signal.h"
#include "broker/core/store.h"

#include <stdbool.h>
#include <stdint.h>

enum op { OP_NONE, OP_APPEND, OP_CALL };

/* What the current attempt, or a decision on its way to disk, holds of a place. */
struct booking {
    bool held, running, shown_running;
    int place; /* index */
    struct resources holds;
    int gpu_index;             /* into the place's condition.gpus; -1: none */
    char burst[NAME_SIZE];     /* through which it came; "" */
    int64_t nodes;             /* thousandths of rented machines */
    int64_t booked;            /* nano-units of rent */
    struct texts budgets;      /* names that hold it; owned */
    int64_t accepted_ms;       /* monotonic: since when the member has it; 0: not yet */
    int64_t running_ms;        /* monotonic: since when it runs; 0: not yet */
    struct entry *prev, *next; /* of the same place */
};

/* A live job as the stages see it. Each block belongs to the file that its comment names. */
struct entry {
    char id[ID_SIZE]; /* outlives the job that it is taken from */
    struct job *job;  /* replaced, never changed in place, when an event has been applied */
    enum op op;
    struct entry *prev, *next; /* journal: all live jobs in the order of their ids */

    /* queue */
    struct shape *shape;
    uint64_t shape_hash; /* of its shape, now or when it waited; 0: not known */
    struct entry *queue_prev, *queue_next;

    /* broker: a cancel that waits for the operation under way; a step that could not be written */
    bool want_cancel, again;
    char cancel_by[PLACE_SIZE];

    /* dispatch */
    struct timer *timer; /* next look-up, cancel or submit */
    void *dispatch;      /* who the timer belongs to */
    int tries;
    int64_t since_ms;        /* monotonic: of the first try */
    struct entry *line_next; /* queue: while a reload moves it */
    bool sent;               /* a submit of the current attempt was handed to the member */
    bool inherited;          /* its attempt is of a broker that died: it may have been sent */

    /* watch */
    int waits;     /* attempt that a listing showed to wait there */
    int missed;    /* complete listings in a row that did not show it */
    int64_t round; /* the listing that showed it last */
    bool finding;  /* a look-up after such listings is under way */

    struct booking booking; /* picture */
};

/* Runs when an event of a job is on disk and applied; and when an append has failed. */
typedef void (*journal_react_fn)(void *arg, struct entry *entry, const struct event *event);
typedef void (*journal_failed_fn)(void *arg, struct entry *entry, const struct event *event,
                                  const struct error *err);

struct journal *journal_create(struct context *context, journal_react_fn react,
                               journal_failed_fn failed, void *arg);
void journal_destroy(struct journal *journal); /* takes NULL; the store must be closed before */

/* The live job with this id, or NULL. */
struct entry *journal_find(const struct journal *journal, const char *id);
struct entry *journal_first(const struct journal *journal); /* by id; go on with ->next */
int64_t journal_count(const struct journal *journal);
/* How many live jobs are in a state. */
int64_t journal_count_state(const struct journal *journal, enum job_state state);

/* Adds a job in state NEW, or one loaded from the store (taken). */
struct entry *journal_add_take(struct journal *journal, struct job *job_take);
/* Takes a job that is final, or was never accepted, out of memory; frees the entry. */
void journal_retire(struct journal *journal, struct entry *entry);

/* Posts one event of a job that is not busy. data is taken. doc (taken, may be NULL) is written in the
 * same commit. Returns -1 when the tables do not allow it or the store is full; err says which; the
 * job is then as before. */
int journal_post(struct journal *journal, struct entry *entry, enum event_kind kind, int attempt,
                 json_t *data_take, struct store_doc *doc_take, struct error *err);

/* Posts an event that is no job's. Its fate is logged; done may be NULL. */
typedef void (*journal_done_fn)(void *arg, const struct event *event, const struct error *err);
int journal_post_other(struct journal *journal, enum event_kind kind, const char *id,
                       json_t *data_take, struct store_doc *doc_take, journal_done_fn done,
                       void *arg, struct error *err);

/* Submits many at once: one batch of jobs that were added in state NEW, each with its SUBMIT event and,
 * maybe, its key. done gets the result of each. */
struct journal_submit {
    struct entry *entry;   /* NULL after a result other than STORE_OK: the job was dropped */
    struct event *event;   /* taken */
    struct store_key *key; /* taken, may be NULL */
    enum store_result result;
    char existing[ID_SIZE];
    bool same_body;
};
typedef void (*journal_submit_fn)(void *arg, struct journal_submit *items, size_t count,
                                  const struct error *err);
int journal_submit(struct journal *journal, struct journal_submit *items, size_t count,
                   journal_submit_fn done, void *arg, struct error *err);

/* A document without an event. Lost documents are logged. */
void journal_put(struct journal *journal, enum store_table table, const char *id,
                 json_t *data_take);

/* Appends not yet on disk. */
int64_t journal_pending(const struct journal *journal);
/* Events applied since start, by kind. */
int64_t journal_applied(const struct journal *journal, enum event_kind kind);

struct store_doc *store_doc_create(enum store_table table, const char *id, int64_t at_ms,
                                   json_t *data_take);
void store_doc_destroy(struct store_doc *doc); /* takes NULL */

#endif
