/* policy.c - `tieline policy check`, `show` and `set`. A check needs no broker; if one answers, it is
 * told which policy goes on running. */
#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/location.h"

#include "broker/core/alloc.h"
#include "broker/core/rules.h"
#include "broker/core/units.h"
#include "config/config.h"
#include "policy/expect.h"
#include "policy/match.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LIVE_SIZE = 80 };

/* "9f31c2, since 2026-03-09 14:02" of the broker here, or NULL. No broker is no mistake. */
static const char *live_words(struct cli *cli, const struct args *args, char out[LIVE_SIZE])
{
    struct client *client;
    struct error err;
    json_t *policy;
    char since[32];
    if (client_open(cli, args, 0, &client, &err) < 0) {
        return NULL;
    }
    int result = client_get(client, "/v1/policy", &policy, &err);
    client_close(client);
    if (result < 0) {
        return NULL;
    }
    time_t seconds = (time_t)(json_time(policy, "since") / 1000);
    struct tm tm;
    if (!localtime_r(&seconds, &tm) || strftime(since, sizeof since, "%Y-%m-%d %H:%M", &tm) == 0) {
        since[0] = '\0';
    }
    (void)snprintf(out, LIVE_SIZE, "%.*s, since %s", (int)RULES_HASH_SHORT,
                   json_text(policy, "hash"), since);
    json_decref(policy);
    return out;
}

static void print_check(const struct cli *cli, const char *file, const char *text,
                        const struct config_check *counts)
{
    if (!cli->json) {
        (void)fputs(text, stdout);
        return;
    }
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:s}", "file", file, "errors", counts->errors,
                             "warnings", counts->warnings, "failed", counts->failed, "text", text);
    print_json(json);
    json_decref(json);
}

static int check(struct cli *cli, const struct args *args, const struct federation *federation,
                 const char *file, const char *text)
{
    struct config_check counts;
    char live[LIVE_SIZE], *printed = NULL;
    size_t length;
    const struct config_hooks hooks = {
        .covers = match_covers, .expect_run = expect_run, .now_ms = clock_wall_ms(cli->clock)};
    FILE *out = open_memstream(&printed, &length);
    if (!out) {
        abort(); /* no memory */
    }
    int wrong = config_policy_check(text, file, federation, &hooks, live_words(cli, args, live),
                                    out, &counts);
    (void)fclose(out);
    print_check(cli, file, printed, &counts);
    free(printed);
    return wrong ? 1 : 0;
}

int command_policy_check(struct cli *cli, const struct args *args)
{
    struct federation *federation;
    struct error err;
    char *text;
    size_t length;
    const char *file = args->word_count ? args->words[0] : NULL;
    if (federation_find(cli, args, &federation, &err) < 0) {
        return cli_fail(&err);
    }
    file = file ? file : federation->policy_file;
    int status;
    if (!file || strncmp(file, "builtin:", 8) == 0) {
        error_set(&err, ERROR_INVALID, "which policy?");
        (void)error_expect(&err, "tieline policy check FILE; the configuration names none");
        status = cli_fail(&err);
    } else if (config_file_read(file, &text, &length, &err) < 0) {
        status = cli_fail(&err);
    } else {
        status = check(cli, args, federation, file, text);
        free(text);
    }
    federation_destroy(federation);
    return status;
}

int command_policy_show(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    json_t *policy;
    if (client_open(cli, args, PATIENCE_MS, &client, &err) < 0) {
        return cli_fail(&err);
    }
    int result = client_get(client, "/v1/policy", &policy, &err);
    client_close(client);
    if (result < 0) {
        return cli_fail(&err);
    }
    if (cli->json) {
        print_json(policy);
    } else {
        (void)printf("# policy %.*s, by %s, since %s\n%s", (int)RULES_HASH_SHORT,
                     json_text(policy, "hash"), json_text(policy, "by"), json_text(policy, "since"),
                     json_text(policy, "text"));
    }
    json_decref(policy);
    return 0;
}

int command_policy_set(struct cli *cli, const struct args *args)
{
    struct client *client;
    struct error err;
    json_t *policy = NULL;
    char *text;
    size_t length;
    bool dry_run = args_has(args, "dry-run");
    if (config_file_read(args->words[0], &text, &length, &err) < 0) {
        return cli_fail(&err);
    }
    const struct call call = {.method = "PUT",
                              .path = dry_run ? "/v1/policy?dry_run=true" : "/v1/policy",
                              .body = text,
                              .type = "application/yaml",
                              .repeat = true};
    int result = client_open(cli, args, PATIENCE_MS, &client, &err);
    if (result == 0) {
        result = client_call(client, &call, &policy, &err);
        client_close(client);
    }
    free(text);
    if (result < 0) {
        copy_text(err.file, sizeof err.file, args->words[0]);
        return cli_fail(&err);
    }
    if (cli->json) {
        print_json(policy);
    } else {
        (void)printf("policy %.*s %s\n", (int)RULES_HASH_SHORT, json_text(policy, "hash"),
                     dry_run ? "is well; nothing was changed" : "is live");
    }
    json_decref(policy);
    return 0;
}
