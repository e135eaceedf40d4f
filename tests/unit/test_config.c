/* tieline.yaml: what a site loads to, what is taken from elsewhere in the file, what is refused where. */
#include "tests/unit/config_lab.h"

#include "adapters/adapters.h"
#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct place *place(const struct federation *federation, const char *name)
{
    const struct place *found = federation_place(federation, name);
    cr_assert_not_null(found, "%s", name);
    return found;
}

static void has_label(const struct federation *federation, const char *name, const char *label,
                      const char *value)
{
    const char *has = labels_get(&place(federation, name)->labels, label);
    cr_expect(has && strcmp(has, value) == 0, "%s: %s = %s, not %s", name, label, has ? has : "-",
              value);
}

Test(config, a_whole_site)
{
    struct federation *site = lab_site();
    cr_expect_str_eq(site->name, "example-lab");
    cr_expect_str_eq(site->timezone, "Europe/Berlin");
    cr_expect_str_eq(site->server.listen, "0.0.0.0:7410");
    cr_expect_str_eq(site->server.key.file, "/etc/tieline/tls.key");
    cr_expect_str_eq(site->tokens_file, "/etc/tieline/tokens");
    cr_expect_eq(site->keep.logs, INT64_C(14) * 24 * 3600 * 1000);
    cr_expect_eq(site->cluster_count, 4);
    cr_assert_eq(site->place_count, 8);
    static const char *const order[] = {"hpc/cpu",  "hpc/gpu",       "k8s/ci",    "k8s/gpu",
                                        "aws/spot", "aws/on-demand", "edge/lyon", "edge/paris"};
    for (size_t i = 0; i < site->place_count; i++) {
        cr_expect_str_eq(site->places[i]->name, order[i]);
        cr_expect_eq(site->places[i]->index, (int)i);
        cr_expect_eq(site->places[i]->cluster,
                     federation_cluster(site, site->places[i]->cluster->name));
    }
    cr_expect_str_eq(place(site, "hpc/gpu")->local_name, "gpu");
    federation_destroy(site);
}

Test(config, places_take_from_their_cluster)
{
    struct federation *site = lab_site();
    const struct place *gpu = place(site, "hpc/gpu"), *ci = place(site, "k8s/ci");
    cr_expect_eq(gpu->max_waiting, 10);
    cr_expect_eq(place(site, "hpc/cpu")->max_waiting, 40);
    cr_expect_eq(place(site, "aws/spot")->max_waiting, 20);
    cr_expect_eq(gpu->max_time, INT64_C(24) * 3600 * 1000);
    cr_expect_eq(gpu->power.pue, 1350);
    cr_expect_eq(gpu->power.cpu, 4000);
    cr_expect_eq(gpu->electricity.nano, 312000000);
    cr_expect_eq(ci->start_within, 5 * 60 * 1000);
    cr_expect_eq(place(site, "aws/spot")->kind, PLACE_SPOT);
    cr_expect_eq(place(site, "edge/lyon")->capacity.cpus, 8000);
    cr_expect_str_eq(place(site, "edge/lyon")->site, "lyon");
    cr_expect_str_eq(place(site, "edge/paris")->site, "paris");
    cr_expect_eq(place(site, "edge/paris")->electricity.nano, 208100000);
    has_label(site, "hpc/gpu", "room", "b3"); /* the nearest wins */
    has_label(site, "hpc/cpu", "room", "b2");
    has_label(site, "hpc/gpu", "country", "de");
    has_label(site, "edge/paris", "country", "fr");
    has_label(site, "edge/paris", "roof", "shared");
    cr_expect_null(labels_get(&place(site, "edge/lyon")->labels, "roof"));
    const struct node_shape *nodes = place(site, "aws/spot")->nodes.items;
    cr_expect_str_eq(nodes[1].gpu, "a10g");
    cr_expect_eq(nodes[1].at_most, 16);
    cr_expect_str_eq(nodes[0].price.currency, "USD");
    federation_destroy(site);
}

Test(config, gpus_are_sorted_and_merged)
{
    struct federation *site = lab_site();
    bool own = false;
    for (size_t i = 0; i < site->gpu_count; i++) {
        const struct gpu_model *gpu = &site->gpus[i];
        cr_expect(i == 0 || strcmp(site->gpus[i - 1].name, gpu->name) < 0, "%s", gpu->name);
        if (strcmp(gpu->name, "l40s") == 0) {
            cr_expect_eq(gpu->memory, INT64_C(48) << 30); /* as built in */
            cr_expect_eq(gpu->speed, 700);
        }
        own = own || (strcmp(gpu->name, "house-1") == 0 && gpu->speed == 1000);
    }
    cr_expect(own);
    federation_destroy(site);
}

