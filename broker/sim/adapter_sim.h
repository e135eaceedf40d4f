/* adapter_sim.h - the `sim` adapter: member clusters that exist only in this process, on any clock. */
#ifndef BROKER_SIM_ADAPTER_SIM_H
#define BROKER_SIM_ADAPTER_SIM_H

#include "broker/core/adapter.h"

extern const struct adapter_type adapter_sim;

#endif
