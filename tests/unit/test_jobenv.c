/* test_jobenv.c - the environment of a job. */
#include "adapters/jobenv.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct env_entry own[] = {
    {(char *)"A", (char *)"1"},
    {(char *)"TIELINE_JOB", (char *)"forged"},
    {(char *)"PATH", (char *)"/mine"},
};

static void build(struct jobenv *env, int64_t cpus, int64_t memory, int64_t gpus)
{
    static struct cluster cluster = {.name = (char *)"hpc"};
    static struct place place = {.name = "hpc/gpu", .local_name = "gpu", .cluster = &cluster};
    struct spec spec = {.env = {.items = own, .count = 3}};
    struct submit submit = {.spec = &spec, .owner = "alice"};
    spec.needs.cpus = cpus;
    spec.needs.memory = memory;
    spec.needs.gpus = gpus;
    submit.ref.place = &place;
    submit.ref.attempt = 2;
    (void)snprintf(submit.ref.job_id, sizeof submit.ref.job_id, "j1jq3v8k2m7x4qv");
    jobenv_build(env, &submit);
}

Test(jobenv, names_and_values)
{
    struct jobenv env;
    build(&env, 4000, INT64_C(6) << 30, 2000);
    cr_expect_str_eq(jobenv_get(&env, "A"), "1");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_JOB"), "j1jq3v8k2m7x4qv", "jobs cannot forge it");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_ATTEMPT"), "2");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_PLACE"), "hpc/gpu");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_CLUSTER"), "hpc");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_OWNER"), "alice");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_TEAM"), "");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_CPUS"), "4");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_MEMORY_MIB"), "6144");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_GPUS"), "2");
    cr_expect_null(jobenv_get(&env, "HOME"));
    jobenv_default(&env, "HOME", "/home/a");
    jobenv_default(&env, "PATH", "/bin");
    cr_expect_str_eq(jobenv_get(&env, "HOME"), "/home/a");
    cr_expect_str_eq(jobenv_get(&env, "PATH"), "/mine");
    for (size_t i = 0; i < env.count; i++) {
        for (size_t k = 0; k < i; k++) {
            cr_expect_str_neq(env.items[i].name, env.items[k].name, "twice");
        }
    }
    jobenv_fini(&env);
}

Test(jobenv, parts_are_rounded_to_what_a_program_can_use)
{
    struct jobenv env;
    build(&env, 1001, (INT64_C(2) << 20) - 1, 500);
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_CPUS"), "2");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_MEMORY_MIB"), "1");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_GPUS"), "1");
    jobenv_fini(&env);
    build(&env, 0, 10, 0);
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_CPUS"), "1");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_MEMORY_MIB"), "1");
    cr_expect_str_eq(jobenv_get(&env, "TIELINE_GPUS"), "0");
    jobenv_fini(&env);
}
