#include "broker/core/limits.h"

const struct limit_row limit_table[] = {
#define X(constant, name, value, unit, beyond) {name, value, unit, beyond},
    LIMIT_LIST(X)
#undef X
};

const int limit_count = (int)(sizeof limit_table / sizeof limit_table[0]);
