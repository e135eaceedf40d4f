#include "broker/sim/sim.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/map.h"
#include "broker/core/strbuf.h"
#include "broker/core/value.h"
#include "broker/sim/adapter_sim.h"
#include "broker/sim/store_disk.h"
#include "config/config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 10000, STEPS_PER_ANSWER = 1000000, SETTLE_MS = 500 };
#define MONDAY_MORNING INT64_C(1773036000000) /* 2026-03-09 06:00 UTC */
#define EVENTS_MAX ((size_t)1024 * 1024 * 1024)

struct sent { /* one job as its client sees it */
    char *text;
    char id[ID_SIZE]; /* "" : not accepted */
    bool refused;
};

struct request { /* one request of a client; sent again until it is answered */
    struct sim *sim;
    struct request *next;
    char *owner, *key;
    size_t first, count; /* of sim->sent */
    bool under_way, answered;
};

struct started { /* how often the members started a job */
    char id[ID_SIZE];
    int count;
    struct started *next;
};

struct sim {
    struct sim_options options;
    char *policy;
    struct clock *clock;
    struct disk *disk;
    struct store *store;
    struct federation *federation;
    struct sim_member **members; /* by cluster */
    struct broker *broker;       /* NULL: between two lives */
    struct sent *sent;
    size_t sent_count, sent_room, refused;
    char why[ERROR_TEXT_MAX];
    struct request *first, **end;
    int requests;
    struct map starts;
    struct started *started;
};

static const struct caller operator_caller = {"operator", "", ROLE_ADMIN};

static void no_log(const char *level, const char *text)
{
    (void)level, (void)text;
}

static void no_cluster_log(const char *level, const char *cluster, const char *text)
{
    (void)level, (void)cluster, (void)text;
}

static void started_cb(void *arg, const char *job_id, int attempt)
{
    struct sim *sim = arg;
    struct started *started = map_get(&sim->starts, job_id);
    (void)attempt;
    if (!started) {
        started = xcalloc(1, sizeof *started);
        copy_text(started->id, sizeof started->id, job_id);
        started->next = sim->started;
        sim->started = started;
        map_put(&sim->starts, started->id, started);
    }
    started->count++;
}

/* ------------------------------------------------------------------------------------------ clients */

static void take_answer(struct sim *sim, struct sent *sent, const json_t *answer)
{
    const char *id = json_string_value(json_object_get(answer, "id"));
    const json_t *problem = json_object_get(answer, "problem");
    if (id) {
        assert(!sent->id[0] || strcmp(sent->id, id) == 0);
        copy_text(sent->id, sizeof sent->id, id);
    } else if (problem && !json_is_true(json_object_get(problem, "retry")) && !sent->refused) {
        sent->refused = true;
        if (sim->refused++ == 0) {
            copy_text(sim->why, sizeof sim->why,
                      json_string_value(json_object_get(problem, "detail")));
        }
    }
}

static void answered_cb(void *arg, json_t *body, const struct error *err)
{
    struct request *request = arg;
    struct sim *sim = request->sim;
    request->under_way = false;
    if (err->code) {
        return; /* sent again */
    }
    request->answered = true;
    for (size_t i = 0; i < request->count; i++) {
        struct sent *sent = &sim->sent[request->first + i];
        take_answer(sim, sent, json_array_get(json_object_get(body, "jobs"), i));
        request->answered = request->answered && (sent->id[0] || sent->refused);
    }
}

static void request_send(struct request *request)
{
    struct sim *sim = request->sim;
    struct caller caller = {request->owner, "", ROLE_SUBMIT};
    struct submission submission = {.items = xcalloc(request->count, sizeof(struct value *)),
                                    .count = request->count,
                                    .bulk = true,
                                    .key = request->key,
                                    .fingerprint = request->key};
    for (size_t i = 0; i < request->count; i++) {
        const char *text = sim->sent[request->first + i].text;
        struct error err;
        if (value_from_json(text, strlen(text), &submission.items[i], &err) < 0) {
            submission.items[i] = value_create(VALUE_NULL); /* refused by the broker */
        }
    }
    request->under_way = true;
    broker_submit(sim->broker, &caller, &submission, answered_cb, request);
}

void sim_submit(struct sim *sim, const char *owner, const char *const *jobs, size_t count)
{
    struct request *request = xcalloc(1, sizeof *request);
    request->sim = sim;
    request->owner = xstrdup(owner);
    request->key = xasprintf("request-%d", ++sim->requests);
    request->first = sim->sent_count;
    request->count = count;
    while (sim->sent_count + count > sim->sent_room) {
        sim->sent_room = sim->sent_room ? sim->sent_room * 2 : 64;
        sim->sent = xrealloc(sim->sent, sim->sent_room, sizeof *sim->sent);
    }
    for (size_t i = 0; i < count; i++) {
        sim->sent[sim->sent_count++] = (struct sent){.text = xstrdup(jobs[i])};
    }
    *sim->end = request;
    sim->end = &request->next;
    request_send(request);
}

