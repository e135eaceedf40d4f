#include "tests/unit/fake_broker.h"

#include "broker/core/alloc.h"
#include "broker/core/clock.h"
#include "broker/core/limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    JOBS_MAX = 200000,
    PIECES = 10,
    PIECE_MS = 50,
    BIG = 64 * 1024 * 1024,
    BIG_PIECE = 256 * 1024
};

struct fake_job {
    char id[ID_SIZE];
    char name[NAME_SIZE];
    const char *state;
    char owner[PLACE_SIZE];
    char *key, *fingerprint;
    int attempt;
    int64_t begun_ms;
};

/* A reply under way, or one that waits for news. */
struct later {
    struct broker *broker;
    struct timer *timer;
    reply_fn reply;
    void *arg;
    json_t *body;
    struct error err;
    int64_t job; /* a long poll for this job's state; -1: none */
    bool hangs;
    struct later *prev, *next;
};

struct broker {
    struct clock *clock;
    struct fake_job *jobs;
    int64_t count;
    struct later *laters;
    int followers;
    bool ready;
};

static void later_free(struct later *later)
{
    *(later->prev ? &later->prev->next : &later->broker->laters) = later->next;
    if (later->next) {
        later->next->prev = later->prev;
    }
    later->broker->followers -= later->job >= 0;
    timer_destroy(later->timer);
    json_decref(later->body);
    free(later);
}

static json_t *job_json(const struct fake_job *job)
{
    bool final = strcmp(job->state, "queued") != 0 && strcmp(job->state, "running") != 0;
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:b}", "id", job->id, "name", job->name, "state",
                     job->state, "owner", job->owner, "attempt", job->attempt, "final", final);
}

static void later_cb(void *arg)
{
    struct later *later = arg;
    if (later->job >= 0) {
        later->body = job_json(&later->broker->jobs[later->job]);
    }
    later->reply(later->arg, later->err.code ? NULL : later->body, &later->err);
    later_free(later);
}

static struct later *later_create(struct broker *broker, json_t *body_take, const struct error *err,
                                  int64_t delay_ms, reply_fn reply, void *arg)
{
    struct later *later = xcalloc(1, sizeof *later);
    later->broker = broker;
    later->reply = reply;
    later->arg = arg;
    later->body = body_take;
    later->job = -1;
    if (err) {
        later->err = *err;
    }
    later->timer = clock_timer(broker->clock, later_cb, later);
    later->next = broker->laters;
    if (later->next) {
        later->next->prev = later;
    }
    broker->laters = later;
    if (delay_ms >= 0) {
        timer_start(later->timer, delay_ms);
    }
    return later;
}

static void fail(struct broker *broker, enum error_code code, const char *text, reply_fn reply,
                 void *arg)
{
    struct error err;
    error_set(&err, code, "%s", text);
    later_create(broker, NULL, &err, 0, reply, arg);
}

static struct fake_job *find(struct broker *broker, const char *id)
{
    for (int64_t i = 0; i < broker->count; i++) {
        if (strcmp(broker->jobs[i].id, id) == 0) {
            return &broker->jobs[i];
        }
    }
    return NULL;
}

/* ----------------------------------------------------------------------------------------- submit */

static int check(const struct value *value, struct error *err)
{
    const struct value *name = value_get(value, "name");
    if (value->kind != VALUE_MAP) {
        return value_error(value, err, ERROR_INVALID, "a job is a map");
    }
    if (!value_get(value, "run") && !value_get(value, "command")) {
        return value_error(value, err, ERROR_INVALID, "nothing to run");
    }
    if (name && name->text && strcmp(name->text, "refused") == 0) {
        return error_set(err, ERROR_TOO_MANY, "too many jobs");
    }
    if (name && name->text && strcmp(name->text, "explodes") == 0) {
        return error_set(err, ERROR_STORE, "the disk is full");
    }
    return 0;
}

static struct fake_job *job_with_key(struct broker *broker, const char *owner, const char *key)
{
    for (int64_t i = 0; key && i < broker->count; i++) {
        struct fake_job *job = &broker->jobs[i];
        if (job->key && strcmp(job->key, key) == 0 && strcmp(job->owner, owner) == 0) {
            return job;
        }
    }
    return NULL;
}