Test(config, the_smallest_has_defaults)
{
    char *text = lab_text("config/smallest.yaml");
    struct federation *federation = NULL;
    struct error err;
    cr_assert_eq(config_federation_parse(text, "t", adapter_types, &federation, &err), 0, "%s",
                 err.text);
    free(text);
    cr_expect_str_eq(federation->server.listen, "127.0.0.1:7410");
    cr_expect_str_eq(federation->timezone, "UTC");
    cr_expect(name_is_valid(federation->name), "%s", federation->name);
    cr_expect_null(federation->policy_file);
    cr_expect(strncmp(federation->store, "sqlite:/", 8) == 0, "%s", federation->store);
    cr_assert_eq(federation->place_count, 1);
    const struct place *hpc = federation->places[0];
    cr_expect_str_eq(hpc->name, "hpc");
    cr_expect_str_eq(hpc->local_name, "hpc");
    cr_expect_eq(hpc->max_waiting, 20);
    cr_expect_eq(hpc->start_within, 10 * 60 * 1000);
    cr_expect_eq(hpc->cluster->probe, 15000);
    cr_expect_eq(hpc->cluster->requests.count, 10);
    cr_expect_eq(hpc->cluster->requests.per_ms, 1000);
    cr_expect_eq(hpc->cluster->mode, CLUSTER_USE);
    federation_destroy(federation);
}

Test(config, without_a_file)
{
    struct federation *federation = NULL;
    struct rules *rules = NULL;
    struct error err;
    cr_assert_eq(config_federation_load(NULL, adapter_types, &federation, &err), 0, "%s: %s",
                 err.file, err.text);
    cr_assert_eq(federation->place_count, 3);
    cr_expect_eq(place(federation, "cloud")->kind, PLACE_ON_DEMAND);
    cr_assert_eq(config_rules_load(federation->policy_file, federation, &rules, &err), 0, "%s: %s",
                 err.file, err.text);
    cr_expect_eq(rules->budgets.count, 1);
    cr_expect_eq(rules->bursts.count, 1);
    rules_destroy(rules);
    cr_expect_eq(config_rules_load("builtin:none", federation, &rules, &err), -1);
    cr_expect_eq(config_rules_load("/nowhere/policy.yaml", federation, &rules, &err), -1);
    cr_expect_str_eq(err.file, "/nowhere/policy.yaml");
    federation_destroy(federation);
}

/* ------------------------------------------------------------------------ an adapter's keys */

struct fake_cluster {
    char *door;
    int64_t rooms;
    bool has_rooms;
};
struct fake_place {
    char *queue, *level;
};
static const struct key fake_cluster_rows[] = {
    {.name = "door",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct fake_cluster, door)},
    {.name = "rooms",
     .type = KEY_INTEGER,
     .offset = offsetof(struct fake_cluster, rooms),
     .given = offsetof(struct fake_cluster, has_rooms) + 1},
    {.name = NULL},
};
static const struct key fake_place_rows[] = {
    {.name = "queue",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .offset = offsetof(struct fake_place, queue)},
    {.name = "level",
     .type = KEY_TEXT,
     .flags = KEY_PLACE,
     .offset = offsetof(struct fake_place, level),
     .standard = "low"},
    {.name = NULL},
};
static const struct adapter_type fake = {.name = "fake",
                                         .cluster_rows = fake_cluster_rows,
                                         .cluster_size = sizeof(struct fake_cluster),
                                         .place_rows = fake_place_rows,
                                         .place_size = sizeof(struct fake_place)};
static const struct adapter_type *const fakes[] = {&fake, NULL};

static int parse_fake(const char *text, struct federation **out, struct error *err)
{
    return config_federation_parse(text, "tieline.yaml", fakes, out, err);
}

Test(config, keys_of_an_adapter)
{
    struct federation *federation = NULL;
    struct error err;
    cr_assert_eq(
        parse_fake("clusters:\n"
                   "  one: {adapter: fake, door: a, rooms: 3, level: high, places: {x: {queue: q},"
                   " y: {queue: r, level: mid}}}\n"
                   "  two: {adapter: fake, door: b, queue: s}\n",
                   &federation, &err),
        0, "%s", err.text);
    const struct fake_cluster *one = federation->clusters[0].settings;
    const struct fake_cluster *two = federation->clusters[1].settings;
    cr_expect(strcmp(one->door, "a") == 0 && one->rooms == 3 && one->has_rooms);
    cr_expect(strcmp(two->door, "b") == 0 && !two->has_rooms);
    static const char *const queues[] = {"q", "r", "s"}, *const levels[] = {"high", "mid", "low"};
    for (size_t i = 0; i < 3; i++) {
        const struct fake_place *settings = federation->places[i]->settings;
        cr_expect_str_eq(settings->queue, queues[i]);
        cr_expect_str_eq(settings->level, levels[i]);
    }
    federation_destroy(federation);
}

