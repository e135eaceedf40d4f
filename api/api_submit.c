/* api_submit.c - one job or many. A bulk is parsed in slices between turns of the loop (intake.h). */
#include "api/answer.h"
#include "api/handlers.h"
#include "api/intake.h"

#include "broker/core/alloc.h"
#include "broker/core/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 64 * 1024, STATUS_OK = 200 };

struct submitting {
    struct request *request;
    struct timer *timer; /* of a bulk: the next slice */
    struct intake intake;
    char *key;
};

static void submitting_free(void *arg)
{
    struct submitting *submitting = arg;
    timer_destroy(submitting->timer);
    intake_fini(&submitting->intake);
    free(submitting->key);
    free(submitting);
}

static void fail(struct request *request, enum error_code code, const char *text)
{
    struct error err;
    error_set(&err, code, "%s", text);
    answer_error(request, &err);
}

/* -------------------------------------------------------------------------------------------- one job */

static void answer_job(struct request *request, int status, const json_t *job)
{
    const char *id = json_string_value(json_object_get(job, "id"));
    answer_json(request, status, job);
    if (id) {
        char *location = xasprintf("/v1/jobs/%s", id);
        answer_header(request, "Location", location);
        free(location);
    }
}

/* The job that the key had made before. */
static void existing_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (request && err->code) {
        answer_error_with(request, err, body);
    } else if (request) {
        answer_job(request, STATUS_OK, body);
    }
}

static void one_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    const char *id = json_string_value(json_object_get(body, "id"));
    bool existing = json_is_true(json_object_get(body, "existing"));
    if (err->code) {
        answer_error_with(request, err, body);
    } else if (existing && id && !json_object_get(body, "state")) {
        broker_job(request->api->env.broker, &request->caller, id, NULL, 0, existing_done,
                   request_call(request, 0));
    } else {
        answer_job(request, existing ? STATUS_OK : request->match.route->status, body);
    }
}

/* The same for the same job, however it is spaced and ordered. */
static void fingerprint(const struct value *value, char out[SHA256_TEXT_SIZE])
{
    json_t *json = value_to_json(value);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    sha256_text(text, strlen(text), out);
    free(text);
    json_decref(json);
}

static void submit_one(struct submitting *submitting)
{
    struct request *request = submitting->request;
    struct value *value = NULL;
    struct error err;
    char hash[SHA256_TEXT_SIZE];
    if (intake_one(request->body.text ? request->body.text : "", request->body.length, &value,
                   &err) < 0) {
        answer_error(request, &err);
        return;
    }
    fingerprint(value, hash);
    struct value **items = xcalloc(1, sizeof(struct value *));
    items[0] = value;
    struct submission submission = {items, 1, false, submitting->key, hash};
    broker_submit(request->api->env.broker, &request->caller, &submission, one_done,
                  request_call(request, 0));
}

/* ----------------------------------------------------------------------------------------------- many */

static void answer_bulk(struct submitting *submitting, const json_t *jobs)
{
    json_t *results = jobs ? json_copy((json_t *)jobs) : json_array();
    intake_add_problems(&submitting->intake, results);
    json_t *body = json_pack("{s:o}", "jobs", results);
    answer_json(submitting->request, STATUS_OK, body);
    json_decref(body);
}

static void bulk_done(void *arg, json_t *body, const struct error *err)
{
    struct request *request = request_back(arg);
    if (!request) {
        return;
    }
    const json_t *jobs = json_object_get(body, "jobs");
    if (err->code) {
        answer_error_with(request, err, body);
    } else if (!json_is_array(jobs)) {
        fail(request, ERROR_INTERNAL, "the broker gave no results");
    } else {
        answer_bulk(request->state, jobs);
    }
}

static void submit_bulk(struct submitting *submitting)
{
    struct intake *intake = &submitting->intake;
    struct request *request = submitting->request;
    if (intake->good == 0) {
        answer_bulk(submitting, NULL);
        return;
    }
    struct submission submission = {intake->items, intake->count, true, submitting->key, NULL};
    intake->items = NULL;
    intake->count = intake->room = 0;
    broker_submit(request->api->env.broker, &request->caller, &submission, bulk_done,
                  request_call(request, 0));
}

static void slice_cb(void *arg)
{
    struct submitting *submitting = arg;
    struct request *request = submitting->request;
    struct error err;
    if (request->response || request->queued) { /* it was given up meanwhile */
        return;
    }
    int status = intake_step(&submitting->intake, SLICE_BYTES, &err);
    if (status > 0) {
        timer_start(submitting->timer, 0);
    } else if (status < 0) {
        answer_error(request, &err);
    } else {
        submit_bulk(submitting);
    }
}

void serve_jobs_submit(struct request *request)
{
    struct error err;
    struct submitting *submitting = xcalloc(1, sizeof *submitting);
    bool lines = head_type_is(&request->head, "application/x-ndjson");
    const char *text = request->body.text ? request->body.text : "";
    submitting->request = request;
    request->state = submitting;
    request->state_free = submitting_free;
    if (head_key(&request->head, &submitting->key, &err) < 0) {
        answer_error(request, &err);
    } else if (lines || intake_is_array(text, request->body.length)) {
        intake_init(&submitting->intake, text, request->body.length, lines);
        submitting->timer = clock_timer(request->api->env.clock, slice_cb, submitting);
        timer_start(submitting->timer, 0);
    } else {
        submit_one(submitting);
    }
}
