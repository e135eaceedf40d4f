#include "broker/lateness.h"

const int64_t lateness_bound_ms[LATENESS_BUCKETS] = {10, 50, 100, 500, 1000, INT64_MAX};

void lateness_note(struct lateness *lateness, int64_t late_ms)
{
    int i = 0;
    while (late_ms > lateness_bound_ms[i]) {
        i++;
    }
    lateness->counts[i]++;
    lateness->sum_ms += late_ms;
}
