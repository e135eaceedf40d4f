/* queue.h - the jobs that wait for a placement: by class, then by shape, oldest first.
 *
 * Jobs of one shape are equal to the decision: what is true of the first is true of all. Classes take
 * turns by weight: the lowest order goes first, but every class gets at least its share of the starts
 * while it waits, so nobody starves. Inside a class the team whose oldest job waits longest is next,
 * and of its jobs the one with the highest priority. A shape without a place now is set aside, and the
 * next one is tried: a head that does not fit holds up nothing. */
#ifndef BROKER_QUEUE_H
#define BROKER_QUEUE_H

#include "broker/context.h"
#include "broker/journal.h"
#include "policy/decide.h"

#include <stdbool.h>
#include <stdint.h>

struct shape {
    char *key;
    struct entry *first, *last; /* in the order of their ids */
    int64_t count;
    int class_index;
    uint64_t hash;                 /* of key */
    bool aside;                    /* no place now */
    char why[WHY_SIZE];            /* why its jobs wait, one line */
    int64_t why_ms;                /* schedule: as of when */
    int64_t seen;                  /* schedule: the pass whose decision is stored */
    int chosen;                    /* schedule: its place */
    char decision[ID_SIZE];        /* schedule: its id */
    int64_t tried_epoch, tried_ms; /* schedule: of the last decision that found no place */
    unsigned char *had_room;       /* schedule: a bit for each place, as it was then; or NULL */
    struct shape *prev, *next;
};

struct queue *queue_create(struct context *context);
void queue_destroy(struct queue *queue); /* takes NULL */

void queue_add(struct queue *queue, struct entry *entry);
void queue_remove(struct queue *queue, struct entry *entry); /* harmless when it is not in */

/* The job whose turn it is, among shapes that are not set aside; NULL: none. It stays in the queue. */
struct entry *queue_next(struct queue *queue);
/* The job got its start: its class has had a turn. Removes it. */
void queue_take(struct queue *queue, struct entry *entry);
/* All shapes, for the burst controller, explain and metrics; go on with ->next. */
struct shape *queue_shapes(struct queue *queue);
/* How many of its class are before it, and of how many. */
void queue_position(const struct queue *queue, const struct entry *entry, int64_t *before,
                    int64_t *of);
int64_t queue_count(const struct queue *queue);
int64_t queue_class_count(const struct queue *queue, const char *class_name);

/* Hash of the shape of a job, in the queue or not: jobs of one shape have the same. */
uint64_t queue_shape_hash(const struct queue *queue, struct entry *entry);

/* After a reload: classes and shapes are made anew. */
void queue_rules_changed(struct queue *queue);

#endif
