/* The example policies on the example site, read from their files: their expectations hold, and one
 * that does not is told with its line. */
#include "adapters/adapters.h"
#include "config/config.h"
#include "policy/expect.h"
#include "policy/match.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITE FIXTURES "/config/site.yaml"
#define FULL FIXTURES "/policy/full.yaml"
#define NOW_MS INT64_C(1773064800000)

static const struct config_hooks hooks = {match_covers, expect_run, NOW_MS};
static struct federation *federation;

static void set_up(void)
{
    struct error err = {0};
    cr_assert_eq(config_federation_load(SITE, adapter_types, &federation, &err), 0, "%s:%d: %s",
                 SITE, err.line, err.text);
}

static void tear_down(void)
{
    federation_destroy(federation);
}

TestSuite(expect_site, .init = set_up, .fini = tear_down);

/* What the check prints of a policy text; the caller frees. */
static char *check(const char *text, struct config_check *counts)
{
    char *printed = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&printed, &size);
    (void)config_policy_check(text, "policy.yaml", federation, &hooks, NULL, out, counts);
    (void)fclose(out);
    return printed;
}

static char *read_policy(void)
{
    struct error err = {0};
    char *text = NULL;
    size_t length;
    cr_assert_eq(config_file_read(FULL, &text, &length, &err), 0, "%s", err.text);
    return text;
}

Test(expect_site, all_ten_policies_in_one_keep_their_expectations)
{
    struct config_check counts = {0};
    char *text = read_policy(), *printed = check(text, &counts);
    cr_assert_eq(counts.errors, 0, "%s", printed);
    cr_assert_eq(counts.failed, 0, "%s", printed);
    free(printed);
    free(text);
}

/* The policy with one more expectation at its end. */
static char *check_with(const char *line, struct config_check *counts)
{
    char *policy = read_policy(), *text = NULL;
    cr_assert_gt(asprintf(&text, "%s%s", policy, line), 0);
    char *printed = check(text, counts);
    free(policy);
    free(text);
    return printed;
}

static void expect_failure(const char *line, const char *said)
{
    struct config_check counts = {0};
    char *printed = check_with(line, &counts);
    cr_assert_eq(counts.failed, 1, "%s", printed);
    cr_assert_not_null(strstr(printed, said), "%s", printed);
    free(printed);
}

Test(expect_site, an_expectation_that_fails_says_where_it_went)
{
    expect_failure(
        "  - {job: {class: batch, labels: {data: private}}, given: {full: [hpc, k8s, edge],"
        " open: overflow}, never: aws}\n",
        "went to aws/spot: guard 'personal-data' wants labels.data = personal, the job "
        "has private");
    expect_failure("  - {job: {class: batch}, given: {full: [hpc, k8s, edge]}, goes_to: aws}\n",
                   "burst overflow is closed");
    expect_failure("  - {job: {class: training, needs: {gpus: 2, gpu: l40s}}, waits: true}\n",
                   "went to k8s/gpu");
}
