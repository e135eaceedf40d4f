/* `tieline policy check`: the sample policies hold, mistakes look as documented, and no text at all
 * brings it down. */
#include "tests/unit/config_lab.h"

#include "adapters/adapters.h"
#include "broker/core/alloc.h"
#include "policy/expect.h"
#include "policy/match.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS INT64_C(1773000000000)

static const struct config_hooks hooks = {match_covers, expect_run, NOW_MS};

/* What is printed; the caller frees. */
static char *check(const char *text, const struct federation *federation,
                   struct config_check *counts)
{
    char *out = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&out, &length);
    int mistakes = config_policy_check(text, "policy.yaml", federation, &hooks,
                                       "9f31c2, since 2026-03-09 14:02", file, counts);
    (void)fclose(file);
    cr_expect_eq(mistakes, counts->errors + counts->failed);
    return out;
}

/* Each says what it is for, and carries the expectations that show it. */
Test(policy_check, sample_policies_hold)
{
    static const char *const files[] = {
        "01-overflow",    "02-budgets",    "03-pull-requests", "04-certain", "05-guards", "06-gpus",
        "07-cheap-hours", "08-near-users", "09-shares",        "10-outages", "full"};
    struct federation *site = lab_site();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = xasprintf("policy/%s.yaml", files[i]);
        char *text = lab_text(path);
        struct config_check counts;
        char *out = check(text, site, &counts);
        cr_expect(counts.errors + counts.warnings + counts.failed == 0, "%s:\n%s", path, out);
        cr_expect(strstr(out, "policy.yaml: good (") == out, "%s:\n%s", path, out);
        cr_expect_null(strstr(out, " 0 expectations"), "%s expects nothing", path);
        free(out);
        free(text);
        free(path);
    }
    federation_destroy(site);
}

Test(policy_check, mistakes_look_as_documented)
{
    struct federation *site = lab_site();
    char *text = lab_text("policy/bad/mistakes.yaml"),
         *wanted = lab_text("policy/bad/mistakes.out");
    struct config_check counts;
    char *out = check(text, site, &counts);
    cr_expect_str_eq(out, wanted);
    cr_expect(counts.errors == 3 && counts.warnings == 1 && counts.failed == 1);
    free(out);
    free(wanted);
    free(text);
    federation_destroy(site);
}

static void prints(const struct federation *site, const char *text, const char *wanted)
{
    struct config_check counts;
    char *out = check(text, site, &counts);
    cr_expect(strstr(out, wanted), "%s\ndoes not print\n%s\nbut\n%s", text, wanted, out);
    free(out);
}

Test(policy_check, warnings)
{
    struct federation *site = lab_site();
    prints(
        site, "version: 1\n",
        "policy.yaml:1:1: warning: no rate for USD, in which aws/spot has its price: no rent there\n");
    prints(
        site, "rates: {USD: 0.9 EUR}\nguards:\n  - {name: g, require: {country: es}}\n",
        "policy.yaml:3:5: warning: no place satisfies guard 'g': the jobs that it matches never run\n");
    prints(site, "rates: {USD: 0.9 EUR}\nguards: [{name: g, forbid: {contry: es}}]\n",
           "2:29: warning: no place has a label 'contry'\n"
           "    2 | guards: [{name: g, forbid: {contry: es}}]\n"
           "      |                             ^~~~~~ did you mean 'country'?");
    prints(site, "rates: {USD: 0.9 EUR}\nclasses: {a: {share: 100%}}\n",
           "nothing is left for class 'batch'");
    prints(site, "rates: {USD: 0.9 EUR}\n", "policy.yaml: good (");
    federation_destroy(site);
}

Test(policy_check, syntax)
{
    struct federation *site = lab_site();
    prints(site, "routes: [\n",
           "policy.yaml:2:1: error: flow sequence without a closing bracket\n"
           "    2 | \n"
           "      | ^ it begins in line 1, column 9\n"
           "1 error.\n"
           "The running policy (9f31c2, since 2026-03-09 14:02) is unchanged.\n");
    prints(site, "- a\n", "1 error");
    prints(site, "just words\n", "1 error");
    federation_destroy(site);
}

