/* job_apply: the tables, what each event writes, rows, replay. */
#include "broker/core/alloc.h"
#include "broker/core/job.h"
#include "broker/core/limits.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define ID "j1jq3v8k2m7x4qv0"

static struct spec *make_spec(void)
{
    static const char text[] = "{\"command\": [\"make\"], \"name\": \"transcribe\", \"needs\": "
                               "{\"cpus\": 1.5}, \"retry\": {\"lost\": 9}}";
    struct error err;
    struct value *value;
    struct spec *spec;
    cr_assert_eq(value_from_json(text, sizeof text - 1, &value, &err), 0);
    cr_assert_eq(spec_parse(value, NULL, NULL, &spec, &err), 0, "%s", err.text);
    value_destroy(value);
    return spec;
}

static json_t *submit_data(const char *held)
{
    struct spec *spec = make_spec();
    json_t *data = job_submit_data(spec, "alice", "media", "k1", held);
    spec_unref(spec);
    return data;
}

static int apply(struct job *job, enum event_kind kind, int attempt, json_t *data_take,
                 struct error *err)
{
    static int64_t now = 1000;
    struct event *event = event_create(kind, ID, attempt, now++, data_take);
    int result = job_apply(job, event, err);
    event_destroy(event);
    return result;
}

static void must(struct job *job, enum event_kind kind, int attempt, json_t *data_take)
{
    struct error err;
    cr_assert_eq(apply(job, kind, attempt, data_take, &err), 0, "%s: %s", event_name(kind),
                 err.text);
}

static char *row_text(const struct job *job)
{
    json_t *row = job_to_row(job);
    char *text = json_dumps(row, JSON_COMPACT);
    json_decref(row);
    return text;
}

static void must_not(struct job *job, enum event_kind kind, int attempt, json_t *data_take,
                     enum error_code code)
{
    struct error err;
    char *before = row_text(job);
    cr_assert_eq(apply(job, kind, attempt, data_take, &err), -1, "%s", event_name(kind));
    cr_assert_eq(err.code, code, "%s: %s", event_name(kind), err.text);
    char *after = row_text(job);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
}

static json_t *place_data(void)
{
    return json_pack("{s:s, s:s, s:{s:i}, s:i, s:i, s:i, s:[s, s], s:s, s:i}", "place", "hpc/gpu",
                     "decision", "d1", "terms", "rent", 5, "rent_expected", 5, "booked", 6,
                     "price_hour", 7, "budgets", "cloud", "ml", "burst", "overflow", "nodes", 250);
}

static json_t *end_data(const char *outcome, int exit_code)
{
    return json_pack("{s:s, s:i, s:i}", "outcome", outcome, "exit_code", exit_code, "settled", 4);
}

static json_t *finish_data(const char *state, const char *outcome, int exit_code)
{
    return json_pack("{s:s, s:s, s:i}", "state", state, "outcome", outcome, "exit_code", exit_code);
}

static struct job *submitted(void)
{
    struct job *job = job_create(ID);
    must(job, EVENT_SUBMIT, 0, submit_data(NULL));
    return job;
}

static struct job *placed(void)
{
    struct job *job = submitted();
    must(job, EVENT_PLACE, 1, place_data());
    return job;
}

static struct job *running(void)
{
    struct job *job = placed();
    must(job, EVENT_ACCEPT, 1, json_pack("{s:s}", "native", "4711"));
    must(job, EVENT_START, 1, json_pack("{s:I, s:s}", "at", (json_int_t)500, "node", "n1"));
    return job;
}

