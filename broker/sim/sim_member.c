#include "broker/sim/sim_member.h"

#include "broker/core/alloc.h"
#include "broker/core/map.h"
#include "broker/core/texts.h"
#include "broker/core/units.h"
#include "broker/sim/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_SIZE_MAX = ID_SIZE + 16,
    EXIT_MAX = 255,
    CPUS_DEFAULT = 8 * 1000 /* of a place that states no capacity */
};
#define MEMORY_DEFAULT (INT64_C(32) * 1024 * 1024 * 1024)

struct sim_job {
    struct sim_member *member;
    char key[KEY_SIZE_MAX]; /* job and attempt */
    bool in_map;            /* the first of its attempt */
    struct report report;
    struct resources holds;
    int place;                            /* index in the cluster */
    int gpu_index;                        /* of the place's condition; -1: none */
    int64_t run_ms, limit_ms, arrived_ms; /* arrived: monotonic */
    int exit_code;
    struct timer *timer;         /* its end, then its being forgotten */
    struct sim_job *prev, *next; /* all, in the order of arrival */
    struct sim_job *queue_next;  /* of its place, while it waits */
};

struct pool { /* one place */
    struct condition condition;
    struct sim_job *first, *last; /* waiting */
};

struct sim_member {
    struct clock *clock;
    const struct federation *federation;
    const struct cluster *cluster;
    struct sim_settings settings;
    uint64_t seed;
    struct pool *pools;
    struct map by_key;
    struct sim_job *first, *last;
    size_t count;
    int64_t natives;
    struct sim_faults faults;
    struct sim_figures figures;
    void (*started)(void *arg, const char *job_id, int attempt);
    void *started_arg;
};

static const char *env_of(const struct spec *spec, const char *name)
{
    for (size_t i = 0; i < spec->env.count; i++) {
        if (strcmp(spec->env.items[i].name, name) == 0) {
            return spec->env.items[i].value;
        }
    }
    return NULL;
}

static void key_of(const char *job_id, int attempt, char out[KEY_SIZE_MAX])
{
    (void)snprintf(out, KEY_SIZE_MAX, "%s-%d", job_id, attempt);
}

/* value, more or less by the share, as the drawn number says. */
static int64_t spread(int64_t value, int64_t share, uint64_t drawn)
{
    int64_t most = value * (share / 1000) / 1000;
    return most > 0 ? value - most + (int64_t)(drawn % (uint64_t)(2 * most + 1)) : value;
}

int sim_run_of(const struct sim_settings *settings, uint64_t seed, const struct submit *submit,
               int64_t *run_ms, int *exit_code, struct error *err)
{
    const char *run = env_of(submit->spec, "SIM_RUN");
    const char *code = env_of(submit->spec, "SIM_EXIT");
    int64_t ms, number = 0;
    if (run && duration_parse(run, &ms, err) < 0) {
        return error_prefix(err, "SIM_RUN");
    }
    if (code && integer_parse(code, 0, EXIT_MAX, &number, err) < 0) {
        return error_prefix(err, "SIM_EXIT");
    }
    if (!run) {
        char key[KEY_SIZE_MAX];
        key_of(submit->ref.job_id, submit->ref.attempt, key);
        ms = submit->spec->time.estimate * 1000 / settings->speed;
        ms = spread(ms, settings->jitter, random_of_text(seed, key));
    }
    *run_ms = ms > 0 ? ms : 1;
    *exit_code = (int)number;
    return 0;
}

/* -------------------------------------------------------------------------------------------- pools */

static int gpu_index_of(const struct sim_member *member, const struct pool *pool,
                        const struct needs *needs)
{
    for (int i = 0; needs->gpus > 0 && i < pool->condition.gpu_count; i++) {
        const char *model = member->federation->gpus[pool->condition.gpus[i].model].name;
        if (needs->gpu.count == 0 || texts_contain(&needs->gpu, model)) {
            return i;
        }
    }
    return -1;
}

