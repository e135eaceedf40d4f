#include "broker/follow.h"

#include "broker/core/alloc.h"
#include "broker/core/id.h"
#include "broker/core/limits.h"

#include <stdlib.h>
#include <string.h>

struct waiter {
    struct follow *follow;
    char id[ID_SIZE];
    struct timer *timer;
    void (*woken)(void *arg);
    void *arg;
    struct waiter *prev, *next;
};

struct follow {
    struct context *context;
    struct waiter *first;
    int count;
    bool stopping; /* nobody waits any more */
};

static void wake(struct waiter *waiter)
{
    waiter->woken(waiter->arg);
    timer_destroy(waiter->timer);
    free(waiter);
}

static void fire_cb(void *arg)
{
    struct waiter *waiter = arg;
    struct follow *follow = waiter->follow;
    *(waiter->prev ? &waiter->prev->next : &follow->first) = waiter->next;
    if (waiter->next) {
        waiter->next->prev = waiter->prev;
    }
    follow->count--;
    wake(waiter);
}

int follow_wait(struct follow *follow, const char *id, int64_t wait_ms, void (*woken)(void *arg),
                void *arg)
{
    if (follow->stopping || follow->count >= LIMIT_FOLLOWERS) {
        return -1;
    }
    struct waiter *waiter = xcalloc(1, sizeof *waiter);
    waiter->follow = follow;
    copy_text(waiter->id, sizeof waiter->id, id);
    waiter->woken = woken;
    waiter->arg = arg;
    waiter->next = follow->first;
    if (follow->first) {
        follow->first->prev = waiter;
    }
    follow->first = waiter;
    follow->count++;
    waiter->timer = clock_timer(follow->context->clock, fire_cb, waiter);
    timer_start(waiter->timer, wait_ms < LIMIT_FOLLOW_MS ? wait_ms : LIMIT_FOLLOW_MS);
    return 0;
}

/* Waiters are woken in the next turn, so that a burst of events wakes each once. */
void follow_wake(struct follow *follow, const char *id)
{
    for (struct waiter *waiter = follow->first; waiter; waiter = waiter->next) {
        if (!waiter->id[0] || strcmp(waiter->id, id) == 0) {
            timer_start(waiter->timer, 0);
        }
    }
}

void follow_wake_all(struct follow *follow)
{
    follow->stopping = true;
    for (struct waiter *waiter = follow->first; waiter; waiter = waiter->next) {
        timer_start(waiter->timer, 0);
    }
}

int follow_count(const struct follow *follow)
{
    return follow->count;
}

struct follow *follow_create(struct context *context)
{
    struct follow *follow = xcalloc(1, sizeof *follow);
    follow->context = context;
    return follow;
}

void follow_destroy(struct follow *follow)
{
    if (!follow) {
        return;
    }
    follow->stopping = true;
    struct waiter *waiter = follow->first;
    follow->first = NULL;
    follow->count = 0;
    while (waiter) {
        struct waiter *next = waiter->next;
        wake(waiter);
        waiter = next;
    }
    free(follow);
}