static struct fake_job *add(struct broker *broker, const struct value *value,
                            const struct caller *caller, const char *key, const char *fingerprint)
{
    const struct value *name = value_get(value, "name");
    struct fake_job *job = &broker->jobs[broker->count++];
    *job = (struct fake_job){.state = "queued", .attempt = 1};
    id_make(broker->clock, 'j', job->id);
    copy_text(job->name, sizeof job->name, name ? name->text : "plain");
    copy_text(job->owner, sizeof job->owner, caller->owner);
    job->key = xstrdup(key);
    job->fingerprint = xstrdup(fingerprint);
    job->begun_ms = clock_mono_ms(broker->clock);
    return job;
}

static json_t *submit_one(struct broker *broker, const struct value *value,
                          const struct caller *caller, const char *key, const char *fingerprint,
                          bool bulk, struct error *err)
{
    struct fake_job *old = job_with_key(broker, caller->owner, key);
    if (check(value, err) < 0) {
        return NULL;
    }
    if (old && fingerprint && strcmp(old->fingerprint, fingerprint) != 0) {
        error_set(err, ERROR_KEY_MISMATCH, "the key was used for job %s", old->id);
        return NULL;
    }
    if (old) {
        return json_pack("{s:s, s:b}", "id", old->id, "existing", 1);
    }
    const struct fake_job *job = add(broker, value, caller, key, fingerprint);
    return bulk ? json_pack("{s:s}", "id", job->id) : job_json(job);
}

static void submit_bulk(struct broker *broker, const struct caller *caller,
                        const struct submission *submission, reply_fn reply, void *arg)
{
    json_t *jobs = json_array();
    struct error err;
    for (size_t i = 0; i < submission->count; i++) {
        char *key = submission->key ? xasprintf("%s#%zu", submission->key, i) : NULL;
        json_t *one = submit_one(broker, submission->items[i], caller, key, NULL, true, &err);
        json_array_append_new(jobs,
                              one ? one : json_pack("{s:{s:s}}", "problem", "detail", err.text));
        free(key);
    }
    later_create(broker, json_pack("{s:o}", "jobs", jobs), NULL, 0, reply, arg);
}

void broker_submit(struct broker *broker, const struct caller *caller,
                   struct submission *submission, reply_fn reply, void *arg)
{
    struct error err;
    error_clear(&err);
    if (submission->bulk) {
        submit_bulk(broker, caller, submission, reply, arg);
    } else {
        json_t *body = submit_one(broker, submission->items[0], caller, submission->key,
                                  submission->fingerprint, false, &err);
        bool hangs = body && strcmp(broker->jobs[broker->count - 1].name, "hang") == 0;
        later_create(broker, body, &err, hangs ? -1 : 0, reply, arg)->hangs = hangs;
    }
    for (size_t i = 0; i < submission->count; i++) {
        value_destroy(submission->items[i]);
    }
    free(submission->items);
}

/* ----------------------------------------------------------------------------------------- reading */

void broker_job(struct broker *broker, const struct caller *caller, const char *id,
                const char *after_view, int64_t wait_ms, reply_fn reply, void *arg)
{
    struct fake_job *job = find(broker, id);
    (void)caller;
    if (!job) {
        fail(broker, ERROR_NOT_FOUND, "no such job", reply, arg);
        return;
    }
    int64_t age = clock_mono_ms(broker->clock) - job->begun_ms;
    if (strcmp(job->name, "slow") == 0 && age > (int64_t)PIECES * PIECE_MS) {
        job->state = "succeeded";
    }
    if (strcmp(job->name, "twice") == 0) {
        job->attempt = 2;
        job->state = "failed";
    }
    bool waits = after_view && strcmp(after_view, job->state) == 0 && wait_ms > 0;
    struct later *later =
        later_create(broker, waits ? NULL : job_json(job), NULL, waits ? wait_ms : 0, reply, arg);
    if (waits) {
        later->job = job - broker->jobs;
        broker->followers++;
    }
}

