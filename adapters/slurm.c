/* slurm.c - Slurm by way of slurmrestd: what may be configured, and the adapter's slots.
 *
 * Requests go through one line per cluster (slurm_line), which keeps the rate; each call is an op
 * (slurm_op) whose steps are in slurm_ops and slurm_probe. JSON is read in slurm_parse alone and made
 * in slurm_submit alone. */
#include "adapters/slurm.h"

#include "adapters/adapters.h"
#include "broker/core/alloc.h"

#include <stdlib.h>
#include <string.h>

static const char *const via_words[] = {"rest", NULL};

static int read_url(const struct value *value, void *field, const struct keys_context *context,
                    struct error *err)
{
    (void)context;
    static const char *const starts[] = {"http://", "https://", "unix:/"};
    for (size_t i = 0; value->kind == VALUE_SCALAR && i < sizeof starts / sizeof *starts; i++) {
        size_t length = strlen(starts[i]);
        if (!strncmp(value->text, starts[i], length) && value->text[length]) {
            char *url = xstrdup(value->text);
            size_t end = strlen(url);
            while (end && url[end - 1] == '/') { /* paths are added to it */
                url[--end] = '\0';
            }
            *(char **)field = url;
            return 0;
        }
    }
    value_error(value, err, ERROR_INVALID, "this is no address of a slurmrestd");
    return error_expect(err,
                        "http://host:6820, https://host or unix:/run/slurmrestd/slurmrestd.socket");
}

static int read_path(const struct value *value, void *field, const struct keys_context *context,
                     struct error *err)
{
    (void)context;
    if (value->kind == VALUE_SCALAR && value->text[0] == '/' && !strpbrk(value->text, "\n\r")) {
        *(char **)field = xstrdup(value->text);
        return 0;
    }
    value_error(value, err, ERROR_INVALID, "this is no absolute path");
    return error_expect(err, "a path on the cluster's nodes, beginning with /");
}

static void free_text(void *field)
{
    free(*(char **)field);
}

#define CONNECT(field) offsetof(struct slurm_connect, field)
static const struct key connect_rows[] = {
    {.name = "via",
     .type = KEY_ENUM,
     .offset = CONNECT(via),
     .standard = "rest",
     .words = via_words,
     .help = "How the cluster is spoken to: `rest` is slurmrestd."},
    {.name = "url",
     .type = KEY_CUSTOM,
     .flags = KEY_REQUIRED,
     .offset = CONNECT(url),
     .read = read_url,
     .free = free_text,
     .type_words = "URL or unix:/path",
     .help =
         "Where slurmrestd listens; its API version is found out (v0.0.38, v0.0.40 to v0.0.45)."},
    {.name = "user",
     .type = KEY_TEXT,
     .offset = CONNECT(user),
     .help = "Whose name is sent with the token; left out, it is the token's own."},
    {.name = "token",
     .type = KEY_SECRET,
     .offset = CONNECT(token),
     .help = "A JWT of `scontrol token`; read again when its file changes or when it was refused."},
    {.name = NULL},
};

#define CLUSTER(field) offsetof(struct slurm_settings, field)
static const struct key cluster_rows[] = {
    {.name = "connect",
     .type = KEY_SECTION,
     .flags = KEY_REQUIRED,
     .offset = CLUSTER(connect),
     .rows = connect_rows,
     .help = "How to reach the cluster."},
    {.name = "shell",
     .type = KEY_CUSTOM,
     .offset = CLUSTER(shell),
     .standard = "/bin/bash",
     .read = read_path,
     .free = free_text,
     .type_words = "absolute path",
     .help = "Runs the job's text: a POSIX shell there, with options such as `/bin/bash -l`."},
    {.name = "workdir",
     .type = KEY_CUSTOM,
     .offset = CLUSTER(workdir),
     .standard = "/tmp",
     .read = read_path,
     .free = free_text,
     .type_words = "absolute path",
     .help = "The directory in which jobs start; it must exist on every node."},
    {.name = "min_job_age",
     .type = KEY_DURATION,
     .offset = CLUSTER(min_job_age),
     .standard = "300s",
     .help = "MinJobAge of slurm.conf: for so long the cluster remembers a job that has ended."},
    {.name = NULL},
};

#define PLACE(field) offsetof(struct slurm_place_settings, field)
static const struct key place_rows[] = {
    {.name = "partition",
     .type = KEY_TEXT,
     .offset = PLACE(partition),
     .help =
         "The partition; left out, it is called like the place, or is the cluster's default one "
         "when no places are listed."},
    {.name = "account",
     .type = KEY_TEXT,
     .offset = PLACE(account),
     .help = "The account that jobs are charged to."},
    {.name = "qos", .type = KEY_TEXT, .offset = PLACE(qos), .help = "The quality of service."},
    {.name = NULL},
};

static int open_adapter(const struct adapter_env *env, const struct cluster *cluster,
                        struct adapter **out, struct error *err)
{
    (void)err;
    struct slurm *slurm = xcalloc(1, sizeof *slurm);
    const struct slurm_settings *settings = cluster->settings;
    slurm->base = (struct adapter){.type = &adapter_slurm, .cluster = cluster};
    slurm->env = env;
    slurm->settings = settings;
    slurm->line_config = (struct slurm_line_config){
        .env = env,
        .requests = cluster->requests,
        .url = settings->connect.url,
        .user = settings->connect.user,
        .token = &settings->connect.token,
    };
    slurm->line = slurm_line_create(&slurm->line_config);
    slurm->tag = slurm_tag(env->federation);
    slurm->counts = xcalloc(cluster->place_count, sizeof *slurm->counts);
    *out = &slurm->base;
    return 0;
}

static void close_adapter(struct adapter *adapter)
{
    struct slurm *slurm = (struct slurm *)adapter;
    if (!slurm) {
        return;
    }
    slurm_line_destroy(slurm->line); /* from here on nothing answers */
    slurm_discovery_destroy(slurm->discovery);
    while (slurm->ops) {
        error_set(&slurm->ops->call->err, ERROR_UNAVAILABLE, "the broker stops");
        slurm_op_finish(slurm->ops, ADAPTER_UNKNOWN);
    }
    free(slurm->default_partition);
    free(slurm->counts);
    free(slurm->tag);
    free(slurm);
}

static int render(const struct adapter_env *env, const struct submit *submit, char **text,
                  struct error *err)
{
    (void)err;
    const struct slurm_settings *settings = submit->ref.place->cluster->settings;
    struct slurm_batch *batch =
        slurm_batch_create(env->federation, settings->shell, settings->workdir, submit);
    *text = slurm_batch_text(batch, settings->connect.user);
    slurm_batch_destroy(batch);
    return 0;
}

const struct adapter_type adapter_slurm = {
    .name = "slurm",
    .summary = "A Slurm cluster with slurmrestd, 22.05 and from 23.11 on: a place is a "
               "partition, and no output comes back, only how a job ended.",
    .cluster_rows = cluster_rows,
    .cluster_size = sizeof(struct slurm_settings),
    .place_rows = place_rows,
    .place_size = sizeof(struct slurm_place_settings),
    .open = open_adapter,
    .close = close_adapter,
    .probe = slurm_probe,
    .submit = slurm_submit,
    .find = slurm_find,
    .poll = slurm_poll,
    .cancel = slurm_cancel,
    .render = render,
};