Test(config, keys_of_an_adapter_that_are_wrong)
{
    static const struct {
        const char *text, *words;
    } wrong[] = {
        {"clusters: {one: {adapter: fake}}", "'door' is missing"},
        {"clusters: {one: {adapter: fake, door: a}}", "'queue' is missing"},
        {"clusters: {one: {adapter: fake, door: a, places: {x: {}}}}", "'queue' is missing"},
        {"clusters: {one: {adapter: fake, door: a, queue: q, places: {x: {queue: q}}}}",
         "unknown key 'queue'"},
        {"clusters: {one: {adapter: fake, door: a, places: {x: {queue: q, door: b}}}}",
         "unknown key 'door'"},
        {"clusters: {one: {adapter: fake, door: a, places: {x: {queue: q, mode: use}}}}",
         "unknown key 'mode'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct federation *federation = NULL;
        struct error err;
        cr_expect_eq(parse_fake(wrong[i].text, &federation, &err), -1, "%s", wrong[i].text);
        cr_expect(strstr(err.text, wrong[i].words), "%s: %s", wrong[i].text, err.text);
        cr_expect_gt(err.line, 0);
    }
}

/* ----------------------------------------------------------------------------------- refused */

static void refuse(const char *text, int line, int column, const char *words, const char *expected)
{
    struct error err;
    cr_assert_eq(lab_federation(text, &err), -1, "accepted: %s", text);
    cr_expect(strstr(err.text, words), "%s: '%s' does not say '%s'", text, err.text, words);
    cr_expect(strstr(err.expected, expected), "%s: '%s' does not say '%s'", text, err.expected,
              expected);
    cr_expect(err.line == line && err.column == column, "%s: at %d:%d, not %d:%d (%s)", text,
              err.line, err.column, line, column, err.text);
    cr_expect_str_eq(err.file, "tieline.yaml");
}

#define LOCAL "clusters: {a: {adapter: local}}\n"

Test(config, mistakes_say_where)
{
    refuse("", 1, 1, "says nothing", "clusters:");
    refuse("version: 1\n", 1, 1, "'clusters' is missing", "");
    refuse(LOCAL "version: 2\n", 2, 10, "2", "1");
    refuse("clusters: {a: {adapter: slrum}}", 1, 25, "no adapter 'slrum'", "did you mean 'slurm'?");
    refuse("clusters: {a: {}}", 1, 12, "does not say its adapter", "adapters: local, slurm");
    refuse("clusters: {a: {adapter: local, mod: use}}", 1, 32, "unknown key 'mod'", "'mode'");
    refuse("clusters: {slurm: {adapter: local}}", 1, 12, "a cluster called 'slurm'",
           "another name");
    refuse("clusters: {a/b: {adapter: local}}", 1, 12, "not the name of a cluster", "");
    refuse("clusters: {a: {adapter: local, places: {}}}", 1, 40, "'places' must be a map", "");
    refuse("clusters: {a: {adapter: local, places: {x: [1]}}}", 1, 44, "must be a map", "x: {}");
    refuse("clusters: {a: {adapter: local, max_waiting: 0}}", 1, 45, "0", "from 1");
    refuse("clusters: {a: {adapter: local, kind: cheap}}", 1, 38, "cannot be 'cheap'", "owned");
    refuse("clusters: {a: {adapter: local, start_within: 10}}", 1, 46, "without a unit", "10s");
    refuse(LOCAL "servr: {}\n", 2, 1, "unknown key 'servr'", "did you mean 'server'?");
}

Test(config, names_that_nothing_has)
{
    refuse("sites: {paris: {}}\nclusters: {a: {adapter: local, site: pariss}}", 2, 38,
           "no site 'pariss'", "did you mean 'paris'?");
    refuse(LOCAL "here: berlin\n", 2, 7, "no site 'berlin'", "there are no sites");
    refuse("electricity: {day: {source: table, price: 0.3 EUR/kWh}}\n"
           "clusters:\n  a: {adapter: local, power: {tariff: dya}}",
           3, 39, "no tariff 'dya'", "did you mean 'day'?");
    refuse("clusters: {a: {adapter: local, gpus: {a100-8: gpu}}}", 1, 39, "no GPU model 'a100-8'",
           "did you mean");
    refuse("clusters: {a: {adapter: local, power: {gpu: {zz9: 3 W}}}}", 1, 46, "no GPU model 'zz9'",
           "add it under `gpus`");
    refuse(
        "clusters: {a: {adapter: local, nodes: {n: {cpus: 1, memory: 1GiB, gpus: 1, gpu: zz9}}}}",
        1, 81, "no GPU model 'zz9'", "add it");
    refuse("clusters: {a: {adapter: local, nodes: {n: {cpus: 1, memory: 1GiB, gpus: 1}}}}", 1, 40,
           "of no model", "both");
    refuse(LOCAL "gpus: {mine: {speed: 2}}\n", 2, 8, "memory of 'mine' is not known", "24GiB");
}

Test(config, addresses)
{
    refuse(LOCAL "server: {listen: 7410}\n", 2, 18, "", "in quotes");
    refuse(LOCAL "server: {listen: \"127.0.0.1:99999\"}\n", 2, 18, "not an address", "127.0.0.1");
    refuse(LOCAL "server: {listen: \"example.org:80\"}\n", 2, 18, "not an address", "0.0.0.0");
    refuse(LOCAL "server: {listen: \"0.0.0.0:7410\"}\n", 2, 18, "there is no TLS", "tls:");
    refuse(LOCAL "server: {listen: \"[::]:7410\"}\n", 2, 18, "there is no TLS", "tls:");
    refuse(LOCAL "server: {url: ftp://x}\n", 2, 15, "web server", "https://");
    refuse(LOCAL "server: {tls: {certificate: c}}\n", 2, 15, "'key' is missing", "");
    refuse(LOCAL "server: {tls: {certificate: c, key: abc}}\n", 2, 37, "must not hold the secret",
           "write {file: PATH}");
    refuse(LOCAL "store: redis://localhost\n", 2, 8, "is not a store", "sqlite:");
    refuse(LOCAL "timezone: Europe/Berln\n", 2, 11, "Europe/Berln", "");
    refuse("clusters:\n"
           "  a: {adapter: slurm, connect: {url: \"http://h:1\", user: x}}\n"
           "  b: {adapter: slurm, connect: {user: x, url: \"http://h:1\"}}\n",
           3, 32, "'b' is the same member as 'a'", "line 2");
    struct error err;
    cr_expect_eq(lab_federation(LOCAL "server: {listen: \"[::1]:0\"}\n", &err), 0, "%s", err.text);
    cr_expect_eq(lab_federation(LOCAL "server: {listen: \"localhost:7410\"}\n", &err), 0, "%s",
                 err.text);
}

Test(config, labels_with_a_meaning)
{
    refuse("clusters: {a: {adapter: local, labels: {kind: x}}}", 1, 41, "cannot be called 'kind'",
           "");
    refuse("sites: {s: {labels: {places: x}}}\n" LOCAL, 1, 22, "cannot be called 'places'", "");
    refuse("clusters: {a: {adapter: local, places: {x: {labels: {adapter: x}}}}}", 1, 54,
           "cannot be called 'adapter'", "");
}

/* What is not built yet is refused like any unknown key, with its place. */
Test(config, not_yet_built)
{
    static const struct {
        const char *text, *key;
    } top[] = {
        {"files: {largest: 1MiB}", "files"},
        {"data: {}", "data"},
        {"secrets: {}", "secrets"},
        {"carbon: {}", "carbon"},
        {"notify: {}", "notify"},
        {"webhooks: {}", "webhooks"},
    };
    static const char *const inner[] = {
        "run_as",   "egress",  "bandwidth", "default_image", "images", "modules", "scratch",
        "internet", "options", "adopt",     "lease",         "wasm",   "join",    "logs"};
    for (size_t i = 0; i < sizeof top / sizeof *top; i++) {
        char *text = xasprintf(LOCAL "%s\n", top[i].text);
        char *words = xasprintf("unknown key '%s'", top[i].key);
        refuse(text, 2, 1, words, "");
        free(words);
        free(text);
    }
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        char *text = xasprintf("clusters:\n  a: {adapter: local, %s: 1}\n", inner[i]);
        char *words = xasprintf("unknown key '%s'", inner[i]);
        refuse(text, 2, 23, words, "");
        free(words);
        free(text);
    }
    refuse(LOCAL "auth: {issuers: {}}\n", 2, 8, "unknown key 'issuers'", "tokens");
    refuse("sites: {s: {rtt: {}}}\n" LOCAL, 1, 13, "unknown key 'rtt'", "labels");
    refuse("electricity: {e: {source: table, price: 1 EUR/kWh, add: 1 EUR/kWh}}\n" LOCAL, 1, 52,
           "unknown key 'add'", "");
    refuse("electricity: {e: {source: energy-charts, price: 1 EUR/kWh}}\n" LOCAL, 1, 27,
           "cannot be 'energy-charts'", "table");
    refuse(LOCAL "keep: {files: 1d}\n", 2, 8, "unknown key 'files'", "");
}

