/* burst.c - one step of the controller of a burst. Hysteresis: what opens must be gone before anything
 * closes, and closing has its own, lower bound and its own time. */
#include "policy/burst.h"

#include "policy/internal.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CLOSE_PART = 5, CLOSE_FOR_MS = 10 * 60 * 1000 };

/* What a condition asks and how the facts stand to it; limit 0: not asked. */
struct question {
    int64_t has, limit;
    const char *what;
    bool is_time, is_share;
};
enum { QUESTIONS = 4 };

static void ask(const struct burst_condition *condition, const struct burst_facts *facts,
                struct question out[QUESTIONS])
{
    out[0] = (struct question){facts->pending, condition->pending, "pending", false, false};
    out[1] = (struct question){facts->all_pending, condition->all_pending, "waiting at home", false,
                               false};
    out[2] = (struct question){facts->wait_ms, condition->wait, "waits", true, false};
    out[3] =
        (struct question){facts->load, condition->load, "of the own places in use", false, true};
}

static void figure(const struct question *question, int64_t value, char out[UNITS_TEXT_SIZE])
{
    if (question->is_time) {
        duration_short(value, out);
    } else if (question->is_share) {
        (void)snprintf(out, UNITS_TEXT_SIZE, "%" PRId64 " %%", percent(value));
    } else {
        (void)snprintf(out, UNITS_TEXT_SIZE, "%" PRId64, value);
    }
}

/* "62 pending > 50 for 15m" */
static void write_why(struct burst_memory *memory, const struct question *question,
                      const char *relation, int64_t for_ms)
{
    char has[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE], span[UNITS_TEXT_SIZE];
    figure(question, question->has, has);
    figure(question, question->limit, limit);
    (void)snprintf(memory->why, sizeof memory->why, "%s %s %s %s%s%s", has, question->what,
                   relation, limit, for_ms > 0 ? " for " : "",
                   for_ms > 0 ? duration_short(for_ms, span) : "");
}

/* All that a condition of `open` asks must be exceeded; the first question is the one that is told. */
static bool open_holds(const struct burst_condition *condition, const struct burst_facts *facts,
                       struct question *told)
{
    struct question questions[QUESTIONS];
    bool asked = false;
    ask(condition, facts, questions);
    for (int i = 0; i < QUESTIONS; i++) {
        if (questions[i].limit > 0) {
            if (questions[i].has <= questions[i].limit) {
                return false;
            }
            *told = asked ? *told : questions[i];
            asked = true;
        }
    }
    return asked;
}

/* The first question of a condition, whether it holds or not. */
static bool first_question(const struct burst_condition *condition, const struct burst_facts *facts,
                           struct question *told)
{
    struct question questions[QUESTIONS];
    ask(condition, facts, questions);
    for (int i = 0; i < QUESTIONS; i++) {
        if (questions[i].limit > 0) {
            *told = questions[i];
            return true;
        }
    }
    return false;
}

/* told: the first that does not hold, else the first that is asked; limit 0 when nothing is asked. */
static bool close_holds(const struct burst_condition *condition, const struct burst_facts *facts,
                        struct question *told)
{
    struct question questions[QUESTIONS];
    *told = (struct question){0};
    ask(condition, facts, questions);
    for (int i = 0; i < QUESTIONS; i++) {
        if (questions[i].limit > 0 && questions[i].has >= questions[i].limit) {
            *told = questions[i];
            return false;
        }
        if (questions[i].limit > 0 && told->limit == 0) {
            *told = questions[i];
        }
    }
    return true;
}

static size_t open_count(const struct burst_rule *rule)
{
    return rule->open.count < BURST_OPEN_MAX ? rule->open.count : (size_t)BURST_OPEN_MAX;
}

static const struct burst_condition *open_at(const struct burst_rule *rule, size_t i)
{
    return RULES_AT(rule->open, struct burst_condition, i);
}

/* As stated; else a fifth of the smallest `pending` of open, for ten minutes. */
static struct burst_condition close_of(const struct burst_rule *rule)
{
    struct burst_condition close = {.for_ms = CLOSE_FOR_MS};
    if (rule->has_close) {
        return rule->close;
    }
    for (size_t i = 0; i < open_count(rule); i++) {
        int64_t pending = open_at(rule, i)->pending;
        if (pending > 0 && (close.pending == 0 || pending < close.pending)) {
            close.pending = pending;
        }
    }
    if (close.pending > 0) {
        close.pending = close.pending < CLOSE_PART ? 1 : close.pending / CLOSE_PART;
    }
    return close;
}

