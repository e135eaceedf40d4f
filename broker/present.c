#include "broker/present.h"

#include "broker/core/units.h"

static void put_text(json_t *object, const char *name, const char *text)
{
    if (text && text[0]) {
        json_object_set_new(object, name, json_string(text));
    }
}

void present_time(json_t *object, const char *name, int64_t wall_ms)
{
    char text[UNITS_TEXT_SIZE];
    if (wall_ms) {
        json_object_set_new(object, name, json_string(instant_text(wall_ms, text)));
    }
}

void present_money(json_t *object, const char *name, int64_t nano, const char *currency)
{
    char text[UNITS_TEXT_SIZE];
    json_object_set_new(object, name, json_string(money_text(nano, currency, text)));
}

static void put_outcome(json_t *object, enum outcome outcome, int exit_code, int signal)
{
    if (outcome == OUTCOME_NONE) {
        return;
    }
    json_object_set_new(object, "outcome", json_string(outcome_name(outcome)));
    if (outcome == OUTCOME_EXIT) {
        json_object_set_new(object, "exit_code", json_integer(exit_code));
    }
    if (signal) {
        json_object_set_new(object, "signal", json_integer(signal));
    }
}

static json_t *attempt_present(const struct attempt *attempt, const char *currency)
{
    json_t *object = json_pack("{s:i, s:s, s:s}", "number", attempt->number, "state",
                               attempt_state_name(attempt->state), "place", attempt->place);
    put_text(object, "native_id", attempt->native_id);
    put_text(object, "burst", attempt->burst);
    put_outcome(object, attempt->outcome, attempt->exit_code, attempt->signal);
    put_text(object, "reason", attempt->reason);
    present_time(object, "placed", attempt->placed_ms);
    present_time(object, "accepted", attempt->accepted_ms);
    present_time(object, "started", attempt->started_ms);
    present_time(object, "ended", attempt->ended_ms);
    present_time(object, "unknown_since", attempt->unknown_ms);
    if (attempt->price_hour) {
        present_money(object, "rent_expected", attempt->rent_expected, currency);
        present_money(object, "booked", attempt->booked, currency);
        present_money(object, "settled", attempt->settled, currency);
    }
    return object;
}

json_t *job_present(const struct job *job, const char *currency, const char *why, bool whole)
{
    const struct attempt *attempt = job_attempt(job);
    const struct spec *spec = job->spec;
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", job->id, "name", spec->name, "state",
                  job_view(job), "class", spec->class_name, "owner", job->owner);
    put_text(object, "team", spec->team);
    put_text(object, "key", job->key);
    put_text(object, "place", attempt ? attempt->place : NULL);
    json_object_set_new(object, "attempt", json_integer(job->attempt_count));
    present_time(object, "submitted", job->submitted_ms);
    present_time(object, "queued", job->queued_ms);
    present_time(object, "started", attempt ? attempt->started_ms : 0);
    present_time(object, "finished", job->finished_ms);
    json_object_set_new(object, "final", json_boolean(job_is_final(job)));
    put_outcome(object, job->outcome, job->exit_code, job->signal);
    put_text(object, "reason", job->reason);
    put_text(object, "why", why);
    put_text(object, "cancelled_by", job->cancelled_by);
    json_t *attempts = json_array();
    for (int i = 0; i < job->attempt_count; i++) {
        json_array_append_new(attempts, attempt_present(&job->attempts[i], currency));
    }
    json_object_set_new(object, "attempts", attempts);
    if (whole) {
        json_object_set_new(object, "spec", spec_to_json(spec));
    }
    return object;
}
