/* slurm_parse.c - from the text of an answer to struct slurm_answer. Pure: no state, any thread. */
#include "adapters/slurm_parse.h"

#include "adapters/slurm_json.h"
#include "adapters/slurm_state.h"
#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_INVALID_CREDENTIAL = 6000,
    NUMBER_EXPIRED_CREDENTIAL = 6001,
    NUMBER_AUTH = 1007,
    NUMBER_ZERO_BYTES = 5005
};

static void words_of(const json_t *json, struct slurm_words *words)
{
    const json_t *item;
    size_t i;
    if (json_is_string(json) && words->count < SLURM_WORDS_MAX) {
        words->items[words->count++] = json_string_value(json);
    }
    json_array_foreach(json, i, item)
    {
        if (json_is_string(item) && words->count < SLURM_WORDS_MAX) {
            words->items[words->count++] = json_string_value(item);
        }
    }
}

static int64_t ms_of(const json_t *json)
{
    int64_t seconds = slurm_number(json, 0);
    return seconds > 0 && seconds < INT64_MAX / 1000 ? seconds * 1000 : 0;
}

static int int_of(const json_t *json)
{
    int64_t value = slurm_number(json, 0);
    return value > 0 && value <= INT32_MAX ? (int)value : 0; /* -127 means: none */
}

/* ---- jobs */

static void read_exit(const json_t *json, struct slurm_job *job)
{
    if (!json_is_object(json) || json_object_get(json, "number")) {
        slurm_state_set_wait(job, slurm_number(json, 0));
        return;
    }
    const json_t *signal = json_object_get(json, "signal");
    const json_t *id = json_object_get(signal, "id");
    job->signal = int_of(id ? id : json_object_get(signal, "signal_id"));
    job->exit_code = job->signal ? 0 : int_of(json_object_get(json, "return_code"));
}

/* The fields whose names the controller and accounting share, and those that only one has. */
static void read_job(const json_t *json, struct slurm_job *job)
{
    const json_t *state = json_object_get(json, "state"); /* accounting's nesting */
    const json_t *time = json_object_get(json, "time");
    const json_t *user = json_object_get(json, "user_name");
    const json_t *comment = json_object_get(json, "comment");
    job->id = slurm_number(json_object_get(json, "job_id"), 0);
    job->name = xstrdup(slurm_text(json_object_get(json, "name")));
    job->user = xstrdup(slurm_text(user ? user : json_object_get(json, "user")));
    job->partition = xstrdup(slurm_text(json_object_get(json, "partition")));
    job->comment =
        xstrdup(slurm_text(json_is_object(comment) ? json_object_get(comment, "job") : comment));
    job->cpus = slurm_number(json_object_get(json, "cpus"), 0);
    job->submit_ms =
        ms_of(time ? json_object_get(time, "submission") : json_object_get(json, "submit_time"));
    job->start_ms =
        ms_of(time ? json_object_get(time, "start") : json_object_get(json, "start_time"));
    job->end_ms = ms_of(time ? json_object_get(time, "end") : json_object_get(json, "end_time"));
    const char *reason = slurm_text(state ? json_object_get(state, "reason")
                                          : json_object_get(json, "state_reason"));
    const char *more = slurm_text(json_object_get(json, "state_description"));
    copy_text(job->reason, sizeof job->reason, strcmp(reason, "None") != 0 ? reason : "");
    if (*more) {
        (void)snprintf(job->reason, sizeof job->reason, "%s: %s", reason, more);
    }
    copy_text(job->by, sizeof job->by, slurm_text(json_object_get(json, "kill_request_user")));
    read_exit(json_object_get(json, "exit_code"), job);
    struct slurm_words words = {.count = 0};
    words_of(state ? json_object_get(state, "current") : json_object_get(json, "job_state"),
             &words);
    slurm_state_judge(&words, job);
}

static void read_jobs(const json_t *list, struct slurm_answer *answer)
{
    const json_t *item;
    size_t i;
    answer->has_jobs = json_is_array(list);
    if (!answer->has_jobs) {
        return;
    }
    answer->jobs = xcalloc(json_array_size(list), sizeof *answer->jobs);
    json_array_foreach(list, i, item)
    {
        read_job(item, &answer->jobs[answer->job_count++]);
    }
}

/* ---- nodes and partitions */

