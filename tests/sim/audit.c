#include "tests/sim/audit.h"

#include "broker/core/alloc.h"
#include "broker/core/map.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 64, SHAPE_SIZE = 200 };

struct seen { /* one job */
    char id[ID_SIZE], shape[SHAPE_SIZE];
    int attempts;
    bool holds, started, final;
    int place;
    int64_t booked, nodes;
    struct seen *next;
};
struct shape {
    char key[SHAPE_SIZE], last[ID_SIZE]; /* last: of its jobs the one placed last */
    struct shape *next;
};

struct audit {
    const struct audit_rules *rules;
    struct audit_figures *figures;
    struct map jobs, shapes;
    struct seen *first;
    struct shape *first_shape;
    char places[PLACES][PLACE_NAME_SIZE];
    int64_t not_started[PLACES];
    int64_t settled, booked, nodes, seq;
};

static int place_of(struct audit *audit, const char *name)
{
    int i = 0;
    while (i < PLACES - 1 && audit->places[i][0] && strcmp(audit->places[i], name) != 0) {
        i++;
    }
    copy_text(audit->places[i], sizeof audit->places[i], name);
    return i;
}

static int64_t number(const json_t *data, const char *name)
{
    return json_integer_value(json_object_get(data, name));
}

static const char *text(const json_t *data, const char *name)
{
    const char *value = json_string_value(json_object_get(data, name));
    return value ? value : "";
}

static void shape_text(const json_t *data, char out[SHAPE_SIZE])
{
    json_t *spec = json_copy(json_object_get(data, "spec"));
    json_object_del(spec, "name");
    char *all = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
    copy_text(out, SHAPE_SIZE, all);
    free(all);
    json_decref(spec);
}

static void on_submit(struct audit *audit, const char *id, const json_t *data)
{
    cr_assert_null(map_get(&audit->jobs, id), "%s was submitted twice", id);
    struct seen *job = xcalloc(1, sizeof *job);
    copy_text(job->id, sizeof job->id, id);
    shape_text(data, job->shape);
    job->next = audit->first;
    audit->first = job;
    map_put(&audit->jobs, job->id, job);
    audit->figures->jobs++;
}

static void check_order(struct audit *audit, const struct seen *job)
{
    struct shape *shape = map_get(&audit->shapes, job->shape);
    if (!shape) {
        shape = xcalloc(1, sizeof *shape);
        copy_text(shape->key, sizeof shape->key, job->shape);
        shape->next = audit->first_shape;
        audit->first_shape = shape;
        map_put(&audit->shapes, shape->key, shape);
    }
    if (audit->rules->in_order && job->attempts == 1) {
        cr_assert(strcmp(shape->last, job->id) < 0, "%s was placed after the younger %s", job->id,
                  shape->last);
    }
    copy_text(shape->last, sizeof shape->last, job->id);
}

static void check_money(struct audit *audit)
{
    struct audit_figures *figures = audit->figures;
    int64_t committed = audit->settled + audit->booked;
    figures->committed_max =
        committed > figures->committed_max ? committed : figures->committed_max;
    if (audit->rules->budget_nano) {
        cr_assert_leq(committed, audit->rules->budget_nano, "event %lld: %lld of %lld committed",
                      (long long)audit->seq, (long long)committed,
                      (long long)audit->rules->budget_nano);
    }
    if (audit->rules->burst_nodes) {
        cr_assert_leq(audit->nodes, audit->rules->burst_nodes, "event %lld: %lld machines",
                      (long long)audit->seq, (long long)audit->nodes);
    }
}

static void on_place(struct audit *audit, struct seen *job, const json_t *data, int attempt)
{
    cr_assert(!job->holds, "%s was placed while it had an attempt", job->id);
    cr_assert_eq(attempt, job->attempts + 1, "%s: attempt %d after %d", job->id, attempt,
                 job->attempts);
    job->attempts = attempt;
    job->holds = true;
    job->started = false;
    job->place = place_of(audit, text(data, "place"));
    job->booked = number(data, "booked");
    job->nodes = number(data, "nodes");
    audit->booked += job->booked;
    audit->nodes += job->nodes;
    int64_t waiting = ++audit->not_started[job->place];
    struct audit_figures *figures = audit->figures;
    figures->not_started_max =
        waiting > figures->not_started_max ? waiting : figures->not_started_max;
    figures->placements++;
    figures->rented += job->nodes > 0;
    check_order(audit, job);
    check_money(audit);
}

static void on_start(struct audit *audit, struct seen *job)
{
    if (!job->started) {
        job->started = true;
        audit->figures->starts++;
        audit->not_started[job->place]--;
    }
}

static void on_release(struct audit *audit, struct seen *job, const json_t *data)
{
    cr_assert(job->holds, "%s ended an attempt that it did not have", job->id);
    audit->not_started[job->place] -= job->started ? 0 : 1;
    job->holds = false;
    audit->booked -= job->booked;
    audit->nodes -= job->nodes;
    audit->settled += number(data, "settled");
    check_money(audit);
}

static void on_final(struct audit *audit, struct seen *job)
{
    cr_assert(!job->final, "%s became final twice", job->id);
    cr_assert(!job->holds, "%s became final while it had an attempt", job->id);
    job->final = true;
    audit->figures->final++;
}

static void on_event(struct audit *audit, const json_t *event)
{
    const char *kind = text(event, "kind"), *id = text(event, "id");
    const json_t *data = json_object_get(event, "data");
    cr_assert_eq(number(event, "seq"), audit->seq + 1, "a gap after event %lld",
                 (long long)audit->seq);
    audit->seq = number(event, "seq");
    audit->figures->events++;
    if (strcmp(text(event, "stream"), "job") != 0) {
        return;
    }
    if (strcmp(kind, "submit") == 0) {
        on_submit(audit, id, data);
        return;
    }
    struct seen *job = map_get(&audit->jobs, id);
    cr_assert(job, "%s of %s, which was never submitted", kind, id);
    cr_assert(!job->final, "%s of %s, which is final", kind, id);
    if (strcmp(kind, "place") == 0) {
        on_place(audit, job, data, (int)number(event, "attempt"));
    } else if (strcmp(kind, "start") == 0) {
        on_start(audit, job);
    } else if (strcmp(kind, "end") == 0 || strcmp(kind, "reject") == 0 ||
               strcmp(kind, "absent") == 0 || strcmp(kind, "gone") == 0) {
        on_release(audit, job, data);
    } else if (strcmp(kind, "finish") == 0 || (strcmp(kind, "cancel") == 0 && !job->holds)) {
        on_final(audit, job);
    }
}

void audit_log(const char *log, const struct audit_rules *rules, struct audit_figures *out)
{
    struct audit *audit = xcalloc(1, sizeof *audit);
    memset(out, 0, sizeof *out);
    audit->rules = rules;
    audit->figures = out;
    map_init(&audit->jobs);
    map_init(&audit->shapes);
    for (const char *line = log; *line; line = strchr(line, '\n') + 1) {
        json_error_t err;
        json_t *event = json_loadb(line, (size_t)(strchr(line, '\n') - line), 0, &err);
        cr_assert(event, "a line that is no JSON: %s", err.text);
        on_event(audit, event);
        json_decref(event);
    }
    while (audit->first) {
        struct seen *job = audit->first;
        audit->first = job->next;
        free(job);
    }
    while (audit->first_shape) {
        struct shape *shape = audit->first_shape;
        audit->first_shape = shape->next;
        free(shape);
    }
    map_fini(&audit->jobs);
    map_fini(&audit->shapes);
    free(audit);
}
