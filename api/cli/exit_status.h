/* exit_status.h - what `tieline run` and `tieline wait` return: the one table, also printed in docs. */
#ifndef API_CLI_EXIT_STATUS_H
#define API_CLI_EXIT_STATUS_H

#include "broker/core/error.h"

#include <jansson.h>
#include <stdio.h>

enum {
    STATUS_LIMIT = 124,
    STATUS_UNABLE = 125,
    STATUS_REFUSED = 126,
    STATUS_SIGNAL = 128,
    STATUS_KILLED = STATUS_SIGNAL + 9
};

/* Of a final job as the broker presents it. */
int exit_status_of_job(const json_t *job);
/* Of a call that failed: refused, or not able. status: HTTP, 0 when no answer came. */
int exit_status_of_error(const struct error *err, long status);

/* One line about a final job: "exit 2", "signal 9", "time limit". The caller's buffer. */
void outcome_words(const json_t *job, char *out, size_t size);

/* The same next to the state: "" when that says it, as "cancelled". */
void end_words(const json_t *job, char *out, size_t size);
/* What the reason says that outcome and place do not: "" for "exit 2 at hpc". The caller's buffer. */
void reason_words(const json_t *job, char *out, size_t size);

/* The table as Markdown. */
void exit_status_print(FILE *out);

#endif
