/* lateness.h - how late something began that was due: a small histogram. */
#ifndef BROKER_LATENESS_H
#define BROKER_LATENESS_H

#include <stdint.h>

enum { LATENESS_BUCKETS = 6 };
extern const int64_t lateness_bound_ms[LATENESS_BUCKETS]; /* the last is INT64_MAX */

struct lateness {
    int64_t counts[LATENESS_BUCKETS]; /* up to the bound of the bucket, above the one before */
    int64_t sum_ms;
};

void lateness_note(struct lateness *lateness, int64_t late_ms);

#endif
