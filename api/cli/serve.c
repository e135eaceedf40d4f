/* serve.c - `tieline serve`: the broker itself, in the foreground.
 *
 * Everything is made bottom-up and undone in reverse. SIGHUP reads the policy again, and a bad one
 * changes nothing. SIGTERM and SIGINT stop in order; a second one ends at once, which is safe too: all
 * that was answered is on disk. */
#include "api/cli/commands.h"
#include "api/cli/location.h"

#include "broker/broker.h"
#include "broker/core/alloc.h"
#include "broker/core/units.h"
#include "broker/net/http.h"
#include "config/config.h"
#include "policy/expect.h"

#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PROGRAM_PATH_MAX = 4096, PLACE_TEXT_MAX = 512, SETTLE_MS = 2000 };

struct serving {
    struct cli *cli;
    struct federation *federation;
    struct rules *rules; /* until the broker has them */
    struct store *store; /* until the broker has it */
    struct http *http;
    struct broker *broker;
    struct api *api;
    uv_signal_t hang_up, terminate, interrupt;
    bool watching;
    char program[PROGRAM_PATH_MAX];
};

static struct clock
    *log_clock; /* of the functions below that are called without an argument of ours */

static void log_line(const char *level, const char *text)
{
    char when[UNITS_TEXT_SIZE];
    (void)fprintf(stderr, "%s %-5s %s\n", instant_text(clock_wall_ms(log_clock), when), level,
                  text);
}

static void log_cluster(const char *level, const char *cluster, const char *text)
{
    char when[UNITS_TEXT_SIZE];
    (void)fprintf(stderr, "%s %-5s %s: %s\n", instant_text(clock_wall_ms(log_clock), when), level,
                  cluster, text);
}

static void log_error(const struct error *err)
{
    char place[PLACE_TEXT_MAX];
    char *text = xasprintf("%s%s%s%s", cli_place(err, place, sizeof place), err->text,
                           err->expected[0] ? "; " : "", err->expected);
    log_line("error", text);
    free(text);
}

/* ------------------------------------------------------------------------------------- expectations */

struct unmet { /* the first line of `expect` that does not hold */
    struct error *err;
    bool found;
};

static void unmet_cb(void *arg, const struct expectation *expectation, const struct error *err)
{
    struct unmet *unmet = arg;
    (void)expectation;
    if (!unmet->found) {
        unmet->found = true;
        *unmet->err = *err;
    }
}

/* Whether a policy passes its own tests. If not, err names the first that fails. */
static int run_expectations(const struct rules *rules, const char *file,
                            const struct federation *federation, struct error *err)
{
    struct error first;
    struct unmet unmet = {.err = &first};
    int failed = expect_run(rules, federation, clock_wall_ms(log_clock), unmet_cb, &unmet);
    if (!failed) {
        return 0;
    }
    error_set(err, ERROR_INVALID, "an expectation fails: %.300s", first.text);
    err->line = first.line;
    err->column = 1;
    copy_text(err->file, sizeof err->file, file);
    return error_expect(err, "all lines of `expect` to hold (%d %s not): tieline policy check",
                        failed, failed == 1 ? "does" : "do");
}

/* What a reload wants of a policy: that it can be read, and that it passes its own tests. */
static int parse_and_try(const char *text, const char *file, const struct federation *federation,
                         struct rules **out, struct error *err)
{
    struct rules *rules;
    if (config_rules_parse(text, file, federation, &rules, err) < 0) {
        return -1;
    }
    if (run_expectations(rules, file, federation, err) < 0) {
        rules_destroy(rules);
        return -1;
    }
    *out = rules;
    return 0;
}

/* ------------------------------------------------------------------------------------------- signals */

static void policy_done(void *arg, json_t *body, const struct error *err)
{
    (void)arg;
    (void)body;
    if (err->code) {
        log_line("error", "the policy was not taken; the running one goes on");
        log_error(err);
    }
}

