#include "tests/unit/small_federation.h"

#include "broker/core/adapter.h"
#include "broker/core/alloc.h"

#include <string.h>

static const struct adapter_type slurm = {.name = "slurm"};
static const struct adapter_type local = {.name = "local"};

static char *lyon[] = {"lyon"}, *paris[] = {"paris"}, *eu[] = {"eu"}, *nvme[] = {"nvme", "hdd"};
static struct label hpc_labels[] = {{"site", {lyon, 1}}, {"region", {eu, 1}}};
static struct label gpu_labels[] = {{"site", {lyon, 1}}, {"region", {eu, 1}}, {"disk", {nvme, 2}}};
static struct label edge_labels[] = {{"site", {paris, 1}}};

static struct cluster clusters[3];
static struct place cloud_places[2], edge_places[1], hpc_places[2];
static struct place *places[] = {&cloud_places[0], &cloud_places[1], &edge_places[0],
                                 &hpc_places[0], &hpc_places[1]};
static struct federation federation;

static void set_cluster(int index, char *name, const struct adapter_type *adapter, struct place *of,
                        size_t count)
{
    clusters[index] = (struct cluster){
        .name = name, .index = index, .adapter = adapter, .places = of, .place_count = count};
}

static void set_place(int index, const char *name, const struct cluster *cluster,
                      enum place_kind kind)
{
    struct place *place = places[index];
    const char *slash = strchr(name, '/');
    copy_text(place->name, sizeof place->name, name);
    place->local_name = slash ? slash + 1 : name;
    place->cluster = cluster;
    place->index = index;
    place->kind = kind;
}

const struct federation *small_federation(void)
{
    set_cluster(0, "cloud", &local, cloud_places, 2);
    set_cluster(1, "edge", &local, edge_places, 1);
    set_cluster(2, "hpc", &slurm, hpc_places, 2);
    set_place(0, "cloud/large", &clusters[0], PLACE_ON_DEMAND);
    set_place(1, "cloud/spot", &clusters[0], PLACE_SPOT);
    set_place(2, "edge", &clusters[1], PLACE_OWNED);
    set_place(3, "hpc/cpu", &clusters[2], PLACE_OWNED);
    set_place(4, "hpc/gpu", &clusters[2], PLACE_RESERVED);
    places[2]->labels = (struct labels){edge_labels, 1};
    places[3]->labels = (struct labels){hpc_labels, 2};
    places[4]->labels = (struct labels){gpu_labels, 3};
    federation = (struct federation){.name = "test",
                                     .clusters = clusters,
                                     .cluster_count = 3,
                                     .places = places,
                                     .place_count = 5};
    return &federation;
}
