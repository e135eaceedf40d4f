/* requests.c - see requests.h. */
#include "adapters/node/requests.h"

#include "adapters/node/keeps.h"
#include "adapters/node/output.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct request {
    struct server *server;
    struct conn *conn;
    const json_t *json;
};

static int64_t number_of(const struct request *request, const char *name)
{
    return json_integer_value(json_object_get(request->json, name));
}

static const char *job_of(const struct request *request)
{
    const char *job = json_string_value(json_object_get(request->json, "job"));
    return job ? job : "";
}

static int attempt_of(const struct request *request)
{
    return (int)number_of(request, "attempt");
}

static struct work *work_of(const struct request *request)
{
    return works_find(&request->server->works, job_of(request), attempt_of(request));
}

static void answer_take(const struct request *request, json_t *body)
{
    server_reply_take(request->server, request->conn, request->json, body, NULL, 0);
}

static void refuse(const struct request *request, const struct error *err)
{
    server_refuse(request->server, request->conn, request->json, err);
}

static int64_t machine_cpus(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);
    if (count <= 0) {
        count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    }
    return (int64_t)count * 1000;
}

static int64_t machine_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static void serve_hello(const struct request *request)
{
    struct server *server = request->server;
    struct works *works = &server->works;
    struct error err;
    if (works_places(works, json_object_get(request->json, "places"), &err)) {
        refuse(request, &err);
        return;
    }
    for (size_t i = 0; i < works->place_count; i++) {
        struct slots *place = &works->places[i];
        place->cpus = place->cpus > 0 ? place->cpus : machine_cpus();
        place->memory = place->memory > 0 ? place->memory : machine_memory();
    }
    server->keep_logs_ms = number_of(request, "keep_logs_ms");
    server->greeted = true;
    server->bye = false;
    server->changed = true;
    answer_take(request, json_object());
}

static void serve_submit(const struct request *request)
{
    struct error err;
    int admitted = works_admit(&request->server->works, request->json, &err);
    if (admitted < 0) {
        refuse(request, &err);
        return;
    }
    if (admitted > 0) {
        json_t *record = json_pack("{s:s, s:O}", "k", "accept", "work", request->json);
        server_record_take(request->server, record);
    }
    answer_take(request, json_pack("{s:s}", "native", work_of(request)->name));
}

static void serve_poll(const struct request *request)
{
    const struct works *works = &request->server->works;
    json_t *reports = json_array();
    for (size_t i = 0; i < works->count; i++) {
        json_array_append_new(reports, work_report(works->items[i]));
    }
    answer_take(request, json_pack("{s:o}", "reports", reports));
}

/* What is still known of an attempt that was forgotten: the exit lies beside its output for a while. */
static json_t *old_report(const struct request *request)
{
    struct error err;
    struct keeper_exit end;
    char *dir = server_job_dir(request->server, job_of(request), attempt_of(request));
    if (keeper_exit_read(dir, &end, &err)) {
        end = (struct keeper_exit){.outcome = OUTCOME_OUTCOME_UNKNOWN};
        copy_text(end.reason, sizeof end.reason, "it ended and was forgotten here");
    }
    free(dir);
    return json_pack("{s:s, s:i, s:s, s:o}", "job", job_of(request), "attempt", attempt_of(request),
                     "state", "ended", "exit", keeper_exit_to_json(&end));
}

static void serve_find(const struct request *request)
{
    const struct work *work = work_of(request);
    struct error err;
    if (work) {
        answer_take(request, json_pack("{s:o}", "report", work_report(work)));
    } else if (works_was_seen(&request->server->works, job_of(request), attempt_of(request))) {
        answer_take(request, json_pack("{s:o}", "report", old_report(request)));
    } else if (exitlog_damaged(request->server->log)) {
        error_set(&err, ERROR_UNAVAILABLE, "the exit log is damaged: its absence is not proven");
        refuse(request, &err);
    } else {
        answer_take(request, json_object());
    }
}

