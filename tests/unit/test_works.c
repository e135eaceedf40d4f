/* test_works.c - what a supervisor knows: replay, admission, slots, memory of the forgotten. */
#include "adapters/node/works.h"

#include "broker/core/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct works works;

static void set_up(void)
{
    struct error err;
    json_t *places =
        json_pack("[{s:s,s:i,s:I}, {s:s,s:i,s:I}]", "name", "a", "cpus", 4000, "memory",
                  (json_int_t)1000, "name", "b", "cpus", 1000, "memory", (json_int_t)1000);
    works_init(&works);
    cr_assert_eq(works_places(&works, places, &err), 0);
    json_decref(places);
}

static void tear_down(void)
{
    works_fini(&works);
}

TestSuite(works, .init = set_up, .fini = tear_down);

static json_t *submit(int number, int attempt, const char *place, int cpus, int memory)
{
    char job[ID_SIZE];
    (void)snprintf(job, sizeof job, "j%015d", number);
    return json_pack("{s:s,s:i,s:s,s:I,s:s,s:i,s:i,s:i,s:i,s:[s],s:[s]}", "job", job, "attempt",
                     attempt, "name", "n", "intent_ms", (json_int_t)number, "place", place, "cpus",
                     cpus, "memory", memory, "limit_ms", 1000, "grace_ms", 10, "argv", "true",
                     "env", "A=b");
}

static int admit_take(json_t *json, enum error_code *code)
{
    struct error err = {.code = ERROR_NONE};
    int admitted = works_admit(&works, json, &err);
    if (admitted > 0) {
        json_t *record = json_pack("{s:s,s:O}", "k", "accept", "work", json);
        works_apply(&works, record);
        json_decref(record);
    }
    json_decref(json);
    if (code) {
        *code = err.code;
    }
    return admitted;
}

static void apply(const char *kind, struct work *work)
{
    json_t *record = work_record(kind, work);
    json_object_set_new(record, "at_ms", json_integer(77));
    json_object_set_new(record, "boot", json_string("boot"));
    json_object_set_new(record, "exit", json_pack("{s:s,s:i}", "outcome", "exit", "code", 3));
    works_apply(&works, record);
    json_decref(record);
}

static int started;

static void start(void *arg, struct work *work)
{
    (void)arg;
    started++;
    apply("start", work);
}

static int schedule(void)
{
    started = 0;
    works_schedule(&works, start, NULL);
    return started;
}

Test(works, slots_by_cpus_and_memory)
{
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(admit_take(submit(i, 1, "a", 1000, 300), NULL), 1);
    }
    cr_expect_eq(schedule(), 3, "three fit in memory");
    const struct slots *place = works_place(&works, "a");
    cr_expect_eq(place->running, 3);
    cr_expect_eq(place->waiting, 3);
    cr_expect_eq(place->used_memory, 900);
    cr_expect_eq(schedule(), 0);
    apply("end", works.items[0]);
    cr_expect_eq(schedule(), 1);
    cr_expect_eq(works.items[3]->state, WORK_STARTED);
    cr_expect_eq(works.items[0]->end.exit_code, 3);
}

Test(works, first_come_first_served_in_each_place)
{
    (void)admit_take(submit(1, 1, "a", 3000, 1), NULL);
    (void)admit_take(submit(2, 1, "a", 2000, 1), NULL);
    (void)admit_take(submit(3, 1, "a", 1000, 1), NULL);
    (void)admit_take(submit(4, 1, "b", 1000, 1), NULL);
    cr_expect_eq(schedule(), 2);
    cr_expect_eq(works.items[1]->state, WORK_QUEUED);
    cr_expect_eq(works.items[2]->state, WORK_QUEUED, "it would fit, but it is not its turn");
    cr_expect_eq(works.items[3]->state, WORK_STARTED, "another place has its own line");
}

Test(works, admission)
{
    enum error_code code;
    cr_expect_eq(admit_take(submit(1, 2, "a", 1000, 1), NULL), 1);
    cr_expect_eq(admit_take(submit(1, 2, "a", 1000, 1), NULL), 0, "the same again");
    json_t *other = submit(1, 2, "a", 1000, 1);
    json_object_set_new(other, "intent_ms", json_integer(99));
    cr_expect_eq(admit_take(other, &code), -1);
    cr_expect_eq(code, ERROR_CONFLICT);
    cr_expect_eq(admit_take(submit(1, 1, "a", 1000, 1), &code), -1, "a lower attempt");
    cr_expect_eq(code, ERROR_CONFLICT);
    cr_expect_eq(admit_take(submit(1, 3, "a", 1000, 1), NULL), 1, "the next attempt");
    cr_expect_eq(admit_take(submit(2, 1, "a", 5000, 1), &code), -1);
    cr_expect_eq(code, ERROR_IMPOSSIBLE);
    cr_expect_eq(admit_take(submit(2, 1, "a", 1000, 1001), &code), -1);
    cr_expect_eq(code, ERROR_IMPOSSIBLE);
    cr_expect_eq(admit_take(submit(2, 1, "c", 1000, 1), &code), -1);
    cr_expect_eq(code, ERROR_NOT_FOUND);
}

