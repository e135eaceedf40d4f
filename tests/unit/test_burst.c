/* The burst controller, driven by scripts of load: 10 s between two steps, as the broker does. */
#include "tests/unit/policy_lab.h"

#include <criterion/criterion.h>
#include <string.h>

enum { STEP = 10 * 1000 };

struct script { /* one burst over a stretch of time */
    struct lab *lab;
    struct burst_rule *rule;
    struct burst_memory memory;
    struct burst_facts facts;
    int entries[4]; /* by state: how often it was entered */
    int reopened;   /* of those into open: from closing */
};

static struct script script(int64_t pending)
{
    struct script s = {.lab = lab_create(), .facts = {.now_ms = HOUR}};
    s.rule = lab_burst(s.lab, "overflow", pending);
    return s;
}

static void step(struct script *s)
{
    enum burst_state before = s->memory.state;
    bool changed = burst_step(s->rule, &s->facts, &s->memory);
    cr_assert_eq(changed, s->memory.state != before);
    if (changed) {
        s->entries[s->memory.state]++;
        s->reopened += before == BURST_CLOSING && s->memory.state == BURST_OPEN;
        cr_assert(s->memory.why[0], "a change without its figure");
    }
    s->facts.now_ms += STEP;
}

/* So many pending for so long. */
static void hold(struct script *s, int64_t pending, int64_t ms)
{
    s->facts.pending = pending;
    for (int64_t end = s->facts.now_ms + ms; s->facts.now_ms < end;) {
        step(s);
    }
}

static int first_entries(const struct script *s)
{
    return s->entries[BURST_OPEN] - s->reopened;
}

Test(burst, a_step_of_load_is_one_cycle)
{
    struct script s = script(0);
    struct burst_condition *open = lab_condition(s.lab, s.rule);
    *open = (struct burst_condition){.pending = 50, .for_ms = MINUTE};
    hold(&s, 30, 30 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    hold(&s, 120, HOUR);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    hold(&s, 5, HOUR);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(s.entries[i], 1, "%s %d times", burst_state_name((enum burst_state)i),
                     s.entries[i]);
    }
    lab_destroy(s.lab);
}