Test(job, from_submit_to_success)
{
    struct job *job = job_create(ID);
    cr_assert_str_eq(job_view(job), "new");
    must(job, EVENT_SUBMIT, 0, submit_data(NULL));
    cr_assert_str_eq(job_view(job), "queued");
    cr_assert_str_eq(job->owner, "alice");
    cr_assert_str_eq(job->key, "k1");
    cr_assert_str_eq(job->spec->team, "media");
    cr_assert_eq(job->spec->needs.cpus, 1500);
    must(job, EVENT_PLACE, 1, place_data());
    const struct attempt *attempt = job_attempt(job);
    cr_assert_str_eq(job_view(job), "placed");
    cr_assert_str_eq(attempt->place, "hpc/gpu");
    cr_assert_str_eq(attempt->burst, "overflow");
    cr_assert_eq(attempt->booked, 6);
    cr_assert_eq(attempt->budgets.count, 2);
    cr_assert_not(attempt->sent_maybe);
    must(job, EVENT_ACCEPT, 1, json_pack("{s:s}", "native", "4711"));
    cr_assert_str_eq(job_view(job), "dispatched");
    cr_assert(attempt->sent_maybe);
    must(job, EVENT_START, 1, json_pack("{s:I}", "at", (json_int_t)500));
    cr_assert_str_eq(job_view(job), "running");
    cr_assert_eq(attempt->started_ms, 500);
    must(job, EVENT_END, 1, end_data("exit", 0));
    cr_assert_str_eq(job_view(job), "running", "until it is decided what follows");
    cr_assert_eq(attempt->settled, 4);
    must(job, EVENT_FINISH, 0, finish_data("succeeded", "exit", 0));
    cr_assert_str_eq(job_view(job), "succeeded");
    cr_assert(job_is_final(job) && job->finished_ms > 0);
    job_unref(job);
}

Test(job, held_then_released)
{
    struct job *job = job_create(ID);
    must(job, EVENT_SUBMIT, 0, submit_data("a cheaper hour"));
    cr_assert_str_eq(job_view(job), "held");
    cr_assert_str_eq(job->reason, "a cheaper hour");
    cr_assert_eq(job->queued_ms, 0);
    must_not(job, EVENT_PLACE, 1, place_data(), ERROR_CONFLICT);
    must(job, EVENT_RELEASE, 0, NULL);
    cr_assert(job->queued_ms > 0 && !*job->reason);
    job_unref(job);
}

Test(job, conflicts_name_state_and_event)
{
    struct error err;
    struct job *job = submitted();
    cr_assert_eq(apply(job, EVENT_REQUEUE, 0, NULL, &err), -1);
    cr_assert(strstr(err.text, "queued") && strstr(err.text, "requeue"), "%s", err.text);
    cr_assert_eq(apply(job, EVENT_START, 1, NULL, &err), -1);
    cr_assert(strstr(err.text, "queued") && strstr(err.text, "start"), "%s", err.text);
    must(job, EVENT_PLACE, 1, place_data());
    cr_assert_eq(apply(job, EVENT_FOUND, 1, NULL, &err), -1);
    cr_assert(strstr(err.text, "intended") && strstr(err.text, "found"), "%s", err.text);
    job_unref(job);
}

Test(job, events_of_other_attempts_and_others_are_not_applied)
{
    struct job *job = running();
    must_not(job, EVENT_END, 0, end_data("exit", 0), ERROR_CONFLICT);
    must_not(job, EVENT_END, 2, end_data("exit", 0), ERROR_CONFLICT);
    must_not(job, EVENT_UP, 0, NULL, ERROR_CONFLICT);
    must(job, EVENT_END, 1, end_data("gone", 0));
    must(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "lost"));
    must_not(job, EVENT_PLACE, 1, place_data(), ERROR_CONFLICT);
    must_not(job, EVENT_PLACE, 3, place_data(), ERROR_CONFLICT);
    must(job, EVENT_PLACE, 2, place_data());
    must(job, EVENT_ACCEPT, 2, NULL);
    must_not(job, EVENT_END, 1, end_data("exit", 0), ERROR_CONFLICT);
    must(job, EVENT_LATE, 1, end_data("exit", 0));
    cr_assert_eq(job->lost, 1);
    struct error err;
    struct event *other = event_create(EVENT_CANCEL, "jother", 0, 1, NULL);
    cr_assert_eq(job_apply(job, other, &err), -1);
    event_destroy(other);
    job_unref(job);
}

