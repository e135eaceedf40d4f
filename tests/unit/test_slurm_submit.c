/* test_slurm_submit.c - what an attempt is to Slurm: bodies, script, rendering; and the token. */
#include "adapters/adapters.h"
#include "adapters/slurm_submit.h"
#include "adapters/slurm_token.h"
#include "tests/unit/slurm_lab.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct slurm_lab lab;
static struct spec spec;
static struct submit job;

static void setup(void)
{
    slurm_lab_init(&lab, "http://127.0.0.1:1", "alice", NULL);
    slurm_lab_job(&lab, "j000000000000001", "echo one\n", &spec, &job);
}

static json_t *body_of(int version)
{
    struct slurm_batch *batch = slurm_batch_create(&lab.federation, "/bin/bash -l", "/work", &job);
    char *text = slurm_batch_body(batch, version);
    json_t *body = json_loads(text, 0, NULL);
    cr_assert(body, "%s", text);
    free(text);
    slurm_batch_destroy(batch);
    return body;
}

static const char *text_at(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "(absent)";
}

TestSuite(slurm_submit, .init = setup);

Test(slurm_submit, body_of_22_05)
{
    spec.needs.cpus = 1500;
    spec.needs.memory = (INT64_C(64) << 20) + 1;
    spec.time.limit = 60001;
    json_t *body = body_of(38);
    const json_t *inner = json_object_get(body, "job");
    cr_assert_str_eq(text_at(inner, "name"), "test.j000000000000001-1");
    cr_assert_str_eq(text_at(inner, "comment"), "tieline:lab:j000000000000001:1");
    cr_assert_str_eq(text_at(inner, "partition"), "cpu");
    cr_assert_str_eq(text_at(inner, "standard_output"), "/dev/null");
    cr_assert_str_eq(text_at(inner, "current_working_directory"), "/work");
    cr_assert_eq(json_integer_value(json_object_get(inner, "cpus_per_task")), 2);
    cr_assert_eq(json_integer_value(json_object_get(inner, "memory_per_node")), 65);
    cr_assert_eq(json_integer_value(json_object_get(inner, "time_limit")), 2);
    /* requeue: false makes 22.05 requeue */
    cr_assert_null(json_object_get(inner, "requeue"));
    cr_assert(json_is_true(json_object_get(inner, "no_requeue")));
    const json_t *env = json_object_get(inner, "environment");
    cr_assert(json_is_object(env));
    cr_assert_str_eq(text_at(env, "TIELINE_JOB"), "j000000000000001");
    cr_assert_str_eq(text_at(env, "TIELINE_PLACE"), "hpc/cpu");
    cr_assert_str_eq(text_at(env, "TIELINE_CPUS"), "2");
    cr_assert_str_eq(text_at(env, "TIELINE_OWNER"), "alice@example.org");
    cr_assert_str_eq(text_at(env, "SHELL"), "/bin/bash");
    cr_assert_neq(strcmp(text_at(env, "PATH"), "(absent)"), 0);
    cr_assert_eq(strncmp(text_at(body, "script"), "#!/bin/bash -l\n", 15), 0);
    cr_assert(strstr(text_at(body, "script"), "\necho one\n"));
    cr_assert_null(json_object_get(inner, "account"));
    cr_assert_null(json_object_get(inner, "gres"));
    json_decref(body);
}

Test(slurm_submit, body_of_later_versions)
{
    char *models[] = {(char *)(uintptr_t) "h100", (char *)(uintptr_t) "a100-80"};
    spec.needs.gpus = 1500;
    spec.needs.gpu = (struct texts){.items = models, .count = 2};
    job.ref.place = &lab.places[1];
    json_t *body = body_of(44);
    const json_t *inner = json_object_get(body, "job");
    cr_assert_str_eq(text_at(inner, "account"), "media");
    cr_assert_str_eq(text_at(inner, "qos"), "high");
    cr_assert_str_eq(text_at(inner, "tres_per_node"), "gres/gpu:a100:2");
    cr_assert(json_is_false(json_object_get(inner, "requeue")));
    cr_assert_null(json_object_get(inner, "no_requeue"));
    cr_assert(json_is_array(json_object_get(inner, "environment")));
    cr_assert_eq(
        json_integer_value(json_object_get(json_object_get(inner, "memory_per_node"), "number")),
        64);
    cr_assert_neq(strcmp(text_at(inner, "script"), "(absent)"), 0);
    cr_assert_null(json_object_get(body, "script"));
    json_decref(body);
    body = body_of(38);
    cr_assert_str_eq(text_at(json_object_get(body, "job"), "gres"), "gpu:a100:2");
    json_decref(body);
    spec.needs.gpu = (struct texts){0};
    body = body_of(38);
    cr_assert_str_eq(text_at(json_object_get(body, "job"), "gres"), "gpu:2");
    json_decref(body);
}

