/* slurm_bodies - prints {"<version>": [bodies of submits]} for tests/unit/check_slurm_bodies. */
#include "adapters/slurm_submit.h"
#include "tests/unit/slurm_lab.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static struct slurm_lab lab;

static void add(json_t *list, int version, const struct submit *submit)
{
    struct slurm_batch *batch =
        slurm_batch_create(&lab.federation, "/bin/bash -l", "/work", submit);
    char *body = slurm_batch_body(batch, version);
    (void)json_array_append_new(list, json_loads(body, 0, NULL));
    free(body);
    slurm_batch_destroy(batch);
}

int main(void)
{
    static const int versions[] = {38, 40, 41, 42, 43, 44, 45};
    struct env_entry env[] = {
        {.name = (char *)(uintptr_t) "A", .value = (char *)(uintptr_t) "b=c\nd"}};
    char *words[] = {(char *)(uintptr_t) "echo", (char *)(uintptr_t) "it's"};
    char *models[] = {(char *)(uintptr_t) "a100-80"};
    json_t *all = json_object();
    slurm_lab_init(&lab, "http://127.0.0.1:1", "alice", NULL);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        struct spec spec;
        struct submit submit;
        json_t *list = json_array();
        slurm_lab_job(&lab, "j000000000000001", "true", &spec, &submit);
        add(list, versions[i], &submit);
        spec.run = NULL;
        spec.command = (struct texts){.items = words, .count = 2};
        spec.env.items = env;
        spec.env.count = 1;
        spec.needs.gpus = 2000;
        spec.needs.gpu = (struct texts){.items = models, .count = 1};
        submit.ref.place = &lab.places[1];
        add(list, versions[i], &submit);
        char key[16];
        (void)snprintf(key, sizeof key, "%d", versions[i]);
        (void)json_object_set_new(all, key, list);
    }
    (void)json_dumpf(all, stdout, JSON_INDENT(1));
    json_decref(all);
    return 0;
}