void broker_jobs(struct broker *broker, const struct caller *caller,
                 const struct store_filter *filter, reply_fn reply, void *arg)
{
    json_t *jobs = json_array();
    (void)caller;
    for (int64_t i = broker->count; i-- > 0 && json_array_size(jobs) < (size_t)filter->limit;) {
        const struct fake_job *job = &broker->jobs[i];
        if (!filter->owner || strcmp(filter->owner, job->owner) == 0) {
            json_array_append_new(jobs, job_json(job));
        }
    }
    json_t *body = json_pack("{s:o, s:n}", "jobs", jobs, "next_cursor");
    json_object_set_new(body, "since_ms", json_integer(filter->since_ms));
    later_create(broker, body, NULL, 0, reply, arg);
}

void broker_events(struct broker *broker, const struct caller *caller, const char *id,
                   int64_t after_seq, int limit, int64_t wait_ms, reply_fn reply, void *arg)
{
    (void)caller;
    if (id && !find(broker, id)) {
        fail(broker, ERROR_NOT_FOUND, "no such job", reply, arg);
        return;
    }
    json_t *body = json_pack("{s:[], s:s, s:I, s:i}", "events", "next_cursor", "7", "after",
                             (json_int_t)after_seq, "limit", limit);
    later_create(broker, body, NULL, wait_ms, reply, arg);
}

static json_t *piece(const char *text, int64_t offset, bool complete, int attempt)
{
    int64_t length = (int64_t)strlen(text);
    int64_t from = offset < length ? offset : length;
    return json_pack("{s:s, s:I, s:I, s:b, s:i}", "text", text + from, "offset", (json_int_t)from,
                     "next_offset", (json_int_t)length, "complete", complete, "attempt", attempt);
}

static json_t *slow_piece(const struct broker *broker, const struct fake_job *job, int64_t offset)
{
    int64_t age = clock_mono_ms(broker->clock) - job->begun_ms;
    int64_t pieces = age / PIECE_MS < PIECES ? age / PIECE_MS : PIECES;
    char text[PIECES * 8 + 1] = "";
    for (int64_t i = 0; i < pieces; i++) {
        (void)snprintf(text + i * 8, sizeof text - (size_t)i * 8, "line %02d\n", (int)i);
    }
    return piece(text, offset, pieces == PIECES, 1);
}

static json_t *big_piece(int64_t offset)
{
    char *text = xcalloc(BIG_PIECE + 1, 1);
    memset(text, 'x', BIG_PIECE);
    json_t *body = json_pack("{s:s, s:I, s:I, s:b, s:i}", "text", text, "offset",
                             (json_int_t)offset, "next_offset", (json_int_t)offset + BIG_PIECE,
                             "complete", offset + BIG_PIECE >= BIG, "attempt", 1);
    free(text);
    return body;
}

void broker_log(struct broker *broker, const struct caller *caller, const char *id, int attempt,
                int64_t offset, int64_t wait_ms, reply_fn reply, void *arg)
{
    const struct fake_job *job = find(broker, id);
    int64_t delay = 0;
    json_t *body;
    (void)caller;
    if (!job) {
        fail(broker, ERROR_NOT_FOUND, "no such job", reply, arg);
        return;
    }
    if (strcmp(job->name, "slow") == 0) {
        body = slow_piece(broker, job, offset);
        delay = json_string_length(json_object_get(body, "text")) ? 0 : PIECE_MS;
    } else if (strcmp(job->name, "quiet") == 0) {
        body = piece("", offset, false, 1);
        delay = wait_ms;
    } else if (strcmp(job->name, "twice") == 0) {
        body = attempt == 2 ? piece("two\n", offset, true, 2) : piece("one\n", offset, true, 1);
    } else if (strcmp(job->name, "binary") == 0) {
        body = json_pack("{s:s, s:i, s:i, s:b, s:i}", "base64", "/wD+Cg==", "offset", 0,
                         "next_offset", 4, "complete", 1, "attempt", 1);
    } else if (strcmp(job->name, "big") == 0) {
        body = big_piece(offset);
    } else {
        body = piece("hello\n", offset, true, 1);
    }
    later_create(broker, body, NULL, delay, reply, arg);
}

void broker_cancel(struct broker *broker, const struct caller *caller, const char *id,
                   reply_fn reply, void *arg)
{
    struct fake_job *job = find(broker, id);
    (void)caller;
    if (!job) {
        fail(broker, ERROR_NOT_FOUND, "no such job", reply, arg);
        return;
    }
    job->state = "cancelled";
    for (struct later *later = broker->laters; later; later = later->next) {
        if (later->job == job - broker->jobs) {
            timer_start(later->timer, 0);
        }
    }
    later_create(broker, job_json(job), NULL, 0, reply, arg);
}