static void serve_cancel(const struct request *request)
{
    struct work *work = work_of(request);
    if (work) {
        keeps_cancel(request->server, work);
    }
    answer_take(request, json_object());
}

static void serve_log(const struct request *request)
{
    static char bytes[LIMIT_LOG_READ];
    const struct server *server = request->server;
    const struct work *work = work_of(request);
    struct output_chunk chunk = {.offset = number_of(request, "offset")};
    struct error err;
    char *dir = server_job_dir(server, id_is_valid(job_of(request)) ? job_of(request) : "none",
                               attempt_of(request));
    int failed =
        output_read(dir, server->output_cap, chunk.offset, bytes, sizeof bytes, &chunk, &err);
    free(dir);
    /* Whoever never began, or has yet to begin, has written nothing. */
    if (failed && !(work && err.code == ERROR_NOT_FOUND)) {
        refuse(request, &err);
        return;
    }
    bool ended = !work || work->state == WORK_ENDED;
    bool complete = ended && chunk.offset + (int64_t)chunk.length >= chunk.end;
    server_reply_take(
        request->server, request->conn, request->json,
        json_pack("{s:I, s:b}", "offset", (json_int_t)chunk.offset, "complete", complete), bytes,
        chunk.length);
}

static json_t *place_condition(const struct slots *place)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", place->name, "cpus",
                     (json_int_t)place->cpus, "memory", (json_int_t)place->memory, "free_cpus",
                     (json_int_t)(place->cpus - place->used_cpus), "free_memory",
                     (json_int_t)(place->memory - place->used_memory), "running",
                     (json_int_t)place->running, "waiting", (json_int_t)place->waiting,
                     "waiting_cpus", (json_int_t)place->waiting_cpus);
}

static void serve_probe(const struct request *request)
{
    struct works *works = &request->server->works;
    struct utsname system;
    char version[128] = "supervise " TIELINE_VERSION;
    if (!uname(&system)) {
        (void)snprintf(version, sizeof version, "supervise " TIELINE_VERSION ", %.16s %.64s",
                       system.sysname, system.release);
    }
    works_count(works);
    json_t *places = json_array();
    for (size_t i = 0; i < works->place_count; i++) {
        json_array_append_new(places, place_condition(&works->places[i]));
    }
    answer_take(request, json_pack("{s:s, s:o}", "version", version, "places", places));
}

static void serve_forget(const struct request *request)
{
    struct server *server = request->server;
    const struct work *work = work_of(request);
    if (work && work->state == WORK_ENDED) {
        json_t *record = work_record("forget", work);
        json_object_set_new(record, "at_ms", json_integer(clock_wall_ms(server->clock)));
        keeps_discard(server, work->key, "work");
        server_record_take(server, record);
    }
    answer_take(request, json_object());
}

static void serve_bye(const struct request *request)
{
    request->server->bye = true;
    answer_take(request, json_object());
}

static const struct {
    const char *op;
    void (*serve)(const struct request *request);
} operations[] = {
    {"hello", serve_hello}, {"submit", serve_submit}, {"poll", serve_poll},
    {"find", serve_find},   {"cancel", serve_cancel}, {"log", serve_log},
    {"probe", serve_probe}, {"forget", serve_forget}, {"bye", serve_bye},
};

void requests_serve(struct server *server, struct conn *conn, const json_t *json)
{
    struct request request = {.server = server, .conn = conn, .json = json};
    const char *op = json_string_value(json_object_get(json, "op"));
    struct error err;
    if (server->ending) { /* an answer would rest on a log that is no more */
        error_set(&err, ERROR_UNAVAILABLE,
                  "the directory of this member was removed: its jobs end");
        refuse(&request, &err);
        return;
    }
    for (size_t i = 0; op && i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(op, operations[i].op) == 0) {
            operations[i].serve(&request);
            return;
        }
    }
    error_set(&err, ERROR_INVALID, "there is no operation '%.40s'", op ? op : "");
    refuse(&request, &err);
}
