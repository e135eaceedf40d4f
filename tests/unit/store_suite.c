/* store_suite.c - the cases: writing and reading. Keys, pruning and closing: store_suite_life.c. */
#include "tests/unit/store_suite.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 SUITE_WALL_MS

static const char *name_of(int i)
{
    static char id[ID_SIZE];
    (void)snprintf(id, sizeof id, "j%09d%06d", i, i * 7);
    return id;
}

static void expect_ids(json_t *rows, const char *const *ids, size_t count)
{
    cr_assert_eq(json_array_size(rows), count, "%zu rows, not %zu", json_array_size(rows), count);
    for (size_t i = 0; i < count; i++) {
        const char *id = json_string_value(json_object_get(json_array_get(rows, i), "id"));
        cr_assert_str_eq(id, ids[i]);
    }
}

void store_suite_completes_in_order(struct suite *suite)
{
    enum { PUTS = 60 };
    static struct put puts[PUTS];
    for (int i = 0; i < PUTS; i++) {
        put_init(&puts[i]);
        for (int k = 0; k <= i % 4; k++) {
            (void)put_event(&puts[i], EVENT_UP, "hpc", 0, T0 + i);
        }
        put_append_ok(&puts[i], suite);
    }
    put_wait(&puts[PUTS - 1], suite);
    for (int i = 0; i < PUTS; i++) {
        cr_assert(puts[i].done);
        cr_assert_eq(puts[i].order, puts[0].order + i);
        put_fini(&puts[i]);
    }
}

void store_suite_numbers_have_no_gaps(struct suite *suite)
{
    int64_t seq = 0;
    for (int i = 0; i < 5; i++) {
        struct put put;
        put_init(&put);
        (void)put_event(&put, EVENT_UP, "hpc", 0, T0);
        (void)put_doc(&put, STORE_META, "x", T0, "{}");
        (void)put_event(&put, EVENT_DOWN, "hpc", 0, T0);
        put_append_ok(&put, suite);
        put_wait(&put, suite);
        cr_assert_eq(put.items[0].seq, seq + 1);
        cr_assert_eq(put.items[1].seq, 0);
        cr_assert_eq(put.items[2].seq, seq + 2);
        seq += 2;
        put_fini(&put);
    }
}

static void expect_text(json_t *json, const char *text)
{
    char *have = json_dumps(json, JSON_COMPACT);
    cr_assert_str_eq(have, text);
    free(have);
}

void store_suite_gives_rows_back(struct suite *suite)
{
    struct put put;
    struct got got;
    put_init(&put);
    (void)put_submit(&put, "j00000000100000a", "ada", T0 + 5);
    (void)put_event(&put, EVENT_DRAIN, "hpc/gpu", 0, T0 + 6);
    put_now(&put, suite);
    got_jobs(&got, suite, &(struct store_filter){.limit = 10});
    expect_text(
        got.rows,
        "[{\"id\":\"j00000000100000a\",\"owner\":\"ada\",\"team\":\"red\",\"class\":\"batch\","
        "\"name\":\"train\",\"state\":\"queued\",\"place\":\"\",\"attempt\":0,"
        "\"submitted_ms\":1790000000005,\"finished_ms\":0,"
        "\"row\":{\"state\":\"queued\",\"id\":\"j00000000100000a\"},"
        "\"submit\":{\"of\":\"j00000000100000a\",\"n\":7}}]");
    cr_assert(!got.more);
    got_fini(&got);
    got_events(&got, suite, NULL, 0, 10);
    expect_text(
        got.rows,
        "[{\"v\":1,\"seq\":1,\"at_ms\":1790000000005,\"stream\":\"job\",\"kind\":\"submit\","
        "\"id\":\"j00000000100000a\",\"attempt\":0,"
        "\"data\":{\"of\":\"j00000000100000a\",\"n\":7}},"
        "{\"v\":1,\"seq\":2,\"at_ms\":1790000000006,\"stream\":\"cluster\",\"kind\":\"drain\","
        "\"id\":\"hpc/gpu\",\"attempt\":0,\"data\":{\"of\":\"hpc/gpu\",\"n\":7}}]");
    cr_assert(!got.more);
    got_fini(&got);
}

