/* From a command line to the JSON of a job. */
#include "api/cli/args.h"
#include "api/cli/job_flags.h"
#include "broker/core/key_table.h"
#include "broker/core/spec.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 32 };

static const struct flag own[] = {
    {"key", 'k', "KEY", false, "a key"},
    {"fresh", 0, NULL, false, "a switch"},
    {.name = NULL},
};

/* Splits at blanks; no quotes. The words live as long as text. */
static int split(char *text, char **words)
{
    int count = 0;
    char *rest = text;
    for (char *word; count < WORDS_MAX && (word = strsep(&rest, " ")) != NULL;) {
        words[count++] = word;
    }
    return count;
}

/* The job that a line gives as compact JSON with sorted keys, or the error's text. */
static char *job_of(const char *line, bool stop)
{
    char text[1024], *words[WORDS_MAX];
    struct args args = {.tables = {own, job_flags()}, .table_count = 2};
    struct error err;
    json_t *job = json_object();
    char *result;
    (void)snprintf(text, sizeof text, "%s", line);
    int count = *line ? split(text, words) : 0;
    if (args_parse(&args, count, words, stop, &err) < 0) {
        json_decref(job);
        return strdup(err.expected[0] ? err.expected : err.text);
    }
    if (job_flags_apply(&args, job, &err) < 0) {
        result = strdup(err.text);
    } else {
        char *plain = job_text(job);
        json_t *again = json_loads(plain, 0, NULL);
        result = json_dumps(again, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
        json_decref(again);
        free(plain);
    }
    args_fini(&args);
    json_decref(job);
    return result;
}

static void expect_job(const char *line, bool stop, const char *wanted)
{
    char *job = job_of(line, stop);
    cr_expect_str_eq(job, wanted, "%s\n gives  %s\n wanted %s", line, job, wanted);
    free(job);
}

Test(cli_job, flags_become_keys)
{
    (void)setenv("SUITE", "unit", 1);
    (void)unsetenv("ABSENT");
    expect_job("-- make test", true, "{\"command\":[\"make\",\"test\"]}");
    expect_job("make -j 4 --cpus 3", true,
               "{\"command\":[\"make\",\"-j\",\"4\",\"--cpus\",\"3\"]}");
    expect_job("--cpus 8 --memory 16GiB -- x", true,
               "{\"command\":[\"x\"],\"needs\":{\"cpus\":8,\"memory\":\"16GiB\"}}");
    expect_job("--cpus=0.1 x", true, "{\"command\":[\"x\"],\"needs\":{\"cpus\":0.1}}");
    expect_job("--limit 40m --estimate 5m", true,
               "{\"time\":{\"estimate\":\"5m\",\"limit\":\"40m\"}}");
    expect_job("--gpus 2 --gpu h100,a100-80 --gpu l40s", true,
               "{\"needs\":{\"gpu\":[\"h100\",\"a100-80\",\"l40s\"],\"gpus\":2}}");
    expect_job("--env SUITE --env A=b=c", true, "{\"env\":{\"A\":\"b=c\",\"SUITE\":\"unit\"}}");
    expect_job("--label project=archive --label data=public", true,
               "{\"labels\":{\"data\":\"public\",\"project\":\"archive\"}}");
    expect_job("--require region=eu --forbid kind=spot", true,
               "{\"where\":{\"forbid\":{\"kind\":\"spot\"},\"require\":{\"region\":\"eu\"}}}");
    expect_job(
        "--class ci --team web --name t --priority 70 --protected --rerun never", true,
        "{\"class\":\"ci\",\"name\":\"t\",\"priority\":70,\"protected\":true,\"rerun\":\"never\","
        "\"team\":\"web\"}");
    expect_job("--lost 1 --exit 75=2", true, "{\"retry\":{\"exit\":{\"75\":2},\"lost\":1}}");
    expect_job("--key K --fresh -- x", true, "{\"command\":[\"x\"]}");
    expect_job("", true, "{}");
}

Test(cli_job, what_is_no_number_goes_on_as_it_is)
{
    /* the broker says what is wrong with it, and where */
    expect_job("--cpus many", true, "{\"needs\":{\"cpus\":\"many\"}}");
}

Test(cli_job, mistakes)
{
    expect_job("--cpu 3", true, "did you mean '--cpus'?");
    expect_job("--memry 3", true, "did you mean '--memory'?");
    expect_job("--key", true, "--key KEY");
    expect_job("--fresh=1", true, "--fresh takes no value");
    expect_job("-k a -k b", true, "--key stands twice");
    expect_job("--env ABSENT", true, "--env ABSENT: there is no such variable here");
    expect_job("--label project", true, "'project' is no pair for labels");
}

/* Every key of a job has a flag, but for those that words or files say. */
static void expect_flags(const struct key *rows)
{
    for (const struct key *key = rows; key->name; key++) {
        const char *name = strcmp(key->name, "labels") == 0 ? "label" : key->name;
        bool found = strcmp(name, "at") == 0 || strcmp(name, "command") == 0;
        if (key->type == KEY_SECTION) {
            expect_flags(key->rows);
            continue;
        }
        for (const struct flag *flag = job_flags(); flag->name; flag++) {
            found = found || strcmp(flag->name, name) == 0;
        }
        cr_expect(found, "key '%s' has no flag", key->name);
    }
}

Test(cli_job, every_key_has_a_flag)
{
    expect_flags(spec_keys);
}

Test(cli_job, no_two_flags_share_a_name)
{
    for (const struct flag *a = job_flags(); a->name; a++) {
        for (const struct flag *b = a + 1; b->name; b++) {
            cr_expect_str_neq(a->name, b->name);
        }
    }
}

static char *write_file(const char *text)
{
    char *path = strdup("/tmp/tieline-test-job.XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    return path;
}

static json_t *jobs_of(const char *text, char *flags)
{
    char *words[WORDS_MAX];
    struct args args = {.tables = {own, job_flags()}, .table_count = 2};
    struct error err;
    json_t *jobs = NULL;
    char *path = write_file(text);
    int count = 0;
    words[count++] = path;
    count += split(flags, words + count);
    cr_assert_eq(args_parse(&args, count, words, false, &err), 0);
    if (jobs_read(&args, &jobs, &err) < 0) {
        jobs = json_pack("{s:s}", "error", err.text);
    }
    args_fini(&args);
    (void)unlink(path);
    free(path);
    return jobs;
}

Test(cli_job, flags_change_every_job_of_a_file)
{
    char flags[] = "--class ci -- true";
    json_t *jobs =
        jobs_of("- {name: a, run: x, needs: {cpus: 2}}\n- {name: b, command: [y]}\n", flags);
    char *text = json_dumps(jobs, JSON_COMPACT | JSON_SORT_KEYS);
    cr_expect_str_eq(
        text, "[{\"class\":\"ci\",\"command\":[\"true\"],\"name\":\"a\",\"needs\":{\"cpus\":2}},"
              "{\"class\":\"ci\",\"command\":[\"true\"],\"name\":\"b\"}]");
    free(text);
    json_decref(jobs);
}

Test(cli_job, one_job_in_each_line)
{
    char flags[] = "--class ci";
    json_t *jobs = jobs_of("{\"run\": \"x\"}\n\n{\"run\": \"y\"}\n", flags);
    char *text = json_dumps(jobs, JSON_COMPACT | JSON_SORT_KEYS);
    cr_expect_str_eq(text, "[{\"class\":\"ci\",\"run\":\"x\"},{\"class\":\"ci\",\"run\":\"y\"}]");
    free(text);
    json_decref(jobs);
    char more[] = "--class ci";
    jobs = jobs_of("{\"run\": \"x\"}\n{\"run\": \n", more);
    cr_expect(json_object_get(jobs, "error"), "half a line is no job");
    json_decref(jobs);
}

Test(cli_job, a_file_that_holds_no_job)
{
    char flags[] = "--class ci";
    json_t *jobs = jobs_of("just a text\n", flags);
    cr_expect(json_object_get(jobs, "error"));
    cr_expect(strstr(json_string_value(json_object_get(jobs, "error")), "a job is a map"));
    json_decref(jobs);
}