/* ------------------------------------------------------------------------------- job files */

static struct value *load_job(const char *text, const char *suffix, struct error *err)
{
    char path[] = "/tmp/tieline-job-XXXXXX.json";
    struct value *value = NULL;
    if (!*suffix) {
        path[sizeof path - sizeof ".json"] = '\0';
    }
    int file = mkstemps(path, (int)strlen(suffix));
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    int status = config_job_load(path, &value, err);
    cr_expect_eq(unlink(path), 0);
    return status == 0 ? value : NULL;
}

Test(config, job_files)
{
    struct error err;
    struct value *job = load_job("{\"name\": \"a\", \"command\": [\"true\"]}", "", &err);
    cr_assert_not_null(job, "%s", err.text);
    cr_expect_eq(value_get(job, "name")->style, VALUE_QUOTED);
    value_destroy(job);
    job = load_job("{name: a, command: [true]}", "", &err); /* YAML that begins like JSON */
    cr_assert_not_null(job, "%s", err.text);
    cr_expect_eq(value_get(job, "name")->line, 1);
    value_destroy(job);
    job = load_job("name: a\nrun: |\n  true\n", "", &err);
    cr_assert_not_null(job, "%s", err.text);
    value_destroy(job);
    cr_expect_null(load_job("{name: a}", ".json", &err));
    cr_expect_eq(err.code, ERROR_MALFORMED);
    cr_expect(strstr(err.file, ".json"), "%s", err.file);
    cr_expect_eq(config_job_load("/", &job, &err), -1);
    cr_expect(strstr(err.text, "folder"), "%s", err.text);
}

