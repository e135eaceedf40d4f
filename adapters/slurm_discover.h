/* slurm_discover.h - which version of its API a slurmrestd serves that this program speaks. */
#ifndef ADAPTERS_SLURM_DISCOVER_H
#define ADAPTERS_SLURM_DISCOVER_H

#include "adapters/slurm_line.h"

#include <stdbool.h>
#include <stdint.h>

struct slurm_discovery;

/* version 0: err says why. accounting: the endpoints of slurmdbd are served as well. */
typedef void (*slurm_discovered_fn)(void *arg, int version, bool accounting,
                                    const struct error *err);

/* The newest of the versions in the set (bit N) that this program speaks; 0: none. */
int slurm_version_pick(uint64_t served);

/* Completes once, later, and frees itself then. */
struct slurm_discovery *slurm_discover(struct slurm_line *line, int64_t deadline_ms,
                                       slurm_discovered_fn done, void *arg);
/* Without completing; the line must have been destroyed before. Takes NULL. */
void slurm_discovery_destroy(struct slurm_discovery *discovery);

#endif
