/* slurm_condition.c - nodes that are down or drained count for nothing. A node's GPUs are named by gres,
 * "gpu:a100:4(S:0-1)": the place's own names come first, then the federation's. */
#include "adapters/slurm_condition.h"

#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THOUSAND = 1000, GRES_NAME_MAX = 128, COUNT_MAX = 1000000 };
static const int64_t mib = 1024 * 1024;

struct gres {                 /* one entry of a list */
    char name[GRES_NAME_MAX]; /* "gpu:a100" or "gpu" */
    int64_t count;
};

/* Whether name is in the list "a,b"; NULL: yes. */
static bool is_in_list(const char *list, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    while (name && *list) {
        size_t here = strcspn(list, ",");
        if (here == length && !strncmp(list, name, length)) {
            return true;
        }
        list += here + (list[here] == ',');
    }
    return !name;
}

/* ---- GPUs */

/* Reads the entry at *text and moves past it. Returns false at the end. */
static bool next_gres(const char **text, struct gres *out)
{
    while (**text == ',') {
        ++*text;
    }
    if (!**text) {
        return false;
    }
    size_t length = strcspn(*text, ",(");
    char entry[GRES_NAME_MAX];
    (void)snprintf(entry, sizeof entry, "%.*s", (int)length, *text);
    *text += length;
    if (**text == '(') { /* sockets and indices, with commas of their own */
        *text += strcspn(*text, ")");
        *text += strcspn(*text, ",");
    }
    char *last = strrchr(entry, ':');
    char *end = NULL;
    long long count = last ? strtoll(last + 1, &end, 10) : 0;
    bool has_count = last && end != last + 1 && !*end;
    out->count = !has_count ? 1 : count < 0 ? 0 : count > COUNT_MAX ? COUNT_MAX : count;
    if (has_count) {
        *last = '\0';
    }
    copy_text(out->name, sizeof out->name, entry);
    return true;
}

static int model_by_name(const struct federation *federation, const char *name)
{
    for (size_t i = 0; i < federation->gpu_count; i++) {
        if (!strcmp(federation->gpus[i].name, name)) {
            return (int)i;
        }
    }
    return -1;
}

static int model_of(const struct federation *federation, const struct place *place,
                    const char *native)
{
    const struct gpu_name *names = place->gpus.items;
    for (size_t i = 0; i < place->gpus.count; i++) {
        if (!strcmp(names[i].native, native)) {
            return model_by_name(federation, names[i].name);
        }
    }
    const char *type = strchr(native, ':');
    return type ? model_by_name(federation, type + 1) : -1;
}

static struct gpu_count *count_of(struct condition *out, int model)
{
    for (int i = 0; i < out->gpu_count; i++) {
        if (out->gpus[i].model == model) {
            return &out->gpus[i];
        }
    }
    if (model < 0 || out->gpu_count == GPU_MODELS_MAX) {
        return NULL;
    }
    out->gpus[out->gpu_count] = (struct gpu_count){.model = model};
    return &out->gpus[out->gpu_count++];
}

/* Adds the GPUs of a list. used: they are taken from what is free. Returns how many, in thousandths. */
static int64_t add_gpus(const struct federation *federation, const struct place *place,
                        const char *list, bool used, struct condition *out)
{
    int64_t sum = 0;
    struct gres gres;
    while (next_gres(&list, &gres)) {
        if (strncmp(gres.name, "gpu", 3) != 0 || (gres.name[3] && gres.name[3] != ':')) {
            continue;
        }
        int64_t count = gres.count * THOUSAND;
        struct gpu_count *model = count_of(out, model_of(federation, place, gres.name));
        if (model) {
            model->total += used ? 0 : count;
            model->free += used ? -count : count;
        }
        sum += count;
    }
    return sum;
}

/* ---- nodes */

static int64_t at_least_0(int64_t value)
{
    return value > 0 ? value : 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_node(const struct federation *federation, const struct place *place,
                     const struct slurm_node *node, struct condition *out)
{
    int64_t gpus = add_gpus(federation, place, node->gres, false, out);
    int64_t gpus_used = add_gpus(federation, place, node->gres_used, true, out);
    out->total.cpus += node->cpus * THOUSAND;
    out->total.memory += node->memory * mib;
    out->total.gpus += gpus;
    out->free.cpus += at_least_0(node->cpus - node->cpus_used) * THOUSAND;
    out->free.memory += at_least_0(node->memory - node->memory_used) * mib;
    out->free.gpus += at_least_0(gpus - gpus_used);
    out->largest.cpus = larger(out->largest.cpus, node->cpus * THOUSAND);
    out->largest.memory = larger(out->largest.memory, node->memory * mib);
    out->largest.gpus = larger(out->largest.gpus, gpus);
}

static bool has_partition(const struct slurm_node *node, const char *partition)
{
    return !partition || texts_contain(&node->partitions, partition);
}

static void judge(const struct slurm_answer *partitions, const char *name, int usable,
                  struct condition *out)
{
    const struct slurm_partition *found = NULL;
    for (size_t i = 0; name && i < partitions->partition_count; i++) {
        if (!strcmp(partitions->partitions[i].name, name)) {
            found = &partitions->partitions[i];
        }
    }
    out->max_time = found ? found->max_ms : 0;
    if (name && !found) {
        (void)snprintf(out->reason, sizeof out->reason, "the cluster has no partition %.48s", name);
    } else if (found && !found->up) {
        (void)snprintf(out->reason, sizeof out->reason, "partition %.48s is %s", name,
                       found->state[0] ? found->state : "in no known state");
    } else if (!usable) {
        (void)snprintf(out->reason, sizeof out->reason, "no node of the partition takes jobs");
    } else {
        out->up = true;
    }
}

void slurm_condition_fill(const struct federation *federation, const struct place *place,
                          const char *partition, const struct slurm_answer *partitions,
                          const struct slurm_answer *nodes, struct condition *out)
{
    int usable = 0;
    for (size_t i = 0; i < nodes->node_count; i++) {
        const struct slurm_node *node = &nodes->nodes[i];
        if (node->usable && has_partition(node, partition)) {
            usable++;
            add_node(federation, place, node, out);
        }
    }
    for (int i = 0; i < out->gpu_count; i++) {
        out->gpus[i].free = at_least_0(out->gpus[i].free);
    }
    judge(partitions, partition, usable, out);
}

void slurm_condition_count(const char *partition, const struct slurm_answer *jobs,
                           struct condition *out)
{
    out->running = out->waiting = out->waiting_cpus = 0;
    for (size_t i = 0; i < jobs->job_count; i++) {
        const struct slurm_job *job = &jobs->jobs[i];
        if (!is_in_list(job->partition, partition)) {
            continue;
        }
        out->running += job->phase == SLURM_RUNNING;
        if (job->phase == SLURM_PENDING) {
            out->waiting++;
            out->waiting_cpus += job->cpus > 0 && job->cpus < COUNT_MAX ? job->cpus * THOUSAND : 0;
        }
    }
}

const char *slurm_default_partition(const struct slurm_answer *partitions)
{
    for (size_t i = 0; i < partitions->partition_count; i++) {
        if (partitions->partitions[i].is_default || partitions->partition_count == 1) {
            return partitions->partitions[i].name;
        }
    }
    return NULL;
}