Test(config, docs_name_every_key)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    config_docs_print(adapter_types, out);
    (void)fclose(out);
    static const char *const words[] = {
        "| `server.listen` |",      "| `clusters` |",      "| `max_waiting` P |",
        "| `connect.url` |",        "| `time.limit` |",    "| `routes[].tiers[].fill` |",
        "| `budgets.NAME.limit` |", "| body | 33554432 |", "`adapter: local`"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        cr_expect(strstr(text, words[i]), "'%s' is not in the docs", words[i]);
    }
    free(text);
}

/* Wherever the broker was started: what the file names lies beside the file. */
Test(config, relative_paths_count_from_the_folder_of_the_file)
{
    char dir[] = "/tmp/tieline-config.XXXXXX";
    struct federation *federation;
    struct error err;
    cr_assert_not_null(mkdtemp(dir));
    char *path = xasprintf("%s/tieline.yaml", dir);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs(
        "policy: policies/main.yaml\n"
        "store: sqlite:./jobs.db\n"
        "state: /var/lib/elsewhere\n"
        "server: {listen: 127.0.0.1:0, tls: {certificate: tls/cert.pem, key: {file: tls/key.pem}}}\n"
        "clusters: {own: {adapter: local}}\n",
        file);
    (void)fclose(file);
    cr_assert_eq(config_federation_load(path, adapter_types, &federation, &err), 0, "%s", err.text);
    char *folder = realpath(dir, NULL);
    char *wanted[] = {xasprintf("%s/policies/main.yaml", folder),
                      xasprintf("sqlite:%s/jobs.db", folder), xasprintf("%s/tls/cert.pem", folder),
                      xasprintf("%s/tls/key.pem", folder)};
    const char *got[] = {federation->policy_file, federation->store, federation->server.certificate,
                         federation->server.key.file};
    for (size_t i = 0; i < 4; i++) {
        cr_expect_str_eq(got[i], wanted[i]);
        free(wanted[i]);
    }
    cr_expect_str_eq(federation->state_dir, "/var/lib/elsewhere");
    cr_expect_str_eq(federation->tokens_file, "/var/lib/elsewhere/tokens");
    federation_destroy(federation);
    (void)remove(path);
    (void)remove(dir);
    free(folder);
    free(path);
}
