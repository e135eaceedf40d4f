#include "broker/metrics.h"

#include "broker/core/limits.h"
#include "broker/journal.h"
#include "broker/member.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "policy/burst.h"

enum metric {
#define X(constant, name, type, help) METRIC_##constant,
    METRIC_LIST(X)
#undef X
        METRIC_COUNT
};

static const struct {
    const char *name, *type, *help;
} metric_table[] = {
#define X(constant, name, type, help) {name, type, help},
    METRIC_LIST(X)
#undef X
};

static void head(FILE *out, enum metric metric)
{
    (void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric_table[metric].name,
                  metric_table[metric].help, metric_table[metric].name, metric_table[metric].type);
}

/* One sample with up to two labels. Values of labels are names that the configuration has checked. */
static void sample(FILE *out, enum metric metric, const char *label, const char *value,
                   const char *label2, const char *value2, double number)
{
    (void)fputs(metric_table[metric].name, out);
    if (label) {
        (void)fprintf(out, "{%s=\"%s\"", label, value);
        if (label2) {
            (void)fprintf(out, ",%s=\"%s\"", label2, value2);
        }
        (void)fputc('}', out);
    }
    (void)fprintf(out, " %.15g\n", number);
}

static void single(FILE *out, enum metric metric, double number)
{
    head(out, metric);
    sample(out, metric, NULL, NULL, NULL, NULL, number);
}

static void print_jobs(const struct context *context, FILE *out)
{
    static const enum job_state live[] = {JOB_HELD, JOB_QUEUED, JOB_ACTIVE, JOB_CANCELLING};
    head(out, METRIC_JOBS);
    for (size_t i = 0; i < sizeof live / sizeof live[0]; i++) {
        sample(out, METRIC_JOBS, "state", job_state_name(live[i]), NULL, NULL,
               (double)journal_count_state(context->journal, live[i]));
    }
    single(out, METRIC_JOBS_MAX, LIMIT_QUEUED_JOBS);
    head(out, METRIC_EVENTS);
    for (int kind = 0; kind < EVENT_COUNT; kind++) {
        sample(out, METRIC_EVENTS, "kind", event_name((enum event_kind)kind), NULL, NULL,
               (double)journal_applied(context->journal, (enum event_kind)kind));
    }
    head(out, METRIC_QUEUED);
    for (size_t i = 0; i < context->rules->classes.count; i++) {
        const char *name = RULES_AT(context->rules->classes, struct class_rule, i)->name;
        sample(out, METRIC_QUEUED, "class", name, NULL, NULL,
               (double)queue_class_count(context->queue, name));
    }
}

typedef double (*place_figure_fn)(const struct place_view *view);

static double is_reachable(const struct place_view *view)
{
    return view->reachable;
}

static double silence(const struct place_view *view)
{
    return (double)view->silent_ms / 1e3;
}

static double free_cpus(const struct place_view *view)
{
    return (double)view->condition.free.cpus / 1e3;
}

static double total_cpus(const struct place_view *view)
{
    return (double)view->condition.total.cpus / 1e3;
}

static void print_places(const struct context *context, FILE *out)
{
    static const struct {
        enum metric metric;
        place_figure_fn figure;
    } figures[] = {{METRIC_PLACE_UP, is_reachable},
                   {METRIC_PLACE_SILENT, silence},
                   {METRIC_PLACE_FREE, free_cpus},
                   {METRIC_PLACE_TOTAL, total_cpus}};
    const struct view *view = picture_view(context->picture);
    size_t count = context->federation->place_count;
    for (size_t f = 0; f < sizeof figures / sizeof figures[0]; f++) {
        head(out, figures[f].metric);
        for (size_t i = 0; i < count; i++) {
            sample(out, figures[f].metric, "place", view->places[i].place->name, NULL, NULL,
                   figures[f].figure(&view->places[i]));
        }
    }
    head(out, METRIC_PLACE_JOBS);
    for (size_t i = 0; i < count; i++) {
        const char *name = view->places[i].place->name;
        sample(out, METRIC_PLACE_JOBS, "place", name, "state", "running",
               (double)view->places[i].running_ours);
        sample(out, METRIC_PLACE_JOBS, "place", name, "state", "waiting",
               (double)view->places[i].waiting_ours);
    }
}

static void print_members(const struct context *context, FILE *out)
{
    static const char *const results[] = {"ok", "failed", "unknown"};
    size_t count = context->federation->cluster_count;
    struct member_stats stats;
    head(out, METRIC_CALLS);
    for (size_t i = 0; i < count; i++) {
        member_stats(context->members, (int)i, &stats);
        for (int result = 0; result < 3; result++) {
            sample(out, METRIC_CALLS, "cluster", context->federation->clusters[i].name, "result",
                   results[result], (double)stats.calls[result]);
        }
    }
    head(out, METRIC_CALLS_NOW);
    for (size_t i = 0; i < count; i++) {
        member_stats(context->members, (int)i, &stats);
        sample(out, METRIC_CALLS_NOW, "cluster", context->federation->clusters[i].name, NULL, NULL,
               (double)(stats.under_way + stats.in_line));
    }
    int64_t unsure = 0;
    for (const struct entry *entry = journal_first(context->journal); entry; entry = entry->next) {
        const struct attempt *attempt = job_attempt(entry->job);
        unsure += attempt && attempt->state == ATTEMPT_UNSURE ? 1 : 0;
    }
    single(out, METRIC_UNSURE, (double)unsure);
}