Test(job, lost_and_found)
{
    struct job *job = running();
    must(job, EVENT_LOSE, 1, json_pack("{s:s}", "reason", "no answer"));
    cr_assert_str_eq(job_view(job), "unknown");
    cr_assert(job_attempt(job)->unknown_ms > 0);
    must_not(job, EVENT_LOSE, 1, NULL, ERROR_CONFLICT);
    must(job, EVENT_FOUND, 1, NULL);
    cr_assert_str_eq(job_view(job), "dispatched");
    cr_assert_eq(job_attempt(job)->unknown_ms, 0);
    must(job, EVENT_START, 1, NULL);
    cr_assert_eq(job_attempt(job)->started_ms, 500, "it did not start again");
    must(job, EVENT_LOSE, 1, NULL);
    must(job, EVENT_GONE, 1, json_pack("{s:s, s:i}", "reason", "lease ran out", "settled", 9));
    cr_assert_eq(job_attempt(job)->outcome, OUTCOME_GONE);
    cr_assert_eq(job_attempt(job)->settled, 9);
    must_not(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "bored"), ERROR_INVALID);
    must_not(job, EVENT_REQUEUE, 0, NULL, ERROR_INVALID);
    must(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "none"));
    cr_assert_eq(job->lost, 0);
    job_unref(job);
}

Test(job, a_lost_answer)
{
    struct job *job = placed();
    must(job, EVENT_UNSURE, 1, json_pack("{s:s}", "reason", "restarted"));
    cr_assert_str_eq(job_view(job), "placed");
    cr_assert(job_attempt(job)->sent_maybe);
    must_not(job, EVENT_END, 1, end_data("cancelled", 0), ERROR_CONFLICT);
    must(job, EVENT_CANCEL, 0, json_pack("{s:s}", "by", "bob"));
    cr_assert_str_eq(job_view(job), "cancelling");
    must(job, EVENT_ADOPT, 1, json_pack("{s:s}", "native", "9"));
    must(job, EVENT_LOSE, 1, NULL);
    must(job, EVENT_END, 1, end_data("cancelled", 0));
    must(job, EVENT_FINISH, 0, finish_data("cancelled", "cancelled", 0));
    cr_assert_str_eq(job->cancelled_by, "bob");
    must_not(job, EVENT_CANCEL, 0, NULL, ERROR_CONFLICT);
    job_unref(job);
}

Test(job, cancel_before_a_placement_is_final)
{
    struct job *job = submitted();
    must(job, EVENT_CANCEL, 0, json_pack("{s:s, s:s}", "by", "bob", "reason", "typo"));
    cr_assert_eq(job->state, JOB_CANCELLED);
    cr_assert_eq(job->outcome, OUTCOME_CANCELLED);
    cr_assert(job->finished_ms > 0);
    must(job, EVENT_LATE, 1, NULL);
    must_not(job, EVENT_SUBMIT, 0, submit_data(NULL), ERROR_CONFLICT);
    job_unref(job);
}

Test(job, finish_must_be_borne_out)
{
    struct job *job = running();
    must_not(job, EVENT_FINISH, 0, finish_data("succeeded", "exit", 0), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("failed", "gone", 0), ERROR_CONFLICT);
    must_not(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "lost"), ERROR_CONFLICT);
    must_not(job, EVENT_END, 1, NULL, ERROR_INVALID);
    must_not(job, EVENT_END, 1, end_data("none", 0), ERROR_INVALID);
    must_not(job, EVENT_END, 1, end_data("exploded", 0), ERROR_INVALID);
    must(job, EVENT_END, 1, end_data("exit", 1));
    must_not(job, EVENT_FINISH, 0, finish_data("succeeded", "exit", 0), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("succeeded", "exit", 1), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("failed", "exit", 0), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("cancelled", "exit", 1), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("expired", "exit", 1), ERROR_CONFLICT);
    must_not(job, EVENT_FINISH, 0, finish_data("queued", "exit", 1), ERROR_INVALID);
    must(job, EVENT_FINISH, 0, finish_data("failed", "exit", 1));
    cr_assert_eq(job->exit_code, 1);
    job_unref(job);
}