/* Whether all is answered; what was not is sent again. */
static bool clients_are_content(struct sim *sim)
{
    bool content = true;
    for (struct request *request = sim->first; request; request = request->next) {
        content = content && request->answered;
        if (!request->answered && !request->under_way) {
            request_send(request);
        }
    }
    return content;
}

const char *sim_job_id(const struct sim *sim, size_t n)
{
    return sim->sent[n].id;
}

size_t sim_sent(const struct sim *sim)
{
    return sim->sent_count;
}

size_t sim_refused(const struct sim *sim, char *why, size_t size)
{
    copy_text(why, size, sim->why);
    return sim->refused;
}

/* ---------------------------------------------------------------------------------------- questions */

struct answer {
    bool given;
    json_t *body;
    struct error err;
};

static void answer_cb(void *arg, json_t *body, const struct error *err)
{
    struct answer *answer = arg;
    answer->given = true;
    answer->body = json_incref(body);
    answer->err = *err;
}

static json_t *await(struct sim *sim, struct answer *answer, struct error *err)
{
    for (int i = 0; !answer->given && i < STEPS_PER_ANSWER; i++) {
        (void)clock_sim_step(sim->clock);
    }
    assert(answer->given);
    if (answer->err.code) {
        *err = answer->err;
        return NULL;
    }
    return answer->body;
}

