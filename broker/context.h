/* context.h - what every stage of the broker is handed: the ports and the tools, never another stage.
 *
 * The life of a job, by file: submit -> queue -> schedule -> dispatch -> watch -> finish. Beside it:
 * recover (start), burst (rented tiers), sweep (deletes and ageing), follow and query (readers). */
#ifndef BROKER_CONTEXT_H
#define BROKER_CONTEXT_H

#include "broker/core/clock.h"
#include "broker/core/cluster.h"
#include "broker/core/rules.h"
#include "broker/core/store.h"

#include <stdbool.h>

struct journal; /* journal.h: the only way to change a job */
struct picture; /* picture.h: what is known of places, bookings and budgets */
struct queue;   /* queue.h: jobs that wait, by class and shape */
struct members; /* member.h: calls to adapters */

struct context {
    struct clock *clock;
    struct store *store;
    const struct federation *federation;
    struct rules *rules; /* the live policy; replaced by a reload */
    struct journal *journal;
    struct picture *picture;
    struct queue *queue;
    struct members *members;
    void (*log)(const char *level, const char *text);
    bool stopping; /* nobody waits any more, and what was begun is cut off */
};

/* Formats and logs one line. level: info warn error. */
void context_log(const struct context *context, const char *level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