void store_suite_updates_rows(struct suite *suite)
{
    struct put put;
    struct got got;
    put_init(&put);
    (void)put_submit(&put, "j000000001000001", "ada", T0);
    put_now(&put, suite);
    put_init(&put);
    (void)put_update(&put, EVENT_PLACE, "j000000001000001", "active", 0, T0 + 1);
    put_now(&put, suite);
    got_jobs(&got, suite, &(struct store_filter){.state = "active", .limit = 10});
    json_t *job = json_array_get(got.rows, 0);
    cr_assert_str_eq(json_string_value(json_object_get(job, "place")), "hpc/gpu");
    cr_assert_eq(json_integer_value(json_object_get(job, "attempt")), 1);
    cr_assert_eq(json_integer_value(json_object_get(job, "submitted_ms")), T0);
    got_fini(&got);
    put_init(&put);
    (void)put_update(&put, EVENT_FINISH, "j000000001000001", "succeeded", T0 + 9, T0 + 9);
    put_now(&put, suite);
    got_jobs(&got, suite, &(struct store_filter){.state = "final", .limit = 10});
    job = json_array_get(got.rows, 0);
    cr_assert_eq(json_integer_value(json_object_get(job, "finished_ms")), T0 + 9);
    cr_assert_str_eq(json_string_value(json_object_get(job, "state")), "succeeded");
    cr_assert(json_is_object(json_object_get(job, "submit")), "the submit event was lost");
    got_fini(&got);
    got_jobs(&got, suite, &(struct store_filter){.state = "live", .limit = 10});
    cr_assert_eq(json_array_size(got.rows), 0);
    got_fini(&got);
}

static void put_five(struct suite *suite)
{
    static const struct {
        const char *id, *owner, *team, *class_name, *name;
    } jobs[] = {
        {"j00000000100aaaa", "ada", "red", "batch", "one"},
        {"j00000000200bbbb", "bob", "red", "batch", "two"},
        {"j00000000300ccaa", "ada", "blue", "batch", "two"},
        {"j00000000400dddd", "ada", "red", "training", "two"},
        {"j00000000500eaaa", "eve", "red", "batch", "five"},
    };
    struct put put;
    put_init(&put);
    for (int i = 0; i < 5; i++) {
        struct store_row *row = put_submit(&put, jobs[i].id, jobs[i].owner, T0 + i * 10)->row;
        row->team = jobs[i].team;
        row->class_name = jobs[i].class_name;
        row->name = jobs[i].name;
    }
    put_now(&put, suite);
    put_init(&put);
    (void)put_update(&put, EVENT_PLACE, jobs[1].id, "active", 0, T0 + 60);
    (void)put_update(&put, EVENT_FINISH, jobs[2].id, "failed", T0 + 70, T0 + 70);
    put_now(&put, suite);
}

