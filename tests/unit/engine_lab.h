/* engine_lab.h - the tools of the broker without its stages: clock, rules, journal, picture, queue. */
#ifndef TESTS_UNIT_ENGINE_LAB_H
#define TESTS_UNIT_ENGINE_LAB_H

#include "broker/context.h"
#include "broker/journal.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "broker/sim/clock_sim.h"

#include <stdint.h>

struct engine {
    struct context context;
    struct federation *federation;
};

/* Three members a, b (owned) and r (rented), 8 CPUs each; policy: the text after "version: 1". */
struct engine *engine_open(const char *policy);
void engine_close(struct engine *engine);

/* A job in state QUEUED that needs so many CPUs. extra: further members of its JSON, or "". */
struct entry *engine_job(struct engine *engine, const char *class_name, int cpus,
                         const char *extra);

/* Applies an event to the job of the entry, as the journal would. */
void engine_apply(struct engine *engine, struct entry *entry, enum event_kind kind,
                  json_t *data_take);

/* Another policy is live. */
void engine_reload(struct engine *engine, const char *policy);

#endif
