/* answer.h - answers: JSON, text, streams, and RFC 9457 problems. One per request. */
#ifndef API_ANSWER_H
#define API_ANSWER_H

#include "api/request.h"

#include <jansson.h>
#include <sys/types.h>

/* body is borrowed. */
void answer_json(struct request *request, int status, const json_t *body);
/* text is taken. */
void answer_text(struct request *request, int status, const char *type, char *text_take,
                 size_t length);
/* The problem of err, with the status that its code has. */
void answer_error(struct request *request, const struct error *err);
/* The same with what else is known of it: fields of extra (may be NULL) are added. */
void answer_error_with(struct request *request, const struct error *err, const json_t *extra);

/* A reply of the broker that is the answer: body with the route's status, or a problem. */
void answer_reply(void *arg, json_t *body, const struct error *err);

/* A text that has no end yet. read is the library's content reader. */
void answer_stream(struct request *request, int status, const char *type,
                   ssize_t (*read)(void *arg, uint64_t at, char *out, size_t room), void *arg);

/* Adds a field to the answer that was made. */
void answer_header(struct request *request, const char *name, const char *value);

#endif
