/* say.c - the words of a decision: verdicts with their sentence, amounts with their noun. */
#include "policy/internal.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const term_names[TERM_COUNT] = {
#define X(constant, name, billed) [TERM_##constant] = (name),
    TERM_LIST(X)
#undef X
};
static const bool terms_billed[TERM_COUNT] = {
#define X(constant, name, billed) [TERM_##constant] = (billed),
    TERM_LIST(X)
#undef X
};
static const char *const verdict_names[VERDICT_COUNT] = {
#define X(constant, word) [VERDICT_##constant] = (word),
    VERDICT_LIST(X)
#undef X
};
static const char *const burst_states[] = {"closed", "opening", "open", "closing"};
enum { BURST_STATE_COUNT = sizeof burst_states / sizeof burst_states[0] };

static const struct {
    const char *one, *many;
} nouns[AMOUNT_COUNT] = {
    [AMOUNT_CPUS] = {"CPU", "CPUs"},
    [AMOUNT_MEMORY] = {"memory", "memory"},
    [AMOUNT_GPUS] = {"GPU", "GPUs"},
    [AMOUNT_TIME] = {"run time", "run time"},
};

void say(struct verdict_row *row, enum verdict verdict, const char *format, ...)
{
    row->verdict = verdict;
    if (row->silent) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(row->why, sizeof row->why, format, args);
    va_end(args);
}

const char *amount_noun(enum amount amount, int64_t value)
{
    return value == 1000 ? nouns[amount].one : nouns[amount].many;
}

char *amount_figure(enum amount amount, int64_t value, char out[AMOUNT_TEXT_SIZE])
{
    char text[UNITS_TEXT_SIZE];
    switch (amount) {
    case AMOUNT_MEMORY: size_text(value, text); break;
    case AMOUNT_TIME: duration_text(value, text); break;
    default: thousandths_text(value, text); break;
    }
    copy_text(out, AMOUNT_TEXT_SIZE, text);
    return out;
}

char *amount_text(enum amount amount, int64_t value, char out[AMOUNT_TEXT_SIZE])
{
    char figure[AMOUNT_TEXT_SIZE];
    amount_figure(amount, value, figure);
    (void)snprintf(out, AMOUNT_TEXT_SIZE, "%s %s", figure, amount_noun(amount, value));
    return out;
}

void join_texts(const struct texts *texts, const char *between, char *out, size_t size)
{
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < texts->count && length + 1 < size; i++) {
        int n = snprintf(out + length, size - length, "%s%s", i ? between : "", texts->items[i]);
        length += n > 0 ? (size_t)n : 0;
    }
}

int64_t percent(int64_t millionths)
{
    return (millionths + 5000) / 10000;
}

const char *term_name(enum term_kind term)
{
    return term_names[term];
}

bool term_is_billed(enum term_kind term)
{
    return terms_billed[term];
}

const char *verdict_name(enum verdict verdict)
{
    return verdict_names[verdict];
}

const char *burst_state_name(enum burst_state state)
{
    return burst_states[state];
}

int burst_state_find(const char *name)
{
    for (int i = 0; i < BURST_STATE_COUNT; i++) {
        if (strcmp(burst_states[i], name) == 0) {
            return i;
        }
    }
    return -1;
}