Test(job, a_cancelled_job_may_have_finished_already)
{
    struct job *job = running();
    must(job, EVENT_CANCEL, 0, NULL);
    must_not(job, EVENT_FINISH, 0, finish_data("cancelled", "cancelled", 0), ERROR_CONFLICT);
    must(job, EVENT_END, 1, end_data("exit", 0));
    must_not(job, EVENT_FINISH, 0, finish_data("failed", "exit", 1), ERROR_CONFLICT);
    must_not(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "lost"), ERROR_CONFLICT);
    struct job *other = job_clone(job);
    must(job, EVENT_FINISH, 0, finish_data("succeeded", "exit", 0));
    cr_assert_eq(other->state, JOB_CANCELLING, "a clone is another job");
    must(other, EVENT_FINISH, 0, finish_data("cancelled", "exit", 0));
    job_unref(other);
    job_unref(job);
}

Test(job, attempts_are_bounded)
{
    struct job *job = submitted();
    for (int i = 1; i <= LIMIT_ATTEMPTS; i++) {
        must(job, EVENT_PLACE, i, place_data());
        must(job, EVENT_REJECT, i, json_pack("{s:s}", "reason", "no"));
        must(job, EVENT_REQUEUE, 0, json_pack("{s:s}", "cause", "start-failed"));
    }
    cr_assert_eq(job->start_failed, LIMIT_ATTEMPTS);
    must_not(job, EVENT_PLACE, LIMIT_ATTEMPTS + 1, place_data(), ERROR_CONFLICT);
    must(job, EVENT_FINISH, 0, finish_data("failed", "rejected", 0));
    job_unref(job);
}

Test(job, bad_data_change_nothing)
{
    struct job *job = job_create(ID);
    must_not(job, EVENT_SUBMIT, 0, NULL, ERROR_INVALID);
    json_t *data = submit_data(NULL);
    (void)json_object_set_new(data, "owner", json_string(""));
    must_not(job, EVENT_SUBMIT, 0, data, ERROR_INVALID);
    must(job, EVENT_SUBMIT, 0, submit_data(NULL));
    must_not(job, EVENT_PLACE, 1, NULL, ERROR_INVALID);
    must_not(job, EVENT_PLACE, 1, json_pack("{s:s, s:[i]}", "place", "hpc", "budgets", 1),
             ERROR_INVALID);
    must(job, EVENT_PLACE, 1, place_data());
    char native[NATIVE_SIZE + 1];
    memset(native, 'n', NATIVE_SIZE);
    native[NATIVE_SIZE] = '\0';
    must_not(job, EVENT_ACCEPT, 1, json_pack("{s:s}", "native", native), ERROR_INVALID);
    data = end_data("exit", 0);
    (void)json_object_set_new(data, "exit_code", json_integer(INT64_C(1) << 40));
    must_not(job, EVENT_END, 1, data, ERROR_INVALID);
    job_unref(job);
}

Test(job, long_reasons_are_cut_between_characters)
{
    char reason[REASON_SIZE + 2];
    memset(reason, 'x', sizeof reason);
    memcpy(reason + REASON_SIZE - 2, "\xc3\xa9", 3);
    struct job *job = running();
    must(job, EVENT_LOSE, 1, json_pack("{s:s}", "reason", reason));
    cr_assert_eq(strlen(job_attempt(job)->reason), REASON_SIZE - 2);
    char *text = row_text(job);
    cr_assert(strstr(text, "\"reason\":\"xxx"), "%s", text);
    free(text);
    job_unref(job);
}

Test(job, remote_names_fit)
{
    char name[NAME_SIZE];
    struct job *job = submitted();
    attempt_remote_name(job, 1, name);
    cr_assert_str_eq(name, "transcribe." ID "-1");
    free(job->spec->name);
    job->spec->name = xcalloc(NAME_SIZE, 1);
    memset(job->spec->name, 'n', NAME_SIZE - 1);
    attempt_remote_name(job, 32, name);
    cr_assert_eq(strlen(name), NAME_SIZE - 1);
    cr_assert_str_eq(name + NAME_SIZE - 1 - strlen("." ID "-32"), "." ID "-32");
    job_unref(job);
}

