/* signal.h - measured facts about a place, with unit, source, time and shelf life.
 *
 * What a probe of a member returns is a struct condition per place. A stale or absent value is never
 * taken as zero: the place is filtered, and the reason says which. */
#ifndef BROKER_CORE_SIGNAL_H
#define BROKER_CORE_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

enum { GPU_MODELS_MAX = 16 };

struct resources {
    int64_t cpus;   /* thousandths */
    int64_t memory; /* bytes */
    int64_t gpus;   /* thousandths, of every model together */
};

/* GPUs by model: models are indices into federation.gpus; others are not counted. */
struct gpu_count {
    int model;
    int64_t total, free; /* thousandths */
};

/* One place's condition as its member states it. -1 in a count: not stated. */
struct condition {
    bool up;                  /* takes work: not down, not drained there */
    char reason[96];          /* why not, when not up */
    struct resources total;   /* usable capacity */
    struct resources free;    /* of it */
    struct resources largest; /* what one job may have at most: largest node */
    struct gpu_count gpus[GPU_MODELS_MAX];
    int gpu_count;
    int64_t max_time;         /* ms; 0: no limit stated */
    int64_t running, waiting; /* jobs there, ours and others' */
    int64_t waiting_cpus;     /* thousandths that waiting jobs want, -1 */
};

#endif
