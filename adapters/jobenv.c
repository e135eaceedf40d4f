/* jobenv.c - see jobenv.h. */
#include "adapters/jobenv.h"

#include "broker/core/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_SIZE = 24 };

static struct jobenv_pair *find(const struct jobenv *env, const char *name)
{
    for (size_t i = 0; i < env->count; i++) {
        if (strcmp(env->items[i].name, name) == 0) {
            return &env->items[i];
        }
    }
    return NULL;
}

const char *jobenv_get(const struct jobenv *env, const char *name)
{
    const struct jobenv_pair *pair = find(env, name);
    return pair ? pair->value : NULL;
}

void jobenv_set(struct jobenv *env, const char *name, const char *value)
{
    struct jobenv_pair *pair = find(env, name);
    if (pair) {
        free(pair->value);
        pair->value = xstrdup(value);
        return;
    }
    if (env->count == env->room) {
        env->room = env->room * 2 + 16;
        env->items = xrealloc(env->items, env->room, sizeof *env->items);
    }
    env->items[env->count++] = (struct jobenv_pair){.name = xstrdup(name), .value = xstrdup(value)};
}

void jobenv_default(struct jobenv *env, const char *name, const char *value)
{
    if (!find(env, name)) {
        jobenv_set(env, name, value);
    }
}

static void set_number(struct jobenv *env, const char *name, int64_t value)
{
    char text[NUMBER_SIZE];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    jobenv_set(env, name, text);
}

static int64_t whole(int64_t thousandths)
{
    return thousandths / 1000 + (thousandths % 1000 > 0);
}

void jobenv_build(struct jobenv *env, const struct submit *submit)
{
    const struct spec *spec = submit->spec;
    int64_t mib = spec->needs.memory / (1024 * 1024);
    int64_t cpus = whole(spec->needs.cpus);
    memset(env, 0, sizeof *env);
    for (size_t i = 0; i < spec->env.count; i++) {
        jobenv_set(env, spec->env.items[i].name, spec->env.items[i].value);
    }
    jobenv_set(env, "TIELINE_JOB", submit->ref.job_id);
    set_number(env, "TIELINE_ATTEMPT", submit->ref.attempt);
    jobenv_set(env, "TIELINE_PLACE", submit->ref.place->name);
    jobenv_set(env, "TIELINE_CLUSTER", submit->ref.place->cluster->name);
    jobenv_set(env, "TIELINE_OWNER", submit->owner ? submit->owner : "");
    jobenv_set(env, "TIELINE_TEAM", spec->team ? spec->team : "");
    set_number(env, "TIELINE_CPUS", cpus > 0 ? cpus : 1);
    set_number(env, "TIELINE_MEMORY_MIB", mib > 0 ? mib : 1);
    set_number(env, "TIELINE_GPUS", whole(spec->needs.gpus));
    set_number(env, "TIELINE_NODES", 1);
    set_number(env, "TIELINE_NODE_RANK", 0);
}

void jobenv_fini(struct jobenv *env)
{
    for (size_t i = 0; i < env->count; i++) {
        free(env->items[i].name);
        free(env->items[i].value);
    }
    free(env->items);
    memset(env, 0, sizeof *env);
}
