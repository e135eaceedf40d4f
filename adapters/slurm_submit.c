/* slurm_submit.c - what one attempt is to Slurm.
 *
 * slurmrestd gives a job nothing of an environment: PATH and SHELL are sent along, and the script's first
 * lines set HOME, USER and LOGNAME for the user that the node runs it as. No output comes back over REST,
 * so it goes to /dev/null rather than into a file that nobody would delete.
 *
 * The body differs by version: v0.0.38 takes plain numbers and an environment that is a map, and reads
 * `requeue: false` as a wish to be requeued: there the word is `no_requeue`. */
#include "adapters/slurm_submit.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 1024 * 1024, MIB = 1024 * 1024, MINUTE_MS = 60000 };

static const char preamble[] = "# Slurm's REST service gives a job no environment of its own.\n"
                               "USER=\"${USER:-$(id -un)}\"\n"
                               "LOGNAME=\"${LOGNAME:-$USER}\"\n"
                               "[ -n \"${HOME:-}\" ] || eval \"HOME=~$(id -un)\"\n"
                               "export USER LOGNAME HOME\n";

static int64_t round_up(int64_t value, int64_t unit)
{
    return value > 0 ? (value - 1) / unit + 1 : 0;
}

const char *slurm_partition_of(const struct place *place)
{
    const struct slurm_place_settings *settings = place->settings;
    if (settings && settings->partition) {
        return settings->partition;
    }
    bool is_listed = strcmp(place->name, place->cluster->name) != 0;
    return is_listed ? place->local_name : NULL;
}

char *slurm_tag(const struct federation *federation)
{
    return xasprintf("tieline:%s:", federation->name);
}

/* ---- GPUs */

static const char *native_gpu(const struct place *place, const char *name)
{
    const struct gpu_name *names = place->gpus.items;
    for (size_t i = 0; i < place->gpus.count; i++) {
        if (!name || !strcmp(names[i].name, name)) {
            return names[i].native;
        }
    }
    return NULL;
}

/* The first model of the job that the place has a name for; without a wish, any GPU. */
static char *gres_of(const struct place *place, const struct needs *needs)
{
    enum { THOUSAND = 1000 };
    long long count = round_up(needs->gpus, THOUSAND);
    if (!count) {
        return NULL;
    }
    for (size_t i = 0; i < needs->gpu.count; i++) {
        const char *native = native_gpu(place, needs->gpu.items[i]);
        if (native) {
            return xasprintf("%s:%lld", native, count);
        }
    }
    if (needs->gpu.count) {
        return xasprintf("gpu:%s:%lld", needs->gpu.items[0], count);
    }
    return xasprintf("gpu:%lld", count);
}

/* ---- script */

static void add_quoted(struct strbuf *out, const char *word)
{
    strbuf_puts(out, "'");
    for (const char *at = word; *at;) {
        size_t plain = strcspn(at, "'");
        strbuf_add(out, at, plain);
        at += plain;
        if (*at) {
            strbuf_puts(out, "'\\''");
            at++;
        }
    }
    strbuf_puts(out, "'");
}

static char *script_of(const char *shell, const struct spec *spec)
{
    struct strbuf out;
    strbuf_init(&out, SCRIPT_MAX);
    strbuf_printf(&out, "#!%s\n%s", shell, preamble);
    if (spec->run) {
        strbuf_puts(&out, spec->run);
        size_t length = strlen(spec->run);
        strbuf_puts(&out, length && spec->run[length - 1] == '\n' ? "" : "\n");
    } else {
        strbuf_puts(&out, "exec"); /* dash knows no "--" here */
        for (size_t i = 0; i < spec->command.count; i++) {
            strbuf_puts(&out, " ");
            add_quoted(&out, spec->command.items[i]);
        }
        strbuf_puts(&out, "\n");
    }
    return strbuf_take(&out);
}

/* ---- the body */

static json_t *number_json(int64_t value, bool is_struct)
{
    return is_struct
               ? json_pack("{s:b, s:b, s:I}", "set", 1, "infinite", 0, "number", (json_int_t)value)
               : json_integer(value);
}

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text) {
        (void)json_object_set_new(object, key, json_string(text));
    }
}

static json_t *env_json(const struct jobenv *env, bool is_list)
{
    json_t *json = is_list ? json_array() : json_object();
    for (size_t i = 0; i < env->count; i++) {
        const struct jobenv_pair *entry = &env->items[i];
        if (is_list) {
            (void)json_array_append_new(json, json_sprintf("%s=%s", entry->name, entry->value));
        } else {
            set_text(json, entry->name, entry->value);
        }
    }
    return json;
}

