/* slurm_lab.h - a federation with one Slurm member, and jobs for it, built by hand for tests. */
#ifndef TESTS_UNIT_SLURM_LAB_H
#define TESTS_UNIT_SLURM_LAB_H

#include "adapters/slurm.h"

struct slurm_lab {
    struct federation federation;
    struct gpu_model gpus[2];
    struct cluster cluster;
    struct place places[2];
    struct gpu_name names[1];
    struct slurm_settings settings;
    struct slurm_place_settings place_settings[2];
};

/* Places hpc/cpu and hpc/gpu; the second has account, qos and a name for a100-80. Nothing is owned. */
void slurm_lab_init(struct slurm_lab *lab, const char *url, const char *user,
                    const char *token_file);

/* Fills a submit of job `id`, attempt 1, at place 0; `run` is its text. Borrowed by submit. */
void slurm_lab_job(struct slurm_lab *lab, const char *id, const char *run, struct spec *spec,
                   struct submit *submit);

#endif
