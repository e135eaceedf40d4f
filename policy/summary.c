/* summary.c - a decision in one sentence: why there, or what the job waits for. */
#include "policy/burst.h"
#include "policy/internal.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 3, CLAUSE_SIZE = 2 * WHY_SIZE };

/* "(12 pending, opens over 50)" of the first condition that asks for pending jobs. */
static void burst_figure(const struct burst_rule *rule, const struct burst_facts *facts, char *out,
                         size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; facts && i < rule->open.count; i++) {
        const struct burst_condition *open = RULES_AT(rule->open, struct burst_condition, i);
        if (open->pending > 0) {
            (void)snprintf(out, size, " (%" PRId64 " pending, opens over %" PRId64 ")",
                           facts->pending, open->pending);
            return;
        }
    }
}

void burst_sentence(const struct view *view, int burst, char *out, size_t size)
{
    const struct burst_rule *rule = RULES_AT(view->rules->bursts, struct burst_rule, burst);
    const struct burst_view *now = &view->bursts[burst];
    char figure[WHY_SIZE] = "";
    if (now->state == BURST_OPEN) {
        (void)snprintf(out, size, "burst %s is open%s%s%s", rule->name, now->why ? " (" : "",
                       now->why ? now->why : "", now->why ? ")" : "");
        return;
    }
    if (now->state != BURST_CLOSING) {
        burst_figure(rule, now->facts, figure, sizeof figure);
    }
    (void)snprintf(out, size, "burst %s is %s%s", rule->name, burst_state_name(now->state), figure);
}

static void append(char *out, size_t size, const char *text, const char *between)
{
    size_t length = strlen(out);
    (void)snprintf(out + length, size - length, "%s%s", length ? between : "", text);
}

/* Adds the clause unless it would be cut: half a reason misleads. */
static bool append_whole(char *out, size_t size, const char *text, const char *between)
{
    if (strlen(out) + strlen(between) + strlen(text) >= size) {
        return false;
    }
    append(out, size, text, between);
    return true;
}

/* "our 2 waiting slots at onprem are taken": the sentence tells the place by itself. */
static bool clause_in_place(const struct verdict_row *row, char *out, size_t size)
{
    static const char *there[] = {" there ", " there:"};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        const char *at = strstr(row->why, there[i]);
        if (at) {
            (void)snprintf(out, size, "%.*s at %s%s", (int)(at - row->why), row->why,
                           row->place->name, at + strlen(" there"));
            return true;
        }
    }
    return false;
}

static bool is_same(const struct verdict_row *a, const struct verdict_row *b)
{
    return a->verdict == b->verdict && strcmp(a->why, b->why) == 0;
}

static bool is_first(const struct decision *decision, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (is_same(&decision->rows[i], &decision->rows[at])) {
            return false;
        }
    }
    return true;
}

static size_t count_same(const struct decision *decision, size_t at)
{
    size_t count = 0;
    for (size_t i = 0; i < decision->row_count; i++) {
        count += is_same(&decision->rows[i], &decision->rows[at]);
    }
    return count;
}

/* "hpc/cpu, hpc/gpu and 3 more: drained" */
static void clause_of_group(const struct decision *decision, size_t at, char *out, size_t size)
{
    size_t count = count_same(decision, at), shown = 0;
    char more[32];
    out[0] = '\0';
    for (size_t i = at; i < decision->row_count && shown < NAMES_SHOWN; i++) {
        if (is_same(&decision->rows[i], &decision->rows[at])) {
            append(out, size, decision->rows[i].place->name, ", ");
            shown++;
        }
    }
    if (count > shown) {
        (void)snprintf(more, sizeof more, " and %zu more", count - shown);
        append(out, size, more, "");
    }
    append(out, size, decision->rows[at].why, ": ");
}

/* What a place that can take it later waits for. */
static void clause_later(const struct decision *decision, size_t at, char *out, size_t size)
{
    const struct verdict_row *row = &decision->rows[at];
    if (row->verdict == VERDICT_CLOSED || strncmp(row->why, "burst ", 6) == 0) {
        copy_text(out, size, row->why);
    } else if (count_same(decision, at) > 1 || !clause_in_place(row, out, size)) {
        clause_of_group(decision, at, out, size);
    }
}

static bool is_later(const struct verdict_row *row)
{
    return row->verdict == VERDICT_LATER || row->verdict == VERDICT_CLOSED;
}

static void write_waits(struct decision *decision)
{
    char clause[CLAUSE_SIZE];
    (void)snprintf(decision->summary, sizeof decision->summary,
                   "0 of %zu places can take it now, %zu later", decision->row_count,
                   decision->can_later);
    const char *between = ": ";
    for (size_t i = 0; i < decision->row_count; i++) {
        if (is_later(&decision->rows[i]) && is_first(decision, i)) {
            clause_later(decision, i, clause, sizeof clause);
            if (append_whole(decision->summary, sizeof decision->summary, clause, between)) {
                between = "; ";
            }
        }
    }
}