static json_t *job_json(const struct slurm_batch *batch, bool is_new)
{
    json_t *job = json_object();
    set_text(job, "name", batch->name);
    set_text(job, "comment", batch->comment);
    set_text(job, "account", batch->account);
    set_text(job, "partition", batch->partition);
    set_text(job, "qos", batch->qos);
    (void)json_object_set_new(job, "nodes", is_new ? json_string("1") : json_pack("[i,i]", 1, 1));
    (void)json_object_set_new(job, "tasks_per_node", json_integer(1));
    (void)json_object_set_new(job, "cpus_per_task", json_integer(batch->cpus));
    if (batch->memory_mib) {
        (void)json_object_set_new(job, "memory_per_node", number_json(batch->memory_mib, is_new));
    }
    (void)json_object_set_new(job, "time_limit", number_json(batch->minutes, is_new));
    if (batch->gres && is_new) {
        (void)json_object_set_new(job, "tres_per_node", json_sprintf("gres/%s", batch->gres));
    } else {
        set_text(job, "gres", batch->gres);
    }
    (void)json_object_set_new(job, is_new ? "requeue" : "no_requeue", json_boolean(!is_new));
    set_text(job, "current_working_directory", batch->workdir);
    set_text(job, "standard_output", "/dev/null");
    (void)json_object_set_new(job, "environment", env_json(&batch->env, is_new));
    return job;
}

char *slurm_batch_body(const struct slurm_batch *batch, int version)
{
    enum { FIRST_GENERATED = 39 }; /* from here on all versions come of one parser */
    bool is_new = version >= FIRST_GENERATED;
    json_t *root = json_object();
    json_t *job = job_json(batch, is_new);
    set_text(is_new ? job : root, "script", batch->script);
    (void)json_object_set_new(root, "job", job);
    char *text = json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!text) {
        abort();
    }
    return text;
}

char *slurm_batch_text(const struct slurm_batch *batch, const char *user)
{
    struct strbuf out;
    strbuf_init(&out, SCRIPT_MAX);
    size_t first = strcspn(batch->script, "\n");
    strbuf_add(&out, batch->script, first);
    strbuf_printf(&out, "\n#SBATCH --job-name=%s\n#SBATCH --comment=%s\n", batch->name,
                  batch->comment);
    const char *const names[] = {"account", "partition", "qos", "gres"};
    const char *const values[] = {batch->account, batch->partition, batch->qos, batch->gres};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (values[i]) {
            strbuf_printf(&out, "#SBATCH --%s=%s\n", names[i], values[i]);
        }
    }
    strbuf_printf(&out, "#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=%lld",
                  (long long)batch->cpus);
    if (batch->memory_mib) {
        strbuf_printf(&out, " --mem=%lldM", (long long)batch->memory_mib);
    }
    strbuf_printf(&out, "\n#SBATCH --time=%02lld:%02lld:00 --no-requeue\n",
                  (long long)(batch->minutes / 60), (long long)(batch->minutes % 60));
    strbuf_printf(&out, "#SBATCH --chdir=%s\n#SBATCH --output=/dev/null\n", batch->workdir);
    strbuf_printf(&out, "# sent as %s; environment: %zu variables\n",
                  user ? user : "the token's user", batch->env.count);
    strbuf_puts(&out, batch->script + first + (batch->script[first] == '\n'));
    return strbuf_take(&out);
}

struct slurm_batch *slurm_batch_create(const struct federation *federation, const char *shell,
                                       const char *workdir, const struct submit *submit)
{
    enum { THOUSAND = 1000 };
    const struct spec *spec = submit->spec;
    const struct slurm_place_settings *settings = submit->ref.place->settings;
    struct slurm_batch *batch = xcalloc(1, sizeof *batch);
    char *tag = slurm_tag(federation);
    batch->name = xstrdup(submit->ref.name);
    batch->comment = xasprintf("%s%s:%d", tag, submit->ref.job_id, submit->ref.attempt);
    batch->partition = xstrdup(slurm_partition_of(submit->ref.place));
    batch->account = settings ? settings->account : NULL;
    batch->qos = settings ? settings->qos : NULL;
    batch->workdir = workdir;
    batch->gres = gres_of(submit->ref.place, &spec->needs);
    batch->cpus = spec->needs.cpus > 0 ? round_up(spec->needs.cpus, THOUSAND) : 1;
    batch->memory_mib = round_up(spec->needs.memory, MIB);
    batch->minutes = spec->time.limit > 0 ? round_up(spec->time.limit, MINUTE_MS) : 1;
    batch->script = script_of(shell, spec);
    jobenv_build(&batch->env, submit);
    char *program = xstrndup(shell, strcspn(shell, " "));
    jobenv_default(&batch->env, "SHELL", program);
    jobenv_default(&batch->env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    free(program);
    free(tag);
    return batch;
}

void slurm_batch_destroy(struct slurm_batch *batch)
{
    if (!batch) {
        return;
    }
    jobenv_fini(&batch->env);
    free(batch->name);
    free(batch->comment);
    free(batch->script);
    free(batch->partition);
    free(batch->gres);
    free(batch);
}
