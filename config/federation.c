/* federation.c - tieline.yaml: what its keys leave open, and what ties them together.
 *
 * The federation lives inside of the struct that the table fills (struct reading), so that names of
 * sites and tariffs stay where places point at them. Clusters: clusters.c. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "config/yaml.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_SIZE = 256 };

/* user-host, of characters that a name may have. Two brokers must not take each other's work. */
static char *default_name(void)
{
    char host[HOST_SIZE] = "";
    const struct passwd *user = geteuid() ? getpwuid(geteuid()) : NULL;
    if (gethostname(host, sizeof host - 1) != 0 || !host[0]) {
        copy_text(host, sizeof host, "tieline");
    }
    host[strcspn(host, ".")] = '\0';
    char *name = xasprintf("%.24s%s%.32s", user ? user->pw_name : "", user ? "-" : "", host);
    for (char *c = name; *c; c++) {
        if ((unsigned char)*c >= 128 || (!isalnum((unsigned char)*c) && !strchr("._-", *c))) {
            *c = '-';
        }
    }
    if (!name_is_valid(name)) {
        free(name);
        name = xstrdup("tieline");
    }
    return name;
}

static char *default_state(void)
{
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
    if (geteuid() == 0) {
        return xstrdup("/var/lib/tieline");
    }
    if (state && *state == '/') {
        return xasprintf("%s/tieline", state);
    }
    return home && *home == '/' ? xasprintf("%s/.local/state/tieline", home)
                                : xasprintf("/var/tmp/tieline-%u", (unsigned)geteuid());
}

static void fill_defaults(struct federation *federation)
{
    if (!federation->name) {
        federation->name = default_name();
    }
    if (!federation->state_dir) {
        federation->state_dir = default_state();
    }
    if (!federation->store) {
        federation->store = xasprintf("sqlite:%s/tieline.db", federation->state_dir);
    }
    if (!federation->tokens_file) {
        federation->tokens_file = xasprintf("%s/tokens", federation->state_dir);
    }
}

/* ----------------------------------------------------------------------------------- paths */

/* A relative path counts from the folder of the file, wherever the broker was started. */
static void anchor(const char *folder, char **path)
{
    if (*path && **path != '/') {
        char *whole = xasprintf("%s/%s", folder, strncmp(*path, "./", 2) == 0 ? *path + 2 : *path);
        free(*path);
        *path = whole;
    }
}

/* "sqlite:jobs.db" */
static void anchor_store(const char *folder, char **store)
{
    static const char scheme[] = "sqlite:";
    size_t length = sizeof scheme - 1;
    if (*store && strncmp(*store, scheme, length) == 0) {
        char *path = xstrdup(*store + length);
        anchor(folder, &path);
        free(*store);
        *store = xasprintf("%s%s", scheme, path);
        free(path);
    }
}

static void anchor_paths(struct federation *federation, const char *folder)
{
    bool builtin = federation->policy_file && strncmp(federation->policy_file, "builtin:", 8) == 0;
    if (!builtin) {
        anchor(folder, &federation->policy_file);
    }
    anchor_store(folder, &federation->store);
    anchor(folder, &federation->state_dir);
    anchor(folder, &federation->tokens_file);
    anchor(folder, &federation->server.certificate);
    anchor(folder, &federation->server.key.file);
}

/* The full path of the folder that holds the file. The caller frees. */
static char *folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder = slash ? xstrndup(file, (size_t)(slash - file) + 1) : xstrdup(".");
    char *whole = realpath(folder, NULL);
    if (!whole) {
        return folder;
    }
    free(folder);
    return whole;
}

/* ---------------------------------------------------------------------------------- checks */

static int check_here(const struct reading *reading, const struct value *root, struct error *err)
{
    const char *here = reading->federation.here;
    if (!here) {
        return 0;
    }
    return site_check(reading, value_get(root, "here"), here, err);
}

