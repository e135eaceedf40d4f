/* cluster_keys.c - the keys of a cluster and of a place that are the same for every adapter. */
#include "config/internal.h"

#include <stddef.h>

#define CPUS_MAX INT64_C(100000000) /* thousandths */
enum { MAX_WAITING_MAX = 100000, PUE_MIN = 1000, PUE_MAX = 5000, NODES_MAX = 1000 };
#define PROBE_MIN INT64_C(100)
#define PROBE_MAX (INT64_C(3600) * 1000)

/* Read before all others, since the adapter's own keys hang on it. */
static int read_nothing(const struct value *value, void *field, const struct keys_context *context,
                        struct error *err)
{
    (void)value, (void)field, (void)context, (void)err;
    return 0;
}

static const struct key gpu_name_row = {
    .name = "gpus", .type = KEY_TEXT, .offset = offsetof(struct gpu_name, native)};
static const struct key gpu_power_row = {
    .name = "gpu", .type = KEY_POWER, .offset = offsetof(struct gpu_power, milliwatt)};

static int read_gpu_names(const struct value *value, void *field,
                          const struct keys_context *context, struct error *err)
{
    return pairs_read(value, field, sizeof(struct gpu_name), &gpu_name_row, context, err);
}

static void free_gpu_names(void *field)
{
    pairs_free(field, sizeof(struct gpu_name), &gpu_name_row);
}

static int read_gpu_power(const struct value *value, void *field,
                          const struct keys_context *context, struct error *err)
{
    return pairs_read(value, field, sizeof(struct gpu_power), &gpu_power_row, context, err);
}

static void free_gpu_power(void *field)
{
    pairs_free(field, sizeof(struct gpu_power), &gpu_power_row);
}

static const char *const mode_words[] = {
    [CLUSTER_USE] = "use", [CLUSTER_OBSERVE] = "observe", [CLUSTER_OBSERVE + 1] = NULL};

static const struct key node_keys[] = {
    {.name = "cpus",
     .type = KEY_CPUS,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct node_shape, cpus),
     .low = 1,
     .high = CPUS_MAX,
     .help = "CPUs of one machine"},
    {.name = "memory",
     .type = KEY_SIZE,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct node_shape, memory),
     .low = 1,
     .high = INT64_MAX,
     .help = "memory of one machine"},
    {.name = "gpus",
     .type = KEY_CPUS,
     .offset = offsetof(struct node_shape, gpus),
     .high = CPUS_MAX,
     .help = "GPUs of one machine"},
    {.name = "gpu",
     .type = KEY_NAME,
     .offset = offsetof(struct node_shape, gpu),
     .help = "their model"},
    {.name = "price",
     .type = KEY_PRICE_HOUR,
     .offset = offsetof(struct node_shape, price),
     .help = "of one machine for one hour; without it the place is never rented"},
    {.name = "at_most",
     .type = KEY_INTEGER,
     .offset = offsetof(struct node_shape, at_most),
     .standard = "0",
     .high = 1000000,
     .help = "machines of ours at once; 0: as many as the burst allows"},
    {.name = NULL},
};

static const struct key power_keys[] = {
    {.name = "tariff",
     .type = KEY_NAME,
     .offset = offsetof(struct power, tariff),
     .help = "name in `electricity`"},
    {.name = "pue",
     .type = KEY_CPUS,
     .offset = offsetof(struct power, pue),
     .standard = "1",
     .low = PUE_MIN,
     .high = PUE_MAX,
     .help = "power of the building per power of the machines"},
    {.name = "cpu",
     .type = KEY_POWER,
     .offset = offsetof(struct power, cpu),
     .help = "of one busy core"},
    {.name = "gpu",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct power, gpus),
     .read = read_gpu_power,
     .free = free_gpu_power,
     .type_words = "map of power",
     .help = "of one busy GPU, by model"},
    {.name = NULL},
};

static const struct key capacity_keys[] = {
    {.name = "cpus",
     .type = KEY_CPUS,
     .offset = offsetof(struct capacity, cpus),
     .low = 1,
     .high = CPUS_MAX,
     .help = "CPUs that may be given away. Default: the machine's"},
    {.name = "memory",
     .type = KEY_SIZE,
     .offset = offsetof(struct capacity, memory),
     .low = 1,
     .high = INT64_MAX,
     .help = "memory that may be given away. Default: the machine's"},
    {.name = NULL},
};

