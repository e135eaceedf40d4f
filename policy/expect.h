/* expect.h - a policy carries its own tests: runs the `expect` lines of a policy. Pure. */
#ifndef POLICY_EXPECT_H
#define POLICY_EXPECT_H

#include "broker/core/cluster.h"
#include "broker/core/rules.h"

/* For each line of `expect`: whether it holds; if not, why ("went to aws/spot: ...") in err with the
 * line. Places that nothing is said of are idle, healthy and large enough. Returns how many failed. */
int expect_run(const struct rules *rules, const struct federation *federation, int64_t now_ms,
               void (*failed)(void *arg, const struct expectation *expectation,
                              const struct error *err),
               void *arg);

#endif
