/* test_picture.c - the ledger: what is booked, what a place shows, and what is left, after anything that
 * can happen between a broker and a member, in any order. */
#include "tests/unit/engine_lab.h"

#include "broker/core/alloc.h"
#include "broker/sim/random.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CPUS = 8000, ATTEMPTS = 40, STEPS = 400, ROUNDS = 60 };

static const char budget_policy[] = "budgets:\n  cloud: {limit: 100 EUR, per: month}\n";

/* One attempt as the world and as the broker has it. Times: monotonic, 0: not yet. */
struct truth {
    struct entry *entry; /* NULL: not booked */
    int place;
    int64_t began_ms, over_ms; /* at the member */
    bool told_began, shown;    /* to the broker; shown: by the last condition, as it must believe */
    int64_t credit;            /* what that still shows of it, though it is over */
};

struct world {
    struct engine *engine;
    struct random random;
    struct truth attempts[ATTEMPTS];
    int count;
    int64_t probe_ms[3];      /* when the probe that waits for its answer looked; 0: none */
    struct condition seen[3]; /* what it saw */
    int64_t started_ms[3];    /* of the last condition */
};

static int64_t now(const struct world *world)
{
    return clock_mono_ms(world->engine->context.clock);
}

static void book(struct engine *engine, struct entry *entry, int place, int64_t booked)
{
    struct verdict_row row = {.place = engine->federation->places[place], .booked = booked};
    struct decision decision = {.chosen = place};
    char *names[] = {"cloud"};
    if (booked) {
        decision.budgets = (struct texts){names, 1};
        row.nodes = 500;
    }
    json_t *data = json_pack("{s:s, s:I, s:[s*]}", "place", row.place->name, "booked",
                             (json_int_t)booked, "budgets", booked ? "cloud" : NULL);
    picture_book(engine->context.picture, entry, &row, &decision);
    engine_apply(engine, entry, EVENT_PLACE, data);
}

static int64_t holds(const struct truth *truth)
{
    return truth->entry->booking.holds.cpus;
}

static void world_book(struct world *world)
{
    if (world->count == ATTEMPTS) {
        return;
    }
    struct truth *truth = &world->attempts[world->count++];
    truth->place = (int)random_between(&world->random, 0, 2);
    truth->entry =
        engine_job(world->engine, "batch", (int)random_between(&world->random, 1, 3), "");
    book(world->engine, truth->entry, truth->place, 0);
}

/* Something happens to one attempt: at the member, or the broker is told of it. */
static void world_live(struct world *world, struct truth *truth)
{
    struct engine *engine = world->engine;
    struct picture *picture = engine->context.picture;
    if (!truth->began_ms) {
        truth->began_ms = now(world);
        engine_apply(engine, truth->entry, EVENT_ACCEPT, json_pack("{s:s}", "native", "1"));
        picture_accepted(picture, truth->entry);
    } else if (!truth->told_began && random_between(&world->random, 0, 1)) {
        truth->told_began = true;
        engine_apply(engine, truth->entry, EVENT_START, json_object());
        picture_running(picture, truth->entry);
    } else if (!truth->over_ms) {
        truth->over_ms = now(world);
    } else {
        int64_t wall = clock_wall_ms(engine->context.clock) - now(world) + truth->over_ms;
        engine_apply(engine, truth->entry, EVENT_END,
                     json_pack("{s:s, s:i, s:I}", "outcome", "exit", "exit_code", 0, "ended",
                               (json_int_t)wall));
        if (truth->shown && truth->over_ms >= world->started_ms[truth->place]) {
            truth->credit = holds(truth);
        }
        picture_release(picture, truth->entry);
        truth->entry = NULL;
    }
}

static bool runs_there(const struct truth *truth)
{
    return truth->began_ms && !truth->over_ms;
}

/* A probe looks now; its answer comes later. */
static void world_look(struct world *world, int place)
{
    struct condition *seen = &world->seen[place];
    *seen = (struct condition){.up = true, .total = {CPUS, CPUS, 0}, .free = {CPUS, CPUS, 0}};
    world->probe_ms[place] = now(world);
    for (int i = 0; i < world->count; i++) {
        struct truth *truth = &world->attempts[i];
        if (truth->entry && truth->place == place && runs_there(truth)) {
            seen->free.cpus -= holds(truth);
        }
    }
}

