#include "adapters/adapters.h"

#include <stddef.h>

const struct adapter_type *const adapter_types[] = {
    &adapter_local,
    &adapter_slurm,
    NULL,
};
