/* jobenv.h - what a job finds in its environment, the same on every member.
 *
 * For all adapters: jobenv_build gives the job's own `env` and the TIELINE_ names, which the job cannot
 * override. HOME, USER, PATH and SHELL are of the machine where it runs: the adapter or its wrapper adds
 * them with jobenv_default, which keeps what the job set itself. Names are in order of appearance. */
#ifndef ADAPTERS_JOBENV_H
#define ADAPTERS_JOBENV_H

#include "broker/core/adapter.h"

#include <stddef.h>

struct jobenv_pair {
    char *name, *value;
};
struct jobenv {
    struct jobenv_pair *items;
    size_t count, room;
};

/* CPUs and GPUs are whole numbers, rounded up: a program starts so many threads. Memory is in MiB, rounded
 * down, at least 1. */
void jobenv_build(struct jobenv *env, const struct submit *submit);
void jobenv_fini(struct jobenv *env);

void jobenv_set(struct jobenv *env, const char *name, const char *value); /* replaces */
void jobenv_default(struct jobenv *env, const char *name, const char *value);
const char *jobenv_get(const struct jobenv *env, const char *name); /* NULL: absent */

#endif