/* Keeps since when each condition holds. 0 says that it does not, so time starts at 1. */
static int64_t stamp(int64_t now_ms)
{
    return now_ms > 0 ? now_ms : 1;
}

struct opening { /* what the conditions of `open` say together */
    bool any;    /* one holds */
    bool due;    /* and has for as long as it must */
    size_t told;
    struct question question;
};

static struct opening look(const struct burst_rule *rule, const struct burst_facts *facts,
                           struct burst_memory *memory)
{
    struct opening opening = {0};
    for (size_t i = 0; i < open_count(rule); i++) {
        struct question question = {0};
        const struct burst_condition *condition = open_at(rule, i);
        if (!open_holds(condition, facts, &question)) {
            memory->holds_since_ms[i] = 0;
            continue;
        }
        if (memory->holds_since_ms[i] == 0) {
            memory->holds_since_ms[i] = stamp(facts->now_ms);
        }
        bool due = stamp(facts->now_ms) - memory->holds_since_ms[i] >= condition->for_ms;
        if (!opening.any || (due && !opening.due)) {
            opening.told = i;
            opening.question = question;
        }
        opening.any = true;
        opening.due = opening.due || due;
    }
    return opening;
}

static bool move(struct burst_memory *memory, enum burst_state state)
{
    memory->state = state;
    if (state != BURST_CLOSING) {
        memory->close_since_ms = 0;
    }
    return true;
}

static bool step_shut(const struct burst_rule *rule, const struct burst_facts *facts,
                      struct burst_memory *memory, const struct opening *opening)
{
    struct question question;
    if (opening->due) {
        write_why(memory, &opening->question, ">", open_at(rule, opening->told)->for_ms);
        return move(memory, BURST_OPEN);
    }
    if (opening->any && memory->state == BURST_CLOSED) {
        write_why(memory, &opening->question, ">", 0);
        return move(memory, BURST_OPENING);
    }
    if (!opening->any && memory->state == BURST_OPENING) {
        memory->why[0] = '\0';
        if (rule->open.count && first_question(open_at(rule, 0), facts, &question)) {
            write_why(memory, &question, "<=", 0);
        }
        return move(memory, BURST_CLOSED);
    }
    return false;
}

/* Open stays open, closing opens again. */
static bool step_stays(struct burst_memory *memory, const struct opening *opening,
                       const struct question *told)
{
    bool was_closing = memory->state == BURST_CLOSING;
    if (was_closing && opening->any) {
        write_why(memory, &opening->question, ">", 0);
    } else if (was_closing) {
        write_why(memory, told, ">=", 0);
    }
    move(memory, BURST_OPEN);
    return was_closing;
}

static bool step_wide(const struct burst_condition *close, const struct burst_facts *facts,
                      struct burst_memory *memory, const struct opening *opening)
{
    struct question told;
    if (!close_holds(close, facts, &told) || opening->any) {
        return step_stays(memory, opening, &told);
    }
    if (memory->close_since_ms == 0) {
        memory->close_since_ms = stamp(facts->now_ms);
    }
    bool due = stamp(facts->now_ms) - memory->close_since_ms >= close->for_ms;
    if (!due && memory->state == BURST_CLOSING) {
        return false;
    }
    copy_text(memory->why, sizeof memory->why, "what opened it is over");
    if (told.limit > 0) {
        write_why(memory, &told, "<", due ? close->for_ms : 0);
    }
    return move(memory, due ? BURST_CLOSED : BURST_CLOSING);
}

bool burst_step(const struct burst_rule *rule, const struct burst_facts *facts,
                struct burst_memory *memory)
{
    struct opening opening = look(rule, facts, memory);
    if (memory->state == BURST_CLOSED || memory->state == BURST_OPENING) {
        return step_shut(rule, facts, memory, &opening);
    }
    struct burst_condition close = close_of(rule);
    return step_wide(&close, facts, memory, &opening);
}