static bool fits(const struct resources *have, const struct resources *need)
{
    return need->cpus <= have->cpus && need->memory <= have->memory && need->gpus <= have->gpus;
}

static void take(struct pool *pool, const struct sim_job *job, int sign)
{
    pool->condition.free.cpus -= sign * job->holds.cpus;
    pool->condition.free.memory -= sign * job->holds.memory;
    pool->condition.free.gpus -= sign * job->holds.gpus;
    pool->condition.running += sign;
    if (job->gpu_index >= 0) {
        pool->condition.gpus[job->gpu_index].free -= sign * job->holds.gpus;
    }
}

static void start_next(struct sim_member *member, struct pool *pool)
{
    struct sim_job *job;
    while ((job = pool->first) && fits(&pool->condition.free, &job->holds)) {
        pool->first = job->queue_next;
        pool->last = pool->first ? pool->last : NULL;
        pool->condition.waiting--;
        pool->condition.waiting_cpus -= job->holds.cpus;
        take(pool, job, 1);
        job->report.state = REPORT_RUNNING;
        job->report.started_ms = clock_wall_ms(member->clock);
        member->figures.starts++;
        member->figures.waited_ms += clock_mono_ms(member->clock) - job->arrived_ms;
        timer_start(job->timer, job->run_ms < job->limit_ms ? job->run_ms : job->limit_ms);
        if (member->started) {
            member->started(member->started_arg, job->report.job_id, job->report.attempt);
        }
    }
}

static void enqueue(struct pool *pool, struct sim_job *job)
{
    *(pool->last ? &pool->last->queue_next : &pool->first) = job;
    pool->last = job;
    pool->condition.waiting++;
    pool->condition.waiting_cpus += job->holds.cpus;
}

static void unqueue(struct pool *pool, struct sim_job *job)
{
    struct sim_job *before = NULL;
    for (struct sim_job *at = pool->first; at != job; at = at->queue_next) {
        before = at;
    }
    *(before ? &before->queue_next : &pool->first) = job->queue_next;
    pool->last = pool->last == job ? before : pool->last;
    pool->condition.waiting--;
    pool->condition.waiting_cpus -= job->holds.cpus;
}

/* --------------------------------------------------------------------------------------------- jobs */

static struct sim_job *job_of(const struct sim_member *member, const struct attempt_ref *ref)
{
    char key[KEY_SIZE_MAX];
    key_of(ref->job_id, ref->attempt, key);
    return map_get(&member->by_key, key);
}

static void job_drop(struct sim_job *job)
{
    struct sim_member *member = job->member;
    if (job->in_map) {
        map_remove(&member->by_key, job->key);
    }
    *(job->prev ? &job->prev->next : &member->first) = job->next;
    *(job->next ? &job->next->prev : &member->last) = job->prev;
    member->count--;
    timer_destroy(job->timer);
    free(job);
}

static void end(struct sim_job *job, enum outcome outcome)
{
    struct sim_member *member = job->member;
    struct pool *pool = &member->pools[job->place];
    int64_t now = clock_wall_ms(member->clock);
    if (job->report.state == REPORT_RUNNING) {
        take(pool, job, -1);
        member->figures.run_ms += now - job->report.started_ms;
        member->figures.busy_cpu_ms += (now - job->report.started_ms) * job->holds.cpus / 1000;
    } else {
        unqueue(pool, job);
    }
    job->report.state = REPORT_ENDED;
    job->report.outcome = outcome;
    job->report.exit_code = outcome == OUTCOME_EXIT ? job->exit_code : 0;
    job->report.ended_ms = now;
    member->figures.ends++;
    timer_stop(job->timer);
    if (member->faults.forget_after_ms > 0) {
        timer_start(job->timer, member->faults.forget_after_ms);
    }
    start_next(member, pool);
}

