#include "api/cli/explain_print.h"

#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/table.h"
#include "broker/core/alloc.h"
#include "broker/core/id.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_WIDTH = 12, WORDS_SIZE = 512, ANSWER_MAX = 8192 };

/* "  Why there    text", wrapped under itself. */
static void print_answer(const char *label, const char *text, FILE *out)
{
    if (*text) {
        (void)fprintf(out, "  %-*s ", LABEL_WIDTH, label);
        print_wrapped(text, LABEL_WIDTH + 3, TEXT_WIDTH, out);
    }
}

static const char *short_id(const char *id)
{
    size_t length = strlen(id);
    return length > ID_SUFFIX_MIN + 1 ? id + length - ID_SUFFIX_MIN - 1 : id;
}

static void print_head(const json_t *record, FILE *out)
{
    const json_t *job = json_object_get(record, "job");
    const json_t *spec = job ? job : json_object_get(record, "spec");
    const char *team = json_text(spec, "team");
    struct strbuf line;
    strbuf_init(&line, ANSWER_MAX);
    strbuf_printf(&line, "%s", json_text(spec, "name"));
    if (job) {
        strbuf_printf(&line, "  %s   %s", json_text(job, "id"), json_text(job, "owner"));
    }
    strbuf_printf(&line, "%s%s  class %s  policy %s", *team ? "  team " : "", team,
                  json_text(spec, "class"), json_text(record, "policy"));
    char *text = strbuf_take(&line);
    print_wrapped(text, 2, TEXT_WIDTH, out);
    (void)fputc('\n', out);
    free(text);
}

/* ------------------------------------------------------------------------------------------ in words */

static void upper(char *text)
{
    for (; *text; text++) {
        *text = (char)toupper((unsigned char)*text);
    }
}

static char *span_words(int64_t from_ms, int64_t to_ms, char out[UNITS_TEXT_SIZE])
{
    return duration_short(to_ms > from_ms ? to_ms - from_ms : 0, out);
}

/* "RUNNING at aws/spot, attempt 1, since 14:21:40 (waited 18m 22s)" */
static void print_state(const json_t *job, int64_t now_ms, FILE *out)
{
    char state[UNITS_TEXT_SIZE], since[UNITS_TEXT_SIZE], wait[UNITS_TEXT_SIZE], words[WORDS_SIZE];
    int64_t submitted = json_time(job, "submitted"), started = json_time(job, "started");
    int64_t finished = json_time(job, "finished"), attempt = json_int(job, "attempt"), took;
    struct strbuf line;
    strbuf_init(&line, ANSWER_MAX);
    copy_text(state, sizeof state, json_text(job, "state"));
    upper(state);
    strbuf_puts(&line, state);
    if (*json_text(job, "place")) {
        strbuf_printf(&line, " at %s, attempt %" PRId64, json_text(job, "place"), attempt);
    }
    if (finished) {
        end_words(job, words, sizeof words);
        strbuf_printf(&line, "%s%s", *words ? ", " : "", words);
        if (job_took(job, &took)) {
            strbuf_printf(&line, " after %s", duration_short(took, since));
        }
        strbuf_printf(&line, " (waited %s)",
                      span_words(submitted, started ? started : finished, wait));
    } else if (started) {
        time_words(started, now_ms, since, sizeof since);
        strbuf_printf(&line, ", since %s (waited %s)", since, span_words(submitted, started, wait));
    } else {
        strbuf_printf(&line, ", submitted %s ago", span_words(submitted, now_ms, wait));
    }
    char *text = strbuf_take(&line);
    print_wrapped(text, 2, TEXT_WIDTH, out);
    free(text);
}

static const char *ordinal(int64_t number)
{
    int64_t tens = number % 100;
    if (tens >= 11 && tens <= 13) {
        return "th";
    }
    return number % 10 == 1 ? "st" : number % 10 == 2 ? "nd" : number % 10 == 3 ? "rd" : "th";
}

/* "QUEUED for 42m 10s, 3rd of 18 in training" */
static void print_queued(const json_t *record, const json_t *job, int64_t now_ms, FILE *out)
{
    char state[UNITS_TEXT_SIZE], wait[UNITS_TEXT_SIZE];
    const json_t *position = json_object_get(record, "position");
    int64_t before = json_int(position, "before");
    copy_text(state, sizeof state, json_text(job, "state"));
    upper(state);
    int64_t queued = json_time(job, "queued");
    (void)fprintf(out, "%s for %s", state,
                  span_words(queued ? queued : json_time(job, "submitted"), now_ms, wait));
    if (position) {
        (void)fprintf(out, ", %" PRId64 "%s of %" PRId64 " in %s", before + 1, ordinal(before + 1),
                      json_int(position, "of"), json_text(position, "class"));
    }
    (void)fputc('\n', out);
}

