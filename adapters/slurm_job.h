/* slurm_job.h - a job of Slurm, read from the controller or from accounting. */
#ifndef ADAPTERS_SLURM_JOB_H
#define ADAPTERS_SLURM_JOB_H

#include "broker/core/job.h"

#include <stdint.h>

enum slurm_phase {
    SLURM_PENDING,
    SLURM_RUNNING, /* or starting, stopping: it holds resources */
    SLURM_ENDED,
    SLURM_SIBLING, /* of Slurm's own federation: another cluster has the job */
};

struct slurm_job {
    int64_t id;
    char *name, *comment, *user, *partition;
    enum slurm_phase phase;
    enum outcome outcome; /* ENDED only */
    int exit_code, signal;
    int64_t submit_ms, start_ms, end_ms; /* 0: not stated */
    int64_t cpus;
    char reason[REASON_SIZE];
    char by[64]; /* who cancelled it, from accounting alone */
};

#endif