/* The end of its run; or of its record. */
static void job_timer_cb(void *arg)
{
    struct sim_job *job = arg;
    if (job->report.state == REPORT_ENDED) {
        job_drop(job);
    } else {
        end(job, job->run_ms <= job->limit_ms ? OUTCOME_EXIT : OUTCOME_TIME_LIMIT);
    }
}

static struct sim_job *job_add(struct sim_member *member, const struct submit *submit, int place)
{
    struct sim_job *job = xcalloc(1, sizeof *job);
    const struct needs *needs = &submit->spec->needs;
    job->member = member;
    key_of(submit->ref.job_id, submit->ref.attempt, job->key);
    copy_text(job->report.job_id, sizeof job->report.job_id, submit->ref.job_id);
    job->report.attempt = submit->ref.attempt;
    copy_text(job->report.name, sizeof job->report.name, submit->ref.name);
    (void)snprintf(job->report.native_id, sizeof job->report.native_id, "%lld",
                   (long long)++member->natives);
    job->holds = (struct resources){needs->cpus, needs->memory, needs->gpus};
    job->place = place;
    job->gpu_index = gpu_index_of(member, &member->pools[place], needs);
    job->limit_ms = submit->spec->time.limit;
    job->arrived_ms = clock_mono_ms(member->clock);
    job->timer = clock_timer(member->clock, job_timer_cb, job);
    job->prev = member->last;
    *(member->last ? &member->last->next : &member->first) = job;
    member->last = job;
    member->count++;
    job->in_map = map_get(&member->by_key, job->key) == NULL;
    if (job->in_map) {
        map_put(&member->by_key, job->key, job);
    } else {
        member->figures.twice++; /* a member without idempotence runs it twice */
    }
    return job;
}

/* --------------------------------------------------------------------------------------- what is asked */

static int check(const struct sim_member *member, const struct submit *submit, int place,
                 struct error *err)
{
    const struct pool *pool = &member->pools[place];
    const struct needs *needs = &submit->spec->needs;
    const struct resources need = {needs->cpus, needs->memory, needs->gpus};
    if (!fits(&pool->condition.largest, &need)) {
        return error_set(err, ERROR_INVALID, "the place '%s' is not so large",
                         member->cluster->places[place].name);
    }
    if (needs->gpus > 0 && gpu_index_of(member, pool, needs) < 0) {
        return error_set(err, ERROR_INVALID, "the place '%s' has no such GPU",
                         member->cluster->places[place].name);
    }
    return 0;
}

int sim_member_submit(struct sim_member *member, const struct submit *submit, char *native,
                      struct error *err)
{
    int place = (int)(submit->ref.place - member->cluster->places);
    int64_t run_ms = 0;
    int exit_code = 0;
    member->figures.submits++;
    if (member->faults.refuse_submits > 0) {
        member->faults.refuse_submits--;
        member->figures.refused++;
        return error_set(err, ERROR_INVALID, "refused: the simulation says so");
    }
    if (sim_run_of(&member->settings, member->seed, submit, &run_ms, &exit_code, err) < 0 ||
        check(member, submit, place, err) < 0) {
        member->figures.refused++;
        return -1;
    }
    struct sim_job *job = job_add(member, submit, place);
    job->run_ms = run_ms;
    job->exit_code = exit_code;
    copy_text(native, NATIVE_SIZE, job->report.native_id);
    struct pool *pool = &member->pools[place];
    enqueue(pool, job);
    start_next(member, pool);
    if (pool->condition.waiting > member->figures.waiting_max) {
        member->figures.waiting_max = pool->condition.waiting;
    }
    return 0;
}

void sim_member_find(const struct sim_member *member, const struct attempt_ref *ref,
                     struct report *out)
{
    const struct sim_job *job = job_of(member, ref);
    if (job) {
        *out = job->report;
        return;
    }
    memset(out, 0, sizeof *out);
    copy_text(out->job_id, sizeof out->job_id, ref->job_id);
    copy_text(out->name, sizeof out->name, ref->name);
    out->attempt = ref->attempt;
    out->state = REPORT_ABSENT;
}