void store_suite_filters_jobs(struct suite *suite)
{
    put_five(suite);
    static const struct {
        const char *what;
        struct store_filter filter;
        const char *ids; /* by the last number of their time */
    } cases[] = {
        {"all", {.limit = 9}, "54321"},
        {"state", {.state = "queued", .limit = 9}, "541"},
        {"live", {.state = "live", .limit = 9}, "5421"},
        {"final", {.state = "final", .limit = 9}, "3"},
        {"owner", {.owner = "ada", .limit = 9}, "431"},
        {"team", {.team = "blue", .limit = 9}, "3"},
        {"class", {.class_name = "training", .limit = 9}, "4"},
        {"name", {.name = "two", .limit = 9}, "432"},
        {"place", {.place = "hpc/gpu", .limit = 9}, "32"},
        {"short suffix", {.suffix = "aa", .limit = 9}, "531"},
        {"suffix", {.suffix = "0eaaa", .limit = 9}, "5"},
        {"suffix of four", {.suffix = "aaaa", .limit = 9}, "1"},
        {"whole id", {.suffix = "j00000000400dddd", .limit = 9}, "4"},
        {"longer than an id", {.suffix = "xj00000000400dddd", .limit = 9}, ""},
        {"no wildcard", {.suffix = "%", .limit = 9}, ""},
        {"since", {.since_ms = T0 + 20, .limit = 9}, "543"},
        {"until", {.until_ms = T0 + 20, .limit = 9}, "321"},
        {"both", {.since_ms = T0 + 10, .until_ms = T0 + 30, .limit = 9}, "432"},
        {"many", {.owner = "ada", .state = "live", .name = "two", .since_ms = T0, .limit = 9}, "4"},
        {"live of an owner since",
         {.owner = "ada", .state = "live", .since_ms = T0 + 5, .limit = 9},
         "4"},
        {"quoting", {.owner = "a'da", .limit = 9}, ""},
        {"cursor", {.cursor = "j00000000300ccaa", .limit = 9}, "21"},
        {"cursor and owner", {.cursor = "j00000000300ccaa", .owner = "ada", .limit = 9}, "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct got got;
        char ids[10] = "";
        got_jobs(&got, suite, &cases[i].filter);
        for (size_t k = 0; k < json_array_size(got.rows); k++) {
            ids[k] = json_string_value(json_object_get(json_array_get(got.rows, k), "id"))[9];
        }
        cr_expect_str_eq(ids, cases[i].ids, "%s: '%s', not '%s'", cases[i].what, ids, cases[i].ids);
        got_fini(&got);
    }
}

void store_suite_pages_jobs(struct suite *suite)
{
    put_five(suite);
    static const char *const pages[3][2] = {{"j00000000500eaaa", "j00000000400dddd"},
                                            {"j00000000300ccaa", "j00000000200bbbb"},
                                            {"j00000000100aaaa", NULL}};
    struct store_filter filter = {.limit = 2};
    for (int i = 0; i < 3; i++) {
        struct got got;
        got_jobs(&got, suite, &filter);
        expect_ids(got.rows, pages[i], i < 2 ? 2 : 1);
        cr_assert_eq(got.more, i < 2);
        copy_text(filter.cursor, sizeof filter.cursor, pages[i][1]);
        got_fini(&got);
    }
}

void store_suite_pages_events(struct suite *suite)
{
    struct put put;
    struct got got;
    put_init(&put);
    for (int i = 0; i < 7; i++) {
        (void)put_event(&put, EVENT_LATE, i % 2 ? "j000000000000odd" : "j00000000000even", i,
                        T0 + i);
    }
    put_now(&put, suite);
    static const struct {
        const char *id;
        int64_t after;
        int limit;
        size_t count;
        int64_t last;
        bool more;
    } cases[] = {
        {NULL, 0, 3, 3, 3, true},
        {NULL, 3, 3, 3, 6, true},
        {NULL, 6, 3, 1, 7, false},
        {NULL, 4, 3, 3, 7, false},
        {NULL, 7, 3, 0, 0, false},
        {"j000000000000odd", 0, 2, 2, 4, true},
        {"j000000000000odd", 4, 2, 1, 6, false},
        {"jnone", 0, 2, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        got_events(&got, suite, cases[i].id, cases[i].after, cases[i].limit);
        size_t count = json_array_size(got.rows);
        json_t *last = count ? json_array_get(got.rows, count - 1) : NULL;
        cr_expect_eq(count, cases[i].count, "case %zu: %zu", i, count);
        cr_expect_eq(json_integer_value(json_object_get(last, "seq")), cases[i].last, "case %zu",
                     i);
        cr_expect_eq(got.more, cases[i].more, "case %zu", i);
        got_fini(&got);
    }
}

void store_suite_ends_pages_by_bytes(struct suite *suite)
{
    enum { JOBS = 12, BYTES = 1024 * 1024 };
    char *text = xcalloc(BYTES + 1, 1);
    memset(text, 'x', BYTES);
    for (int i = 0; i < JOBS; i++) {
        struct put put;
        put_init(&put);
        struct store_item *item = put_submit(&put, name_of(i), "ada", T0 + i);
        (void)json_object_set_new(item->event->data, "run", json_string(text));
        put_now(&put, suite);
    }
    free(text);
    struct store_filter filter = {.limit = LIMIT_LIST_ROWS};
    size_t found = 0;
    int pages = 0;
    struct got got = {.more = true};
    for (; got.more; pages++) {
        got_fini(&got);
        got_jobs(&got, suite, &filter);
        size_t count = json_array_size(got.rows);
        cr_assert_gt(count, 0);
        cr_assert_leq(count * BYTES, (size_t)LIMIT_READ_BYTES);
        found += count;
        json_t *last = json_array_get(got.rows, count - 1);
        copy_text(filter.cursor, ID_SIZE, json_string_value(json_object_get(last, "id")));
    }
    got_fini(&got);
    cr_assert_eq(found, JOBS);
    cr_assert_gt(pages, 1);
    got_events(&got, suite, NULL, 0, LIMIT_EVENT_ROWS);
    cr_assert(got.more);
    got_fini(&got);
}

void store_suite_refuses_a_second_job_alone(struct suite *suite)
{
    struct put puts[3];
    for (int i = 0; i < 3; i++) {
        put_init(&puts[i]);
        (void)put_event(&puts[i], EVENT_UP, "hpc", 0, T0);
        (void)put_submit(&puts[i], i < 2 ? "j000000001000001" : "j000000002000002", "ada", T0);
        put_append_ok(&puts[i], suite);
    }
    for (int i = 0; i < 3; i++) {
        put_wait(&puts[i], suite);
    }
    cr_assert_eq(puts[0].err.code, ERROR_NONE, "%s", puts[0].err.text);
    cr_assert_eq(puts[1].err.code, ERROR_CONFLICT);
    cr_assert_str_eq(puts[1].err.text, "job j000000001000001 exists already");
    cr_assert_eq(puts[1].items[0].result, STORE_FAILED, "a batch is all or nothing");
    cr_assert_eq(puts[1].items[0].seq, 0);
    cr_assert_eq(puts[1].items[1].result, STORE_FAILED);
    cr_assert_eq(puts[2].items[0].seq, 3, "the numbers of a failed batch are given again");
    struct store_stats stats;
    suite->store->ops->stats(suite->store, &stats);
    cr_assert(!stats.failing, "one bad batch is no failing store");
    struct got got;
    got_events(&got, suite, NULL, 0, 10);
    cr_assert_eq(json_array_size(got.rows), 4);
    got_fini(&got);
    for (int i = 0; i < 3; i++) {
        put_fini(&puts[i]);
    }
}

void store_suite_refuses_rows_without_submit(struct suite *suite)
{
    struct put put;
    put_init(&put);
    (void)put_update(&put, EVENT_START, "j000000001000001", "active", 0, T0);
    put_append_ok(&put, suite);
    put_wait(&put, suite);
    cr_assert_eq(put.err.code, ERROR_CONFLICT);
    cr_assert_str_eq(put.err.text, "job j000000001000001 was never submitted");
    put_fini(&put);
    put_init(&put);
    (void)put_submit(&put, "j000000001000001", "ada", T0);
    (void)put_update(&put, EVENT_PLACE, "j000000001000001", "active", 0, T0);
    put_now(&put, suite);
}

void store_suite_keeps_documents(struct suite *suite)
{
    struct put put;
    put_init(&put);
    (void)put_doc(&put, STORE_META, "burst", T0 + 1, "one");
    (void)put_doc(&put, STORE_META, "drain", T0 + 2, "two");
    (void)put_doc(&put, STORE_META, "burst", T0 + 3, "three");
    (void)put_doc(&put, STORE_SIGNALS, "hpc", T0 + 1, "10");
    (void)put_doc(&put, STORE_SIGNALS, "hpc", T0 + 2, "20");
    (void)put_doc(&put, STORE_SIGNALS, "cloud", T0 + 3, "30");
    put_now(&put, suite);
    static const struct {
        enum store_table table;
        const char *id;
        int limit;
        const char *texts;
        bool more;
    } cases[] = {
        {STORE_META, "burst", 1, "three", false}, {STORE_META, NULL, 9, "three two", false},
        {STORE_META, NULL, 1, "three", true},     {STORE_META, "none", 9, "", false},
        {STORE_POLICIES, NULL, 9, "", false},     {STORE_SIGNALS, "hpc", 9, "20 10", false},
        {STORE_SIGNALS, "hpc", 1, "20", true},    {STORE_SIGNALS, NULL, 2, "30 20", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct got got;
        char texts[64] = "";
        got_docs(&got, suite, cases[i].table, cases[i].id, cases[i].limit);
        for (size_t k = 0; k < json_array_size(got.rows); k++) {
            size_t have = strlen(texts);
            json_t *row = json_array_get(got.rows, k);
            (void)snprintf(texts + have, sizeof texts - have, "%s%s", have ? " " : "",
                           json_string_value(json_object_get(row, "text")));
            cr_assert(json_is_integer(json_object_get(row, "at_ms")));
        }
        cr_expect_str_eq(texts, cases[i].texts, "case %zu: %s", i, texts);
        cr_expect_eq(got.more, cases[i].more, "case %zu", i);
        got_fini(&got);
    }
}

/* What a loader was told, as one text. */
struct told {
    char text[4096];
    size_t length;
    const char *refuse; /* the part at which the loader fails */
};

static int tell(struct told *told, struct error *err, const char *part, const char *text)
{
    int n = snprintf(told->text + told->length, sizeof told->text - told->length, "%s %s\n", part,
                     text);
    told->length += (size_t)n;
    cr_assert_lt(told->length, sizeof told->text);
    if (told->refuse && strcmp(told->refuse, part) == 0) {
        return error_set(err, ERROR_INVALID, "no %s wanted", part);
    }
    return 0;
}

static int told_job(void *arg, const json_t *row, const struct event *submit, struct error *err)
{
    char *row_text = json_dumps(row, JSON_COMPACT);
    char *text = xasprintf("%s %" PRId64 " %s", row_text, submit->seq, event_str(submit, "of"));
    int result = tell(arg, err, event_name(submit->kind), text);
    free(row_text);
    free(text);
    return result;
}

static int told_doc(void *arg, enum store_table table, const char *id, const char *text,
                    struct error *err)
{
    static const char *const names[] = {"decision", "policy", "signal", "meta"};
    char *line = xasprintf("%s %s", id, text);
    int result = tell(arg, err, names[table], line);
    free(line);
    return result;
}

static int told_tombstone(void *arg, const struct event *event, struct error *err)
{
    char *line = xasprintf("%s %" PRId64 " %s", event->id, event->seq, event_str(event, "of"));
    int result = tell(arg, err, "tombstone", line);
    free(line);
    return result;
}

static int load(struct suite *suite, struct told *told, struct error *err)
{
    struct store_loader loader = {told, told_job, told_doc, told_tombstone};
    return suite->store->ops->load(suite->store, &loader, err);
}

static void put_history(struct suite *suite)
{
    struct put put;
    put_init(&put);
    (void)put_submit(&put, "j000000002000002", "ada", T0);
    (void)put_submit(&put, "j000000001000001", "ada", T0 + 1);
    (void)put_submit(&put, "j000000003000003", "ada", T0 + 2);
    (void)put_doc(&put, STORE_POLICIES, "aa", T0 + 9, "p1");
    (void)put_doc(&put, STORE_POLICIES, "bb", T0 + 8, "p2");
    (void)put_doc(&put, STORE_POLICIES, "aa", T0 + 7, "p1");
    (void)put_doc(&put, STORE_DECISIONS, "d1", T0 - STORE_DAY_MS - 1, "old");
    (void)put_doc(&put, STORE_DECISIONS, "d2", T0 - STORE_DAY_MS + 3600000, "new");
    (void)put_doc(&put, STORE_SIGNALS, "s", T0, "signal");
    (void)put_doc(&put, STORE_META, "m2", T0, "two");
    (void)put_doc(&put, STORE_META, "m1", T0, "one");
    (void)put_event(&put, EVENT_TOMB_SET, "t1", 0, T0);
    (void)put_event(&put, EVENT_TOMB_SET, "t2", 0, T0);
    (void)put_event(&put, EVENT_TOMB_SET, "t3", 0, T0);
    put_now(&put, suite);
    put_init(&put);
    (void)put_update(&put, EVENT_PLACE, "j000000002000002", "active", 0, T0 + 3);
    (void)put_update(&put, EVENT_FINISH, "j000000003000003", "failed", T0 + 4, T0 + 4);
    (void)put_event(&put, EVENT_TOMB_CLEAR, "t2", 0, T0);
    (void)put_event(&put, EVENT_TOMB_SET, "t1", 0, T0);
    put_now(&put, suite);
}

void store_suite_loads_what_a_restart_needs(struct suite *suite)
{
    put_history(suite);
    for (int i = 0; i < 2; i++) {
        struct told told = {0};
        struct error err = {0};
        cr_assert_eq(load(suite, &told, &err), 0, "%s", err.text);
        cr_assert_str_eq(
            told.text,
            "meta m1 one\n"
            "meta m2 two\n"
            "policy aa p1\n"
            "decision d2 new\n"
            "submit {\"state\":\"active\",\"id\":\"j000000002000002\"} 1 j000000002000002\n"
            "submit {\"state\":\"queued\",\"id\":\"j000000001000001\"} 2 j000000001000001\n"
            "tombstone t3 6 t3\n"
            "tombstone t1 10 t1\n");
        suite->reopen(suite);
    }
}

void store_suite_loads_nothing_from_an_empty_store(struct suite *suite)
{
    struct told told = {0};
    struct error err = {0};
    cr_assert_eq(load(suite, &told, &err), 0, "%s", err.text);
    cr_assert_eq(told.length, 0);
}

void store_suite_passes_on_what_a_loader_says(struct suite *suite)
{
    put_history(suite);
    static const char *const parts[] = {"meta", "policy", "decision", "submit", "tombstone"};
    for (int i = 0; i < 5; i++) {
        struct told told = {.refuse = parts[i]};
        struct error err = {0};
        char text[64];
        (void)snprintf(text, sizeof text, "no %s wanted", parts[i]);
        cr_assert_eq(load(suite, &told, &err), -1);
        cr_assert_eq(err.code, ERROR_INVALID);
        cr_assert_str_eq(err.text, text);
    }
}