Test(slurm_submit, partition_of_a_place)
{
    cr_assert_str_eq(slurm_partition_of(&lab.places[0]), "cpu");
    lab.place_settings[0].partition = (char *)(uintptr_t) "long";
    cr_assert_str_eq(slurm_partition_of(&lab.places[0]), "long");
    lab.place_settings[0].partition = NULL;
    (void)snprintf(lab.places[0].name, sizeof lab.places[0].name, "hpc");
    cr_assert_null(slurm_partition_of(&lab.places[0]));
}

/* What a command prints, which must be something. */
static void printed(const char *command, char *out, size_t size)
{
    FILE *shell = popen(command, "r");
    cr_assert(shell);
    size_t length = fread(out, 1, size - 1, shell);
    out[length] = '\0';
    cr_assert_eq(pclose(shell), 0, "%s", command);
    cr_assert_gt(length, 0, "%s", command);
}

/* The script's own quoting, given to a real shell. */
Test(slurm_submit, words_pass_the_shell_as_they_are)
{
    char *words[] = {(char *)(uintptr_t) "printf",
                     (char *)(uintptr_t) "[%s]",
                     (char *)(uintptr_t) "it's",
                     (char *)(uintptr_t) "",
                     (char *)(uintptr_t) "a b\n$HOME `id` \\",
                     (char *)(uintptr_t) "'"};
    spec.run = NULL;
    spec.command = (struct texts){.items = words, .count = 6};
    struct slurm_batch *batch = slurm_batch_create(&lab.federation, "/bin/sh", "/tmp", &job);
    char path[] = "/tmp/tieline-script-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, batch->script, strlen(batch->script)), (ssize_t)strlen(batch->script));
    (void)close(fd);
    char command[128], out[256] = "";
    (void)snprintf(command, sizeof command, "env -i /bin/sh %s", path);
    printed(command, out, sizeof out);
    cr_assert_str_eq(out, "[it's][][a b\n$HOME `id` \\][']");
    (void)unlink(path);
    slurm_batch_destroy(batch);
}

Test(slurm_submit, the_script_makes_an_environment)
{
    spec.run = (char *)(uintptr_t) "printf '%s:%s:%s' \"$USER\" \"$LOGNAME\" \"$HOME\"";
    struct slurm_batch *batch = slurm_batch_create(&lab.federation, "/bin/sh", "/tmp", &job);
    char path[] = "/tmp/tieline-script-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, batch->script, strlen(batch->script)), (ssize_t)strlen(batch->script));
    (void)close(fd);
    char command[256], out[256] = "", want[256] = "";
    (void)snprintf(command, sizeof command, "env -i PATH=/usr/bin:/bin /bin/sh %s", path);
    printed(command, out, sizeof out);
    printed("u=$(id -un); printf '%s:%s:%s' $u $u $(getent passwd $u | cut -d: -f6)", want,
            sizeof want);
    cr_assert_str_eq(out, want);
    (void)unlink(path);
    slurm_batch_destroy(batch);
}

Test(slurm_submit, rendering)
{
    struct adapter_env env = {.federation = &lab.federation};
    struct error err;
    char *text = NULL;
    job.ref.place = &lab.places[1];
    spec.time.limit = INT64_C(45) * 60000;
    cr_assert_eq(adapter_slurm.render(&env, &job, &text, &err), 0);
    static const char begin[] =
        "#!/bin/bash\n"
        "#SBATCH --job-name=test.j000000000000001-1\n"
        "#SBATCH --comment=tieline:lab:j000000000000001:1\n"
        "#SBATCH --account=media\n"
        "#SBATCH --partition=gpu\n"
        "#SBATCH --qos=high\n"
        "#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 --mem=64M\n"
        "#SBATCH --time=00:45:00 --no-requeue\n"
        "#SBATCH --chdir=/tmp\n"
        "#SBATCH --output=/dev/null\n"
        "# sent as alice; environment: ";
    cr_assert_eq(strncmp(text, begin, sizeof begin - 1), 0, "%s", text);
    cr_assert(strstr(text, "\necho one\n"));
    free(text);
}

/* ---- settings */

static int read_settings(const char *json, struct slurm_settings *settings, struct error *err)
{
    struct value *value = NULL;
    cr_assert_eq(value_from_json(json, strlen(json), &value, err), 0);
    struct keys_context context = {0};
    int status = keys_read(adapter_slurm.cluster_rows, value, settings, &context, err);
    value_destroy(value);
    return status;
}

Test(slurm_submit, settings)
{
    struct slurm_settings settings = {0};
    struct error err;
    cr_assert_eq(read_settings("{\"connect\":{\"url\":\"https://slurm:6820/\",\"user\":\"u\","
                               "\"token\":{\"file\":\"/t\"}},\"workdir\":\"/work\"}",
                               &settings, &err),
                 0, "%s", err.text);
    cr_assert_str_eq(settings.connect.url, "https://slurm:6820");
    cr_assert_str_eq(settings.shell, "/bin/bash");
    cr_assert_str_eq(settings.workdir, "/work");
    cr_assert_eq(settings.min_job_age, 300000);
    keys_free(adapter_slurm.cluster_rows, &settings);
}

