/* job_row.c - a job as the row that the store keeps, and back; the data of its SUBMIT event.
 *
 * A row holds everything but the spec, and the sequence number of SUBMIT, which the store gives only
 * when it writes the row. Whole numbers and texts in this order; readers ignore what they do not know. */
#include "broker/core/job.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum field_type { FIELD_INT, FIELD_INT64, FIELD_BOOL, FIELD_TEXT };

struct field {
    const char *name;
    enum field_type type;
    size_t offset, size; /* size: of the array of a TEXT */
};

#define INT_FIELD(type, member, name)                                                              \
    {                                                                                              \
        name, FIELD_INT, offsetof(type, member), sizeof(int)                                       \
    }
#define INT64_FIELD(type, member, name)                                                            \
    {                                                                                              \
        name, FIELD_INT64, offsetof(type, member), sizeof(int64_t)                                 \
    }
#define TEXT_FIELD(type, member, name)                                                             \
    {                                                                                              \
        name, FIELD_TEXT, offsetof(type, member), sizeof(((type *)0)->member)                      \
    }

static const struct field job_fields[] = {
    INT64_FIELD(struct job, submitted_ms, "submitted_ms"),
    INT64_FIELD(struct job, queued_ms, "queued_ms"),
    INT64_FIELD(struct job, finished_ms, "finished_ms"),
    INT_FIELD(struct job, lost, "lost"),
    INT_FIELD(struct job, start_failed, "start_failed"),
    INT_FIELD(struct job, out_of_memory, "out_of_memory"),
    INT_FIELD(struct job, exits, "exits"),
    INT_FIELD(struct job, exit_code, "exit_code"),
    INT_FIELD(struct job, signal, "signal"),
    TEXT_FIELD(struct job, reason, "reason"),
    TEXT_FIELD(struct job, cancelled_by, "cancelled_by"),
    {NULL, FIELD_INT, 0, 0},
};

static const struct field attempt_fields[] = {
    INT_FIELD(struct attempt, number, "number"),
    TEXT_FIELD(struct attempt, place, "place"),
    TEXT_FIELD(struct attempt, native_id, "native_id"),
    TEXT_FIELD(struct attempt, node, "node"),
    TEXT_FIELD(struct attempt, reason, "reason"),
    TEXT_FIELD(struct attempt, decision, "decision"),
    TEXT_FIELD(struct attempt, burst, "burst"),
    INT_FIELD(struct attempt, exit_code, "exit_code"),
    INT_FIELD(struct attempt, signal, "signal"),
    INT64_FIELD(struct attempt, placed_ms, "placed_ms"),
    INT64_FIELD(struct attempt, accepted_ms, "accepted_ms"),
    INT64_FIELD(struct attempt, started_ms, "started_ms"),
    INT64_FIELD(struct attempt, ended_ms, "ended_ms"),
    INT64_FIELD(struct attempt, unknown_ms, "unknown_ms"),
    INT64_FIELD(struct attempt, rent_expected, "rent_expected"),
    INT64_FIELD(struct attempt, booked, "booked"),
    INT64_FIELD(struct attempt, settled, "settled"),
    INT64_FIELD(struct attempt, price_hour, "price_hour"),
    INT64_FIELD(struct attempt, nodes, "nodes"),
    {"sent_maybe", FIELD_BOOL, offsetof(struct attempt, sent_maybe), sizeof(bool)},
    {NULL, FIELD_INT, 0, 0},
};

static json_t *field_to_json(const struct field *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    switch (field->type) {
    case FIELD_INT: return json_integer(*(const int *)(const void *)at);
    case FIELD_INT64: return json_integer(*(const int64_t *)(const void *)at);
    case FIELD_BOOL: return json_boolean(*(const bool *)(const void *)at);
    case FIELD_TEXT: return json_string(at);
    }
    return NULL;
}

/* Empty texts and zeros are left out: rows are many, and most fields are empty. */
static bool field_is_empty(const struct field *field, const void *base)
{
    const char *at = (const char *)base + field->offset;
    switch (field->type) {
    case FIELD_INT: return *(const int *)(const void *)at == 0;
    case FIELD_INT64: return *(const int64_t *)(const void *)at == 0;
    case FIELD_BOOL: return !*(const bool *)(const void *)at;
    case FIELD_TEXT: return !*at;
    }
    return true;
}

static void fields_to_json(const struct field *fields, const void *base, json_t *row)
{
    for (; fields->name; fields++) {
        if (!field_is_empty(fields, base)) {
            (void)json_object_set_new(row, fields->name, field_to_json(fields, base));
        }
    }
}

static int bad_field(const char *name, struct error *err)
{
    return error_set(err, ERROR_INTERNAL, "the field '%s' of a stored job cannot be read", name);
}

static int field_from_json(const struct field *field, const json_t *value, void *base,
                           struct error *err)
{
    char *at = (char *)base + field->offset;
    bool is_number = field->type == FIELD_INT || field->type == FIELD_INT64;
    json_int_t number = json_integer_value(value);
    if ((is_number && !json_is_integer(value)) ||
        (field->type == FIELD_INT && (number < INT_MIN || number > INT_MAX)) ||
        (field->type == FIELD_BOOL && !json_is_boolean(value)) ||
        (field->type == FIELD_TEXT &&
         (!json_is_string(value) || json_string_length(value) >= field->size))) {
        return bad_field(field->name, err);
    }
    switch (field->type) {
    case FIELD_INT: *(int *)(void *)at = (int)number; break;
    case FIELD_INT64: *(int64_t *)(void *)at = number; break;
    case FIELD_BOOL: *(bool *)(void *)at = json_is_true(value); break;
    case FIELD_TEXT: copy_text(at, field->size, json_string_value(value)); break;
    }
    return 0;
}

