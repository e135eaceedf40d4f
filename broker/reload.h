/* reload.h - the live policy: another one is checked, written down, and only then decides. A bad one
 * changes nothing. */
#ifndef BROKER_RELOAD_H
#define BROKER_RELOAD_H

#include "broker/caller.h"
#include "broker/context.h"

struct reload;

/* How a policy is read and freed: the configuration's, handed in. */
typedef int (*rules_parse_fn)(const char *text, const char *file,
                              const struct federation *federation, struct rules **out,
                              struct error *err);
typedef void (*rules_destroy_fn)(struct rules *rules);

/* changed runs when another policy is live. */
struct reload *reload_create(struct context *context, rules_parse_fn parse,
                             rules_destroy_fn destroy, void (*changed)(void *arg), void *arg);
void reload_destroy(struct reload *reload); /* takes NULL; frees the live policy too */

/* At start: what was kept of the policy that was live last. */
void reload_load(struct reload *reload, const json_t *json);
/* At start, after the load: writes the policy down when it is not the one that was live last. */
void reload_start(struct reload *reload);

/* Checks and, unless dry_run, takes a policy; see broker_policy_set. */
void reload_set(struct reload *reload, const struct caller *caller, const char *text,
                const char *file, bool dry_run, reply_fn reply, void *arg);
json_t *reload_present(const struct reload *reload); /* {"hash","since","by","text"} */

#endif
