/* head.h - the header fields of a request that matter here, and what is refused because of them. */
#ifndef API_HEAD_H
#define API_HEAD_H

#include "api/parts.h"
#include "broker/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct MHD_Connection;

struct head { /* borrowed from the connection until the request is over; NULL: absent */
    const char *host, *origin, *authorization, *content_type, *key;
    const char *length_text, *encoding;
    const char *forwarded; /* a proxy stands between: the peer is not the client */
    bool expects;          /* the client waits for a go before it sends the body */
    bool twice;            /* one of these stands twice */
    const char *which;
    int64_t length; /* of the body; -1: not stated */
    size_t bytes;   /* of all fields together */
    bool bad_frame; /* where the body ends is in doubt: the connection must not go on */
};

void head_read(struct MHD_Connection *mhd, struct head *head);

/* Framing, size, Host and Origin. */
int head_check(const struct head *head, const struct conn *conn, struct error *err);

/* Whether the body's type is one of takes (separated by blanks). MEDIA_TYPE else. */
int head_check_type(const struct head *head, const char *takes, struct error *err);
bool head_type_is(const struct head *head, const char *type);

/* Whether a Host header may say this; of a TCP connection of this machine. */
bool head_host_is_ours(const struct api *api, int fd, const char *host);

/* Idempotency-Key as text, quoted or bare; *out is the caller's, NULL when there is none. */
int head_key(const struct head *head, char **out, struct error *err);

#endif
