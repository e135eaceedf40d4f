/* policy_readers.h - readers that the table of policy.yaml names. For policy_keys.c alone. */
#ifndef CONFIG_POLICY_READERS_H
#define CONFIG_POLICY_READERS_H

#include "broker/core/error.h"
#include "broker/core/keys.h"
#include "broker/core/value.h"

/* X(name): what is read */
#define POLICY_READERS(X)                                                                          \
    X(currency)  /* EUR */                                                                         \
    X(rates)     /* {USD: 0.92 EUR} */                                                             \
    X(worth)     /* 20% of the reference, or 4 EUR/h */                                            \
    X(tristate)  /* true or false; not given: any */                                               \
    X(counts)    /* 4.., in thousandths */                                                         \
    X(sizes)     /* 8GiB.., in bytes */                                                            \
    X(reference) /* {cpu: 0.04 EUR/h, h100: 2 EUR/h} */                                            \
    X(job)       /* kept as it stands */

#define X(name)                                                                                    \
    int policy_read_##name(const struct value *value, void *field,                                 \
                           const struct keys_context *context, struct error *err);
POLICY_READERS(X)
#undef X

void policy_free_rates(void *field);
void policy_free_reference(void *field);
void policy_free_job(void *field);

#endif
