/* summary.c - a decision in one sentence: why there, or what the job waits for. */
#include "policy/burst.h"
#include "policy/internal.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SHOWN = 3, GROUPS_TRIED = 8, CLAUSE_SIZE = 2 * WHY_SIZE };

struct group { /* rows that say the same, by place */
    const struct verdict_row **rows;
    size_t count;
};
struct groups {
    const struct verdict_row **rows;
    struct group *items;
    size_t count;
};

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

/* The sentence of a row without its figures: of "3 CPUs free, 4 needed; our 2 waiting slots there are
 * taken" the last part. */
static const char *core_of(const struct verdict_row *row)
{
    const char *last = strstr(row->why, "; our ");
    return last ? last + 2 : row->why;
}

/* The same for several places together, whose numbers differ. */
static const char *common_of(const struct verdict_row *row)
{
    return strstr(row->why, " waiting slot") ? "our waiting slots there are taken" : core_of(row);
}

static int compare_said(const struct verdict_row *a, const struct verdict_row *b)
{
    return a->verdict != b->verdict ? (a->verdict < b->verdict ? -1 : 1)
                                    : strcmp(common_of(a), common_of(b));
}

static int by_said(const void *a, const void *b)
{
    const struct verdict_row *x = *(const struct verdict_row *const *)a;
    const struct verdict_row *y = *(const struct verdict_row *const *)b;
    int order = compare_said(x, y);
    return order ? order : (x->place->index < y->place->index ? -1 : 1);
}

static int by_place(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->rows[0]->place->index < y->rows[0]->place->index ? -1 : 1;
}

/* The commonest first; ties as the places stand. */
static int by_count(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : by_place(a, b);
}

static void groups_init(struct groups *groups, const struct decision *decision,
                        bool (*wanted)(const struct verdict_row *))
{
    size_t count = 0;
    groups->rows = xcalloc(decision->row_count + 1, sizeof(struct verdict_row *));
    groups->items = xcalloc(decision->row_count + 1, sizeof *groups->items);
    groups->count = 0;
    for (size_t i = 0; i < decision->row_count; i++) {
        if (wanted(&decision->rows[i])) {
            groups->rows[count++] = &decision->rows[i];
        }
    }
    qsort(groups->rows, count, sizeof(struct verdict_row *), by_said);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || compare_said(groups->rows[i - 1], groups->rows[i]) != 0) {
            groups->items[groups->count++].rows = &groups->rows[i];
        }
        groups->items[groups->count - 1].count++;
    }
}

static void groups_fini(struct groups *groups)
{
    free(groups->rows);
    free(groups->items);
}

static void names_of(const struct group *group, char *out, size_t size)
{
    char more[32];
    out[0] = '\0';
    for (size_t i = 0; i < group->count && i < NAMES_SHOWN; i++) {
        append(out, size, group->rows[i]->place->name, ", ");
    }
    if (group->count > NAMES_SHOWN) {
        (void)snprintf(more, sizeof more, " and %zu more", group->count - NAMES_SHOWN);
        append(out, size, more, "");
    }
}

/* "our 2 waiting slots at onprem are taken", or "hpc/cpu, hpc/gpu and 3 more: drained": a sentence that
 * says "there" tells the places by itself. */
static void clause_of_group(const struct group *group, char *out, size_t size)
{
    static const char *there[] = {" there ", " there:"};
    const struct verdict_row *row = group->rows[0];
    const char *why = group->count > 1 ? common_of(row) : core_of(row);
    char names[CLAUSE_SIZE];
    names_of(group, names, sizeof names);
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        const char *at = strstr(why, there[i]);
        if (at) {
            (void)snprintf(out, size, "%.*s at %s%s", (int)(at - why), why, names,
                           at + strlen(" there"));
            return;
        }
    }
    (void)snprintf(out, size, "%s: %s", names, why);
}

static bool is_of_burst(const struct group *group)
{
    const struct verdict_row *row = group->rows[0];
    return row->verdict == VERDICT_CLOSED || strncmp(row->why, "burst ", 6) == 0;
}

/* What places that can take it later wait for; a burst is no matter of its places. */
static void clause_later(const struct group *group, char *out, size_t size)
{
    if (is_of_burst(group)) {
        copy_text(out, size, group->rows[0]->why);
    } else {
        clause_of_group(group, out, size);
    }
}

/* The first own place, then bursts, then the rest: what is cut off then matters least. */
static int by_weight(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (is_of_burst(x) != is_of_burst(y)) {
        return is_of_burst(x) ? -1 : 1;
    }
    return by_place(a, b);
}

static bool is_later(const struct verdict_row *row)
{
    return row->verdict == VERDICT_LATER || row->verdict == VERDICT_CLOSED;
}

static bool is_any(const struct verdict_row *row)
{
    return row->why[0] != '\0';
}

/* Adds the clauses behind what the summary says already, as far as there is room. */
static void write_groups(struct decision *decision, const struct groups *groups,
                         void (*clause_of)(const struct group *, char *, size_t))
{
    char clause[CLAUSE_SIZE];
    const char *between = ": ";
    for (size_t i = 0; i < groups->count && i < GROUPS_TRIED; i++) {
        clause_of(&groups->items[i], clause, sizeof clause);
        if (append_whole(decision->summary, sizeof decision->summary, clause, between)) {
            between = "; ";
        }
    }
}

static void write_waits(struct decision *decision)
{
    struct groups groups;
    groups_init(&groups, decision, is_later);
    qsort(groups.items, groups.count, sizeof *groups.items, by_place);
    if (groups.count > 2) {
        qsort(groups.items + 1, groups.count - 1, sizeof *groups.items, by_weight);
    }
    (void)snprintf(decision->summary, sizeof decision->summary,
                   "0 of %zu places can take it now, %zu later", decision->row_count,
                   decision->can_later);
    write_groups(decision, &groups, clause_later);
    groups_fini(&groups);
}

/* No place, now or later: for which reasons. */
static void write_never(struct decision *decision)
{
    struct groups groups;
    groups_init(&groups, decision, is_any);
    qsort(groups.items, groups.count, sizeof *groups.items, by_count);
    (void)snprintf(decision->summary, sizeof decision->summary, "0 of %zu places can take it",
                   decision->row_count);
    write_groups(decision, &groups, clause_of_group);
    groups_fini(&groups);
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
        (void)snprintf(decision->summary, sizeof decision->summary,
                       "the cheapest of %zu in tier %d", rivals + 1, decision->tier);
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
    if (deciding->subject->silent) {
        return;
    }
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