Test(job, rows_that_cannot_be_read_are_refused)
{
    static const char *const bad[] = {
        "{}",
        "{\"id\":7}",
        "{\"id\":\"j1\",\"state\":\"dreaming\"}",
        "{\"id\":\"j1\",\"state\":\"queued\",\"lost\":\"1\"}",
        "{\"id\":\"j1\",\"state\":\"queued\",\"lost\":99999999999}",
        "{\"id\":\"j1\",\"state\":\"queued\",\"reason\":7}",
        "{\"id\":\"j1\",\"state\":\"queued\",\"outcome\":\"exploded\"}",
        "{\"id\":\"j1\",\"state\":\"active\",\"attempts\":[{\"state\":\"running\",\"number\":2}]}",
        "{\"id\":\"j1\",\"state\":\"active\",\"attempts\":[{\"state\":\"x\",\"number\":1}]}",
        ("{\"id\":\"j1\",\"state\":\"active\",\"attempts\":[{\"state\":\"ended\",\"number\":1,"
         "\"budgets\":[1]}]}"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err;
        struct job *job = NULL;
        json_t *row = json_loads(bad[i], 0, NULL);
        cr_assert_eq(job_from_row(row, NULL, &job, &err), -1, "%s", bad[i]);
        cr_assert_eq(err.code, ERROR_INTERNAL);
        cr_assert_null(job);
        json_decref(row);
    }
}

Test(job, tables_are_printed_whole)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    job_states_print(out);
    (void)fclose(out);
    static const char *const lines[] = {
        "| `cancelling` |  | cancel asked",
        "| UNKNOWN | `gone` | ENDED |",
        "| CANCELLING | `finish` | CANCELLED | its attempt has ended; or succeeded",
        "| `reclaimed` | lost |",
        "| tombstone | `tomb-set` |",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        cr_assert(strstr(text, lines[i]), "%s is not in\n%s", lines[i], text);
    }
    free(text);
}

Test(job, names_are_found_again)
{
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        cr_assert_eq(job_state_find(job_state_name((enum job_state)i)), i);
    }
    for (int i = 0; i < ATTEMPT_STATE_COUNT; i++) {
        cr_assert_eq(attempt_state_find(attempt_state_name((enum attempt_state)i)), i);
    }
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        cr_assert_eq(outcome_find(outcome_name((enum outcome)i)), i);
    }
    cr_assert_eq(job_state_find("x"), -1);
    cr_assert_str_eq(outcome_cause(OUTCOME_RECLAIMED), "lost");
    cr_assert(job_state_is_final(JOB_EXPIRED) && !job_state_is_final(JOB_CANCELLING));
}

/* ------------------------------------------------------------------- any events, in any order: 10,000 */

enum { CASES = 10000, STEPS = 28 };

struct random {
    uint64_t state;
};

static uint64_t next_random(struct random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

static int below(struct random *random, int end)
{
    return (int)(next_random(random) % (uint64_t)end);
}

#define PICK(random, words) ((words)[below(random, (int)(sizeof(words) / sizeof *(words)))])

static json_t *random_end(struct random *random)
{
    static const char *const outcomes[] = {"exit", "exit",  "exit",      "signal",
                                           "gone", "bogus", "cancelled", "out-of-memory"};
    return json_pack("{s:s, s:i, s:i, s:s, s:I, s:I, s:I}", "outcome", PICK(random, outcomes),
                     "exit_code", below(random, 2), "signal", below(random, 16), "reason", "r",
                     "started", (json_int_t)below(random, 2000), "ended",
                     (json_int_t)below(random, 3000), "settled",
                     (json_int_t)(next_random(random) >> 2));
}

static json_t *random_finish(struct random *random, const struct job *job)
{
    static const char *const states[] = {"succeeded", "failed", "cancelled", "expired", "queued"};
    const struct attempt *attempt = job_attempt(job);
    bool same = attempt && below(random, 4);
    return json_pack("{s:s, s:s, s:i, s:s}", "state", PICK(random, states), "outcome",
                     same ? outcome_name(attempt->outcome) : "exit", "exit_code",
                     same ? attempt->exit_code : below(random, 2), "reason", "it is over");
}

static json_t *random_place(struct random *random)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:[s], s:s, s:i}", "place",
                     below(random, 20) ? "hpc/gpu" : "", "decision", "d17", "rent_expected",
                     (json_int_t)(next_random(random) >> 1), "booked", (json_int_t)17, "price_hour",
                     (json_int_t)below(random, 1000), "budgets", "cloud", "burst",
                     below(random, 2) ? "overflow" : "", "nodes", below(random, 4000));
}