static int fields_from_json(const struct field *fields, const json_t *row, void *base,
                            struct error *err)
{
    for (; fields->name; fields++) {
        const json_t *value = json_object_get(row, fields->name);
        if (value && field_from_json(fields, value, base, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Reads a name by one of the find functions; absent is the first of its list. */
static int name_from_json(const json_t *row, const char *name, int (*find)(const char *name),
                          int *out, struct error *err)
{
    const json_t *value = json_object_get(row, name);
    *out = json_is_string(value) ? find(json_string_value(value)) : value ? -1 : 0;
    return *out < 0 ? bad_field(name, err) : 0;
}

static json_t *attempt_to_json(const struct attempt *attempt)
{
    json_t *row = json_object();
    (void)json_object_set_new(row, "state", json_string(attempt_state_name(attempt->state)));
    if (attempt->outcome != OUTCOME_NONE) {
        (void)json_object_set_new(row, "outcome", json_string(outcome_name(attempt->outcome)));
    }
    fields_to_json(attempt_fields, attempt, row);
    if (attempt->budgets.count) {
        (void)json_object_set_new(row, "budgets", texts_to_json(&attempt->budgets));
    }
    return row;
}

static int attempt_from_json(const json_t *row, int number, struct attempt *attempt,
                             struct error *err)
{
    int state, outcome;
    if (name_from_json(row, "state", attempt_state_find, &state, err) < 0 ||
        name_from_json(row, "outcome", outcome_find, &outcome, err) < 0 ||
        fields_from_json(attempt_fields, row, attempt, err) < 0) {
        return -1;
    }
    if (texts_from_json(json_object_get(row, "budgets"), &attempt->budgets) < 0) {
        return bad_field("budgets", err);
    }
    if (attempt->number != number) {
        return bad_field("number", err);
    }
    attempt->state = (enum attempt_state)state;
    attempt->outcome = (enum outcome)outcome;
    return 0;
}

static int attempts_from_json(const json_t *rows, struct job *job, struct error *err)
{
    size_t count = json_array_size(rows);
    job->attempts = count ? xcalloc(count, sizeof *job->attempts) : NULL;
    for (size_t i = 0; i < count; i++) {
        struct attempt *attempt = &job->attempts[job->attempt_count++];
        if (attempt_from_json(json_array_get(rows, i), job->attempt_count, attempt, err) < 0) {
            return -1;
        }
    }
    return 0;
}

json_t *job_to_row(const struct job *job)
{
    json_t *row = json_object();
    (void)json_object_set_new(row, "id", json_string(job->id));
    (void)json_object_set_new(row, "state", json_string(job_state_name(job->state)));
    if (job->owner) {
        (void)json_object_set_new(row, "owner", json_string(job->owner));
    }
    if (job->key) {
        (void)json_object_set_new(row, "key", json_string(job->key));
    }
    if (job->outcome != OUTCOME_NONE) {
        (void)json_object_set_new(row, "outcome", json_string(outcome_name(job->outcome)));
    }
    fields_to_json(job_fields, job, row);
    json_t *attempts = json_array();
    for (int i = 0; i < job->attempt_count; i++) {
        (void)json_array_append_new(attempts, attempt_to_json(&job->attempts[i]));
    }
    (void)json_object_set_new(row, "attempts", attempts);
    return row;
}

int job_from_row(const json_t *row, struct spec *spec, struct job **out, struct error *err)
{
    const char *id = json_string_value(json_object_get(row, "id"));
    if (!id || strlen(id) >= ID_SIZE) {
        return bad_field("id", err);
    }
    struct job *job = job_create(id);
    int state, outcome;
    job->spec = spec ? spec_ref(spec) : NULL;
    job->owner = xstrdup(json_string_value(json_object_get(row, "owner")));
    job->key = xstrdup(json_string_value(json_object_get(row, "key")));
    if (name_from_json(row, "state", job_state_find, &state, err) < 0 ||
        name_from_json(row, "outcome", outcome_find, &outcome, err) < 0 ||
        fields_from_json(job_fields, row, job, err) < 0 ||
        attempts_from_json(json_object_get(row, "attempts"), job, err) < 0) {
        (void)error_prefix(err, "job %s", job->id);
        job_unref(job);
        return -1;
    }
    job->state = (enum job_state)state;
    job->outcome = (enum outcome)outcome;
    *out = job;
    return 0;
}

json_t *job_submit_data(const struct spec *spec, const char *owner, const char *team,
                        const char *key, const char *held)
{
    json_t *data = json_object();
    const char *taken = team && *team ? team : spec->team;
    (void)json_object_set_new(data, "owner", json_string(owner));
    if (taken) {
        (void)json_object_set_new(data, "team", json_string(taken));
    }
    if (key) {
        (void)json_object_set_new(data, "key", json_string(key));
    }
    if (held) {
        (void)json_object_set_new(data, "held", json_string(held));
    }
    (void)json_object_set_new(data, "defaults", spec_defaults_to_json(spec));
    (void)json_object_set_new(data, "spec", spec_source_to_json(spec));
    return data;
}

void attempt_remote_name(const struct job *job, int attempt, char out[NAME_SIZE])
{
    char tail[NAME_SIZE];
    int length = snprintf(tail, sizeof tail, ".%s-%d", job->id, attempt);
    int room = NAME_SIZE - 1 - length;
    (void)snprintf(out, NAME_SIZE, "%.*s%s", room, job->spec->name, tail);
}
