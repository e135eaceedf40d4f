/* event.c - events as values and as text. One table gives names, streams and meanings. */
#include "broker/core/event.h"

#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum stream stream;
    const char *says;
} event_table[EVENT_COUNT] = {
#define X(constant, name, stream, says) [EVENT_##constant] = {name, STREAM_##stream, says},
    EVENT_LIST(X)
#undef X
};

static const char *const stream_table[STREAM_COUNT] = {
#define X(constant, name) [STREAM_##constant] = (name),
    STREAM_LIST(X)
#undef X
};

static int find_kind(const char *name, enum event_kind *out)
{
    for (int i = 0; i < EVENT_COUNT; i++) {
        if (strcmp(event_table[i].name, name) == 0) {
            *out = (enum event_kind)i;
            return 0;
        }
    }
    return -1;
}

static int parse_data(const char *text, json_t **out, struct error *err)
{
    json_error_t why = {.text = ""};
    json_t *data = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (!data) {
        return error_set(err, ERROR_INTERNAL, "the data of an event is no JSON: %s", why.text);
    }
    if (!json_is_object(data)) {
        json_decref(data);
        return error_set(err, ERROR_INTERNAL, "the data of an event is no object");
    }
    *out = data;
    return 0;
}

struct event *event_create(enum event_kind kind, const char *id, int attempt, int64_t at_ms,
                           json_t *data_take)
{
    struct event *event = xcalloc(1, sizeof *event);
    event->kind = kind;
    event->attempt = attempt;
    event->at_ms = at_ms;
    event->data = data_take ? data_take : json_object();
    copy_text(event->id, sizeof event->id, id);
    return event;
}

void event_destroy(struct event *event)
{
    if (event) {
        json_decref(event->data);
        free(event);
    }
}

char *event_data_text(const struct event *event)
{
    return json_dumps(event->data, JSON_COMPACT);
}

json_t *event_to_json(const struct event *event)
{
    return json_pack("{s:i, s:I, s:I, s:s, s:s, s:s, s:i, s:O}", "v", (int)EVENT_VERSION, "seq",
                     (json_int_t)event->seq, "at_ms", (json_int_t)event->at_ms, "stream",
                     stream_name(event_stream(event->kind)), "kind", event_name(event->kind), "id",
                     event->id, "attempt", event->attempt, "data", event->data);
}

int event_from_text(int64_t seq, int64_t at_ms, const char *kind, const char *id, int attempt,
                    const char *data, struct event **out, struct error *err)
{
    enum event_kind found;
    if (find_kind(kind, &found) < 0) {
        (void)error_set(err, ERROR_INTERNAL, "event %lld is of the unknown kind '%s'",
                        (long long)seq, kind);
        return error_expect(err, "the store was written by a newer release");
    }
    json_t *object = NULL;
    if (parse_data(data, &object, err) < 0) {
        return error_prefix(err, "event %lld", (long long)seq);
    }
    struct event *event = event_create(found, id, attempt, at_ms, object);
    event->seq = seq;
    *out = event;
    return 0;
}

const char *event_name(enum event_kind kind)
{
    return event_table[kind].name;
}

const char *event_says(enum event_kind kind)
{
    return event_table[kind].says;
}

enum stream event_stream(enum event_kind kind)
{
    return event_table[kind].stream;
}

const char *stream_name(enum stream stream)
{
    return stream_table[stream];
}

int64_t event_int(const struct event *event, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(event->data, name));
}

const char *event_str(const struct event *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event->data, name));
    return text ? text : "";
}
