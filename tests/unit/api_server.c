/* api_server.c - the HTTP side over a fake broker, as a process that a test script drives.
 *
 *     api_server DIR LISTEN [tokens=FILE] [cert=FILE key=FILE] [url=URL] [idle=SECONDS] [stop=MS]
 *
 * Prints its address; SIGUSR1 makes it not ready; SIGTERM stops it; then it prints "stopped". */
#include "api/api.h"
#include "broker/core/alloc.h"
#include "broker/net/clock_uv.h"
#include "tests/unit/fake_broker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct server {
    uv_loop_t loop;
    uv_signal_t term, user;
    struct broker *broker;
};

static void log_line(const char *level, const char *text)
{
    (void)fprintf(stderr, "%s: %s\n", level, text);
}

static void term_cb(uv_signal_t *handle, int number)
{
    (void)number;
    uv_stop(handle->loop);
}

static void user_cb(uv_signal_t *handle, int number)
{
    const struct server *server = handle->data;
    (void)number;
    fake_broker_set_ready(server->broker, false);
}

static void read_option(const char *word, struct federation *federation, struct api_env *env)
{
    const char *value = strchr(word, '=') + 1;
    if (strncmp(word, "tokens=", 7) == 0) {
        federation->tokens_file = xstrdup(value);
    } else if (strncmp(word, "cert=", 5) == 0) {
        federation->server.certificate = xstrdup(value);
    } else if (strncmp(word, "key=", 4) == 0) {
        federation->server.key.file = xstrdup(value);
    } else if (strncmp(word, "url=", 4) == 0) {
        federation->server.url = xstrdup(value);
    } else if (strncmp(word, "idle=", 5) == 0) {
        env->idle_seconds = (int)strtol(value, NULL, 10);
    } else if (strncmp(word, "stop=", 5) == 0) {
        env->stop_ms = (int)strtol(value, NULL, 10);
    }
}

static void federation_free(struct federation *federation)
{
    free(federation->tokens_file);
    free(federation->server.certificate);
    free(federation->server.key.file);
    free(federation->server.url);
}

static int run(struct server *server, const struct api_env *env)
{
    struct api *api = NULL;
    struct error err;
    if (api_create(env, &api, &err) < 0) {
        (void)fprintf(stderr, "refused: %s; %s\n", err.text, err.expected);
        return 1;
    }
    (void)printf("%s %s\n", api_address(api), api_url(api));
    (void)fflush(stdout);
    (void)uv_run(&server->loop, UV_RUN_DEFAULT);
    api_destroy(api);
    return 0;
}

int main(int argc, char **argv)
{
    struct server server;
    struct federation federation = {.name = (char[]){"lab"}};
    struct api_env env = {.loop = &server.loop, .federation = &federation, .log = log_line};
    if (argc < 3) {
        return 2;
    }
    federation.state_dir = argv[1];
    federation.server.listen = argv[2];
    for (int i = 3; i < argc; i++) {
        read_option(argv[i], &federation, &env);
    }
    (void)uv_loop_init(&server.loop);
    (void)uv_signal_init(&server.loop, &server.term);
    (void)uv_signal_init(&server.loop, &server.user);
    (void)uv_signal_start(&server.term, term_cb, SIGTERM);
    (void)uv_signal_start(&server.user, user_cb, SIGUSR1);
    server.user.data = &server;
    env.clock = clock_uv_create(&server.loop);
    env.broker = server.broker = fake_broker_create(env.clock);
    int status = run(&server, &env);
    broker_destroy(server.broker);
    uv_close((uv_handle_t *)&server.term, NULL);
    uv_close((uv_handle_t *)&server.user, NULL);
    (void)uv_run(&server.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&server.loop) != 0) {
        (void)fprintf(stderr, "something is still open on the loop\n");
        status = 3;
    }
    clock_uv_destroy(env.clock);
    federation_free(&federation);
    (void)puts("stopped");
    return status;
}
