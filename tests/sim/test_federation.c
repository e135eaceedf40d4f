#include "tests/sim/lab.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
static int64_t looks;
static void each(void *arg)
{
    struct sim *sim = arg;
    if (looks++ % 30 == 0) {
        fprintf(stderr, "t=%lld steps=%lld queued=%g active=%g passes=%g decisions=%g items=%g\n",
                (long long)clock_mono_ms(sim_clock(sim)) / 1000, (long long)clock_sim_steps(sim_clock(sim)),
                lab_metric(sim, "tieline_jobs{state=\"queued"), lab_metric(sim, "tieline_jobs{state=\"active"),
                lab_metric(sim, "tieline_passes"), lab_metric(sim, "tieline_decisions"), lab_metric(sim, "tieline_store_items"));
    }
}
Test(federation, smoke)
{
    struct lab_plan plan = {.members = 20, .rented = 4, .seed = 1};
    struct sim *sim = lab_open(&plan);
    lab_submit_mixed(sim, 1, 10000, 600000);
    lab_run(sim, each, sim);
    lab_check_done(sim);
    char hash[65];
    char *text = sim_events(sim, hash);
    FILE *f = fopen("/tmp/events.log", "w"); fputs(text, f); fclose(f);
    fprintf(stderr, "%s\n", hash);
    free(text);
    sim_destroy(sim);
}