struct report *sim_member_list(const struct sim_member *member, size_t *count)
{
    bool twice = member->faults.repeat_reports;
    struct report *reports = xcalloc(member->count * 2 + 1, sizeof *reports);
    *count = 0;
    for (const struct sim_job *job = member->first; job; job = job->next) {
        reports[(*count)++] = job->report;
    }
    for (const struct sim_job *job = member->last; twice && job; job = job->prev) {
        reports[(*count)++] = job->report;
    }
    return reports;
}

void sim_member_cancel(struct sim_member *member, const struct attempt_ref *ref)
{
    struct sim_job *job = job_of(member, ref);
    member->figures.cancels++;
    if (job && job->report.state != REPORT_ENDED) {
        end(job, OUTCOME_CANCELLED);
    }
}

void sim_member_forget(struct sim_member *member, const struct attempt_ref *ref)
{
    struct sim_job *job = job_of(member, ref);
    if (job && job->report.state == REPORT_ENDED) {
        job_drop(job);
    }
}

struct condition *sim_member_probe(const struct sim_member *member)
{
    size_t count = member->cluster->place_count;
    struct condition *out = xcalloc(count, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        out[i] = member->pools[i].condition;
    }
    return out;
}

struct sim_faults *sim_member_faults(struct sim_member *member)
{
    return &member->faults;
}

void sim_member_figures(const struct sim_member *member, struct sim_figures *out)
{
    *out = member->figures;
}

int64_t sim_member_waiting(const struct sim_member *member)
{
    int64_t waiting = 0;
    for (size_t i = 0; i < member->cluster->place_count; i++) {
        waiting += member->pools[i].condition.waiting;
    }
    return waiting;
}

void sim_member_watch(struct sim_member *member,
                      void (*started)(void *arg, const char *job_id, int attempt), void *arg)
{
    member->started = started;
    member->started_arg = arg;
}

/* ------------------------------------------------------------------------------------------- itself */

static void add_gpus(const struct federation *federation, const struct sim_place_settings *settings,
                     struct condition *out)
{
    for (size_t i = 0; settings && settings->gpu && i < federation->gpu_count; i++) {
        if (strcmp(federation->gpus[i].name, settings->gpu) == 0) {
            int64_t gpus = settings->gpu_count * 1000;
            out->gpus[out->gpu_count++] = (struct gpu_count){(int)i, gpus, gpus};
            out->total.gpus = gpus;
        }
    }
}

static void pool_init(struct pool *pool, const struct federation *federation,
                      const struct place *place)
{
    struct condition *now = &pool->condition;
    now->up = true;
    now->total.cpus = place->capacity.cpus ? place->capacity.cpus : CPUS_DEFAULT;
    now->total.memory = place->capacity.memory ? place->capacity.memory : MEMORY_DEFAULT;
    add_gpus(federation, place->settings, now);
    now->free = now->largest = now->total;
    now->max_time = place->max_time;
}

struct sim_member *sim_member_create(struct clock *clock, const struct federation *federation,
                                     const struct cluster *cluster, uint64_t seed)
{
    struct sim_member *member = xcalloc(1, sizeof *member);
    const struct sim_settings *settings = cluster->settings;
    member->clock = clock;
    member->federation = federation;
    member->cluster = cluster;
    member->settings = *settings;
    member->seed = random_of_text(seed ^ (uint64_t)settings->seed, cluster->name);
    member->pools = xcalloc(cluster->place_count, sizeof *member->pools);
    for (size_t i = 0; i < cluster->place_count; i++) {
        pool_init(&member->pools[i], federation, &cluster->places[i]);
    }
    map_init(&member->by_key);
    return member;
}

void sim_member_destroy(struct sim_member *member)
{
    if (!member) {
        return;
    }
    for (struct sim_job *job = member->first, *next; job; job = next) {
        next = job->next;
        job_drop(job);
    }
    map_fini(&member->by_key);
    free(member->pools);
    free(member);
}
