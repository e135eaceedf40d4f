/* problem.h - an error as an RFC 9457 problem. */
#ifndef BROKER_CORE_PROBLEM_H
#define BROKER_CORE_PROBLEM_H

#include "broker/core/error.h"

#include <jansson.h>

/* {"type","title","status","detail"} and, when known, "expected", "pointer", "line", "column", "file",
 * "retry". New reference. */
json_t *error_to_problem(const struct error *err);

#endif
