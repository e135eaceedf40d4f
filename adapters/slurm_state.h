/* slurm_state.h - what Slurm's words for a job's state and its exit status mean. */
#ifndef ADAPTERS_SLURM_STATE_H
#define ADAPTERS_SLURM_STATE_H

#include "adapters/slurm_job.h"

#include <stdbool.h>
#include <stddef.h>

enum { SLURM_WORDS_MAX = 16 };

struct slurm_words { /* base state and flags, in any order; old versions give one of them alone */
    const char *items[SLURM_WORDS_MAX];
    size_t count;
};

/* Sets phase and outcome from the words and from exit_code, signal, start_ms and reason of job. */
void slurm_state_judge(const struct slurm_words *words, struct slurm_job *job);

/* Sets exit_code and signal from a status as wait(2) gives it. */
void slurm_state_set_wait(struct slurm_job *job, int64_t status);

/* Whether a node in this state takes jobs. Words in any case. */
bool slurm_node_is_usable(const struct slurm_words *words);

#endif