static const json_t *named(const json_t *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_text(item, "name"), name) == 0) {
            return item;
        }
    }
    return NULL;
}

/* "; budget cloud 412.60 of 3000 EUR this month" */
static void add_budget(struct strbuf *line, const json_t *budget)
{
    struct money settled, booked;
    struct error err;
    char text[UNITS_TEXT_SIZE];
    const char *per = json_text(budget, "per");
    if (!budget || money_parse(json_text(budget, "settled"), &settled, &err) < 0 ||
        money_parse(json_text(budget, "booked"), &booked, &err) < 0) {
        return;
    }
    strbuf_printf(line, "%sbudget %s %s of %s %s%s", line->length ? "; " : "",
                  json_text(budget, "name"),
                  nano_words(settled.nano + booked.nano, text, sizeof text),
                  json_text(budget, "limit"), strcmp(per, "job") == 0 ? "per " : "this ", per);
}

static const char *amount(const char *money, char out[UNITS_TEXT_SIZE])
{
    struct money parsed;
    struct error err;
    return money_parse(money, &parsed, &err) < 0 ? money
                                                 : nano_words(parsed.nano, out, UNITS_TEXT_SIZE);
}

static void print_budgets(const json_t *record, struct strbuf *line, FILE *out)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(json_object_get(record, "decision"), "budgets"), i, name)
    {
        add_budget(line, named(json_object_get(record, "budgets"), json_string_value(name)));
    }
    char *text = strbuf_take(line);
    print_answer("Costs", text, out);
    free(text);
}

/* What this attempt costs in money that is really paid. */
static void print_attempt_costs(const json_t *record, const json_t *attempt, FILE *out)
{
    char one[UNITS_TEXT_SIZE], two[UNITS_TEXT_SIZE], three[UNITS_TEXT_SIZE];
    struct strbuf line;
    strbuf_init(&line, ANSWER_MAX);
    if (json_object_get(attempt, "booked")) {
        strbuf_printf(&line, "%s %s rent expected, %s booked",
                      amount(json_text(attempt, "rent_expected"), one),
                      json_text(record, "currency"), amount(json_text(attempt, "booked"), two));
        if (json_time(attempt, "ended")) {
            strbuf_printf(&line, ", %s settled", amount(json_text(attempt, "settled"), three));
        }
    }
    print_budgets(record, &line, out);
}

static void print_way(const json_t *job, const json_t *attempt, int64_t now_ms, FILE *out)
{
    char here[UNITS_TEXT_SIZE], there[UNITS_TEXT_SIZE], words[WORDS_SIZE];
    int64_t queued = json_time(job, "queued"), placed = json_time(attempt, "placed");
    int64_t started = json_time(attempt, "started"), ended = json_time(attempt, "ended");
    if (placed) {
        (void)snprintf(words, sizeof words,
                       "queued here %s, queued there %s     log: tieline logs %s",
                       span_words(queued, placed, here),
                       span_words(placed,
                                  started ? started
                                  : ended ? ended
                                          : now_ms,
                                  there),
                       short_id(json_text(job, "id")));
        print_answer("On its way", words, out);
    }
}

/* Attempts before the last, each with how it ended. */
static void print_earlier(const json_t *attempts, FILE *out)
{
    for (size_t i = 0; i + 1 < json_array_size(attempts); i++) {
        const json_t *attempt = json_array_get(attempts, i);
        char words[WORDS_SIZE], outcome[WORDS_SIZE / 4], reason[WORDS_SIZE / 2];
        outcome_words(attempt, outcome, sizeof outcome);
        reason_words(attempt, reason, sizeof reason);
        (void)snprintf(words, sizeof words, "attempt %" PRId64 " at %s: %s%s%s",
                       json_int(attempt, "number"), json_text(attempt, "place"), outcome,
                       *reason ? ", " : "", reason);
        print_answer("Before", words, out);
    }
}

/* What the lines around it do not say already. */
static void print_reason(const json_t *job, const char *why, FILE *out)
{
    char words[WORDS_SIZE];
    const char *reason = json_text(job, "reason");
    if (json_object_get(job, "outcome")) {
        reason_words(job, words, sizeof words);
        reason = words;
    }
    if (!strstr(why, reason)) {
        print_answer("Reason", reason, out);
    }
}

static void print_placed(const json_t *record, const json_t *job, int64_t now_ms, FILE *out)
{
    const json_t *attempts = json_object_get(job, "attempts");
    const json_t *attempt = json_array_get(attempts, json_array_size(attempts) - 1);
    const char *why = json_text(json_object_get(record, "decision"), "summary");
    print_state(job, now_ms, out);
    print_reason(job, why, out);
    print_answer("Why there", why, out);
    if (attempt) {
        print_attempt_costs(record, attempt, out);
        print_way(job, attempt, now_ms, out);
    }
    print_earlier(attempts, out);
}

