/* Events as values and as text. */
#include "broker/core/event.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(event, text_keeps_the_order_of_the_data)
{
    struct error err;
    struct event *event;
    const char *text = "{\"place\":\"hpc/gpu\",\"booked\":9007199254740993,\"a\":1}";
    cr_assert_eq(event_from_text(7, 1000, "place", "j1", 2, text, &event, &err), 0, "%s", err.text);
    cr_assert_eq(event->seq, 7);
    cr_assert_eq(event->kind, EVENT_PLACE);
    cr_assert_eq(event->attempt, 2);
    cr_assert_eq(event_int(event, "booked"), INT64_C(9007199254740993));
    cr_assert_str_eq(event_str(event, "place"), "hpc/gpu");
    cr_assert_str_eq(event_str(event, "absent"), "");
    cr_assert_eq(event_int(event, "absent"), 0);
    char *again = event_data_text(event);
    cr_assert_str_eq(again, text);
    free(again);
    event_destroy(event);
}

Test(event, json_has_every_field_in_order)
{
    struct event *event = event_create(EVENT_DRAIN, "hpc/gpu", 0, 5, NULL);
    event->seq = 3;
    json_t *json = event_to_json(event);
    char *text = json_dumps(json, JSON_COMPACT);
    cr_assert_str_eq(text,
                     "{\"v\":1,\"seq\":3,\"at_ms\":5,\"stream\":\"cluster\",\"kind\":\"drain\","
                     "\"id\":\"hpc/gpu\",\"attempt\":0,\"data\":{}}");
    free(text);
    json_decref(json);
    event_destroy(event);
}

Test(event, every_kind_survives_its_text)
{
    for (int kind = 0; kind < EVENT_COUNT; kind++) {
        struct error err;
        struct event *event;
        const char *name = event_name((enum event_kind)kind);
        cr_assert_eq(event_from_text(1, 1, name, NULL, 0, "{}", &event, &err), 0, "%s", name);
        cr_assert_eq((int)event->kind, kind, "two kinds are called %s", name);
        cr_assert(*event_says(event->kind) && *stream_name(event_stream(event->kind)));
        event_destroy(event);
    }
}

Test(event, unknown_kinds_are_refused)
{
    struct error err;
    struct event *event = NULL;
    cr_assert_eq(event_from_text(12, 1, "teleport", "j1", 0, "{}", &event, &err), -1);
    cr_assert_eq(err.code, ERROR_INTERNAL);
    cr_assert(strstr(err.text, "12") && strstr(err.text, "teleport"), "%s", err.text);
    cr_assert_null(event);
}

Test(event, data_that_is_no_object_is_refused)
{
    static const char *const bad[] = {"", "[]", "1", "{", "{\"a\":1,\"a\":2}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err;
        struct event *event = NULL;
        cr_assert_eq(event_from_text(1, 1, "end", "j1", 1, bad[i], &event, &err), -1, "%s", bad[i]);
        cr_assert_null(event);
    }
}
