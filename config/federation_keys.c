/* federation_keys.c - the keys of tieline.yaml, without those of clusters. */
#include "config/internal.h"

#include "broker/core/zone.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SITES_MAX = 1000, TARIFFS_MAX = 1000, GPUS_MAX = 1000 };
#define AT(field) offsetof(struct reading, field)

static int read_zone(const struct value *value, void *field, const struct keys_context *context,
                     struct error *err)
{
    const struct key row = {.name = "timezone", .type = KEY_TEXT};
    char *zone = NULL;
    if (keys_read_one(&row, value, &zone, context, err) != 0) {
        return -1;
    }
    if (zone_check(zone, err) != 0) {
        free(zone);
        return value_locate(value, err);
    }
    *(char **)field = zone;
    return 0;
}

static void free_text(void *field)
{
    free(*(char **)field);
    *(char **)field = NULL;
}

static int read_listen(const struct value *value, void *field, const struct keys_context *context,
                       struct error *err)
{
    struct listen_address address;
    const struct key row = {.name = "listen", .type = KEY_TEXT};
    char *text = NULL;
    if (keys_read_one(&row, value, &text, context, err) != 0) {
        return -1;
    }
    if (listen_parse(text, &address, err) != 0) {
        free(text);
        return value_locate(value, err);
    }
    free(address.host);
    *(char **)field = text;
    return 0;
}

static int read_url(const struct value *value, void *field, const struct keys_context *context,
                    struct error *err)
{
    const struct key row = {.name = "url", .type = KEY_TEXT};
    char *text = NULL;
    if (keys_read_one(&row, value, &text, context, err) != 0) {
        return -1;
    }
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        value_error(value, err, ERROR_INVALID, "'%.100s' is not the address of a web server", text);
        free(text);
        return error_expect(err, "https://HOST or http://HOST, with a port if need be");
    }
    *(char **)field = text;
    return 0;
}

static int read_store(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    const struct key row = {.name = "store", .type = KEY_TEXT};
    char *text = NULL;
    if (keys_read_one(&row, value, &text, context, err) != 0) {
        return -1;
    }
    if (strncmp(text, "sqlite:", 7) != 0 || !text[7]) {
        value_error(value, err, ERROR_INVALID, "'%.100s' is not a store", text);
        free(text);
        return error_expect(err, "sqlite:PATH, like sqlite:/var/lib/tieline/tieline.db");
    }
    *(char **)field = text;
    return 0;
}

/* Kept aside: clusters need sites, tariffs and GPUs, which may stand below them. */
static int read_clusters(const struct value *value, void *field, const struct keys_context *context,
                         struct error *err)
{
    (void)context;
    if (value->kind != VALUE_MAP || value->count == 0) {
        value_error(value, err, ERROR_INVALID,
                    "'clusters' must be a map with at least one cluster");
        return error_expect(err, "clusters: {hpc: {adapter: slurm, connect: {via: rest, ...}}}");
    }
    if (value->count > CLUSTERS_MAX) {
        value_error(value, err, ERROR_INVALID, "%zu clusters", value->count);
        return error_expect(err, "at most %d", (int)CLUSTERS_MAX);
    }
    *(const struct value **)field = value;
    return 0;
}

static const char *const source_words[] = {"table", NULL};