static json_t *random_data(struct random *random, const struct job *job, enum event_kind kind)
{
    static const char *const causes[] = {"lost", "start-failed", "out-of-memory",
                                         "exit", "none",         "bogus"};
    switch (kind) {
    case EVENT_SUBMIT: return submit_data(below(random, 3) ? NULL : "a dependency");
    case EVENT_PLACE: return random_place(random);
    case EVENT_END: return random_end(random);
    case EVENT_FINISH: return random_finish(random, job);
    case EVENT_REQUEUE:
        return json_pack("{s:s, s:s}", "cause", PICK(random, causes), "reason", "again");
    case EVENT_START:
        return json_pack("{s:i, s:s}", "at", below(random, 2) * 700, "node",
                         below(random, 2) ? "n7" : "");
    case EVENT_ACCEPT:
    case EVENT_ADOPT: return json_pack("{s:s}", "native", below(random, 2) ? "4711" : "");
    default: return json_pack("{s:s, s:s}", "reason", "because", "by", "carol");
    }
}

static struct event *random_event(struct random *random, const struct job *job, int64_t now)
{
    enum event_kind kind;
    do {
        kind = (enum event_kind)below(random, EVENT_COUNT);
    } while (event_stream(kind) != STREAM_JOB);
    if (job->state == JOB_NEW && below(random, 2)) {
        kind = EVENT_SUBMIT;
    } else if (job->state == JOB_QUEUED && below(random, 2)) {
        kind = EVENT_PLACE;
    }
    int attempt = job->attempt_count + (kind == EVENT_PLACE);
    attempt += below(random, 8) ? 0 : below(random, 3) - 1;
    return event_create(kind, ID, attempt, now, random_data(random, job, kind));
}

static void assert_same_attempt(const struct attempt *a, const struct attempt *b)
{
    cr_assert(a->number == b->number && a->state == b->state && a->outcome == b->outcome);
    cr_assert_str_eq(a->place, b->place);
    cr_assert_str_eq(a->native_id, b->native_id);
    cr_assert_str_eq(a->reason, b->reason);
    cr_assert_str_eq(a->decision, b->decision);
    cr_assert_str_eq(a->burst, b->burst);
    cr_assert_str_eq(a->node, b->node);
    cr_assert(a->exit_code == b->exit_code && a->signal == b->signal);
    cr_assert(a->placed_ms == b->placed_ms && a->accepted_ms == b->accepted_ms);
    cr_assert(a->started_ms == b->started_ms && a->ended_ms == b->ended_ms);
    cr_assert(a->unknown_ms == b->unknown_ms && a->nodes == b->nodes);
    cr_assert(a->rent_expected == b->rent_expected && a->booked == b->booked);
    cr_assert(a->settled == b->settled && a->price_hour == b->price_hour);
    cr_assert_eq(a->sent_maybe, b->sent_maybe);
    cr_assert_eq(a->budgets.count, b->budgets.count);
    for (size_t i = 0; i < a->budgets.count; i++) {
        cr_assert_str_eq(a->budgets.items[i], b->budgets.items[i]);
    }
}

static void assert_same(const struct job *a, const struct job *b)
{
    cr_assert_str_eq(a->id, b->id);
    cr_assert_eq(a->state, b->state);
    cr_assert_eq(a->spec, b->spec);
    cr_assert(!a->owner == !b->owner && (!a->owner || strcmp(a->owner, b->owner) == 0));
    cr_assert(!a->key == !b->key && (!a->key || strcmp(a->key, b->key) == 0));
    cr_assert(a->submitted_ms == b->submitted_ms && a->queued_ms == b->queued_ms);
    cr_assert(a->finished_ms == b->finished_ms && a->lost == b->lost && a->exits == b->exits);
    cr_assert(a->start_failed == b->start_failed && a->out_of_memory == b->out_of_memory);
    cr_assert(a->outcome == b->outcome && a->exit_code == b->exit_code && a->signal == b->signal);
    cr_assert_str_eq(a->reason, b->reason);
    cr_assert_str_eq(a->cancelled_by, b->cancelled_by);
    cr_assert_eq(a->attempt_count, b->attempt_count);
    for (int i = 0; i < a->attempt_count; i++) {
        assert_same_attempt(&a->attempts[i], &b->attempts[i]);
    }
}

