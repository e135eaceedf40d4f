/* wire.h - messages between the broker and a process of ours on the same machine, over a Unix socket.
 *
 * A message is two big-endian 32-bit lengths, a JSON object and raw bytes. The object carries "v": both
 * ends refuse another version. The socket is DIR/sock, mode 0600; each end refuses a peer of another
 * user (root excepted). A message over its limit is never sent and ends the connection when received. */
#ifndef BROKER_NET_WIRE_H
#define BROKER_NET_WIRE_H

#include "broker/core/error.h"
#include "broker/core/limits.h"

#include <jansson.h>
#include <stddef.h>

enum {
    WIRE_VERSION = 1,
    WIRE_HEADER = 8,
    WIRE_JSON_MAX = 4 * 1024 * 1024,
    WIRE_BYTES_MAX = LIMIT_LOG_READ,
    WIRE_QUEUE_MAX = 16 * 1024 * 1024 /* bytes that may wait for one slow peer */
};

struct wire_message {
    json_t *json;      /* the receiver's reference */
    const char *bytes; /* borrowed from the reader until it is used again */
    size_t length;
};

struct wire_reader { /* collects what comes in until it is whole messages */
    char *data;
    size_t room, start, end;
};

/* Sets "v" in json and writes the message into a new buffer. TOO_LARGE when it is over a limit. */
int wire_encode(json_t *json, const void *bytes, size_t length, char **out, size_t *out_length,
                struct error *err);

void wire_reader_init(struct wire_reader *reader);
void wire_reader_fini(struct wire_reader *reader);
/* Where the next bytes may be put. */
char *wire_reader_room(struct wire_reader *reader, size_t *length);
void wire_reader_fed(struct wire_reader *reader, size_t length);
/* 1: out is a message; 0: more is needed; -1: the peer is broken, close. */
int wire_reader_next(struct wire_reader *reader, struct wire_message *out, struct error *err);

/* Returns a listening socket at dir/sock, put there in one step over what was left, or -1. */
int wire_listen(const char *dir, struct error *err);
/* Returns a connected, non-blocking socket, or -1: NOT_FOUND when nobody listens there. */
int wire_connect(const char *dir, struct error *err);
/* Whether the process at the other end is ours. */
int wire_check_peer(int fd, struct error *err);

#endif
