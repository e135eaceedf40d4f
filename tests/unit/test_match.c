/* Which jobs a match takes, and when one match makes another dead. */
#include "tests/unit/policy_lab.h"

#include "policy/match.h"

#include <criterion/criterion.h>

static struct lab *lab;
static struct match a, b;

static void set_up(void)
{
    lab = lab_create();
    lab_match_any(&a);
    lab_match_any(&b);
}

static void tear_down(void)
{
    lab_destroy(lab);
}

TestSuite(match, .init = set_up, .fini = tear_down);

static bool fits(void)
{
    return match_fits(&a, &lab->spec, "gh:example-org/train-7");
}

static void expect_miss(const char *wanted)
{
    char text[WHY_SIZE];
    cr_assert_eq(match_misses(&a, &lab->spec, "gh:example-org/train-7", text, sizeof text), 1);
    cr_assert_str_eq(text, wanted);
}

Test(match, an_empty_match_takes_all)
{
    cr_assert(fits());
    lab->spec.team = lab->spec.class_name = NULL;
    cr_assert(fits());
}

Test(match, words_are_patterns_and_any_of_a_list_fits)
{
    a.owner = lab_texts(lab, "gl:* gh:example-org/train-*");
    a.class_name = lab_texts(lab, "ci batch");
    cr_assert(fits());
    a.team = lab_texts(lab, "ml");
    expect_miss("wants team = ml, the job has media");
    lab->spec.team = NULL;
    expect_miss("wants team = ml, the job has none");
    a.team = lab_texts(lab, "*");
    cr_assert(fits());
}

Test(match, all_labels_must_be_there)
{
    lab_labels(lab, &a.labels, "data", "private");
    expect_miss("wants labels.data = private, the job has none");
    lab_labels(lab, &lab->spec.labels, "data", "personal");
    expect_miss("wants labels.data = private, the job has personal");
    a.labels.items[0] = lab_label(lab, "data", "private person*");
    cr_assert(fits());
    lab_labels(lab, &a.labels, "tool", "*");
    cr_assert_not(fits());
}

Test(match, needs_are_ranges_with_both_ends)
{
    lab_job(lab, 4, 6, 20);
    a.needs.cpus = (struct range){4 * CPU, 8 * CPU};
    a.needs.memory = (struct range){0, 6 * GIB};
    cr_assert(fits());
    lab->spec.needs.cpus = 8001;
    expect_miss("wants CPUs = 4..8, the job has 8.001");
    a.needs.cpus = (struct range){0, UNLIMITED};
    a.needs.gpus = (struct range){4 * CPU, UNLIMITED};
    expect_miss("wants GPUs = 4.., the job has 0");
}

Test(match, gpus_and_protection)
{
    a.needs.gpu = lab_texts(lab, "a100-*");
    cr_assert_not(fits());
    lab->spec.needs.gpu = lab_texts(lab, "h100 a100-80");
    cr_assert(fits());
    a.is_protected = YES;
    expect_miss("wants protected = true, the job has false");
    a.is_protected = NO;
    cr_assert(fits());
}

static bool covers(void)
{
    return match_covers(&a, &b);
}

Test(match, covers_what_is_narrower)
{
    cr_assert(covers());
    b.team = lab_texts(lab, "ml");
    cr_assert(covers());
    a.team = lab_texts(lab, "m*");
    cr_assert(covers());
    b.team = lab_texts(lab, "ml web");
    cr_assert_not(covers());
    b.team = lab_texts(lab, "*");
    cr_assert_not(covers());
    b.team.count = 0;
    cr_assert_not(covers());
}

Test(match, covers_labels_ranges_and_protection)
{
    lab_labels(lab, &a.labels, "data", "p*");
    cr_assert_not(covers());
    lab_labels(lab, &b.labels, "data", "personal private");
    lab_labels(lab, &b.labels, "tool", "ansys");
    cr_assert(covers());
    a.needs.gpus = (struct range){1 * CPU, UNLIMITED};
    b.needs.gpus = (struct range){1 * CPU, 3 * CPU};
    cr_assert(covers());
    b.needs.gpus.low = 0;
    cr_assert_not(covers());
    a.needs.gpus.low = 0;
    a.is_protected = YES;
    cr_assert_not(covers());
    b.is_protected = YES;
    cr_assert(covers());
}

/* A pattern, or sometimes two, of a small alphabet: so that they meet often. */
static struct texts random_words(struct lab *of, uint64_t *seed)
{
    static const char *const words[] = {"a", "ab", "a*", "*b", "*", "b", "a*b", "a b", "a* b*", ""};
    return lab_texts(of, words[lab_range(seed, 0, 9)]);
}

static void random_match(struct lab *of, uint64_t *seed, struct match *out)
{
    lab_match_any(out);
    out->team = random_words(of, seed);
    if (lab_range(seed, 0, 1)) {
        lab_labels(of, &out->labels, "l", "x");
        out->labels.items[0].values = random_words(of, seed);
    }
    out->needs.cpus.low = lab_range(seed, 0, 3) * CPU;
    out->needs.cpus.high = lab_range(seed, 0, 1) ? UNLIMITED : lab_range(seed, 2, 5) * CPU;
    out->is_protected = (enum tristate)lab_range(seed, ANY, YES);
}

static void random_job(struct lab *of, uint64_t *seed)
{
    static const char *const values[] = {"a", "b", "ab", "abb", "ba", "c"};
    of->spec.team = (char *)values[lab_range(seed, 0, 5)];
    of->spec.labels.count = 0;
    if (lab_range(seed, 0, 1)) {
        lab_labels(of, &of->spec.labels, "l", values[lab_range(seed, 0, 5)]);
    }
    of->spec.needs.cpus = lab_range(seed, 0, 6) * CPU;
    of->spec.is_protected = lab_range(seed, 0, 1);
}

/* Whatever the narrower takes, what covers it takes too. */
Test(match, property_cover_is_sound)
{
    uint64_t seed = 41;
    int covered = 0;
    for (int i = 0; i < 40000; i++) {
        struct lab *own = lab_create();
        struct match wide_one, narrow;
        random_match(own, &seed, &wide_one);
        random_match(own, &seed, &narrow);
        if (match_covers(&wide_one, &narrow)) {
            covered++;
            for (int j = 0; j < 20; j++) {
                random_job(own, &seed);
                cr_assert(!match_fits(&narrow, &own->spec, "x") ||
                          match_fits(&wide_one, &own->spec, "x"));
            }
        }
        lab_destroy(own);
    }
    cr_assert_gt(covered, 500, "%d", covered);
}