static void reload_cb(uv_signal_t *handle, int number)
{
    struct serving *serving = handle->data;
    const struct caller caller = {"SIGHUP", "", ROLE_ADMIN};
    const char *file = serving->federation->policy_file;
    char *text;
    size_t length;
    struct error err;
    (void)number;
    if (!file || strncmp(file, "builtin:", 8) == 0) {
        log_line("warn", "SIGHUP: the configuration names no policy file; nothing to read again");
    } else if (config_file_read(file, &text, &length, &err) < 0) {
        policy_done(NULL, NULL, &err);
    } else {
        log_line("info", "SIGHUP: reading the policy again");
        broker_policy_set(serving->broker, &caller, text, file, false, policy_done, NULL);
        free(text);
    }
}

/* With the handlers gone, the next signal ends the process. */
static void stop_cb(uv_signal_t *handle, int number)
{
    struct serving *serving = handle->data;
    log_line("info", number == SIGTERM ? "SIGTERM: stopping" : "SIGINT: stopping");
    (void)uv_signal_stop(&serving->terminate);
    (void)uv_signal_stop(&serving->interrupt);
    uv_stop(handle->loop);
}

static void watch_signals(struct serving *serving)
{
    uv_loop_t *loop = &serving->cli->loop;
    uv_signal_t *handles[] = {&serving->hang_up, &serving->terminate, &serving->interrupt};
    const int numbers[] = {SIGHUP, SIGTERM, SIGINT};
    for (size_t i = 0; i < 3; i++) {
        (void)uv_signal_init(loop, handles[i]);
        handles[i]->data = serving;
        (void)uv_signal_start(handles[i], i == 0 ? reload_cb : stop_cb, numbers[i]);
    }
    serving->watching = true;
}

static void unwatch_signals(struct serving *serving)
{
    if (serving->watching) {
        uv_close((uv_handle_t *)&serving->hang_up, NULL);
        uv_close((uv_handle_t *)&serving->terminate, NULL);
        uv_close((uv_handle_t *)&serving->interrupt, NULL);
        serving->watching = false;
    }
}

/* --------------------------------------------------------------------------------------------- making */

/* Makes the directory and all above it. */
static int make_state_dir(const char *dir, struct error *err)
{
    char *path = xstrdup(dir);
    int failed = 0;
    for (char *at = path + 1; !failed && *at; at++) {
        if (*at == '/') {
            *at = '\0';
            failed = mkdir(path, 0755) != 0 && errno != EEXIST;
            *at = '/';
        }
    }
    failed = failed || (mkdir(path, 0700) != 0 && errno != EEXIST);
    if (failed) {
        error_set(err, ERROR_INVALID, "the state directory %.150s cannot be made: %s", path,
                  strerror(errno));
        (void)error_expect(err, "--state DIR, or `state:` in the configuration");
    }
    free(path);
    return failed ? -1 : 0;
}

static int load(struct serving *serving, const struct args *args, struct error *err)
{
    const char *listen = args_get(args, "listen");
    if (federation_find(serving->cli, args, &serving->federation, err) < 0) {
        return -1;
    }
    struct federation *federation = serving->federation;
    if (listen) {
        free(federation->server.listen);
        federation->server.listen = xstrdup(listen);
    }
    const struct passwd *own = getpwuid(geteuid());
    federation->own_user = own ? xstrdup(own->pw_name) : xasprintf("%ld", (long)geteuid());
    if (make_state_dir(federation->state_dir, err) < 0) {
        return -1;
    }
    if (federation->state_dir[0] != '/') { /* it was just made: now its full path is known */
        char *dir = realpath(federation->state_dir, NULL);
        free(federation->state_dir);
        federation->state_dir = dir ? dir : xstrdup(".");
    }
    if (config_rules_load(federation->policy_file, federation, &serving->rules, err) < 0) {
        return -1;
    }
    struct error unmet;
    const char *file = federation->policy_file ? federation->policy_file : "builtin";
    if (run_expectations(serving->rules, file, federation, &unmet) < 0) {
        log_line("warn", "the policy fails a test of its own; a reload would refuse it");
        log_error(&unmet);
    }
    return 0;
}

