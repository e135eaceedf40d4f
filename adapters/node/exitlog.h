/* exitlog.h - the supervisor's memory: one record per line, made durable in groups.
 *
 * A line is the CRC-32 of the record in eight hex digits, a blank, the record as compact JSON. Records
 * that were added are on disk once exitlog_sync has returned 0: one write and one fdatasync for the
 * group. A torn end (the machine fell while it was written) is cut off when the log is opened; a record
 * that is damaged further up is left out and counted. */
#ifndef ADAPTERS_NODE_EXITLOG_H
#define ADAPTERS_NODE_EXITLOG_H

#include "broker/core/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct exitlog;

/* Opens or makes dir/exits and hands every good record to seen, in order. */
int exitlog_open(const char *dir, void (*seen)(void *arg, const json_t *record), void *arg,
                 struct exitlog **out, struct error *err);
void exitlog_close(struct exitlog *log); /* takes NULL; what was not synced is lost */

void exitlog_add(struct exitlog *log, const json_t *record);
bool exitlog_is_dirty(const struct exitlog *log);
/* On failure nothing of the group counts: the caller must end, or the two would differ. */
int exitlog_sync(struct exitlog *log, struct error *err);

/* Replaces all by these records in one step. Nothing may wait to be synced. On failure replaced says
 * whether the new one is the log all the same: that may not outlive a crash, so the caller must end. */
int exitlog_rewrite(struct exitlog *log, const json_t *records, bool *replaced, struct error *err);

int64_t exitlog_size(const struct exitlog *log);
/* Records that could not be read: what they said is not known. */
int64_t exitlog_damaged(const struct exitlog *log);
/* Groups and records written since it was opened. */
void exitlog_counts(const struct exitlog *log, int64_t *groups, int64_t *records);

#endif