static void assert_round_trip(const struct job *job, const char *text)
{
    struct error err;
    struct job *again;
    json_t *row = json_loads(text, 0, NULL);
    cr_assert_eq(job_from_row(row, job->spec, &again, &err), 0, "%s", err.text);
    assert_same(job, again);
    char *twice = row_text(again);
    cr_assert_str_eq(text, twice);
    free(twice);
    json_decref(row);
    job_unref(again);
}

/* Which steps of the tables the cases took. */
static bool job_took[JOB_STATE_COUNT][EVENT_COUNT];
static bool attempt_took[ATTEMPT_STATE_COUNT][EVENT_COUNT];

/* row: the job's as text; replaced when it changes. */
static bool step(struct job *job, const struct event *event, char **row)
{
    struct error err;
    enum job_state state = job->state;
    enum attempt_state attempt = job->attempt_count ? job_attempt(job)->state : ATTEMPT_NONE;
    int result = job_apply(job, event, &err);
    char *before = *row, *after = row_text(job);
    *row = after;
    if (result < 0) {
        cr_assert_str_eq(before, after, "a refused '%s' changed the job", event_name(event->kind));
        cr_assert(err.code == ERROR_CONFLICT || err.code == ERROR_INVALID, "%s", err.text);
        cr_assert(*err.text);
    } else if (event->kind == EVENT_LATE || job_state_is_final(state)) {
        cr_assert_eq(event->kind, EVENT_LATE, "a final job took '%s'", event_name(event->kind));
        cr_assert_str_eq(before, after);
    } else {
        job_took[state][event->kind] = true;
        attempt_took[event->kind == EVENT_PLACE ? ATTEMPT_NONE : attempt][event->kind] = true;
        assert_round_trip(job, after);
    }
    free(before);
    return result == 0;
}

static void replay(const struct job *job, struct event *const *events, int count)
{
    struct job *again = job_create(ID);
    for (int i = 0; i < count; i++) {
        struct error err;
        cr_assert_eq(job_apply(again, events[i], &err), 0, "%s", err.text);
    }
    char *first = row_text(job), *second = row_text(again);
    cr_assert_str_eq(first, second);
    free(first);
    free(second);
    job_unref(again);
}

static int run_case(struct random *random)
{
    struct event *taken[STEPS];
    int count = 0;
    struct job *job = job_create(ID);
    char *row = row_text(job);
    for (int i = 0; i < STEPS; i++) {
        struct event *event = random_event(random, job, 1000 + i);
        if (step(job, event, &row)) {
            taken[count++] = event;
        } else {
            event_destroy(event);
        }
    }
    replay(job, taken, count);
    for (int i = 0; i < count; i++) {
        event_destroy(taken[i]);
    }
    free(row);
    job_unref(job);
    return count;
}

Test(job, any_events_in_any_order, .timeout = 100)
{
    struct random random = {UINT64_C(0x9E3779B97F4A7C15)};
    int taken = 0;
    for (int i = 0; i < CASES; i++) {
        taken += run_case(&random);
    }
    cr_assert_gt(taken, CASES * 3, "the cases hardly went anywhere: %d events", taken);
#define X(state, event, next, note)                                                                \
    cr_assert(job_took[JOB_##state][EVENT_##event], "never taken: " #state " " #event);
    JOB_TRANSITION_LIST(X)
#undef X
#define X(state, event, next, note)                                                                \
    cr_assert(attempt_took[ATTEMPT_##state][EVENT_##event], "never taken: " #state " " #event);
    ATTEMPT_TRANSITION_LIST(X)
#undef X
}
