#include "api/cli/location.h"

#include "broker/core/alloc.h"
#include "broker/core/cluster.h"
#include "broker/core/limits.h"
#include "config/config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { TOKEN_MAX = 4096 };

static void replace(char **text, char *take)
{
    free(*text);
    *text = take;
}

/* What lies in the state directory by default moves with it. */
static void move_state(struct federation *federation, const char *dir)
{
    char *store = xasprintf("sqlite:%s/tieline.db", federation->state_dir);
    char *tokens = xasprintf("%s/tokens", federation->state_dir);
    if (strcmp(federation->store, store) == 0) {
        replace(&federation->store, xasprintf("sqlite:%s/tieline.db", dir));
    }
    if (federation->tokens_file && strcmp(federation->tokens_file, tokens) == 0) {
        replace(&federation->tokens_file, xasprintf("%s/tokens", dir));
    }
    free(store);
    free(tokens);
    replace(&federation->state_dir, xstrdup(dir));
}

const char *config_path_find(const struct args *args)
{
    const char *path = args_get(args, "config");
    if (path) {
        return strcmp(path, "builtin") == 0 ? NULL : path;
    }
    return access(DEFAULT_CONFIG, R_OK) == 0 ? DEFAULT_CONFIG : NULL;
}

/* --state-dir; of commands that are no clients also --state, which means a job's elsewhere. A client that
 * is told a configuration means the broker of that one, whatever the environment says. */
static const char *state_asked(const struct args *args)
{
    const char *env = getenv("TIELINE_STATE");
    bool is_client = false, has_config = args_has(args, "config");
    for (size_t i = 0; i < args->table_count; i++) {
        for (const struct flag *flag = args->tables[i]; flag->name; flag++) {
            is_client = is_client || strcmp(flag->name, "url") == 0;
        }
    }
    for (size_t i = 0; i < args->given_count; i++) {
        const struct flag *flag = args->given[i].flag;
        if (flag->takes && strcmp(flag->takes, "DIR") == 0) {
            return args->given[i].value;
        }
    }
    return env && *env && !(is_client && has_config) ? env : NULL;
}

int federation_find(struct cli *cli, const struct args *args, struct federation **out,
                    struct error *err)
{
    struct federation *federation;
    if (config_federation_load(config_path_find(args), cli->parts->adapters, &federation, err) <
        0) {
        return -1;
    }
    const char *state = state_asked(args);
    if (state) {
        char *dir = realpath(state, NULL); /* it may not exist yet */
        move_state(federation, dir ? dir : state);
        free(dir);
    }
    *out = federation;
    return 0;
}

char *state_dir_find(struct cli *cli, const struct args *args)
{
    struct federation *federation;
    struct error err;
    const char *state = state_asked(args);
    if (state) {
        return xstrdup(state);
    }
    /* A client need not be able to read the broker's configuration. */
    if (federation_find(cli, args, &federation, &err) < 0 &&
        config_federation_load(NULL, cli->parts->adapters, &federation, &err) < 0) {
        return xstrdup(".");
    }
    char *dir = xstrdup(federation->state_dir);
    federation_destroy(federation);
    return dir;
}

static bool host_is_local(const char *base)
{
    const char *host = strstr(base, "://");
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; host && i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        const char *after = host + 3 + length;
        if (strncmp(host + 3, names[i], length) == 0 &&
            (!*after || *after == ':' || *after == '/')) {
            return true;
        }
    }
    return false;
}

static int set_socket(struct location *out, const char *path, struct error *err)
{
    struct sockaddr_un address;
    if (strlen(path) >= sizeof address.sun_path) {
        error_set(err, ERROR_INVALID, "the path of the socket is too long: %.150s", path);
        return error_expect(err, "at most %zu characters; choose another state directory",
                            sizeof address.sun_path - 1);
    }
    out->socket = xstrdup(path);
    out->base = xstrdup("http://localhost");
    out->is_local = true;
    return 0;
}

static int set_url(struct location *out, const char *url, struct error *err)
{
    if (strncmp(url, "unix:", 5) == 0) {
        return set_socket(out, url + 5, err);
    }
    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        error_set(err, ERROR_INVALID, "'%.150s' is no address of a broker", url);
        return error_expect(err, "https://HOST, http://127.0.0.1:7410 or unix:PATH");
    }
    out->base = xstrdup(url);
    for (size_t length = strlen(out->base); length && out->base[length - 1] == '/';) {
        out->base[--length] = '\0';
    }
    out->is_local = host_is_local(out->base);
    return 0;
}

/* The token of this machine, if the broker has made one that this user may read. */
static char *read_local_token(const char *dir)
{
    struct error err;
    char *path = xasprintf("%s/token", dir), *text = NULL;
    size_t length;
    if (access(path, R_OK) == 0 && config_file_read(path, &text, &length, &err) == 0) {
        while (length && isspace((unsigned char)text[length - 1])) {
            text[--length] = '\0';
        }
    }
    free(path);
    return text;
}

/* The address that the configuration gives the broker of this machine. */
static char *local_address(struct cli *cli, const struct args *args)
{
    struct federation *federation;
    struct error err;
    char *url = NULL;
    if (federation_find(cli, args, &federation, &err) == 0) {
        url = xasprintf("%s://%s", federation->server.certificate ? "https" : "http",
                        federation->server.listen);
        federation_destroy(federation);
    }
    return url;
}

static int find_here(struct cli *cli, const struct args *args, struct location *out,
                     struct error *err)
{
    char *dir = state_dir_find(cli, args), *path = xasprintf("%s/tieline.sock", dir);
    int result = 0;
    if (access(path, R_OK | W_OK) == 0) {
        result = set_socket(out, path, err);
    } else if ((out->token = read_local_token(dir)) != NULL) {
        char *url = local_address(cli, args);
        result = set_url(out, url ? url : "http://127.0.0.1:7410", err);
        free(url);
    } else {
        error_set(err, ERROR_UNAVAILABLE, "no broker was found: there is no socket %s", path);
        result = error_expect(err, "start one: tieline serve; or say where: --url or TIELINE_URL");
    }
    free(path);
    free(dir);
    return result;
}

static int check_token(struct location *location, struct error *err)
{
    if (!location->token || location->is_local || strncmp(location->base, "https://", 8) == 0) {
        return 0;
    }
    error_set(err, ERROR_INVALID, "a token would be readable on the way to %.150s", location->base);
    return error_expect(err, "an address with https://");
}

int location_find(struct cli *cli, const struct args *args, struct location *out, struct error *err)
{
    const char *url = args_get(args, "url");
    const char *token = getenv("TIELINE_TOKEN");
    *out = (struct location){.base = NULL};
    if ((!url || !*url) && !args_has(args, "config") && !args_has(args, "state-dir")) {
        url = getenv("TIELINE_URL"); /* what was said on the line counts for more */
    }
    int result = url && *url ? set_url(out, url, err) : find_here(cli, args, out, err);
    if (token && *token) {
        replace(&out->token, xstrdup(token));
    } else if (result == 0 && !out->token && out->is_local && !out->socket) {
        char *dir = state_dir_find(cli, args);
        out->token = read_local_token(dir);
        free(dir);
    }
    if (result == 0 && out->token && strlen(out->token) > TOKEN_MAX) {
        result =
            error_set(err, ERROR_INVALID, "the token has more than %d characters", (int)TOKEN_MAX);
    }
    if (result < 0 || check_token(out, err) < 0) {
        location_fini(out);
        return -1;
    }
    return 0;
}

void location_fini(struct location *location)
{
    free(location->base);
    free(location->socket);
    free(location->token);
    *location = (struct location){.base = NULL};
}