Test(slurm_submit, settings_that_are_refused)
{
    static const char *const texts[] = {
        "{}",
        "{\"connect\":{}}",
        "{\"connect\":{\"url\":\"slurm:6820\"}}",
        "{\"connect\":{\"url\":\"unix:relative\"}}",
        "{\"connect\":{\"url\":[\"http://a\"]}}",
        "{\"connect\":{\"url\":\"http://a\",\"via\":\"ssh\"}}",
        "{\"connect\":{\"url\":\"http://a\",\"token\":\"literal\"}}",
        "{\"connect\":{\"url\":\"http://a\"},\"shell\":\"bash\"}",
        "{\"connect\":{\"url\":\"http://a\"},\"workdir\":\"a\"}",
        "{\"connect\":{\"url\":\"http://a\"},\"modules\":\"lmod\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct slurm_settings settings = {0};
        struct error err;
        cr_assert_eq(read_settings(texts[i], &settings, &err), -1, "%s", texts[i]);
        cr_assert_neq(err.text[0], '\0');
        keys_free(adapter_slurm.cluster_rows, &settings);
    }
}

/* ---- the token */

static int64_t fake_now;
static int64_t fake_ms(struct clock *clock)
{
    (void)clock;
    return fake_now;
}
static const struct clock_ops fake_ops = {.wall_ms = fake_ms, .mono_ms = fake_ms};
static struct clock fake_clock = {.ops = &fake_ops};
static char token_path[64];

static void write_token(const char *text)
{
    char temporary[80];
    (void)snprintf(temporary, sizeof temporary, "%s.new", token_path);
    FILE *file = fopen(temporary, "w");
    (void)fputs(text, file);
    (void)fclose(file);
    (void)chmod(temporary, 0600);
    (void)rename(temporary, token_path);
}

static void token_setup(void)
{
    fake_now = INT64_C(1000000) * 1000;
    (void)snprintf(token_path, sizeof token_path, "/tmp/tieline-token.%d", (int)getpid());
}

static void token_teardown(void)
{
    (void)unlink(token_path);
}

/* {"exp":1000100,"sun":"slurm"} and {"exp":1000500,"sun":"slurm"} */
#define TOKEN_100 "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjEwMDAxMDAsInN1biI6InNsdXJtIn0.c2ln"
#define TOKEN_500 "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjEwMDA1MDAsInN1biI6InNsdXJtIn0.c2ln"

Test(slurm_token, is_read_again_when_its_file_changes, .init = token_setup, .fini = token_teardown)
{
    struct secret secret = {.file = token_path};
    struct slurm_token token;
    struct error err;
    const char *text;
    slurm_token_init(&token, &secret, &fake_clock);
    cr_assert_eq(slurm_token_get(&token, &text, &err), -1);
    cr_assert_eq(err.code, ERROR_UNAUTHORIZED);
    write_token(TOKEN_100 "\n");
    cr_assert_eq(slurm_token_get(&token, &text, &err), 0, "%s", err.text);
    cr_assert_str_eq(text, TOKEN_100);
    fake_now += 200 * 1000;
    cr_assert_eq(slurm_token_get(&token, &text, &err), -1);
    cr_assert(strstr(err.text, "expired"), "%s", err.text);
    write_token(TOKEN_500 "\n");
    cr_assert_eq(slurm_token_get(&token, &text, &err), 0, "%s", err.text);
    cr_assert_str_eq(text, TOKEN_500);
    cr_assert_not(slurm_token_renew(&token, TOKEN_500));
    cr_assert(slurm_token_renew(&token, TOKEN_100));
    write_token("a b");
    cr_assert_eq(slurm_token_get(&token, &text, &err), -1);
    slurm_token_fini(&token);
}

Test(slurm_token, a_failing_command_is_not_run_for_each_call, .init = token_setup,
     .fini = token_teardown)
{
    char script[128];
    char *argv[] = {"/bin/sh", "-c", script};
    struct secret secret = {.command = {.items = argv, .count = 3}};
    struct slurm_token token;
    struct error err;
    struct stat info;
    const char *text;
    (void)snprintf(script, sizeof script, "printf x >>%s; exit 1", token_path);
    slurm_token_init(&token, &secret, &fake_clock);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(slurm_token_get(&token, &text, &err), -1);
        cr_assert_eq(err.code, ERROR_UNAUTHORIZED);
    }
    cr_assert_eq(stat(token_path, &info), 0);
    cr_assert_eq(info.st_size, 1);
    fake_now += 10000;
    cr_assert_eq(slurm_token_get(&token, &text, &err), -1);
    cr_assert_eq(stat(token_path, &info), 0);
    cr_assert_eq(info.st_size, 2);
    slurm_token_fini(&token);
}

Test(slurm_token, none_is_no_error, .init = token_setup)
{
    struct secret secret = {0};
    struct slurm_token token;
    struct error err;
    const char *text = "x";
    slurm_token_init(&token, &secret, &fake_clock);
    cr_assert_eq(slurm_token_get(&token, &text, &err), 0);
    cr_assert_null(text);
    slurm_token_fini(&token);
}
