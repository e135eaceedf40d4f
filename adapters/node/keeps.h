/* keeps.h - the supervisor's hold on its keepers: forks them, adopts those of the one before, hears of
 * their end, samples the memory of their jobs, and cleans up after what nobody keeps. */
#ifndef ADAPTERS_NODE_KEEPS_H
#define ADAPTERS_NODE_KEEPS_H

#include "adapters/node/server.h"

/* Watches children from now on. */
int keeps_open(struct server *server, struct error *err);
/* Lets go of the keepers: they go on alone. */
void keeps_close(struct server *server);

/* Takes up every attempt that had started: adopts it, or says how it ended. */
void keeps_recover(struct server *server);

/* Forks the keeper of an attempt whose start is on disk. */
void keeps_start(struct server *server, struct work *work);

/* Cancels the attempt unless that was done or it has ended: tells its keeper, if it has one. */
void keeps_cancel(struct server *server, struct work *work);
void keeps_cancel_all(struct server *server);

/* Puts name in the attempt's directory, or all of it when name is NULL, out of the way and has it
 * removed by a process of its own. */
void keeps_discard(struct server *server, const char *key, const char *name);
/* Discards the directories of forgotten attempts that ended before. */
void keeps_prune(struct server *server, int64_t before_ms);

/* Whether nothing runs that must be waited for. */
bool keeps_are_quiet(const struct server *server);

#endif