struct reason {
    size_t row, count;
};

/* The commonest first; ties as the places stand. */
static int by_count(const void *a, const void *b)
{
    const struct reason *x = a, *y = b;
    if (x->count != y->count) {
        return x->count < y->count ? 1 : -1;
    }
    return x->row < y->row ? -1 : 1;
}

/* No place, now or later: how many for which reason. */
static void write_never(struct decision *decision)
{
    struct reason *reasons = xcalloc(decision->row_count + 1, sizeof *reasons);
    size_t count = 0;
    char clause[CLAUSE_SIZE];
    const char *between = ": ";
    for (size_t i = 0; i < decision->row_count; i++) {
        if (is_first(decision, i)) {
            reasons[count++] = (struct reason){i, count_same(decision, i)};
        }
    }
    qsort(reasons, count, sizeof *reasons, by_count);
    (void)snprintf(decision->summary, sizeof decision->summary, "0 of %zu places can take it",
                   decision->row_count);
    for (size_t i = 0; i < count; i++) {
        clause_of_group(decision, reasons[i].row, clause, sizeof clause);
        if (append_whole(decision->summary, sizeof decision->summary, clause, between)) {
            between = "; ";
        }
    }
    free(reasons);
}

/* What the tiers before this one said, in one clause. */
static void write_passed(const struct decision *decision, char *out, size_t size)
{
    bool own = true, full = false;
    for (size_t i = 0; i < decision->row_count; i++) {
        const struct verdict_row *row = &decision->rows[i];
        if (row->tier > 0 && row->tier < decision->tier) {
            own = own && !place_kind_is_rented(row->place->kind);
            full = full || row->verdict == VERDICT_FULL;
        }
    }
    (void)snprintf(out, size, "%s %s", own ? "own places" : "earlier tiers",
                   full ? "were past their limits" : "could not take it");
}

/* The first later tier that is shut by its burst: why fill and wait were ignored. */
static void write_relaxed(const struct decision *decision, char *out, size_t size)
{
    copy_text(out, size, "past its tier's fill or wait, but no later tier could take it");
    for (size_t i = 0; i < decision->row_count; i++) {
        const struct verdict_row *row = &decision->rows[i];
        if (row->tier > decision->tier && is_later(row)) {
            (void)append_whole(out, size, row->why, ": ");
            return;
        }
    }
}

static void write_chosen(struct deciding *deciding)
{
    struct decision *decision = deciding->out;
    char burst[WHY_SIZE];
    size_t rivals = 0;
    for (size_t i = 0; i < decision->row_count; i++) {
        const struct verdict_row *row = &decision->rows[i];
        rivals += row->tier == decision->tier && row->verdict == VERDICT_DEARER;
    }
    if (deciding->relaxed) {
        write_relaxed(decision, decision->summary, sizeof decision->summary);
    } else if (decision->tier > 1) {
        write_passed(decision, decision->summary, sizeof decision->summary);
    } else if (rivals) {
        (void)snprintf(decision->summary, sizeof decision->summary, "the cheapest of %zu in tier %d",
                       rivals + 1, decision->tier);
    } else {
        (void)snprintf(decision->summary, sizeof decision->summary,
                       "the only place of tier %d that can take it now", decision->tier);
    }
    if (decision->burst) {
        burst_sentence(deciding->view, burst_index(deciding->view->rules, decision->burst), burst,
                       sizeof burst);
        (void)append_whole(decision->summary, sizeof decision->summary, burst, "; ");
    }
}

static void count_able(struct deciding *deciding)
{
    struct decision *decision = deciding->out;
    for (size_t i = 0; i < decision->row_count; i++) {
        const struct verdict_row *row = &decision->rows[i];
        bool now = row->verdict == VERDICT_CHOSEN || row->verdict == VERDICT_DEARER ||
                   deciding->options[i].state == OPTION_CAN;
        decision->can_now += now;
        decision->can_later += !now && (is_later(row) || row->verdict == VERDICT_FULL);
    }
}

void summary_write(struct deciding *deciding)
{
    struct decision *decision = deciding->out;
    count_able(deciding);
    if (decision->chosen >= 0) {
        write_chosen(deciding);
    } else if (!decision->route) {
        copy_text(decision->summary, sizeof decision->summary,
                  "no route of the policy takes this job");
    } else if (decision->can_later) {
        write_waits(decision);
    } else {
        write_never(decision);
    }
}
