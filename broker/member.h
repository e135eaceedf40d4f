/* member.h - calls to member clusters: each has a deadline, completes exactly once, and never from
 * within the call. At most LIMIT_MEMBER_CALLS are under way at one member and LIMIT_MEMBER_LINE wait;
 * one member that hangs holds up no other. */
#ifndef BROKER_MEMBER_H
#define BROKER_MEMBER_H

#include "broker/context.h"
#include "broker/core/adapter.h"

#include <stdbool.h>
#include <stdint.h>

struct members;
struct member_call;

/* call is as the adapter left it (or UNKNOWN by the deadline) and valid while done runs. */
typedef void (*member_done_fn)(void *arg, const struct adapter_call *call);

int members_create(struct context *context, const struct adapter_env *env, struct members **out,
                   struct error *err);
void members_destroy(struct members *members); /* takes NULL; outstanding calls end as UNKNOWN */

/* Each returns -1, and done never runs, when the line of this member is full (TOO_MANY). */
int member_probe(struct members *members, int cluster, member_done_fn done, void *arg);
int member_poll(struct members *members, int cluster, member_done_fn done, void *arg);
int member_submit(struct members *members, const struct attempt_ref *ref, struct spec *spec,
                  const char *owner, member_done_fn done, void *arg);
int member_find(struct members *members, const struct attempt_ref *ref, member_done_fn done,
                void *arg);
int member_cancel(struct members *members, const struct attempt_ref *ref, member_done_fn done,
                  void *arg);
int member_log(struct members *members, const struct attempt_ref *ref, int64_t offset,
               member_done_fn done, void *arg);
void member_forget(struct members *members, const struct attempt_ref *ref);
int member_render(struct members *members, const struct attempt_ref *ref, struct spec *spec,
                  const char *owner, char **text, struct error *err);

const struct adapter_type *member_type(const struct members *members, int cluster);
/* Room for one more call at once, without waiting in line. */
bool member_has_room(const struct members *members, int cluster);

struct member_stats {
    int64_t calls[3]; /* by enum adapter_result */
    int64_t under_way, in_line;
    int64_t last_us; /* duration of the last call */
};
void member_stats(const struct members *members, int cluster, struct member_stats *out);

/* Fills a ref for one attempt of a job. */
void attempt_ref_init(struct attempt_ref *ref, const struct federation *federation,
                      const struct job *job, const struct attempt *attempt);

#endif
