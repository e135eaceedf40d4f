/* common.c - what commands that talk to a broker share: fields of its answers, times, JSON lines. */
#include "api/cli/commands.h"

#include "broker/core/alloc.h"
#include "broker/core/id.h"
#include "broker/core/units.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_MS = 24 * 3600 * 1000, WEEK_DAYS = 6 };

const char *json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

int64_t json_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

int64_t json_time(const json_t *object, const char *name)
{
    struct error err;
    int64_t ms = 0;
    const char *text = json_text(object, name);
    return *text && instant_parse(text, NULL, &ms, &err) == 0 ? ms : 0;
}

const char *why_without_count(const char *why)
{
    const char *colon = strncmp(why, "0 of ", 5) == 0 ? strstr(why, ": ") : NULL;
    return colon ? colon + 2 : why;
}

bool job_took(const json_t *job, int64_t *ms)
{
    const json_t *attempts = json_object_get(job, "attempts");
    const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
    int64_t started = json_time(last, "started"), ended = json_time(last, "ended");
    *ms = ended > started ? ended - started : 0;
    return started > 0 && ended > 0;
}

int id_check(const char *id, struct error *err)
{
    size_t length = strlen(id);
    if (length == 0) {
        error_set(err, ERROR_INVALID, "an empty id");
    } else if (length >= ID_SIZE || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") != length) {
        error_set(err, ERROR_INVALID, "'%.60s' is not an id", id);
    } else {
        return 0;
    }
    return error_expect(err, "an id, or the last %d or more characters of one", ID_SUFFIX_MIN);
}

void print_json(const json_t *json)
{
    (void)json_dumpf(json, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
    (void)fputc('\n', stdout);
}

void time_words(int64_t wall_ms, int64_t now_ms, char *out, size_t size)
{
    struct tm then, now;
    time_t then_s = (time_t)(wall_ms / 1000), now_s = (time_t)(now_ms / 1000);
    if (!localtime_r(&then_s, &then) || !localtime_r(&now_s, &now)) {
        copy_text(out, size, "?");
    } else if (then.tm_year == now.tm_year && then.tm_yday == now.tm_yday) {
        (void)strftime(out, size, "%H:%M:%S", &then);
    } else if (llabs(now_ms - wall_ms) < (int64_t)DAY_MS * WEEK_DAYS) {
        (void)strftime(out, size, "%a %H:%M", &then);
    } else {
        (void)strftime(out, size, "%Y-%m-%d %H:%M", &then);
    }
}