static void read_names(const json_t *json, struct texts *out)
{
    const json_t *item;
    size_t i;
    json_array_foreach(json, i, item)
    {
        texts_add(out, slurm_text(item));
    }
    const char *text = json_string_value(json); /* "a,b" */
    while (text && *text) {
        size_t length = strcspn(text, ",");
        char *name = xstrndup(text, length);
        texts_add(out, name);
        free(name);
        text += length + (text[length] == ',');
    }
}

static int64_t count_of(const json_t *json, const char *key)
{
    int64_t value = slurm_number(json_object_get(json, key), 0);
    return value > 0 && value < INT32_MAX ? value : 0;
}

static void read_node(const json_t *json, struct slurm_node *node)
{
    struct slurm_words words = {.count = 0};
    words_of(json_object_get(json, "state"), &words);
    words_of(json_object_get(json, "state_flags"), &words);
    node->usable = slurm_node_is_usable(&words);
    node->name = xstrdup(slurm_text(json_object_get(json, "name")));
    node->gres = xstrdup(slurm_text(json_object_get(json, "gres")));
    node->gres_used = xstrdup(slurm_text(json_object_get(json, "gres_used")));
    int64_t effective = count_of(json, "effective_cpus"); /* without those kept for the system */
    node->cpus = effective ? effective : count_of(json, "cpus");
    node->cpus_used = count_of(json, "alloc_cpus");
    node->memory = count_of(json, "real_memory");
    node->memory_used = count_of(json, "alloc_memory");
    read_names(json_object_get(json, "partitions"), &node->partitions);
}

static void read_nodes(const json_t *list, struct slurm_answer *answer)
{
    const json_t *item;
    size_t i;
    answer->has_nodes = json_is_array(list);
    if (!answer->has_nodes) {
        return;
    }
    answer->nodes = xcalloc(json_array_size(list), sizeof *answer->nodes);
    json_array_foreach(list, i, item)
    {
        read_node(item, &answer->nodes[answer->node_count++]);
    }
}

static bool list_has(const json_t *list, const char *word)
{
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item)
    {
        if (!strcasecmp(slurm_text(item), word)) {
            return true;
        }
    }
    return false;
}

static void read_partition(const json_t *json, struct slurm_partition *partition)
{
    enum { MINUTE_MS = 60000 };
    const json_t *nested = slurm_at(json, "partition", "state", NULL);
    const json_t *state = nested ? nested : json_object_get(json, "state");
    const json_t *time = slurm_at(json, "maximums", "time", NULL);
    int64_t minutes = slurm_number(time ? time : json_object_get(json, "max_time_limit"), 0);
    partition->name = xstrdup(slurm_text(json_object_get(json, "name")));
    copy_text(partition->state, sizeof partition->state, slurm_text(state));
    partition->up = !strcasecmp(partition->state, "UP");
    partition->is_default = list_has(json_object_get(json, "flags"), "DEFAULT");
    partition->max_ms = minutes > 0 && minutes < INT32_MAX ? minutes * MINUTE_MS : 0;
}

static void read_partitions(const json_t *list, struct slurm_answer *answer)
{
    const json_t *item;
    size_t i;
    answer->has_partitions = json_is_array(list);
    if (!answer->has_partitions) {
        return;
    }
    answer->partitions = xcalloc(json_array_size(list), sizeof *answer->partitions);
    json_array_foreach(list, i, item)
    {
        read_partition(item, &answer->partitions[answer->partition_count++]);
    }
}

/* ---- the whole */

/* The first entry says best what is wrong, a later one may have the number: -1 means nothing. */
static void read_errors(const json_t *list, struct slurm_answer *answer)
{
    static const char *const keys[] = {"error_number", "error_code", "errno"};
    struct slurm_fault *fault = &answer->fault;
    const json_t *item;
    size_t i;
    answer->has_errors = json_array_size(list) > 0;
    json_array_foreach(list, i, item)
    {
        for (size_t k = 0; k < sizeof keys / sizeof *keys && !fault->number; k++) {
            fault->number = int_of(json_object_get(item, keys[k]));
        }
        const char *error = slurm_text(json_object_get(item, "error"));
        const char *description = slurm_text(json_object_get(item, "description"));
        if (!fault->text[0]) {
            bool both = *description && *error && strcmp(error, "Unspecified error") != 0 &&
                        !strstr(description, error);
            (void)snprintf(fault->text, sizeof fault->text, "%s%s%s",
                           *description ? description : error, both ? ": " : "", both ? error : "");
        }
    }
}