const struct key cluster_keys[] = {
    {.name = "adapter",
     .type = KEY_CUSTOM,
     .flags = KEY_REQUIRED,
     .read = read_nothing,
     .type_words = "name of an adapter",
     .help = "what kind of system it is, see below"},
    {.name = "mode",
     .type = KEY_ENUM,
     .offset = offsetof(struct cluster, mode),
     .standard = "use",
     .words = mode_words,
     .help = "`observe`: read only, nothing is ever submitted or cancelled there"},
    {.name = "shared",
     .type = KEY_BOOL,
     .offset = offsetof(struct cluster, shared),
     .standard = "false",
     .help =
         "`true`: everybody's jobs run there as one user, who for `local` can read all that the "
         "broker keeps, its token among it; `false`: only jobs of the broker's own user run "
         "there"},
    {.name = "requests",
     .type = KEY_RATE,
     .offset = offsetof(struct cluster, requests),
     .standard = "10/s",
     .help = "at most so many calls are put on the member"},
    {.name = "probe",
     .type = KEY_DURATION,
     .offset = offsetof(struct cluster, probe),
     .standard = "15s",
     .low = PROBE_MIN,
     .high = PROBE_MAX,
     .help = "time between two looks at its state"},
    {.name = "places",
     .type = KEY_CUSTOM,
     .read = read_nothing,
     .type_words = "map by name",
     .help = "its places. Default: one, called like the cluster"},
    {.name = NULL},
};

const struct key place_keys[] = {
    {.name = "kind",
     .type = KEY_ENUM,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, kind),
     .standard = "owned",
     .words = place_kind_words,
     .help = "what a further hour costs: electricity, or (on-demand, spot) rent"},
    {.name = "site",
     .type = KEY_NAME,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, site),
     .help = "name in `sites`"},
    {.name = "labels",
     .type = KEY_LABELS,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, labels),
     .help = "for `require` and `forbid`; site, cluster and place add up, the nearest wins"},
    {.name = "max_waiting",
     .type = KEY_INTEGER,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, max_waiting),
     .standard = "20",
     .low = 1,
     .high = MAX_WAITING_MAX,
     .help = "jobs of ours that may wait in the place's own queue"},
    {.name = "max_time",
     .type = KEY_DURATION,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, max_time),
     .help = "longest job taken. Default: as read from the cluster"},
    {.name = "max_cpus",
     .type = KEY_CPUS,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, max_cpus),
     .high = CPUS_MAX,
     .help = "largest job taken. Default: as read from the cluster"},
    {.name = "max_memory",
     .type = KEY_SIZE,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, max_memory),
     .help = "largest job taken. Default: as read from the cluster"},
    {.name = "max_gpus",
     .type = KEY_CPUS,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, max_gpus),
     .high = CPUS_MAX,
     .help = "largest job taken. Default: as read from the cluster"},
    {.name = "gpus",
     .type = KEY_CUSTOM,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, gpus),
     .read = read_gpu_names,
     .free = free_gpu_names,
     .type_words = "map of texts",
     .help = "our name of a GPU model: its name there"},
    {.name = "nodes",
     .type = KEY_NAMED,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, nodes),
     .rows = node_keys,
     .item_size = sizeof(struct node_shape),
     .max_items = NODES_MAX,
     .help = "machines that exist only on demand, and their price"},
    {.name = "power",
     .type = KEY_SECTION,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, power),
     .rows = power_keys,
     .help = "what work there takes of electricity"},
    {.name = "capacity",
     .type = KEY_SECTION,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, capacity),
     .rows = capacity_keys,
     .help = "what a member on one machine may give away"},
    {.name = "start_within",
     .type = KEY_DURATION,
     .flags = KEY_PLACE,
     .offset = offsetof(struct place, start_within),
     .standard = "10m",
     .help = "from accepted to running, where the place reports no queue of its own"},
    {.name = NULL},
};
