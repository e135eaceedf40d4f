/* follow.h - readers that wait for news: woken by an event of their job, or by their time running out. */
#ifndef BROKER_FOLLOW_H
#define BROKER_FOLLOW_H

#include "broker/context.h"

#include <stdbool.h>
#include <stdint.h>

struct follow;

struct follow *follow_create(struct context *context);
void follow_destroy(struct follow *follow); /* whoever still waits is woken */

/* woken runs once, never from within the call. id "": any event. Returns -1 when LIMIT_FOLLOWERS wait
 * already. */
int follow_wait(struct follow *follow, const char *id, int64_t wait_ms, void (*woken)(void *arg),
                void *arg);
/* An event of this job, or of the federation, is on disk. */
void follow_wake(struct follow *follow, const char *id);
/* Everybody is woken and nobody waits again: for shutdown. */
void follow_wake_all(struct follow *follow);
int follow_count(const struct follow *follow);

#endif
