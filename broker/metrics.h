/* metrics.h - what the broker measures of itself, in the Prometheus text format. */
#ifndef BROKER_METRICS_H
#define BROKER_METRICS_H

#include "broker/context.h"
#include "broker/lateness.h"

#include <stdio.h>

/* X(name, type, help): every metric; docs/metrics.md is printed from it */
#define METRIC_LIST(X)                                                                             \
    X(JOBS, "tieline_jobs", "gauge", "Jobs that are not final, by state")                          \
    X(JOBS_MAX, "tieline_jobs_queued_max", "gauge", "Jobs not final at which submits are refused") \
    X(EVENTS, "tieline_events_total", "counter", "Events on disk since start, by kind")            \
    X(QUEUED, "tieline_queued_jobs", "gauge", "Jobs that wait for a placement, by class")          \
    X(PLACE_UP, "tieline_place_reachable", "gauge", "1 when the place's member answers")           \
    X(PLACE_SILENT, "tieline_place_silent_seconds", "gauge", "Since when it does not")             \
    X(PLACE_JOBS, "tieline_place_jobs", "gauge", "Our attempts there, by state")                   \
    X(PLACE_FREE, "tieline_place_free_cpus", "gauge", "CPUs free there at the last probe")         \
    X(PLACE_TOTAL, "tieline_place_cpus", "gauge", "CPUs there")                                    \
    X(CALLS, "tieline_member_calls_total", "counter", "Calls to a member, by result")              \
    X(CALLS_NOW, "tieline_member_calls_open", "gauge", "Calls under way or in line")               \
    X(UNSURE, "tieline_submits_unsure", "gauge", "Submits whose outcome is unknown")               \
    X(POLL_LATE, "tieline_poll_late_seconds", "histogram", "How late listings of members began")   \
    X(BURST, "tieline_burst_state", "gauge", "1 for the state that the burst is in")               \
    X(BURST_PENDING, "tieline_burst_pending", "gauge", "Waiting jobs that the burst could run")    \
    X(BURST_JOBS, "tieline_burst_jobs", "gauge", "Attempts that hold a place through it")          \
    X(BUDGET_LIMIT, "tieline_budget_limit", "gauge", "Limit of the budget, in its currency")       \
    X(BUDGET_COMMITTED, "tieline_budget_committed", "gauge", "Settled and booked in this period")  \
    X(BUDGET_SETTLED, "tieline_budget_settled", "gauge", "Settled in this period")                 \
    X(STORE_PENDING, "tieline_store_pending_events", "gauge", "Events not yet on disk")            \
    X(STORE_AGE, "tieline_store_last_commit_age_seconds", "gauge", "Since the last good commit")   \
    X(STORE_COMMITS, "tieline_store_commits_total", "counter", "Commits")                          \
    X(STORE_ITEMS, "tieline_store_items_total", "counter", "Events and documents committed")       \
    X(STORE_COMMIT, "tieline_store_commit_seconds", "gauge", "Moving mean of one commit")          \
    X(STORE_FAILING, "tieline_store_failing", "gauge", "1 when the last commit failed")            \
    X(DECISIONS, "tieline_decisions_total", "counter", "Decisions made")                           \
    X(PASSES, "tieline_passes_total", "counter", "Passes over the queue")                          \
    X(SLICE, "tieline_pass_slice_max_seconds", "gauge", "Longest slice of a pass")                 \
    X(TOMBS, "tieline_deletes_pending", "gauge", "Work elsewhere that must still be ended")        \
    X(TOMBS_AGE, "tieline_deletes_oldest_age_seconds", "gauge", "Age of the oldest of them")       \
    X(ISOLATED, "tieline_isolated", "gauge", "1 when all members are dark at once")                \
    X(RECOVERING, "tieline_recovering", "gauge", "1 when the store is older than the world")       \
    X(FOLLOWERS, "tieline_followers", "gauge", "Readers that wait for news")                       \
    X(BUILD, "tieline_build_info", "gauge", "Version and policy")

struct metrics_source { /* the picture of this moment; broker.c asks the stages for theirs */
    struct context *context;
    int64_t passes, decisions, slice_ms;     /* schedule */
    struct lateness lateness;                /* watch */
    int64_t tombstones, oldest_tombstone_ms; /* sweep */
    int followers;                           /* follow */
};
void metrics_print(const struct metrics_source *source, FILE *out);

/* The list as Markdown. */
void metrics_docs(FILE *out);

#endif