static void print_lateness(const struct lateness *lateness, FILE *out)
{
    const char *name = metric_table[METRIC_POLL_LATE].name;
    int64_t total = 0;
    head(out, METRIC_POLL_LATE);
    for (int i = 0; i < LATENESS_BUCKETS; i++) {
        total += lateness->counts[i];
        if (lateness_bound_ms[i] == INT64_MAX) {
            (void)fprintf(out, "%s_bucket{le=\"+Inf\"} %lld\n", name, (long long)total);
        } else {
            (void)fprintf(out, "%s_bucket{le=\"%.15g\"} %lld\n", name,
                          (double)lateness_bound_ms[i] / 1e3, (long long)total);
        }
    }
    (void)fprintf(out, "%s_sum %.15g\n%s_count %lld\n", name, (double)lateness->sum_ms / 1e3, name,
                  (long long)total);
}

static void print_bursts(const struct context *context, FILE *out)
{
    const struct view *view = picture_view(context->picture);
    const struct list *bursts = &context->rules->bursts;
    head(out, METRIC_BURST);
    for (size_t i = 0; i < bursts->count; i++) {
        for (int state = BURST_CLOSED; state <= BURST_CLOSING; state++) {
            sample(out, METRIC_BURST, "burst", view->bursts[i].rule->name, "state",
                   burst_state_name((enum burst_state)state),
                   (int)view->bursts[i].state == state ? 1 : 0);
        }
    }
    head(out, METRIC_BURST_PENDING);
    for (size_t i = 0; i < bursts->count; i++) {
        sample(out, METRIC_BURST_PENDING, "burst", view->bursts[i].rule->name, NULL, NULL,
               (double)view->bursts[i].facts->pending);
    }
    head(out, METRIC_BURST_JOBS);
    for (size_t i = 0; i < bursts->count; i++) {
        sample(out, METRIC_BURST_JOBS, "burst", view->bursts[i].rule->name, NULL, NULL,
               (double)view->bursts[i].jobs);
    }
}

static void print_budgets(const struct context *context, FILE *out)
{
    const struct view *view = picture_view(context->picture);
    const struct list *budgets = &context->rules->budgets;
    for (int metric = METRIC_BUDGET_LIMIT; metric <= METRIC_BUDGET_SETTLED; metric++) {
        head(out, (enum metric)metric);
        for (size_t i = 0; i < budgets->count; i++) {
            const struct budget_rule *rule = RULES_AT(*budgets, struct budget_rule, i);
            const struct budget_view *sums = &view->budgets[i];
            int64_t nano = metric == METRIC_BUDGET_LIMIT       ? rule->limit.nano
                           : metric == METRIC_BUDGET_COMMITTED ? sums->settled + sums->booked
                                                               : sums->settled;
            sample(out, (enum metric)metric, "budget", rule->name, NULL, NULL, (double)nano / 1e9);
        }
    }
}

static void print_store(const struct context *context, FILE *out)
{
    struct store_stats stats;
    context->store->ops->stats(context->store, &stats);
    int64_t now = clock_mono_ms(context->clock);
    single(out, METRIC_STORE_PENDING, (double)stats.pending);
    single(out, METRIC_STORE_AGE,
           stats.last_commit_ms ? (double)(now - stats.last_commit_ms) / 1e3 : 0);
    single(out, METRIC_STORE_COMMITS, (double)stats.commits);
    single(out, METRIC_STORE_ITEMS, (double)stats.items);
    single(out, METRIC_STORE_COMMIT, (double)stats.commit_us / 1e6);
    single(out, METRIC_STORE_FAILING, stats.failing);
}

void metrics_print(const struct metrics_source *source, FILE *out)
{
    const struct context *context = source->context;
    int dark, known;
    picture_dark(context->picture, &dark, &known);
    print_jobs(context, out);
    print_places(context, out);
    print_members(context, out);
    print_lateness(&source->lateness, out);
    print_bursts(context, out);
    print_budgets(context, out);
    print_store(context, out);
    single(out, METRIC_DECISIONS, (double)source->decisions);
    single(out, METRIC_PASSES, (double)source->passes);
    single(out, METRIC_SLICE, (double)source->slice_ms / 1e3);
    single(out, METRIC_TOMBS, (double)source->tombstones);
    single(out, METRIC_TOMBS_AGE, (double)source->oldest_tombstone_ms / 1e3);
    single(out, METRIC_ISOLATED, known > 1 && dark == known ? 1 : 0);
    single(out, METRIC_RECOVERING, picture_is_recovering(context->picture) ? 1 : 0);
    single(out, METRIC_FOLLOWERS, source->followers);
    head(out, METRIC_BUILD);
    sample(out, METRIC_BUILD, "version", TIELINE_VERSION, "policy", context->rules->hash, 1);
}

void metrics_docs(FILE *out)
{
    (void)fputs("| metric | type | meaning |\n|---|---|---|\n", out);
    for (int i = 0; i < METRIC_COUNT; i++) {
        (void)fprintf(out, "| `%s` | %s | %s |\n", metric_table[i].name, metric_table[i].type,
                      metric_table[i].help);
    }
}