static void world_answer(struct world *world, int place)
{
    picture_condition(world->engine->context.picture, place, &world->seen[place], "x",
                      world->probe_ms[place], 1);
    world->started_ms[place] = world->probe_ms[place];
    world->probe_ms[place] = 0;
    for (int i = 0; i < world->count; i++) {
        struct truth *truth = &world->attempts[i];
        if (truth->place == place && truth->over_ms < world->started_ms[place]) {
            truth->credit = 0;
        }
        if (truth->entry && truth->place == place) {
            const struct booking *booking = &truth->entry->booking;
            truth->shown = truth->told_began && booking->running_ms < world->started_ms[place];
        }
    }
}

/* What must be unseen, from the attempts alone; and what is really free. */
static void check(struct world *world)
{
    const struct view *view = picture_view(world->engine->context.picture);
    for (int p = 0; p < 3; p++) {
        int64_t unseen = 0, taken = 0, waiting = 0, running = 0;
        for (int i = 0; i < world->count; i++) {
            const struct truth *truth = &world->attempts[i];
            unseen -= truth->place == p ? truth->credit : 0;
            if (!truth->entry || truth->place != p) {
                continue;
            }
            unseen += truth->shown ? 0 : holds(truth);
            taken += truth->over_ms ? 0 : holds(truth);
            waiting += !truth->told_began;
            running += truth->told_began;
        }
        const struct place_view *place = &view->places[p];
        cr_assert_eq(place->waiting_ours, waiting);
        cr_assert_eq(place->running_ours, running);
        cr_assert_eq(place->unseen.cpus, unseen, "place %d: %lld unseen, must be %lld", p,
                     (long long)place->unseen.cpus, (long long)unseen);
        if (world->started_ms[p]) {
            int64_t left = place->condition.free.cpus - place->unseen.cpus;
            cr_assert_leq(left, CPUS - taken, "place %d: %lld believed free, %lld are", p,
                          (long long)left, (long long)(CPUS - taken));
        }
    }
}

static void world_step(struct world *world)
{
    int place = (int)random_between(&world->random, 0, 2);
    clock_sim_pass(world->engine->context.clock, random_between(&world->random, 0, 2));
    switch (random_between(&world->random, 0, 5)) {
    case 0: world_book(world); break;
    case 1:
        if (world->probe_ms[place]) {
            world_answer(world, place);
        } else {
            clock_sim_pass(world->engine->context.clock, 1); /* nothing is at the very same time */
            world_look(world, place);
            clock_sim_pass(world->engine->context.clock, 1);
        }
        break;
    default:
        if (world->count) {
            struct truth *truth =
                &world->attempts[random_between(&world->random, 0, world->count - 1)];
            if (truth->entry) {
                world_live(world, truth);
            }
        }
    }
}

Test(picture, the_ledger_is_right_after_anything)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct world *world = xcalloc(1, sizeof *world);
        world->engine = engine_open("");
        random_init(&world->random, seed);
        for (int i = 0; i < STEPS; i++) {
            world_step(world);
            check(world);
        }
        engine_close(world->engine);
        free(world);
    }
}

/* -------------------------------------------------------------------------------------------- money */

static const struct budget_view *budget(struct engine *engine)
{
    return &picture_view(engine->context.picture)->budgets[0];
}

Test(picture, what_is_settled_is_not_booked_too)
{
    struct engine *engine = engine_open(budget_policy);
    struct picture *picture = engine->context.picture;
    struct entry *entry = engine_job(engine, "batch", 1, "");
    book(engine, entry, 2, 1000);
    cr_assert_eq(budget(engine)->booked, 1000);
    cr_assert_eq(picture_view(picture)->places[2].rented_nodes, 500);
    store_doc_destroy(picture_settle(picture, entry, 400)); /* END is on its way to the disk */
    cr_assert_eq(budget(engine)->settled, 400);
    cr_assert_eq(budget(engine)->booked, 600);
    store_doc_destroy(picture_settle(picture, entry, -400)); /* and failed */
    cr_assert_eq(budget(engine)->settled, 0);
    cr_assert_eq(budget(engine)->booked, 1000);
    store_doc_destroy(picture_settle(picture, entry, 1500)); /* dearer than it was booked */
    cr_assert_eq(budget(engine)->booked, 0);
    picture_release(picture, entry);
    picture_release(picture, entry); /* harmless */
    cr_assert_eq(budget(engine)->booked, 0);
    cr_assert_eq(budget(engine)->settled, 1500);
    cr_assert_eq(picture_view(picture)->places[2].rented_nodes, 0);
    engine_close(engine);
}

