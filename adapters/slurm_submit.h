/* slurm_submit.h - one attempt as a batch job of Slurm, and the body that submits it. */
#ifndef ADAPTERS_SLURM_SUBMIT_H
#define ADAPTERS_SLURM_SUBMIT_H

#include "adapters/jobenv.h"
#include "broker/core/adapter.h"

#include <stdint.h>

struct slurm_place_settings {
    char *partition; /* NULL: called like the place */
    char *account, *qos;
};

struct slurm_batch { /* owned, but for what it says */
    char *name, *comment, *script;
    char *partition;                     /* NULL: the cluster's default */
    const char *account, *qos, *workdir; /* borrowed of the settings */
    char *gres;                          /* "gpu:a100:2", or NULL */
    int64_t cpus, memory_mib, minutes;   /* memory 0: not stated */
    struct jobenv env;
};

/* The partition of a place; NULL: the cluster's default one, as the cluster lists no places. */
const char *slurm_partition_of(const struct place *place);

/* "tieline:<federation>:": what marks our jobs in their comment. The caller's. */
char *slurm_tag(const struct federation *federation);

/* shell: of the script's first line; workdir: where it runs. */
struct slurm_batch *slurm_batch_create(const struct federation *federation, const char *shell,
                                       const char *workdir, const struct submit *submit);
void slurm_batch_destroy(struct slurm_batch *batch); /* takes NULL */

/* The body of POST job/submit for this version of the API. The caller's. */
char *slurm_batch_body(const struct slurm_batch *batch, int version);

/* The script as one would give it to sbatch. The caller's. */
char *slurm_batch_text(const struct slurm_batch *batch, const char *user);

#endif
