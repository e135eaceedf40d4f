/* The tests that a policy carries, by the examples of the site. */
#include "tests/unit/policy_lab.h"

#include "policy/expect.h"

#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct lab *lab;
static struct expectation line;
static char said[ERROR_TEXT_MAX];
static int said_line;

static void set_up(void)
{
    lab = lab_site();
    lab_budget(lab, "cloud", 3000, BUDGET_MONTH);
    lab_burst(lab, "overflow", 50);
    lab_class(lab, "training", 20);
    struct route *route = lab_route(lab, "own-first");
    lab_tier(lab, route, "hpc k8s edge")->fill = 850000;
    lab_tier(lab, route, "aws")->burst = (char *)"overflow";
    lab->places[0][1].gpus =
        (struct list){(struct gpu_name[]){{(char *)"a100-80", (char *)"gpu:a100"}}, 0};
    line = (struct expectation){.line = 80};
}

static void tear_down(void)
{
    value_destroy(line.job);
    lab_destroy(lab);
}

TestSuite(expect, .init = set_up, .fini = tear_down);

static void take(void *arg, const struct expectation *expectation, const struct error *err)
{
    cr_assert_eq(expectation, &line);
    cr_assert_null(arg);
    copy_text(said, sizeof said, err->text);
    said_line = err->line;
}

/* Runs the one line for this job; "" or what it said. */
static const char *run(const char *job)
{
    struct error err = {0};
    value_destroy(line.job);
    line.job = NULL;
    cr_assert_eq(value_from_json(job, strlen(job), &line.job, &err), 0, "%s", err.text);
    lab->rules.expects = (struct list){&line, 1};
    said[0] = '\0';
    int failed = expect_run(&lab->rules, &lab->federation, 0, take, NULL);
    cr_assert_eq(failed, said[0] ? 1 : 0);
    cr_assert(!failed || said_line == 80);
    return said;
}

Test(expect, an_idle_federation_serves_at_home)
{
    line.goes_to = lab_texts(lab, "hpc k8s edge");
    line.never = lab_texts(lab, "aws");
    cr_assert_str_eq(run("{\"class\": \"batch\"}"), "");
    line.has_waits = true;
    cr_assert_str_eq(run("{\"class\": \"batch\"}"), "");
    line.waits = true;
    cr_assert_str_eq(run("{\"class\": \"batch\"}"), "went to edge: the cheapest of 4 in tier 1");
}

Test(expect, full_places_and_an_open_burst_send_it_to_the_cloud)
{
    line.given.full = lab_texts(lab, "hpc k8s edge");
    line.given.open = lab_texts(lab, "overflow");
    line.goes_to = lab_texts(lab, "aws/spot");
    cr_assert_str_eq(run("{}"), "");
    line.given.open.count = 0;
    cr_assert_str_eq(run("{}"),
                     "it waits: 0 of 6 places can take it now, 6 later: our waiting slots at "
                     "hpc/cpu, hpc/gpu, k8s/ci and 1 more are taken; burst overflow is closed");
}

Test(expect, a_guard_that_almost_applied_is_told)
{
    struct guard *guard = lab_guard(lab, "personal-data");
    lab_labels(lab, &guard->match.labels, "data", "private");
    lab_labels(lab, &guard->require, "kind", "owned reserved");
    line.given.full = lab_texts(lab, "hpc k8s edge");
    line.given.open = lab_texts(lab, "overflow");
    line.never = lab_texts(lab, "aws");
    cr_assert_str_eq(run("{\"class\": \"batch\", \"labels\": {\"data\": \"personal\"}}"),
                     "went to aws/spot: guard 'personal-data' wants labels.data = private, the job "
                     "has personal");
    cr_assert_str_eq(run("{\"class\": \"batch\", \"labels\": {\"data\": \"private\"}}"), "");
}

Test(expect, the_reason_of_the_expected_place_comes_first)
{
    struct guard *guard = lab_guard(lab, "personal");
    lab_labels(lab, &guard->match.labels, "data", "personal");
    lab_labels(lab, &guard->require, "places", "hpc");
    lab->places[0][0].max_cpus = 2 * CPU;
    line.goes_to = lab_texts(lab, "hpc/cpu");
    cr_assert_str_eq(run("{\"needs\": {\"cpus\": 3}}"),
                     "went to edge; hpc/cpu: takes jobs of at most 2 CPUs, 3 needed");
    line.goes_to = lab_texts(lab, "aws/spot");
    cr_assert_str_eq(run("{\"labels\": {\"data\": \"personal\"}}"),
                     "went to hpc/cpu; aws/spot: guard 'personal' wants places = hpc");
}

Test(expect, a_guard_on_what_the_job_does_not_have_is_not_told)
{
    struct guard *guard = lab_guard(lab, "personal");
    lab_labels(lab, &guard->match.labels, "data", "personal");
    lab_labels(lab, &guard->require, "places", "hpc");
    line.never = lab_texts(lab, "edge");
    cr_assert_str_eq(run("{}"), "went to edge: the cheapest of 4 in tier 1");
    line.goes_to = lab_texts(lab, "hpc/cpu"); /* it could, and is dearer */
    cr_assert_str_eq(run("{}"), "went to edge: the cheapest of 4 in tier 1");
    cr_assert_str_eq(run("{\"labels\": {\"data\": \"public\"}}"),
                     "went to edge: guard 'personal' wants labels.data = personal, the job has "
                     "public");
}

Test(expect, down_drained_and_spent_make_it_wait)
{
    line.given.down = lab_texts(lab, "hpc");
    line.given.drained = lab_texts(lab, "k8s edge");
    line.given.open = lab_texts(lab, "*");
    line.given.spent = lab_texts(lab, "cloud");
    line.has_waits = line.waits = true;
    cr_assert_str_eq(run("{}"), "");
    line.given.spent.count = 0;
    cr_assert_str_eq(run("{}"), "went to aws/spot: own places could not take it; burst overflow is "
                                "open");
}

Test(expect, gpus_are_where_they_are_listed)
{
    struct gpu_name listed = {(char *)"a100-80", (char *)"gpu:a100"};
    lab->places[0][1].gpus = (struct list){&listed, 1};
    line.goes_to = lab_texts(lab, "hpc/gpu");
    cr_assert_str_eq(run("{\"class\": \"training\", \"needs\": {\"gpus\": 8}}"), "");
    line.goes_to.count = 0;
    line.has_waits = line.waits = true;
    line.given.down = lab_texts(lab, "hpc");
    cr_assert_str_eq(run("{\"class\": \"training\", \"needs\": {\"gpus\": 8}}"), "");
}

Test(expect, a_job_that_is_none_is_told)
{
    cr_assert_not_null(strstr(run("{\"needs\": {\"cpus\": \"many\"}}"), "its job: "));
}

Test(expect, an_expectation_means_whoever_may_run_there)
{
    lab->federation.own_user = (char *)"operator";
    line.goes_to = lab_texts(lab, "hpc k8s edge");
    cr_assert_str_eq(run("{\"class\": \"training\"}"), "");
}