json_t *sim_job(struct sim *sim, const char *id, struct error *err)
{
    struct answer answer = {0};
    broker_job(sim->broker, &operator_caller, id, NULL, 0, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_explain(struct sim *sim, const char *id, struct error *err)
{
    struct answer answer = {0};
    broker_explain(sim->broker, &operator_caller, id, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_explain_text(struct sim *sim, const char *job, struct error *err)
{
    struct answer answer = {0};
    struct value *value;
    if (value_from_json(job, strlen(job), &value, err) < 0) {
        return NULL;
    }
    broker_explain_job(sim->broker, &operator_caller, value, NULL, answer_cb, &answer);
    value_destroy(value);
    return await(sim, &answer, err);
}

json_t *sim_jobs(struct sim *sim, const struct store_filter *filter, struct error *err)
{
    struct answer answer = {0};
    broker_jobs(sim->broker, &operator_caller, filter, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_bursts(struct sim *sim, struct error *err)
{
    struct answer answer = {0};
    broker_bursts(sim->broker, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_places(struct sim *sim, struct error *err)
{
    struct answer answer = {0};
    broker_places(sim->broker, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_cancel(struct sim *sim, const char *id, struct error *err)
{
    struct answer answer = {0};
    broker_cancel(sim->broker, &operator_caller, id, answer_cb, &answer);
    return await(sim, &answer, err);
}

json_t *sim_drain(struct sim *sim, const char *place, bool drain, struct error *err)
{
    struct answer answer = {0};
    broker_drain(sim->broker, &operator_caller, place, drain, "simulated", answer_cb, &answer);
    return await(sim, &answer, err);
}

int sim_starts(const struct sim *sim, const char *id)
{
    const struct started *started = map_get(&sim->starts, id);
    return started ? started->count : 0;
}

/* -------------------------------------------------------------------------------------------- events */

char *sim_events(struct sim *sim, char hash[SHA256_TEXT_SIZE])
{
    struct strbuf log;
    int64_t after = 0;
    bool more = true;
    strbuf_init(&log, EVENTS_MAX);
    while (more) {
        struct answer answer = {0};
        struct error err;
        size_t i;
        json_t *event;
        broker_events(sim->broker, &operator_caller, NULL, after, LIMIT_EVENT_ROWS, 0, answer_cb,
                      &answer);
        json_t *body = await(sim, &answer, &err);
        assert(body);
        json_array_foreach(json_object_get(body, "events"), i, event)
        {
            char *line = json_dumps(event, JSON_COMPACT);
            strbuf_puts(&log, line);
            strbuf_puts(&log, "\n");
            free(line);
            after = json_integer_value(json_object_get(event, "seq"));
        }
        more = json_is_true(json_object_get(body, "more"));
        json_decref(body);
    }
    size_t length = log.length;
    char *text = strbuf_take(&log);
    if (hash) {
        (void)sha256_text(text, length, hash);
    }
    return text;
}

/* ------------------------------------------------------------------------------------------- running */

static bool any_live(struct sim *sim)
{
    struct store_filter filter = {.state = "live", .limit = 1};
    struct error err;
    json_t *body = sim_jobs(sim, &filter, &err);
    bool live = !body || json_array_size(json_object_get(body, "jobs")) > 0;
    json_decref(body);
    return live;
}

bool sim_run(struct sim *sim, int64_t at_most_ms, void (*each)(void *arg), void *arg)
{
    int64_t until = clock_mono_ms(sim->clock) + at_most_ms;
    while (clock_mono_ms(sim->clock) < until) {
        clock_sim_pass(sim->clock, LOOK_EVERY_MS);
        if (each) {
            each(arg);
        }
        if (clients_are_content(sim) && !any_live(sim)) {
            return true;
        }
    }
    return false;
}

static int parse_rules(struct sim *sim, struct rules **rules, struct error *err)
{
    return config_rules_parse(sim->policy, "policy.yaml", sim->federation, rules, err);
}

/* A new life: the store of the disk as it is, and a broker on it. */
static int begin(struct sim *sim, struct error *err)
{
    struct rules *rules;
    struct store_sim_options store = sim->options.store;
    store.seed = sim->options.seed;
    if (parse_rules(sim, &rules, err) < 0) {
        return -1;
    }
    if (store_sim_open(sim->disk, sim->clock, &store, &sim->store, err) < 0) {
        rules_destroy(rules);
        return -1;
    }
    struct broker_env env = {
        .clock = sim->clock,
        .store = sim->store,
        .federation = sim->federation,
        .rules = rules,
        .adapter_env = {.clock = sim->clock, .federation = sim->federation, .log = no_cluster_log},
        .rules_parse = config_rules_parse,
        .rules_destroy = rules_destroy,
        .log = sim->options.log ? sim->options.log : no_log};
    return broker_create(&env, &sim->broker, err);
}

/* Ends the broker. What its clients wait for is answered first, by a dead store at this very time. */
static void finish(struct sim *sim, int64_t settle_ms)
{
    if (sim->broker) {
        broker_wake_all(sim->broker);
        clock_sim_pass(sim->clock, settle_ms);
        broker_destroy(sim->broker);
    }
    sim->broker = NULL;
    sim->store = NULL;
}

int sim_crash(struct sim *sim, struct error *err)
{
    store_sim_lose(sim->store);
    finish(sim, 0);
    if (begin(sim, err) < 0) {
        return -1;
    }
    (void)clients_are_content(sim);
    return 0;
}

int sim_restart(struct sim *sim, struct error *err)
{
    finish(sim, SETTLE_MS);
    if (begin(sim, err) < 0) {
        return -1;
    }
    (void)clients_are_content(sim);
    return 0;
}

void sim_policy(struct sim *sim, const char *text)
{
    struct answer answer = {0};
    struct error err;
    broker_policy_set(sim->broker, &operator_caller, text, "policy.yaml", false, answer_cb,
                      &answer);
    json_t *body = await(sim, &answer, &err);
    if (body) {
        free(sim->policy);
        sim->policy = xstrdup(text);
    }
    json_decref(body);
}

struct clock *sim_clock(const struct sim *sim)
{
    return sim->clock;
}

struct broker *sim_broker(const struct sim *sim)
{
    return sim->broker;
}

struct store *sim_store(const struct sim *sim)
{
    return sim->store;
}

const struct federation *sim_federation(const struct sim *sim)
{
    return sim->federation;
}

struct sim_member *sim_member_of(const struct sim *sim, const char *cluster)
{
    const struct cluster *found = federation_cluster(sim->federation, cluster);
    return found ? sim->members[found->index] : NULL;
}

static void make_members(struct sim *sim)
{
    size_t count = sim->federation->cluster_count;
    sim->members = xcalloc(count, sizeof(struct sim_member *));
    for (size_t i = 0; i < count; i++) {
        const struct cluster *cluster = &sim->federation->clusters[i];
        struct sim_settings *settings = cluster->settings;
        sim->members[i] =
            sim_member_create(sim->clock, sim->federation, cluster, sim->options.seed);
        sim_member_watch(sim->members[i], started_cb, sim);
        settings->member = sim->members[i];
    }
}

static void forget_clients(struct sim *sim)
{
    while (sim->first) {
        struct request *request = sim->first;
        sim->first = request->next;
        free(request->owner);
        free(request->key);
        free(request);
    }
    for (size_t i = 0; i < sim->sent_count; i++) {
        free(sim->sent[i].text);
    }
    free(sim->sent);
}

int sim_create(const struct sim_options *options, struct sim **out, struct error *err)
{
    static const struct adapter_type *const adapters[] = {&adapter_sim, NULL};
    struct sim *sim = xcalloc(1, sizeof *sim);
    sim->options = *options;
    sim->policy = xstrdup(options->policy);
    sim->end = &sim->first;
    sim->clock =
        clock_sim_create(options->wall_ms ? options->wall_ms : MONDAY_MORNING, options->seed);
    sim->disk = disk_create();
    map_init(&sim->starts);
    if (config_federation_parse(options->federation, "tieline.yaml", adapters, &sim->federation,
                                err) < 0) {
        sim_destroy(sim);
        return -1;
    }
    make_members(sim);
    if (begin(sim, err) < 0) {
        sim_destroy(sim);
        return -1;
    }
    *out = sim;
    return 0;
}

void sim_destroy(struct sim *sim)
{
    if (!sim) {
        return;
    }
    finish(sim, SETTLE_MS);
    for (size_t i = 0; sim->members && i < sim->federation->cluster_count; i++) {
        sim_member_destroy(sim->members[i]);
    }
    free(sim->members);
    federation_destroy(sim->federation);
    disk_destroy(sim->disk);
    while (sim->started) {
        struct started *started = sim->started;
        sim->started = started->next;
        free(started);
    }
    map_fini(&sim->starts);
    forget_clients(sim);
    clock_sim_destroy(sim->clock);
    free(sim->policy);
    free(sim);
}