Test(works, unusable_submits)
{
    static const char *const names[] = {"job", "attempt", "argv", "env", "cpus", "limit_ms"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum error_code code;
        json_t *json = submit(1, 1, "a", 1000, 1);
        json_object_set_new(json, names[i], json_integer(-1));
        cr_expect_eq(admit_take(json, &code), -1, "%s", names[i]);
        cr_expect_eq(code, ERROR_INVALID, "%s", names[i]);
    }
    json_t *path = submit(1, 1, "a", 1000, 1);
    json_object_set_new(path, "job", json_string("j/../../../../etc"));
    cr_expect_eq(admit_take(path, NULL), -1, "a job is no path");
}

Test(works, more_than_the_limit_is_refused)
{
    enum error_code code = ERROR_NONE;
    for (int i = 0; i < WORKS_MAX; i++) {
        cr_assert_eq(admit_take(submit(i, 1, "a", 1000, 1), NULL), 1);
    }
    cr_expect_eq(admit_take(submit(WORKS_MAX, 1, "a", 1000, 1), &code), -1);
    cr_expect_eq(code, ERROR_TOO_MANY);
}

Test(works, forgotten_attempts_do_not_come_back)
{
    (void)admit_take(submit(1, 2, "a", 1000, 1), NULL);
    const struct work *work = works.items[0];
    apply("end", works.items[0]);
    apply("forget", works.items[0]);
    (void)work;
    cr_expect_eq(works.count, 0);
    cr_expect(works_was_seen(&works, "j000000000000001", 2));
    cr_expect_not(works_was_seen(&works, "j000000000000001", 1), "it was never here");
    cr_expect_eq(admit_take(submit(1, 2, "a", 1000, 1), NULL), -1);
    cr_expect_eq(admit_take(submit(1, 1, "a", 1000, 1), NULL), -1);
    cr_expect_eq(admit_take(submit(1, 3, "a", 1000, 1), NULL), 1);
    works_prune(&works, 77);
    cr_expect(works_was_seen(&works, "j000000000000001", 2));
    works_prune(&works, 78);
    cr_expect_not(works_was_seen(&works, "j000000000000001", 2));
}

Test(works, memory_of_the_forgotten_is_bounded)
{
    for (int i = 0; i < WORKS_SEEN_MAX + 10; i++) {
        char job[ID_SIZE];
        (void)snprintf(job, sizeof job, "j%015d", i);
        json_t *record =
            json_pack("{s:s,s:s,s:i,s:i}", "k", "seen", "job", job, "attempts", 1, "at_ms", i);
        works_apply(&works, record);
        json_decref(record);
    }
    cr_expect_eq(works.seen_count, WORKS_SEEN_MAX);
    cr_expect(works_was_seen(&works, "j000000000065545", 1));
    cr_expect_not(works_was_seen(&works, "j000000000000009", 1));
}

Test(works, records_give_the_same_state_again)
{
    for (int i = 1; i <= 5; i++) {
        (void)admit_take(submit(i, 1, "a", 1000, 1), NULL);
    }
    apply("start", works.items[0]);
    apply("start", works.items[1]);
    apply("cancel", works.items[1]);
    apply("start", works.items[2]);
    apply("end", works.items[2]);
    apply("end", works.items[3]);
    apply("forget", works.items[3]);
    json_t *records = works_records(&works);
    struct works other;
    works_init(&other);
    size_t i;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        works_apply(&other, record);
    }
    json_t *again = works_records(&other);
    cr_expect(json_equal(records, again));
    cr_expect_eq(other.count, 4);
    cr_expect_eq(other.items[0]->state, WORK_STARTED);
    cr_expect(other.items[1]->cancelled);
    cr_expect_eq(other.items[2]->end.outcome, OUTCOME_EXIT);
    cr_expect_eq(other.items[3]->state, WORK_QUEUED);
    cr_expect_not_null(other.items[3]->argv);
    cr_expect(works_was_seen(&other, "j000000000000004", 1));
    json_decref(again);
    json_decref(records);
    works_fini(&other);
}

Test(works, queued_bytes_are_counted_back)
{
    (void)admit_take(submit(1, 1, "a", 1000, 1), NULL);
    (void)admit_take(submit(2, 1, "a", 1000, 1), NULL);
    cr_expect_gt(works.queued_bytes, 0);
    works_started(&works, works.items[0]);
    apply("end", works.items[1]);
    cr_expect_eq(works.queued_bytes, 0);
}
