/* listen.h - the sockets that the server listens on. */
#ifndef API_LISTEN_H
#define API_LISTEN_H

#include "broker/core/cluster.h"
#include "broker/core/error.h"

#include <stdbool.h>

/* A listening Unix socket with mode 0600 at path, over what a dead broker left. CONFLICT when somebody
 * answers there. Returns the descriptor, or -1. */
int listen_unix(const char *path, struct error *err);

/* A listening TCP socket; *port is the one that was taken. Returns the descriptor, or -1. */
int listen_tcp(const struct listen_address *address, int *port, struct error *err);

/* Refuses an address that others can reach without TLS and tokens. */
int listen_check(const struct federation *federation, const struct listen_address *address,
                 struct error *err);

/* Whether a peer with this address is on this machine. */
struct sockaddr_storage;
bool listen_peer_is_here(const struct sockaddr_storage *address);

#endif
