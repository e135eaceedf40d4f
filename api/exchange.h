/* exchange.h - the life of a request, from its first line to the last byte of its answer. */
#ifndef API_EXCHANGE_H
#define API_EXCHANGE_H

#include "api/request.h"

/* target: of the first line, as it was sent. */
struct request *exchange_open(struct conn *conn, struct MHD_Connection *mhd, const char *target);
/* The library's access handler: header, body in pieces, end. Returns -1 to close the connection. */
int exchange_access(struct request *request, const char *method, const char *data, size_t *length);
void exchange_close(struct request *request);

/* Nobody can wait for this any more: answers with err, or ends the stream. */
void exchange_give_up(struct request *request, const struct error *err);
/* Whether the client has gone. A half-closed one counts as gone only while it waits for news. */
bool exchange_client_is_gone(const struct request *request);

#endif
