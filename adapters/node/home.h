/* home.h - whether a supervisor still has its directory.
 *
 * Looks every two seconds. When the directory is gone nobody can ask any more, and nothing that ends can
 * be kept: no job starts, all that run are cancelled (TERM, grace, KILL), and the supervisor ends after
 * them; whoever is still connected gets no answer but that. When only the lock or the socket is gone it
 * ends at once and its jobs go on: the next one on the directory takes them over. */
#ifndef ADAPTERS_NODE_HOME_H
#define ADAPTERS_NODE_HOME_H

#include "adapters/node/server.h"

struct home;

/* lock: the descriptor of dir/lock; stays the caller's. The server must listen already. */
struct home *home_watch(struct server *server, int lock);
void home_unwatch(struct home *home); /* takes NULL */

#endif