Test(policy_check, long_lines_and_odd_characters)
{
    struct federation *site = lab_site();
    char *pad = xcalloc(400, 1);
    memset(pad, 'p', 300);
    char *text = xasprintf("x-%s: 1\n'ro\x01ut\x7f': {x: \"%s\"}\n{\n", pad, pad);
    struct config_check counts;
    char *out = check(text, site, &counts);
    for (const char *c = out; *c; c++) {
        cr_expect((unsigned char)*c >= ' ' || *c == '\n', "0x%02x is printed", *c);
    }
    free(out);
    free(text);
    text = xasprintf(
        "rates: {USD: 1 EUR}\nexpect: [{job: {labels: {ä: \"%s\"}}, nevr: hpc, waits: true}]\n",
        pad);
    out = check(text, site, &counts);
    const char *caret = strstr(out, "^~~~ did you mean 'never'?");
    cr_assert_not_null(caret, "%s", out);
    const char *row = caret, *line;
    while (row[-1] != '\n') {
        row--;
    }
    line = row - 2;
    while (line[-1] != '\n') {
        line--;
    }
    cr_expect(strncmp(line + (caret - row), "nevr", 4) == 0, "%s", out);
    free(out);
    free(text);
    free(pad);
    federation_destroy(site);
}

Test(policy_check, many_mistakes_are_counted_not_all_shown)
{
    struct federation *site = lab_site();
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    (void)fputs("rates: {USD: 1 EUR}\nroutes:\n", file);
    for (int i = 0; i < 500; i++) {
        (void)fprintf(file, "  - {name: r%d, tiers: {places: none%d}}\n", i, i);
    }
    (void)fclose(file);
    struct config_check counts;
    char *out = check(text, site, &counts);
    cr_expect_eq(counts.errors, 500);
    cr_expect(strstr(out, "are not shown.\n500 errors"), "%s", out + strlen(out) - 200);
    free(out);
    free(text);
    federation_destroy(site);
}

/* ------------------------------------------------------------------------------ mutated text */

enum { ROUNDS = 5000, CHANGES_MAX = 6 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A few bytes replaced, removed or doubled: by any byte, or by one that means something in YAML. */
static void mutate(char *text, uint64_t *random)
{
    static const char special[] = "{}[]:,-#&*!|>'\"%@`?~ \n\t<.0";
    size_t changes = 1 + next_random(random) % CHANGES_MAX;
    for (size_t i = 0; i < changes; i++) {
        size_t length = strlen(text);
        size_t at = length ? next_random(random) % length : 0;
        uint64_t dice = next_random(random);
        if (length == 0) {
            return;
        }
        switch (dice % 4) {
        case 0: text[at] = (char)(1 + dice / 4 % 255); break;
        case 1: text[at] = special[dice / 4 % (sizeof special - 1)]; break;
        case 2: {
            size_t cut = dice / 4 % 40;
            cut = cut < length - at ? cut : length - at;
            memmove(text + at, text + at + cut, length - at - cut + 1);
            break;
        }
        default: {
            size_t from = next_random(random) % length, n = dice / 4 % 40;
            n = n < length - from ? n : length - from;
            n = n < length - at ? n : length - at;
            memmove(text + at, text + from, n);
        }
        }
    }
}

Test(policy_check, mutated_policies_never_crash, .timeout = 300)
{
    static const char *const files[] = {"policy/full.yaml", "policy/01-overflow.yaml",
                                        "policy/bad/mistakes.yaml"};
    struct federation *site = lab_site();
    uint64_t random = 20260309;
    int good = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char *text = lab_text(files[i % 3]);
        mutate(text, &random);
        struct config_check counts;
        char *out = check(text, site, &counts);
        struct error err;
        bool loads = lab_policy(text, site, &err) == 0;
        cr_assert_eq(loads, counts.errors == 0, "round %d: %s\n%s\n%s", i, err.text, out, text);
        cr_assert(loads || err.text[0], "round %d: an error without a text", i);
        good += loads;
        free(out);
        free(text);
    }
    cr_expect(good > ROUNDS / 100 && good < ROUNDS / 2, "%d of %d loaded", good, ROUNDS);
    federation_destroy(site);
}

Test(policy_check, mutated_federations_never_crash, .timeout = 300)
{
    uint64_t random = 19690720;
    int good = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char *text = lab_text("config/site.yaml");
        struct error err;
        mutate(text, &random);
        bool loads = lab_federation(text, &err) == 0;
        cr_assert(loads || (err.text[0] && err.file[0]), "round %d: an error without a text", i);
        good += loads;
        free(text);
    }
    cr_expect(good > ROUNDS / 100 && good < ROUNDS / 2, "%d of %d loaded", good, ROUNDS);
}
