/* main.c - puts the program together: hands to the command line what its layer may not include. */
#include "adapters/adapters.h"
#include "adapters/node/supervise.h"
#include "api/api.h"
#include "api/cli/command.h"
#include "api/tokens.h"
#include "api/traffic.h"
#include "broker/core/alloc.h"
#include "broker/core/job.h"
#include "broker/metrics.h"
#include "broker/sim/adapter_sim.h"
#include "broker/store_sqlite.h"
#include "config/config.h"

#include <assert.h>
#include <curl/curl.h>
#include <signal.h>
#include <stdlib.h>

static int open_store(const char *name, uv_loop_t *loop, struct clock *clock, struct store **out,
                      struct error *err)
{
    return store_sqlite_open(name, loop, clock, NULL, out, err);
}

static int open_api(uv_loop_t *loop, struct clock *clock, struct broker *broker,
                    const struct federation *federation,
                    void (*log)(const char *level, const char *text), struct api **out,
                    struct error *err)
{
    const struct api_env env = {
        .loop = loop, .clock = clock, .broker = broker, .federation = federation, .log = log};
    return api_create(&env, out, err);
}

static int add_token(const char *path, struct clock *clock, const char *owner, const char *team,
                     const char *role, char **out, struct error *err)
{
    char token[TOKEN_SIZE];
    if (token_add(path, clock, owner, team, role, token, err) < 0) {
        return -1;
    }
    *out = xstrdup(token);
    return 0;
}

static int list_tokens(const char *path, void (*row)(void *arg, const struct cli_token *token),
                       void *arg, struct error *err)
{
    static const char *const roles[] = {
#define X(constant, name) name,
        ROLE_LIST(X)
#undef X
    };
    struct token *tokens;
    size_t count;
    if (token_list(path, &tokens, &count, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        const struct cli_token shown = {tokens[i].id, tokens[i].owner, tokens[i].team,
                                        roles[tokens[i].role], tokens[i].created};
        row(arg, &shown);
    }
    free(tokens);
    return 0;
}

/* The real members, and the simulated one: it belongs to the simulator's layer. */
static const struct adapter_type *const *all_adapters(void)
{
    enum { ALL_MAX = 32 };
    static const struct adapter_type *all[ALL_MAX];
    size_t count = 0;
    while (adapter_types[count]) {
        assert(count < ALL_MAX - 2);
        all[count] = adapter_types[count];
        count++;
    }
    all[count] = &adapter_sim;
    return all;
}

static void print_metrics(FILE *out)
{
    metrics_docs(out);
    traffic_docs(out);
}

static void print_configuration(FILE *out)
{
    config_docs_print(all_adapters(), out);
}

int main(int argc, char **argv)
{
    static const struct cli_page pages[] = {
        {"configuration", "every key of tieline.yaml, policy.yaml and a job", print_configuration},
        {"job-states", "states of jobs and attempts, and what leads from one to another",
         job_states_print},
        {"metrics", "what /metrics shows", print_metrics},
        {"api", "what is served over HTTP", api_routes_print},
        {NULL, NULL, NULL},
    };
    const struct cli_parts parts = {
        .adapters = all_adapters(),
        .store_open = open_store,
        .api_open = open_api,
        .api_close = api_destroy,
        .api_address = api_address,
        .api_socket = api_socket,
        .token_add = add_token,
        .token_list = list_tokens,
        .token_revoke = token_revoke,
        .supervise = supervise_main,
        .pages = pages,
    };
    (void)signal(SIGPIPE, SIG_IGN); /* a peer that is gone is an error of the write */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        (void)fputs("tieline: libcurl cannot be used\n", stderr);
        return EXIT_FAILURE;
    }
    int status = cli_main(&parts, argc, argv);
    curl_global_cleanup();
    return status;
}