Test(picture, budgets_go_on_over_a_reload_by_name)
{
    struct engine *engine = engine_open(budget_policy);
    struct entry *entry = engine_job(engine, "batch", 1, "");
    struct entry *other = engine_job(engine, "batch", 1, "");
    book(engine, entry, 2, 1000);
    book(engine, other, 2, 500);
    store_doc_destroy(picture_settle(engine->context.picture, other, 300));
    picture_release(engine->context.picture, other);
    engine_reload(engine, "budgets:\n  ads: {limit: 1 EUR, per: day}\n"
                          "  cloud: {limit: 100 EUR, per: month}\n");
    const struct view *view = picture_view(engine->context.picture);
    cr_assert_eq(view->budgets[0].booked, 0);
    cr_assert_eq(view->budgets[1].booked, 1000);
    cr_assert_eq(view->budgets[1].settled, 300);
    engine_close(engine);
}

Test(picture, a_period_begins_with_nothing_settled_and_never_twice)
{
    struct engine *engine = engine_open("budgets:\n  cloud: {limit: 100 EUR, per: day}\n");
    struct entry *entry = engine_job(engine, "batch", 1, "");
    book(engine, entry, 2, 1000);
    store_doc_destroy(picture_settle(engine->context.picture, entry, 300));
    picture_release(engine->context.picture, entry);
    clock_sim_skew(engine->context.clock, -24 * 3600 * 1000); /* a clock that is set back ... */
    picture_budget_periods(engine->context.picture);
    clock_sim_skew(engine->context.clock, 24 * 3600 * 1000); /* ... and right again */
    picture_budget_periods(engine->context.picture);
    cr_assert_eq(budget(engine)->settled, 300, "spent once is spent");
    clock_sim_skew(engine->context.clock, 24 * 3600 * 1000);
    picture_budget_periods(engine->context.picture);
    cr_assert_eq(budget(engine)->settled, 0);
    engine_close(engine);
}

Test(picture, after_a_restart_what_runs_is_not_counted_twice)
{
    struct engine *engine = engine_open("");
    struct picture *picture = engine->context.picture;
    struct condition seen = {.up = true, .total = {CPUS, CPUS, 0}, .free = {CPUS - 2000, CPUS, 0}};
    struct entry *entry = engine_job(engine, "batch", 2, "");
    engine_apply(engine, entry, EVENT_PLACE, json_pack("{s:s}", "place", "a"));
    engine_apply(engine, entry, EVENT_ACCEPT, json_pack("{s:s}", "native", "1"));
    engine_apply(engine, entry, EVENT_START, json_object());
    picture_rebook(picture, entry);
    (void)picture_condition(picture, 0, &seen, "x", clock_mono_ms(engine->context.clock), 1);
    cr_assert_eq(picture_view(picture)->places[0].unseen.cpus, 0);
    cr_assert_eq(picture_view(picture)->places[0].running_ours, 1);
    engine_close(engine);
}

Test(picture, the_first_silence_of_a_member_is_news_and_lasts_from_then)
{
    struct engine *engine = engine_open("");
    struct picture *picture = engine->context.picture;
    cr_assert_eq(picture_silent_ms(picture, 0), 0, "not yet asked");
    cr_assert(picture_silent(picture, 0, "HTML instead of JSON"), "it never answered");
    cr_assert_not(picture_silent(picture, 0, "HTML instead of JSON"), "said once");
    cr_assert_str_eq(picture_fault(picture, 0), "HTML instead of JSON");
    cr_assert_lt(picture_silent_ms(picture, 0), 1000, "not since the machine was started");
    engine_close(engine);
}