/* Supervisors are started from the program as it is now, also when PATH changes later. */
static void find_program(struct serving *serving)
{
    ssize_t length = readlink("/proc/self/exe", serving->program, sizeof serving->program - 1);
    copy_text(serving->program + (length > 0 ? length : 0), 1, "");
    if (length <= 0) {
        copy_text(serving->program, sizeof serving->program, "tieline");
    }
}

static int make_broker(struct serving *serving, const struct args *args, struct error *err)
{
    struct cli *cli = serving->cli;
    find_program(serving);
    if (cli->parts->store_open(serving->federation->store, &cli->loop, cli->clock, &serving->store,
                               err) < 0) {
        return -1;
    }
    serving->http = http_create(&cli->loop, cli->clock);
    const struct broker_env env = {
        .clock = cli->clock,
        .store = serving->store,
        .federation = serving->federation,
        .rules = serving->rules,
        .adapter_env = {.clock = cli->clock,
                        .loop = &cli->loop,
                        .http = serving->http,
                        .federation = serving->federation,
                        .state_dir = serving->federation->state_dir,
                        .program = serving->program,
                        .log = log_cluster},
        .rules_parse = parse_and_try,
        .rules_destroy = rules_destroy,
        .log = log_line,
        .accept_world = args_has(args, "accept-world"),
    };
    serving->store = NULL; /* the broker's, also when it fails */
    serving->rules = NULL;
    return broker_create(&env, &serving->broker, err);
}

static void say_ready(const struct serving *serving)
{
    const struct cli_parts *parts = serving->cli->parts;
    char *text = xasprintf("tieline " TIELINE_VERSION " serves at %s and %s",
                           parts->api_address(serving->api), parts->api_socket(serving->api));
    log_line("info", text);
    free(text);
}

static int start(struct serving *serving, const struct args *args, struct error *err)
{
    struct cli *cli = serving->cli;
    if (load(serving, args, err) < 0 || make_broker(serving, args, err) < 0 ||
        cli->parts->api_open(&cli->loop, cli->clock, serving->broker, serving->federation, log_line,
                             &serving->api, err) < 0) {
        return -1;
    }
    if (!config_path_find(args)) {
        log_line("info", "built-in configuration: three members on this machine, to look around");
    }
    say_ready(serving);
    return 0;
}

/* What the API no longer waits for is under way in the broker still. */
static void settle(struct serving *serving)
{
    struct cli *cli = serving->cli;
    int64_t end = clock_mono_ms(cli->clock) + SETTLE_MS;
    broker_wake_all(serving->broker);
    while (broker_questions(serving->broker) > 0 && clock_mono_ms(cli->clock) < end) {
        (void)uv_run(&cli->loop, UV_RUN_ONCE);
    }
}

static void stop(struct serving *serving)
{
    if (serving->api) {
        serving->cli->parts->api_close(serving->api);
    }
    if (serving->broker) {
        settle(serving);
    }
    broker_destroy(serving->broker);
    if (serving->store) {
        serving->store->ops->close(serving->store);
    }
    rules_destroy(serving->rules);
    if (serving->http) {
        http_destroy(serving->http);
    }
    unwatch_signals(serving);
    (void)uv_run(&serving->cli->loop, UV_RUN_NOWAIT);
    federation_destroy(serving->federation);
}

/* Every connection, member and file takes a descriptor: all that the system allows. A failure leaves
 * the limit as it is, and the connections within it. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0) {
            log_line("warn", "the limit of open files cannot be raised");
        }
    }
}

int command_serve(struct cli *cli, const struct args *args)
{
    struct serving *serving = xcalloc(1, sizeof *serving);
    struct error err;
    serving->cli = cli;
    log_clock = cli->clock;
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ);
    raise_descriptors();
    error_clear(&err);
    watch_signals(serving);
    int result = start(serving, args, &err);
    if (result == 0) {
        (void)uv_run(&cli->loop, UV_RUN_DEFAULT);
    } else {
        log_error(&err);
    }
    stop(serving);
    if (result == 0) {
        log_line("info", "stopped; jobs go on");
    }
    free(serving);
    return result < 0 ? 1 : 0;
}
