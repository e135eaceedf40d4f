#include "tests/unit/slurm_lab.h"

#include "adapters/adapters.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Fields that own their text are never freed here. */
static char *text(const char *constant)
{
    return (char *)(uintptr_t)constant;
}

void slurm_lab_init(struct slurm_lab *lab, const char *url, const char *user,
                    const char *token_file)
{
    memset(lab, 0, sizeof *lab);
    lab->gpus[0] = (struct gpu_model){.name = text("h100"), .speed = 1000};
    lab->gpus[1] = (struct gpu_model){.name = text("a100-80"), .speed = 1000};
    lab->federation.name = text("lab");
    lab->federation.gpus = lab->gpus;
    lab->federation.gpu_count = 2;
    lab->federation.clusters = &lab->cluster;
    lab->federation.cluster_count = 1;
    lab->settings.connect.url = text(url);
    lab->settings.connect.user = text(user);
    lab->settings.connect.token.file = text(token_file);
    lab->settings.shell = text("/bin/bash");
    lab->settings.workdir = text("/tmp");
    lab->settings.min_job_age = 300000;
    lab->cluster.name = text("hpc");
    lab->cluster.adapter = &adapter_slurm;
    lab->cluster.settings = &lab->settings;
    lab->cluster.places = lab->places;
    lab->cluster.place_count = 2;
    lab->names[0] = (struct gpu_name){.name = lab->gpus[1].name, .native = text("gpu:a100")};
    lab->place_settings[1] =
        (struct slurm_place_settings){.account = text("media"), .qos = text("high")};
    static const char *const names[] = {"cpu", "gpu"};
    for (int i = 0; i < 2; i++) {
        struct place *place = &lab->places[i];
        (void)snprintf(place->name, sizeof place->name, "hpc/%s", names[i]);
        place->local_name = names[i];
        place->cluster = &lab->cluster;
        place->index = i;
        place->settings = &lab->place_settings[i];
    }
    lab->places[1].gpus = (struct list){.items = lab->names, .count = 1};
}

void slurm_lab_job(struct slurm_lab *lab, const char *id, const char *run, struct spec *spec,
                   struct submit *submit)
{
    enum { MINUTE_MS = 60000 };
    *spec = (struct spec){.name = text("test"), .team = text("media"), .run = text(run)};
    spec->needs.cpus = 1000;
    spec->needs.memory = INT64_C(64) << 20;
    spec->time.limit = spec->time.estimate = MINUTE_MS;
    *submit = (struct submit){.spec = spec, .owner = "alice@example.org"};
    submit->ref.attempt = 1;
    submit->ref.place = &lab->places[0];
    (void)snprintf(submit->ref.job_id, sizeof submit->ref.job_id, "%s", id);
    (void)snprintf(submit->ref.name, sizeof submit->ref.name, "test.%s-1", id);
}
