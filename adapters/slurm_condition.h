/* slurm_condition.h - what partitions, nodes and jobs say of a place. */
#ifndef ADAPTERS_SLURM_CONDITION_H
#define ADAPTERS_SLURM_CONDITION_H

#include "adapters/slurm_parse.h"
#include "broker/core/cluster.h"
#include "broker/core/signal.h"

/* Capacity and health. partition NULL: all of the cluster. The counts of jobs are left alone. */
void slurm_condition_fill(const struct federation *federation, const struct place *place,
                          const char *partition, const struct slurm_answer *partitions,
                          const struct slurm_answer *nodes, struct condition *out);

/* running, waiting and waiting_cpus. */
void slurm_condition_count(const char *partition, const struct slurm_answer *jobs,
                           struct condition *out);

/* The partition that takes jobs which name none; NULL when the answer does not say. Borrowed. */
const char *slurm_default_partition(const struct slurm_answer *partitions);

#endif