static void print_waiting(const json_t *record, const json_t *job, int64_t now_ms, FILE *out)
{
    const json_t *decision = json_object_get(record, "decision");
    const char *chosen = json_text(decision, "chosen");
    char words[WORDS_SIZE];
    print_queued(record, job, now_ms, out);
    print_reason(job, json_text(decision, "summary"), out);
    if (*chosen) {
        (void)snprintf(words, sizeof words, "its turn; %s could take it now", chosen);
        print_answer("Waits for", words, out);
        print_answer("Why there", json_text(decision, "summary"), out);
    } else {
        print_answer("Waits for", why_without_count(json_text(decision, "summary")), out);
    }
    print_earlier(json_object_get(job, "attempts"), out);
}

static const json_t *chosen_row(const json_t *decision)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(decision, "places"), i, row)
    {
        if (strcmp(json_text(row, "verdict"), "chosen") == 0) {
            return row;
        }
    }
    return NULL;
}

static void print_imagined(const json_t *record, FILE *out)
{
    const json_t *decision = json_object_get(record, "decision"), *row = chosen_row(decision);
    char one[UNITS_TEXT_SIZE], two[UNITS_TEXT_SIZE];
    struct strbuf line;
    if (!row) {
        (void)fputs(json_int(decision, "can_later") ? "WOULD WAIT\n"
                                                    : "WOULD WAIT: no place takes it\n",
                    out);
        print_answer("Waits for", why_without_count(json_text(decision, "summary")), out);
        return;
    }
    (void)fprintf(out, "WOULD GO to %s now", json_text(row, "place"));
    if (json_int(row, "wait_ms") > 0) {
        (void)fprintf(out, ", and start there in about %s",
                      duration_short(json_int(row, "wait_ms"), one));
    }
    (void)fputc('\n', out);
    print_answer("Why there", json_text(decision, "summary"), out);
    strbuf_init(&line, ANSWER_MAX);
    if (json_int(row, "booked") > 0) {
        strbuf_printf(&line, "%s %s rent expected, %s would be booked",
                      nano_words(json_int(row, "rent_expected"), one, sizeof one),
                      json_text(record, "currency"),
                      nano_words(json_int(row, "booked"), two, sizeof two));
    }
    print_budgets(record, &line, out);
}

/* ------------------------------------------------------------------------------------------ decision */

/* "Decided 14:21:02 among 8 places, route own-first, tier 2" */
static void print_decided(const json_t *record, const json_t *job, int64_t now_ms, FILE *out)
{
    const json_t *decision = json_object_get(record, "decision");
    const json_t *attempts = json_object_get(job, "attempts");
    const json_t *attempt = json_array_get(attempts, json_array_size(attempts) - 1);
    int64_t placed = json_time(attempt, "placed");
    const char *route = json_text(decision, "route"), *policy = json_text(decision, "policy");
    char when[UNITS_TEXT_SIZE] = "now";
    if (strcmp(json_text(record, "decided"), "then") == 0 && placed) {
        time_words(placed, now_ms, when, sizeof when);
    }
    (void)fprintf(out, "\nDecided %s among %zu places%s%s", when,
                  json_array_size(json_object_get(decision, "places")), *route ? ", route " : "",
                  route);
    if (json_int(decision, "tier") > 0) {
        (void)fprintf(out, ", tier %" PRId64, json_int(decision, "tier"));
    }
    if (strcmp(policy, json_text(record, "policy")) != 0) {
        (void)fprintf(out, ", policy %s", policy); /* not the one that is live now */
    }
    (void)fputc('\n', out);
}

static void print_decision(const json_t *record, const json_t *job, int64_t now_ms, FILE *out)
{
    const json_t *decision = json_object_get(record, "decision");
    if (!json_is_object(decision)) {
        return;
    }
    if (*json_text(decision, "chosen")) {
        print_decided(record, job, now_ms, out);
        explain_print_costs(decision, out);
    } else {
        (void)fprintf(out, "\n%" PRId64 " of %zu places can take it now, %" PRId64 " can later\n",
                      json_int(decision, "can_now"),
                      json_array_size(json_object_get(decision, "places")),
                      json_int(decision, "can_later"));
        explain_print_reasons(decision, out);
    }
    explain_print_facts(decision, out);
}

void explain_print(const json_t *record, int64_t now_ms, FILE *out)
{
    const json_t *job = json_object_get(record, "job");
    const char *state = json_text(job, "state");
    print_head(record, out);
    if (!job) {
        print_imagined(record, out);
    } else if (strcmp(state, "queued") == 0 || strcmp(state, "held") == 0) {
        print_waiting(record, job, now_ms, out);
    } else {
        print_placed(record, job, now_ms, out);
    }
    print_decision(record, job, now_ms, out);
}
