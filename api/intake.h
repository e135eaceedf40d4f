/* intake.h - the body of a bulk, cut into jobs piece by piece, so that no turn of the loop is long.
 *
 * An array is JSON as a whole: what is not refuses it. Of NDJSON each line stands alone. An item that is
 * too large, too deep or (NDJSON) unreadable is a problem at its index; a placeholder that is no job
 * keeps its place among the items, so that line n stays line n for the idempotency key. */
#ifndef API_INTAKE_H
#define API_INTAKE_H

#include "broker/core/error.h"
#include "broker/core/value.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct intake_mark { /* a place in the body that has been counted */
    size_t at;
    int line, column;
};

struct intake {
    const char *text; /* borrowed */
    size_t length, at;
    bool lines; /* NDJSON */
    struct value **items;
    size_t count, room;
    size_t good;      /* items that are no placeholders */
    json_t *problems; /* array of [index, problem] */
    struct intake_mark mark;
};

/* Whether a body is an array: its first character that is no blank. */
bool intake_is_array(const char *text, size_t length);

void intake_init(struct intake *intake, const char *text, size_t length, bool lines);
void intake_fini(struct intake *intake);

/* Goes on for about so many bytes. 1: more is left, 0: done, -1: the whole is refused. */
int intake_step(struct intake *intake, size_t bytes, struct error *err);

/* One job alone, within LIMIT_JOB_BYTES. */
int intake_one(const char *text, size_t length, struct value **out, struct error *err);

/* Puts the problems into the results at their indices. */
void intake_add_problems(const struct intake *intake, json_t *results);

#endif