static const struct key tls_keys[] = {
    {.name = "certificate",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct server_config, certificate),
     .help = "PEM file with the chain"},
    {.name = "key",
     .type = KEY_SECRET,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct server_config, key),
     .help = "the private key, in PEM"},
    {.name = NULL},
};
static const struct key server_keys[] = {
    {.name = "listen",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct server_config, listen),
     .standard = "127.0.0.1:7410",
     .read = read_listen,
     .free = free_text,
     .type_words = "host:port",
     .help = "anything but loopback needs `tls` and a token; port 0: any free one"},
    {.name = "url",
     .type = KEY_CUSTOM,
     .offset = offsetof(struct server_config, url),
     .read = read_url,
     .free = free_text,
     .type_words = "http(s):// address",
     .help = "what clients are told. Default: made of `listen`"},
    {.name = "tls",
     .type = KEY_SECTION,
     .offset = 0, /* its keys are fields of the server */
     .rows = tls_keys,
     .help = "serve over TLS"},
    {.name = NULL},
};
static const struct key keep_keys[] = {
    {.name = "jobs",
     .type = KEY_DURATION,
     .offset = offsetof(struct keep_config, jobs),
     .standard = "90d",
     .help = "finished jobs stay queryable so long"},
    {.name = "logs",
     .type = KEY_DURATION,
     .offset = offsetof(struct keep_config, logs),
     .standard = "14d",
     .help = "logs of finished jobs are kept so long"},
    {.name = NULL},
};
static const struct key token_keys[] = {
    {.name = "file",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .offset = AT(federation.tokens_file),
     .help = "hashes of tokens, written by `tieline token add`"},
    {.name = NULL},
};
static const struct key auth_keys[] = {
    {.name = "tokens", .type = KEY_SECTION, .rows = token_keys, .help = "static tokens"},
    {.name = NULL},
};
static const struct key site_keys[] = {
    {.name = "labels",
     .type = KEY_LABELS,
     .offset = offsetof(struct site, labels),
     .help = "labels of all places there"},
    {.name = NULL},
};
static const struct key tariff_keys[] = {
    {.name = "source",
     .type = KEY_ENUM,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct tariff, source),
     .words = source_words,
     .help = "where the price comes from; `table`: from this file"},
    {.name = "price",
     .type = KEY_PRICE_KWH,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct tariff, price),
     .help = "price of a kilowatt-hour"},
    {.name = NULL},
};
static const struct key gpu_keys[] = {
    {.name = "memory",
     .type = KEY_SIZE,
     .offset = offsetof(struct gpu_model, memory),
     .low = 1,
     .high = INT64_MAX,
     .help = "memory of one GPU"},
    {.name = "speed",
     .type = KEY_CPUS,
     .offset = offsetof(struct gpu_model, speed),
     .low = 1,
     .high = 1000000,
     .help = "measured at this site, relative to each other; 1 where nothing is written"},
    {.name = NULL},
};

const struct key federation_keys[] = {
    {.name = "version",
     .type = KEY_INTEGER,
     .offset = AT(version),
     .standard = "1",
     .low = 1,
     .high = 1,
     .help = "of this language"},
    {.name = "federation",
     .type = KEY_NAME,
     .offset = AT(federation.name),
     .help = "the mark on all that is made elsewhere; never change it once jobs ran. Default: the "
             "host's name, before it the user's if that is not root"},
    {.name = "timezone",
     .type = KEY_CUSTOM,
     .offset = AT(federation.timezone),
     .standard = "UTC",
     .read = read_zone,
     .free = free_text,
     .type_words = "name of a time zone",
     .help = "of dates and periods, here and in the policy"},
    {.name = "here",
     .type = KEY_NAME,
     .offset = AT(federation.here),
     .help = "the broker's own site"},
    {.name = "server",
     .type = KEY_SECTION,
     .offset = AT(federation.server),
     .rows = server_keys,
     .help = "the REST API"},
    {.name = "store",
     .type = KEY_CUSTOM,
     .offset = AT(federation.store),
     .read = read_store,
     .free = free_text,
     .type_words = "sqlite:PATH",
     .help = "where jobs and events are kept. Default: tieline.db in `state`"},
    {.name = "policy",
     .type = KEY_TEXT,
     .offset = AT(federation.policy_file),
     .help = "the policy's file. Default: the built-in one: own places, nothing that costs rent"},
    {.name = "state",
     .type = KEY_TEXT,
     .offset = AT(federation.state_dir),
     .help = "folder for all that the broker keeps. Default: /var/lib/tieline for root, else "
             "~/.local/state/tieline"},
    {.name = "keep",
     .type = KEY_SECTION,
     .offset = AT(federation.keep),
     .rows = keep_keys,
     .help = "how long things are kept"},
    {.name = "auth", .type = KEY_SECTION, .rows = auth_keys, .help = "who may call"},
    {.name = "sites",
     .type = KEY_NAMED,
     .offset = AT(sites),
     .rows = site_keys,
     .item_size = sizeof(struct site),
     .max_items = SITES_MAX,
     .help = "where clusters are"},
    {.name = "electricity",
     .type = KEY_NAMED,
     .offset = AT(tariffs),
     .rows = tariff_keys,
     .item_size = sizeof(struct tariff),
     .max_items = TARIFFS_MAX,
     .help = "tariffs by name; `power` of a cluster names one"},
    {.name = "gpus",
     .type = KEY_NAMED,
     .offset = AT(gpus),
     .rows = gpu_keys,
     .item_size = sizeof(struct gpu_model),
     .max_items = GPUS_MAX,
     .help = "models of GPU: changes built-in ones, or adds"},
    {.name = "clusters",
     .type = KEY_CUSTOM,
     .flags = KEY_REQUIRED,
     .offset = AT(clusters),
     .read = read_clusters,
     .type_words = "map by name",
     .help = "the member clusters, see below"},
    {.name = NULL},
};
