/* picture.h - what the broker knows of the world: conditions of places, what is booked there, bursts,
 * budgets, drains. Decisions are made on it (struct view), own placements that the members do not
 * show yet counted in. Bookings are taken when a decision is made, confirmed by the event on disk, undone
 * when the append fails, and released on an observed fact. */
#ifndef BROKER_PICTURE_H
#define BROKER_PICTURE_H

#include "broker/context.h"
#include "broker/core/signal.h"
#include "broker/journal.h"
#include "policy/burst.h"
#include "policy/decide.h"

#include <stdbool.h>
#include <stdint.h>

struct picture *picture_create(struct context *context);
void picture_destroy(struct picture *picture); /* takes NULL */

/* The sums of the budgets, by name; taken before a reload and given to picture_rules_changed. */
json_t *picture_budgets(const struct picture *picture);
/* After a reload: bursts and budgets are matched to those of the new policy by name. */
void picture_rules_changed(struct picture *picture, const json_t *before);

/* The view of this moment; the picture's until the next call that changes it. */
const struct view *picture_view(struct picture *picture);

/* Whether a job of these needs could have room or a waiting slot at the place: without, no decision sends
 * it there. What else stands in the way of a job without GPUs changes only with the epoch. */
bool picture_has_room(const struct picture *picture, int place, const struct needs *needs);
int64_t picture_epoch(const struct picture *picture);

/* ---- conditions */
/* A probe of a cluster that was sent at started_ms (monotonic) has answered. Returns whether a decision
 * may be another one now. */
bool picture_condition(struct picture *picture, int cluster, const struct condition *conditions,
                       const char *version, int64_t started_ms, int64_t round_trip_ms);
/* It has failed. Returns whether that is news: it answered before, or was never asked before. */
bool picture_silent(struct picture *picture, int cluster, const char *why);
bool picture_is_reachable(const struct picture *picture, int cluster);
const char *picture_version(const struct picture *picture, int cluster);
const char *picture_fault(const struct picture *picture, int cluster); /* "" when reachable */
int64_t picture_silent_ms(const struct picture *picture, int cluster); /* 0: reachable */
int64_t picture_round_trip_ms(const struct picture *picture, int cluster);
/* How many members were reachable once and are not now, of how many. */
void picture_dark(const struct picture *picture, int *dark, int *known);

void picture_drain(struct picture *picture, int place, bool drained, const char *by,
                   const char *note, int64_t since_ms);
json_t *picture_drain_to_json(const struct picture *picture, int place); /* NULL when not drained */
void picture_drain_from_json(struct picture *picture, int place, const json_t *json);

/* The store is older than the world: nothing may be submitted, cancelled or deleted. */
void picture_set_recovering(struct picture *picture, bool recovering);
bool picture_is_recovering(const struct picture *picture);
/* The members are listed first: what the store does not know shows then, before anything is done. */
void picture_set_looking(struct picture *picture, bool looking);
bool picture_is_looking(const struct picture *picture);

/* ---- bookings; the attempt is the job's current one */
/* Books what the row of a decision says, before the PLACE event is appended. */
void picture_book(struct picture *picture, struct entry *entry, const struct verdict_row *row,
                  const struct decision *decision);
/* After a restart: books what the live attempt holds. */
void picture_rebook(struct picture *picture, struct entry *entry);
void picture_accepted(struct picture *picture, struct entry *entry);
void picture_running(struct picture *picture, struct entry *entry);
/* The entries that hold something of a place; go on with ->booking.next. */
struct entry *picture_bookings(const struct picture *picture, int place);
/* Releases all that the entry holds. Harmless when it holds nothing. */
void picture_release(struct picture *picture, struct entry *entry);

/* ---- money */
/* The rent of an attempt that ended: from start to end at its price; never started: nothing. */
int64_t picture_rent(const struct attempt *attempt, int64_t started_ms, int64_t ended_ms);
/* Adds what the current attempt cost to its budgets, and takes it off what the entry has booked there;
 * a negative sum undoes that. Returns the document that keeps the sums of these budgets, to be written in
 * the commit of the END event; NULL: no budget. */
struct store_doc *picture_settle(struct picture *picture, struct entry *entry, int64_t settled);
void picture_budgets_from_json(struct picture *picture, const json_t *json);
/* A new day, week, month or year begins with nothing settled. */
void picture_budget_periods(struct picture *picture);

/* ---- bursts, by index of rules.bursts; facts: of the last look at it, copied */
void picture_burst_facts(struct picture *picture, int burst, const struct burst_facts *facts);
struct burst_memory *picture_burst(struct picture *picture, int burst);
int64_t picture_burst_since(const struct picture *picture, int burst);
void picture_burst_set_since(struct picture *picture, int burst, int64_t since_ms);

/* ---- learning */
/* An attempt ran so long there. */
void picture_ran(struct picture *picture, int place, int64_t run_ms);

#endif
