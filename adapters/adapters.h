/* adapters.h - every kind of member cluster that this program can speak to. */
#ifndef ADAPTERS_ADAPTERS_H
#define ADAPTERS_ADAPTERS_H

#include "broker/core/adapter.h"

extern const struct adapter_type adapter_local;
extern const struct adapter_type adapter_slurm;

/* One row per adapter, NULL at the end. The simulated member is not among them: broker/sim has it. */
extern const struct adapter_type *const adapter_types[];

#endif