/* ------------------------------------------------------------------------------------------ the rest */

void broker_explain(struct broker *broker, const struct caller *caller, const char *id,
                    reply_fn reply, void *arg)
{
    (void)caller;
    if (!find(broker, id)) {
        fail(broker, ERROR_NOT_FOUND, "no such job", reply, arg);
        return;
    }
    later_create(broker, json_pack("{s:s}", "job", id), NULL, 0, reply, arg);
}

void broker_explain_job(struct broker *broker, const struct caller *caller,
                        const struct value *value, const char *render, reply_fn reply, void *arg)
{
    struct error err;
    (void)caller;
    error_clear(&err);
    int status = check(value, &err);
    json_t *body =
        status < 0 ? NULL : json_pack("{s:s?, s:o}", "render", render, "job", value_to_json(value));
    later_create(broker, body, &err, 0, reply, arg);
}

void broker_places(struct broker *broker, reply_fn reply, void *arg)
{
    later_create(broker, json_pack("{s:[{s:s}]}", "places", "name", "hpc/gpu"), NULL, 0, reply,
                 arg);
}

void broker_drain(struct broker *broker, const struct caller *caller, const char *place, bool drain,
                  const char *note, reply_fn reply, void *arg)
{
    json_t *body = json_pack("{s:s, s:b, s:s, s:s}", "place", place, "drained", drain, "note", note,
                             "by", caller->owner);
    later_create(broker, body, NULL, 0, reply, arg);
}

void broker_bursts(struct broker *broker, reply_fn reply, void *arg)
{
    later_create(broker, json_pack("{s:[], s:[]}", "bursts", "budgets"), NULL, 0, reply, arg);
}

void broker_policy(struct broker *broker, reply_fn reply, void *arg)
{
    later_create(broker, json_pack("{s:s}", "hash", "9f31c2"), NULL, 0, reply, arg);
}

void broker_policy_set(struct broker *broker, const struct caller *caller, const char *text,
                       const char *file, bool dry_run, reply_fn reply, void *arg)
{
    struct error err;
    if (strstr(text, "nonsense")) {
        error_set(&err, ERROR_INVALID, "no key 'nonsense'");
        err.line = 2;
        err.column = 3;
        copy_text(err.file, sizeof err.file, file);
        later_create(broker, NULL, &err, 0, reply, arg);
        return;
    }
    json_t *body =
        json_pack("{s:s, s:b, s:s}", "text", text, "dry_run", dry_run, "by", caller->owner);
    later_create(broker, body, NULL, 0, reply, arg);
}

int broker_ready(struct broker *broker, struct error *err)
{
    return broker->ready ? 0 : error_set(err, ERROR_UNAVAILABLE, "the store cannot commit");
}

void broker_metrics(struct broker *broker, FILE *out)
{
    (void)fprintf(out,
                  "# HELP tieline_fake_jobs Jobs.\n# TYPE tieline_fake_jobs gauge\n"
                  "tieline_fake_jobs %d\n",
                  (int)broker->count);
}

int broker_followers(const struct broker *broker)
{
    return broker->followers;
}

void broker_wake_all(struct broker *broker)
{
    for (struct later *later = broker->laters; later; later = later->next) {
        if (later->job >= 0) {
            timer_start(later->timer, 0);
        }
    }
}

void fake_broker_set_ready(struct broker *broker, bool ready)
{
    broker->ready = ready;
}

struct broker *fake_broker_create(struct clock *clock)
{
    struct broker *broker = xcalloc(1, sizeof *broker);
    broker->clock = clock;
    broker->jobs = xcalloc(JOBS_MAX, sizeof *broker->jobs);
    broker->ready = true;
    return broker;
}

/* As the real one: what is outstanding is replied to now. */
void broker_destroy(struct broker *broker)
{
    while (broker->laters) {
        struct later *later = broker->laters;
        error_set(&later->err, ERROR_UNAVAILABLE, "the broker stops");
        later->job = -1;
        later_cb(later);
    }
    for (int64_t i = 0; i < broker->count; i++) {
        free(broker->jobs[i].key);
        free(broker->jobs[i].fingerprint);
    }
    free(broker->jobs);
    free(broker);
}
