/* test_queue.c - who is next: classes by weight, teams by age, priority inside a team, shapes set aside. */
#include "tests/unit/engine_lab.h"

#include <criterion/criterion.h>
#include <string.h>

static const char three_classes[] = "classes:\n"
                                    "  inference: {order: 1, share: 70%}\n"
                                    "  training: {order: 2, share: 20%}\n"
                                    "  batch: {order: 3, share: 10%}\n";

static struct entry *add(struct engine *engine, const char *class_name, int cpus, const char *extra)
{
    struct entry *entry = engine_job(engine, class_name, cpus, extra);
    queue_add(engine->context.queue, entry);
    return entry;
}

static struct entry *take(struct engine *engine)
{
    struct entry *entry = queue_next(engine->context.queue);
    if (entry) {
        queue_take(engine->context.queue, entry);
    }
    return entry;
}

Test(queue, oldest_first_inside_a_shape)
{
    struct engine *engine = engine_open(three_classes);
    struct entry *jobs[5];
    for (int i = 0; i < 5; i++) {
        jobs[i] = add(engine, "batch", 1, "");
    }
    queue_remove(engine->context.queue, jobs[1]);
    queue_remove(engine->context.queue, jobs[1]); /* harmless */
    queue_add(engine->context.queue, jobs[1]);    /* comes back to where it was */
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(take(engine), jobs[i], "job %d", i);
    }
    cr_assert_null(take(engine));
    cr_assert_null(queue_shapes(engine->context.queue));
    engine_close(engine);
}

Test(queue, classes_get_their_shares_and_nobody_starves)
{
    static const char *const classes[] = {"inference", "training", "batch"};
    static const int shares[] = {700, 200, 100};
    struct engine *engine = engine_open(three_classes);
    int starts[3] = {0}, last[3] = {0}, gap[3] = {0};
    for (int i = 0; i < 1000; i++) {
        for (int c = 0; c < 3; c++) {
            add(engine, classes[c], 1, "");
        }
    }
    for (int i = 1; i <= 1000; i++) {
        struct entry *entry = take(engine);
        for (int c = 0; c < 3; c++) {
            if (strcmp(entry->job->spec->class_name, classes[c]) == 0) {
                gap[c] = i - last[c] > gap[c] ? i - last[c] : gap[c];
                last[c] = i;
                starts[c]++;
            }
        }
    }
    for (int c = 0; c < 3; c++) {
        cr_assert(starts[c] >= shares[c] - 20 && starts[c] <= shares[c] + 20, "%s: %d of 1000",
                  classes[c], starts[c]);
        cr_assert_leq(gap[c], 2 * 1000 / shares[c] + 1, "%s waited %d turns", classes[c], gap[c]);
    }
    engine_close(engine);
}

Test(queue, a_class_alone_gets_all_and_saves_nothing_up)
{
    struct engine *engine = engine_open(three_classes);
    for (int i = 0; i < 100; i++) {
        add(engine, "inference", 1, "");
    }
    for (int i = 0; i < 50; i++) {
        cr_assert_str_eq(take(engine)->job->spec->class_name, "inference");
    }
    for (int i = 0; i < 50; i++) {
        add(engine, "batch", 1, "");
    }
    int batch = 0;
    for (int i = 0; i < 50; i++) {
        batch += strcmp(take(engine)->job->spec->class_name, "batch") == 0;
    }
    cr_assert(batch >= 4 && batch <= 6, "%d of 50: it came late and is owed nothing", batch);
    engine_close(engine);
}

Test(queue, the_team_that_waits_longest_is_next_and_priority_counts_inside_it)
{
    struct engine *engine = engine_open(three_classes);
    struct entry *blue = add(engine, "batch", 1, ", \"team\": \"blue\"");
    struct entry *red = add(engine, "batch", 1, ", \"team\": \"red\", \"priority\": 100");
    struct entry *urgent = add(engine, "batch", 1, ", \"team\": \"blue\", \"priority\": 90");
    cr_assert_eq(take(engine), urgent, "blue is next, and of blue the one with priority");
    cr_assert_eq(take(engine), blue);
    cr_assert_eq(take(engine), red);
    engine_close(engine);
}

Test(queue, a_shape_set_aside_holds_up_nothing)
{
    struct engine *engine = engine_open(three_classes);
    struct entry *large = add(engine, "batch", 8, "");
    struct entry *small = add(engine, "batch", 1, "");
    large->shape->aside = true;
    cr_assert_eq(queue_next(engine->context.queue), small);
    small->shape->aside = true;
    cr_assert_null(queue_next(engine->context.queue));
    large->shape->aside = false;
    cr_assert_eq(queue_next(engine->context.queue), large);
    engine_close(engine);
}

Test(queue, shapes_are_what_the_decision_looks_at)
{
    struct engine *engine = engine_open("guards:\n  - {name: g, match: {labels: {data: personal}}, "
                                        "forbid: {places: r}}\n");
    struct entry *a = add(engine, "batch", 1, ", \"labels\": {\"x\": \"1\"}");
    struct entry *b = add(engine, "batch", 1, ", \"labels\": {\"x\": \"2\"}");
    struct entry *c = add(engine, "batch", 1, ", \"labels\": {\"data\": \"personal\"}");
    struct entry *d = add(engine, "batch", 2, "");
    cr_assert_eq(a->shape, b->shape, "nobody looks at the label x");
    cr_assert_neq(a->shape, c->shape);
    cr_assert_neq(a->shape, d->shape);
    cr_assert_eq(queue_shape_hash(engine->context.queue, a), a->shape->hash);
    engine_reload(engine,
                  "guards:\n  - {name: g, match: {labels: {x: \"1\"}}, forbid: {places: r}}\n");
    cr_assert_neq(a->shape, b->shape, "now one does");
    cr_assert_eq(queue_count(engine->context.queue), 4);
    int64_t before, of;
    queue_position(engine->context.queue, d, &before, &of);
    cr_assert_eq(before, 3);
    cr_assert_eq(of, 4);
    engine_close(engine);
}

Test(queue, a_reload_that_drops_a_class_keeps_its_jobs)
{
    struct engine *engine = engine_open("classes:\n  night: {order: 9}\n");
    struct entry *job = add(engine, "night", 1, "");
    cr_assert_eq(queue_class_count(engine->context.queue, "night"), 1);
    engine_reload(engine, "");
    cr_assert_eq(queue_class_count(engine->context.queue, "night"), 0);
    cr_assert_eq(take(engine), job);
    engine_close(engine);
}
