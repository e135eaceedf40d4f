/* small_federation.h - a federation for tests: hpc (slurm: cpu, gpu), edge (local), cloud (local,
 * on-demand, two places). Borrowed; it lives as long as the process. */
#ifndef TESTS_UNIT_SMALL_FEDERATION_H
#define TESTS_UNIT_SMALL_FEDERATION_H

#include "broker/core/cluster.h"

const struct federation *small_federation(void);

#endif
