#include "api/answer.h"
#include "api/handlers.h"

#include "broker/core/alloc.h"
#include "broker/core/keys.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct drain {
    char *note;
};
static const struct key drain_keys[] = {
    {.name = "note", .type = KEY_TEXT, .offset = offsetof(struct drain, note), .help = "why"},
    {.name = NULL},
};

enum { NOTE_MAX = 500 };

void serve_places_list(struct request *request)
{
    broker_places(request->api->env.broker, answer_reply, request_call(request, 0));
}

/* "hpc/gpu" in one part or in two. The caller frees it. */
static char *place_name(const struct request *request)
{
    const char *cluster = request_path(request, "cluster");
    return *cluster ? xasprintf("%s/%s", cluster, request_path(request, "place"))
                    : xstrdup(request_path(request, "name"));
}

static int read_note(const struct request *request, struct drain *out, struct error *err)
{
    const struct keys_context context = {NULL, NULL};
    struct value *value = NULL;
    if (request->body.length == 0) {
        return 0;
    }
    if (value_from_json(request->body.text, request->body.length, &value, err) < 0) {
        return -1;
    }
    int status = keys_read(drain_keys, value, out, &context, err);
    if (status == 0 && out->note && strlen(out->note) > NOTE_MAX) {
        status = value_error(value_get(value, "note"), err, ERROR_INVALID, "the note has %zu bytes",
                             strlen(out->note));
        (void)error_expect(err, "at most %d", (int)NOTE_MAX);
    }
    value_destroy(value);
    return status;
}

void serve_places_drain(struct request *request)
{
    struct drain drain = {NULL};
    struct error err;
    if (read_note(request, &drain, &err) < 0) {
        answer_error(request, &err);
    } else {
        char *name = place_name(request);
        broker_drain(request->api->env.broker, &request->caller, name, true,
                     drain.note ? drain.note : "", answer_reply, request_call(request, 0));
        free(name);
    }
    keys_free(drain_keys, &drain);
}

void serve_places_undrain(struct request *request)
{
    char *name = place_name(request);
    broker_drain(request->api->env.broker, &request->caller, name, false, "", answer_reply,
                 request_call(request, 0));
    free(name);
}