Test(burst, without_a_for_it_opens_at_once_and_says_why)
{
    struct script s = script(50);
    hold(&s, 50, STEP);
    cr_assert_eq(s.memory.state, BURST_CLOSED); /* more than: 50 is not enough */
    hold(&s, 62, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    cr_assert_str_eq(s.memory.why, "62 pending > 50");
    cr_assert_eq(s.entries[BURST_OPENING], 0);
    lab_destroy(s.lab);
}

Test(burst, any_condition_opens_after_its_own_time)
{
    struct script s = script(50);
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.pending = 10, .for_ms = 15 * MINUTE};
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.wait = HOUR};
    hold(&s, 12, 15 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_OPENING);
    cr_assert_str_eq(s.memory.why, "12 pending > 10");
    hold(&s, 12, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    cr_assert_str_eq(s.memory.why, "12 pending > 10 for 15m");
    hold(&s, 0, 11 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    s.facts.wait_ms = 2 * HOUR;
    hold(&s, 1, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    cr_assert_str_eq(s.memory.why, "2h waits > 1h");
    lab_destroy(s.lab);
}

Test(burst, opening_falls_back_and_closing_opens_again)
{
    struct script s = script(0);
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.pending = 10, .for_ms = 5 * MINUTE};
    hold(&s, 12, MINUTE);
    hold(&s, 8, STEP);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    cr_assert_str_eq(s.memory.why, "8 pending <= 10");
    hold(&s, 12, 6 * MINUTE);
    hold(&s, 1, MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSING);
    cr_assert_str_eq(s.memory.why, "1 pending < 2"); /* a fifth of 10 */
    hold(&s, 5, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    cr_assert_str_eq(s.memory.why, "5 pending >= 2");
    hold(&s, 1, 10 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSING); /* its time starts anew */
    hold(&s, 1, STEP);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    cr_assert_str_eq(s.memory.why, "1 pending < 2 for 10m");
    lab_destroy(s.lab);
}

Test(burst, all_of_a_condition_must_hold)
{
    struct script s = script(0);
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.pending = 10, .load = 900000};
    s.facts.load = 800000;
    hold(&s, 100, MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    s.facts.load = 950000;
    hold(&s, 100, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    s.rule->has_close = true;
    s.rule->close = (struct burst_condition){.pending = 5, .load = 500000};
    hold(&s, 0, MINUTE);
    cr_assert_eq(s.memory.state, BURST_OPEN); /* the load still speaks against it */
    s.facts.load = 100000;
    hold(&s, 0, STEP);
    cr_assert_eq(s.memory.state, BURST_CLOSED); /* no `for`: at once */
    lab_destroy(s.lab);
}

Test(burst, what_opened_must_be_over_before_it_closes)
{
    struct script s = script(0);
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.wait = HOUR};
    s.facts.wait_ms = 2 * HOUR;
    hold(&s, 1, STEP);
    s.rule->has_close = true;
    s.rule->close = (struct burst_condition){.pending = 10, .for_ms = MINUTE};
    hold(&s, 1, HOUR); /* few are pending, but one waits too long */
    cr_assert_eq(s.memory.state, BURST_OPEN);
    s.facts.wait_ms = 0;
    hold(&s, 1, 2 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    lab_destroy(s.lab);
}

Test(burst, a_load_between_the_bounds_never_opens)
{
    struct script s = script(50);
    for (int i = 0; i < 500; i++) {
        hold(&s, 20 + i % 30, STEP);
    }
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    cr_assert_eq(s.entries[BURST_OPEN] + s.entries[BURST_OPENING], 0);
    lab_destroy(s.lab);
}

Test(burst, a_square_wave_opens_at_most_once)
{
    struct script s = script(50);
    for (int i = 0; i < 200; i++) {
        hold(&s, i % 2 ? 80 : 5, MINUTE);
    }
    cr_assert_eq(first_entries(&s), 1);
    cr_assert_eq(s.entries[BURST_CLOSED], 0);
    lab_destroy(s.lab);
    s = script(0);
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.pending = 50, .for_ms = 5 * MINUTE};
    for (int i = 0; i < 200; i++) {
        hold(&s, i % 2 ? 80 : 5, MINUTE);
    }
    cr_assert_eq(s.entries[BURST_OPEN], 0);
    lab_destroy(s.lab);
}

Test(burst, tiny_and_odd_rules_do_no_harm)
{
    struct script s = script(3); /* a fifth of 3 is less than one: closes at none */
    hold(&s, 4, STEP);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    hold(&s, 1, HOUR);
    cr_assert_eq(s.memory.state, BURST_OPEN);
    hold(&s, 0, 11 * MINUTE);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    s.rule->open.count = 0; /* never opens */
    hold(&s, 1000, HOUR);
    cr_assert_eq(s.memory.state, BURST_CLOSED);
    lab_destroy(s.lab);
}

/* From any facts: only the steps of the table, and a closing burst was below all of open before. */
Test(burst, property_only_the_steps_of_the_table)
{
    static const bool allowed[4][4] = {
        [BURST_CLOSED] = {[BURST_OPENING] = true, [BURST_OPEN] = true},
        [BURST_OPENING] = {[BURST_CLOSED] = true, [BURST_OPEN] = true},
        [BURST_OPEN] = {[BURST_CLOSING] = true, [BURST_CLOSED] = true},
        [BURST_CLOSING] = {[BURST_OPEN] = true, [BURST_CLOSED] = true}};
    struct script s = script(50);
    uint64_t seed = 5;
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.wait = HOUR, .for_ms = MINUTE};
    *lab_condition(s.lab, s.rule) = (struct burst_condition){.pending = 20, .for_ms = 2 * MINUTE};
    for (int i = 0; i < 20000; i++) {
        enum burst_state before = s.memory.state;
        s.facts.pending = lab_range(&seed, 0, lab_range(&seed, 1, 70));
        s.facts.wait_ms = lab_range(&seed, 0, 61) * MINUTE;
        if (lab_range(&seed, 0, 200) == 0) {
            s.facts.now_ms += HOUR;
        }
        step(&s);
        cr_assert(before == s.memory.state || allowed[before][s.memory.state], "%d to %d", before,
                  s.memory.state);
        if (s.memory.state == BURST_CLOSING || (before >= BURST_OPEN && !s.memory.state)) {
            cr_assert_lt(s.facts.pending, 4);
            cr_assert_leq(s.facts.wait_ms, HOUR);
        }
    }
    lab_destroy(s.lab);
}