/* The keys of an OpenAPI document: "/slurm/v0.0.40/jobs/". */
static void read_paths(const json_t *paths, struct slurm_answer *answer)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)paths, key, value)
    {
        bool is_accounting = !strncmp(key, "/slurmdb/v0.0.", 14);
        if (!is_accounting && strncmp(key, "/slurm/v0.0.", 12) != 0) {
            continue;
        }
        unsigned long version = strtoul(key + (is_accounting ? 14 : 12), NULL, 10);
        if (version < 64) {
            *(is_accounting ? &answer->accounting : &answer->versions) |= UINT64_C(1) << version;
        }
    }
}

static void read_root(const json_t *root, struct slurm_answer *answer)
{
    const json_t *release = slurm_at(root, "meta", "slurm", "release", NULL);
    release = release ? release : slurm_at(root, "meta", "Slurm", "release", NULL);
    copy_text(answer->release, sizeof answer->release, slurm_text(release));
    read_errors(json_object_get(root, "errors"), answer);
    answer->job_id = slurm_number(json_object_get(root, "job_id"), 0);
    read_paths(json_object_get(root, "paths"), answer);
    read_jobs(json_object_get(root, "jobs"), answer);
    read_nodes(json_object_get(root, "nodes"), answer);
    read_partitions(json_object_get(root, "partitions"), answer);
    const json_t *update = json_object_get(root, "last_update");
    answer->is_unchanged = answer->has_jobs && !answer->job_count && update &&
                           slurm_number(update, 0) <= 0 &&
                           json_array_size(json_object_get(root, "warnings")) > 0;
}

/* The beginning of a text that is no JSON, in one line of printable characters. */
static void read_plain(const char *text, size_t length, struct slurm_fault *fault)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof fault->text / 2; i++) {
        unsigned char c = (unsigned char)text[i];
        bool printable = c > ' ' && c < 127;
        if (printable || (used && fault->text[used - 1] != ' ')) {
            fault->text[used++] = printable ? (char)c : ' ';
        }
    }
    fault->text[used] = '\0';
}

struct slurm_answer *slurm_parse(long status, const char *content_type, const char *text,
                                 size_t length)
{
    struct slurm_answer *answer = xcalloc(1, sizeof *answer);
    answer->status = status;
    json_error_t ignored;
    json_t *root = json_loadb(text, length, 0, &ignored);
    answer->is_json = json_is_object(root);
    if (answer->is_json) {
        read_root(root, answer);
    } else {
        answer->is_html = strcasestr(content_type, "html") || memchr(text, '<', length);
        read_plain(text, length, &answer->fault);
    }
    json_decref(root);
    return answer;
}

bool slurm_answer_is_unauthorized(const struct slurm_answer *answer)
{
    int number = answer->fault.number;
    return answer->status == 401 || answer->status == 511 || number == NUMBER_AUTH ||
           number == NUMBER_INVALID_CREDENTIAL || number == NUMBER_EXPIRED_CREDENTIAL;
}

bool slurm_answer_may_be_unauthorized(const struct slurm_answer *answer)
{
    if (slurm_answer_is_unauthorized(answer)) {
        return true;
    }
    bool says_nothing = answer->fault.number == 0 || answer->fault.number == NUMBER_ZERO_BYTES;
    return answer->status == 500 && answer->has_errors && says_nothing;
}

void slurm_answer_destroy(struct slurm_answer *answer)
{
    if (!answer) {
        return;
    }
    for (size_t i = 0; i < answer->job_count; i++) {
        free(answer->jobs[i].name);
        free(answer->jobs[i].comment);
        free(answer->jobs[i].user);
        free(answer->jobs[i].partition);
    }
    for (size_t i = 0; i < answer->node_count; i++) {
        free(answer->nodes[i].name);
        free(answer->nodes[i].gres);
        free(answer->nodes[i].gres_used);
        texts_fini(&answer->nodes[i].partitions);
    }
    for (size_t i = 0; i < answer->partition_count; i++) {
        free(answer->partitions[i].name);
    }
    free(answer->jobs);
    free(answer->nodes);
    free(answer->partitions);
    free(answer);
}
