/* cluster.h - what exists: the federation, its member clusters and their places, as plain structs.
 *
 * Filled by config/ from tieline.yaml, immutable afterwards, owned by struct federation. */
#ifndef BROKER_CORE_CLUSTER_H
#define BROKER_CORE_CLUSTER_H

#include "broker/core/id.h"
#include "broker/core/keys.h"
#include "broker/core/units.h"

#include <stdbool.h>
#include <stdint.h>

struct adapter_type;

/* X(constant, word, rented): what a further hour costs */
#define PLACE_KIND_LIST(X)                                                                         \
    X(OWNED, "owned", false)                                                                       \
    X(RESERVED, "reserved", false)                                                                 \
    X(ON_DEMAND, "on-demand", true)                                                                \
    X(SPOT, "spot", true)

enum place_kind {
#define X(constant, word, rented) PLACE_##constant,
    PLACE_KIND_LIST(X)
#undef X
        PLACE_KIND_COUNT
};
extern const char *const place_kind_words[]; /* NULL-terminated, by enum place_kind */
static inline bool place_kind_is_rented(enum place_kind kind)
{
    return kind >= PLACE_ON_DEMAND;
}

enum cluster_mode { CLUSTER_USE, CLUSTER_OBSERVE };

/* The largest federation: 4,096 places in 1,024 clusters. */
enum { CLUSTERS_MAX = 1024, PLACES_MAX = 4096, PLACE_NAME_SIZE = 2 * NAME_SIZE };

struct gpu_model { /* gpus: the name used in jobs, memory and relative speed */
    char *name;
    int64_t memory;
    int64_t speed; /* thousandths; 1000: the reference model */
};
struct gpu_name { /* a place's own name for a model */
    char *name;   /* ours */
    char *native; /* theirs */
};
struct node_shape { /* machines that exist only on demand */
    char *name;
    int64_t cpus; /* thousandths */
    int64_t memory;
    int64_t gpus; /* thousandths */
    char *gpu;
    struct money price; /* of one machine for one hour */
    int64_t at_most;    /* machines of ours at once */
};
struct
    power { /* of what a job keeps busy; price resolved from the tariff, in the tariff's currency */
    char *tariff;
    int64_t pue;      /* thousandths, default 1000 */
    int64_t cpu;      /* milliwatts per busy core */
    struct list gpus; /* struct gpu_power */
};
struct gpu_power {
    char *name;
    int64_t milliwatt;
};
struct capacity { /* 0: what the machine has */
    int64_t cpus;
    int64_t memory;
};

struct cluster;

struct place {
    char name[PLACE_NAME_SIZE]; /* "hpc/gpu", or "edge" when the cluster lists no places */
    const char *local_name;     /* "gpu"; the cluster's name when it lists none */
    const struct cluster *cluster;
    int index; /* among all places of the federation, sorted by cluster then as listed */
    enum place_kind kind;
    char *site;
    struct labels labels; /* site, cluster and place added up; the nearest wins */
    int64_t max_waiting;
    int64_t max_time, max_cpus, max_memory, max_gpus; /* 0: as read from the cluster */
    struct list gpus;                                 /* struct gpu_name */
    struct list nodes;                                /* struct node_shape */
    struct power power;
    struct money electricity; /* per kWh as the tariff says; currency "" : none */
    struct capacity capacity;
    int64_t start_within; /* ms */
    void *settings;       /* the adapter's struct, by its place_rows; NULL when it has none */
};

struct cluster {
    char *name;
    int index;
    const struct adapter_type *adapter;
    enum cluster_mode mode;
    bool shared; /* everybody's jobs run there as one user; else only the broker's own user's do */
    struct place *places;
    size_t place_count;
    struct rate requests; /* load put on the member */
    int64_t probe;        /* ms between two probes */
    void *settings;       /* the adapter's struct, by its cluster_rows */
};

struct listen_address {
    char *host; /* "127.0.0.1" */
    int port;   /* 0: any free one, printed at start */
};
/* Parses "127.0.0.1:7410" or "[::1]:0"; out->host is the caller's. INVALID with what was expected. */
int listen_parse(const char *text, struct listen_address *out, struct error *err);
bool listen_is_loopback(const struct listen_address *address);

struct server_config {
    char *listen; /* host:port */
    char *url;    /* what clients are told; NULL: made of listen */
    char *certificate;
    struct secret key;
};
struct keep_config {
    int64_t jobs; /* ms after the end that a job stays queryable */
    int64_t logs; /* ms */
};

struct federation {
    char *name;     /* the mark on all that is made elsewhere */
    char *timezone; /* IANA name, default UTC */
    char *here;     /* the broker's own site, or NULL */
    struct server_config server;
    char *store;       /* "sqlite:/path" */
    char *policy_file; /* or NULL: the built-in policy */
    char *tokens_file; /* hashes of static tokens, or NULL */
    char *state_dir;   /* directory for everything the broker keeps */
    char *own_user;    /* whose jobs run where nothing says as whom; NULL: not asked */
    struct keep_config keep;
    struct gpu_model *gpus;
    size_t gpu_count;
    struct cluster *clusters;
    size_t cluster_count;
    struct place **places; /* all, by index */
    size_t place_count;
};

/* Returns the place named "cluster/place", or "cluster" when that has but one place; else NULL. */
const struct place *federation_place(const struct federation *federation, const char *name);
const struct cluster *federation_cluster(const struct federation *federation, const char *name);

/* The cluster or place, with adapters also the adapter, whose name is nearest to word; or NULL. */
const char *federation_nearest(const struct federation *federation, const char *word,
                               bool adapters);

/* Whether pattern names place: "hpc/gpu", "hpc" (all its places), or with "*". */
bool place_is_named(const struct place *place, const char *pattern);

/* Whether a selector ("places", "kind", "adapter", or any label) fits the place; all its keys must. */
bool place_is_selected(const struct place *place, const struct labels *selector);
/* The first key of the selector that does not fit, or NULL. */
const struct label *place_unselected(const struct place *place, const struct labels *selector);

#endif