/* Other addresses are served only over TLS. */
static int check_server(const struct reading *reading, const struct value *root, struct error *err)
{
    const struct server_config *server = &reading->federation.server;
    struct listen_address address;
    if (server->certificate || listen_parse(server->listen, &address, err) != 0) {
        return 0;
    }
    bool loopback = listen_is_loopback(&address);
    free(address.host);
    if (loopback) {
        return 0;
    }
    value_error(value_get(value_get(root, "server"), "listen"), err, ERROR_INVALID,
                "'%.100s' can be reached from elsewhere, but there is no TLS", server->listen);
    return error_expect(err, "tls: {certificate: PATH, key: {file: PATH}}, or 127.0.0.1:7410");
}

static int check_labels(const struct reading *reading, const struct value *root, struct error *err)
{
    const struct value *sites = value_get(root, "sites");
    for (size_t i = 0; i < reading->sites.count; i++) {
        const struct value *site = value_get(sites, RULES_AT(reading->sites, struct site, i)->name);
        if (labels_check(value_get(site, "labels"), err) != 0) {
            return -1;
        }
    }
    return 0;
}

static int read_root(struct reading *reading, const struct value *root, const char *folder,
                     struct error *err)
{
    const struct keys_context context = {.zone = "UTC", .arg = reading};
    if (root->kind == VALUE_NULL) {
        value_error(root, err, ERROR_INVALID, "the file says nothing");
        return error_expect(err, "clusters: {hpc: {adapter: slurm, connect: {via: rest, ...}}}");
    }
    if (keys_read(federation_keys, root, reading, &context, err) != 0 ||
        gpus_read(reading, root, err) != 0 || check_here(reading, root, err) != 0 ||
        check_server(reading, root, err) != 0 || check_labels(reading, root, err) != 0) {
        return -1;
    }
    if (folder) {
        anchor_paths(&reading->federation, folder);
    }
    fill_defaults(&reading->federation);
    return clusters_read(reading, err);
}

/* folder: from which relative paths count; NULL: they stay as they are. */
static int parse(const char *text, const char *file, const char *folder,
                 const struct adapter_type *const *adapters, struct federation **out,
                 struct error *err)
{
    struct value *root = NULL;
    struct reading *reading = xcalloc(1, sizeof *reading);
    reading->adapters = adapters;
    int status = yaml_parse(text, strlen(text), &root, err);
    if (status == 0) {
        status = read_root(reading, root, folder, err);
    }
    reading->clusters = NULL;
    value_destroy(root);
    if (status != 0) {
        federation_destroy(&reading->federation);
        copy_text(err->file, sizeof err->file, file);
        return -1;
    }
    *out = &reading->federation;
    return 0;
}

int config_federation_parse(const char *text, const char *file,
                            const struct adapter_type *const *adapters, struct federation **out,
                            struct error *err)
{
    return parse(text, file, NULL, adapters, out, err);
}

int config_federation_load(const char *path, const struct adapter_type *const *adapters,
                           struct federation **out, struct error *err)
{
    char *text = NULL;
    size_t length = 0;
    if (!path) {
        return config_federation_parse(embedded_federation, "built-in tieline.yaml", adapters, out,
                                       err);
    }
    if (config_file_read(path, &text, &length, err) != 0) {
        return -1;
    }
    char *folder = folder_of(path);
    int status = strlen(text) == length
                     ? parse(text, path, folder, adapters, out, err)
                     : error_set(err, ERROR_MALFORMED, "%.200s holds a NUL", path);
    free(folder);
    free(text);
    return status;
}

void federation_destroy(struct federation *federation)
{
    if (!federation) {
        return;
    }
    /* it is the first member of what was read */
    struct reading *reading = (struct reading *)(void *)federation;
    clusters_destroy(federation);
    for (size_t i = 0; i < federation->gpu_count; i++) {
        free(federation->gpus[i].name);
    }
    free(federation->gpus);
    free(federation->own_user);
    keys_free(federation_keys, reading);
    free(reading);
}
