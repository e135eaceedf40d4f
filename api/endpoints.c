/* endpoints.c - what is served. A new route is a row here and a function in a file of its family. */
#include "api/endpoint.h"

#include "api/api.h"
#include "api/handlers.h"
#include "api/request.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/units.h"
#include "broker/core/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON "application/json"
#define TEXT "text/plain; charset=utf-8"
#define YAML "application/yaml text/yaml application/x-yaml text/plain"

#define WAIT_PARAM                                                                                 \
    {                                                                                              \
        "wait", PARAM_DURATION, "waits so long for news, at most 30s, before it answers"           \
    }

const struct endpoint endpoint_table[] = {
    {.method = "POST",
     .pattern = "/v1/jobs",
     .name = "submitJobs",
     .role = ROLE_SUBMIT,
     .handle = serve_jobs_submit,
     .summary = "Submits one job, or many.",
     .help =
         "One object: 201 with the job and its Location; 200 when the Idempotency-Key had made "
         "it before. An array or NDJSON: 200 with one result per job, in order: its id, or a "
         "problem. A line that cannot be read is a problem at its index; an array that is no "
         "JSON is refused whole. The key of a bulk counts per line, so a bulk that broke off is "
         "sent again as it was.",
     .takes = "application/json application/x-ndjson",
     .body_max = LIMIT_BODY_BYTES,
     .request = "JobSpec",
     .status = 201,
     .gives = JSON,
     .schema = "Job"},
    {.method = "GET",
     .pattern = "/v1/jobs",
     .name = "listJobs",
     .role = ROLE_READ,
     .handle = serve_jobs_list,
     .summary = "Lists jobs, newest first.",
     .query = {{"state", PARAM_TEXT, "a job state, `live` or `final`"},
               {"owner", PARAM_TEXT, "who submitted it"},
               {"team", PARAM_TEXT, "its team"},
               {"class", PARAM_TEXT, "its class"},
               {"name", PARAM_TEXT, "its name"},
               {"place", PARAM_TEXT, "where its last attempt was put"},
               {"since", PARAM_INSTANT, "submitted at or after"},
               {"until", PARAM_INSTANT, "submitted before"},
               {"limit", PARAM_INTEGER, "jobs in one page, 1 to 1000, default 100"},
               {"cursor", PARAM_TEXT, "`next_cursor` of the page before"}},
     .status = 200,
     .gives = JSON,
     .schema = "JobList"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}",
     .name = "getJob",
     .role = ROLE_READ,
     .handle = serve_jobs_show,
     .summary = "One job with its attempts.",
     .help = "The last four or more characters of an id will do. With `wait` and the `state` that "
             "was seen last it answers as soon as the state is another one.",
     .query = {WAIT_PARAM, {"state", PARAM_TEXT, "the state that was seen; needed with `wait`"}},
     .status = 200,
     .gives = JSON,
     .schema = "Job"},
    {.method = "DELETE",
     .pattern = "/v1/jobs/{id}",
     .name = "cancelJob",
     .role = ROLE_SUBMIT,
     .handle = serve_jobs_cancel,
     .summary = "Asks for a job to be cancelled.",
     .help = "A job that runs ends when its member has confirmed; its state says so. Cancelling a "
             "job twice is no error.",
     .status = 202,
     .gives = JSON,
     .schema = "Job"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/events",
     .name = "getJobEvents",
     .role = ROLE_READ,
     .handle = serve_events_of_job,
     .summary = "What happened to a job, in order.",
     .query = {{"cursor", PARAM_INTEGER, "`next_cursor` of the page before; 0: from the start"},
               {"limit", PARAM_INTEGER, "events in one page, 1 to 1000, default 1000"},
               WAIT_PARAM},
     .status = 200,
     .gives = JSON,
     .schema = "EventList"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/log",
     .name = "getJobLog",
     .role = ROLE_READ,
     .handle = serve_log_read,
     .summary = "The output of a job.",
     .help = "JSON with one piece and the offset of the next. With `follow=true` the answer is the "
             "text itself, as it comes, until the job has ended; without `attempt` it goes on with "
             "the next attempt.",
     .query = {{"offset", PARAM_INTEGER, "bytes to leave out, default 0"},
               {"attempt", PARAM_INTEGER, "default: the last"},
               {"follow", PARAM_BOOL, "stream until the end"},
               WAIT_PARAM},
     .status = 200,
     .gives = JSON,
     .schema = "LogPiece"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/explain",
     .name = "explainJob",
     .role = ROLE_READ,
     .handle = serve_explain_job,
     .summary = "Why a job is where it is, or why it waits.",
     .status = 200,
     .gives = JSON,
     .schema = "Explanation"},
    {.method = "POST",
     .pattern = "/v1/explain",
     .name = "explainImaginedJob",
     .role = ROLE_SUBMIT,
     .handle = serve_explain_imagined,
     .summary = "Where a job would go, without submitting it.",
     .query = {{"render", PARAM_TEXT, "a place: adds exactly what would be sent there"}},
     .takes = JSON,
     .body_max = LIMIT_JOB_BYTES,
     .request = "JobSpec",
     .status = 200,
     .gives = JSON,
     .schema = "Explanation"},
    {.method = "GET",
     .pattern = "/v1/places",
     .name = "listPlaces",
     .role = ROLE_READ,
     .handle = serve_places_list,
     .summary = "All places with what is known of them.",
     .status = 200,
     .gives = JSON,
     .schema = "PlaceList"},
    {.method = "POST",
     .pattern = "/v1/places/{name}/drain",
     .name = "drainPlace",
     .role = ROLE_OPERATE,
     .handle = serve_places_drain,
     .summary = "Nothing new goes to a place, or to all places of a cluster.",
     .help = "What runs there ends. In a name the '/' may be written '%2F'.",
     .takes = JSON,
     .body_max = LIMIT_JOB_BYTES,
     .request = "Drain",
     .body_optional = true,
     .status = 200,
     .gives = JSON,
     .schema = "Done"},
    {.method = "POST",
     .pattern = "/v1/places/{cluster}/{place}/drain",
     .name = "drainPlaceOfCluster",
     .role = ROLE_OPERATE,
     .handle = serve_places_drain,
     .summary = "The same with the name in two parts.",
     .takes = JSON,
     .body_max = LIMIT_JOB_BYTES,
     .request = "Drain",
     .body_optional = true,
     .status = 200,
     .gives = JSON,
     .schema = "Done"},
    {.method = "POST",
     .pattern = "/v1/places/{name}/undrain",
     .name = "undrainPlace",
     .role = ROLE_OPERATE,
     .handle = serve_places_undrain,
     .summary = "A place takes jobs again.",
     .status = 200,
     .gives = JSON,
     .schema = "Done"},
    {.method = "POST",
     .pattern = "/v1/places/{cluster}/{place}/undrain",
     .name = "undrainPlaceOfCluster",
     .role = ROLE_OPERATE,
     .handle = serve_places_undrain,
     .summary = "The same with the name in two parts.",
     .status = 200,
     .gives = JSON,
     .schema = "Done"},
    {.method = "GET",
     .pattern = "/v1/policy",
     .name = "getPolicy",
     .role = ROLE_READ,
     .handle = serve_policy_show,
     .summary = "The policy that decides now.",
     .status = 200,
     .gives = JSON,
     .schema = "Policy"},
    {.method = "PUT",
     .pattern = "/v1/policy",
     .name = "setPolicy",
     .role = ROLE_OPERATE,
     .handle = serve_policy_set,
     .summary = "Checks a policy, and takes it.",
     .help = "The body is the YAML text. A bad one changes nothing.",
     .query = {{"dry_run", PARAM_BOOL, "only check"}},
     .takes = YAML,
     .body_max = VALUE_BYTES_MAX,
     .status = 200,
     .gives = JSON,
     .schema = "Policy"},
    {.method = "GET",
     .pattern = "/v1/bursts",
     .name = "listBursts",
     .role = ROLE_READ,
     .handle = serve_policy_bursts,
     .summary = "Bursts and budgets.",
     .status = 200,
     .gives = JSON,
     .schema = "BurstList"},
    {.method = "GET",
     .pattern = "/v1/events",
     .name = "listEvents",
     .role = ROLE_READ,
     .handle = serve_events_of_all,
     .summary = "Events of all streams, in order.",
     .query = {{"cursor", PARAM_INTEGER, "`next_cursor` of the page before; 0: from the start"},
               {"limit", PARAM_INTEGER, "events in one page, 1 to 1000, default 1000"},
               WAIT_PARAM},
     .status = 200,
     .gives = JSON,
     .schema = "EventList"},
    {.method = "GET",
     .pattern = "/healthz",
     .name = "health",
     .handle = serve_about_health,
     .summary = "200 while the process works.",
     .status = 200,
     .gives = TEXT},
    {.method = "GET",
     .pattern = "/readyz",
     .name = "ready",
     .handle = serve_about_ready,
     .summary = "200 while jobs are taken, else 503 and why not.",
     .status = 200,
     .gives = TEXT},
    {.method = "GET",
     .pattern = "/metrics",
     .name = "metrics",
     .role = ROLE_READ,
     .open_here = true,
     .handle = serve_about_metrics,
     .summary = "Prometheus text format.",
     .help = "From this machine it takes no credentials.",
     .status = 200,
     .gives = "text/plain; version=0.0.4; charset=utf-8"},
    {.method = "GET",
     .pattern = "/openapi.json",
     .name = "openapi",
     .handle = serve_about_openapi,
     .summary = "This interface as OpenAPI 3.1.",
     .status = 200,
     .gives = JSON,
     .schema = "Document"},
    {.method = "GET",
     .pattern = "/",
     .name = "root",
     .handle = serve_about_root,
     .summary = "What this is and where to look.",
     .status = 200,
     .gives = TEXT},
};
const size_t endpoint_count = sizeof endpoint_table / sizeof endpoint_table[0];

const char *param_schema_type(enum param_type type)
{
    static const char *const types[] = {
#define X(constant, schema, words) schema,
        PARAM_LIST(X)
#undef X
    };
    return types[type];
}

static const char *param_words(enum param_type type)
{
    static const char *const words[] = {
#define X(constant, schema, text) text,
        PARAM_LIST(X)
#undef X
    };
    return words[type];
}

/* Whether one part of a pattern fits; a {name} fits anything that is not empty. */
static bool part_fits(const char *part, size_t length, const char *segment,
                      struct endpoint_match *out)
{
    if (part[0] != '{') {
        return strlen(segment) == length && strncmp(part, segment, length) == 0;
    }
    if (!*segment || out->path_count == ENDPOINT_PATH_MAX) {
        return false;
    }
    char *name = out->names[out->path_count];
    (void)snprintf(name, sizeof out->names[0], "%.*s", (int)length - 2, part + 1);
    out->path[out->path_count++] = (struct uri_param){name, segment};
    return true;
}

static bool route_fits(const struct endpoint *route, const struct uri *uri,
                       struct endpoint_match *out)
{
    size_t i = 0;
    out->path_count = 0;
    for (const char *part = route->pattern + 1; *part; i++) {
        size_t length = strcspn(part, "/");
        if (i == uri->segment_count || !part_fits(part, length, uri->segments[i], out)) {
            return false;
        }
        part += length + (part[length] == '/');
    }
    return i == uri->segment_count;
}

/* "GET, HEAD, POST" */
static void add_method(char allow[64], const char *method)
{
    size_t used = strlen(allow);
    (void)snprintf(allow + used, 64 - used, "%s%s%s", used ? ", " : "", method,
                   strcmp(method, "GET") == 0 ? ", HEAD" : "");
}

int endpoint_find(const char *method, const struct uri *uri, struct endpoint_match *out,
                  char allow[64], struct error *err)
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    allow[0] = '\0';
    out->route = NULL;
    for (size_t i = 0; i < endpoint_count; i++) {
        if (route_fits(&endpoint_table[i], uri, out)) {
            if (strcmp(endpoint_table[i].method, wanted) == 0) {
                out->route = &endpoint_table[i];
                return 0;
            }
            add_method(allow, endpoint_table[i].method);
        }
    }
    if (allow[0]) {
        error_set(err, ERROR_METHOD, "%.20s is not served here", method);
        return error_expect(err, "one of %s", allow);
    }
    error_set(err, ERROR_NOT_FOUND, "nothing is served at this path");
    return error_expect(err, "a path of /openapi.json");
}

int endpoint_check_query(const struct endpoint *route, const struct uri *uri, struct error *err)
{
    const char *names[ENDPOINT_PARAMS_MAX];
    size_t count = 0;
    for (; count < ENDPOINT_PARAMS_MAX && route->query[count].name; count++) {
        names[count] = route->query[count].name;
    }
    for (size_t i = 0; i < uri->query_count; i++) {
        bool known = false;
        for (size_t p = 0; p < count; p++) {
            known = known || strcmp(names[p], uri->query[i].name) == 0;
        }
        if (!known) {
            const char *near = nearest_word(uri->query[i].name, names, count);
            error_set(err, ERROR_MALFORMED, "no parameter '%.64s' here", uri->query[i].name);
            return near ? error_expect(err, "did you mean '%s'?", near)
                        : error_expect(err,
                                       count ? "the parameters of /openapi.json" : "no parameters");
        }
    }
    return 0;
}

void api_routes_print(FILE *out)
{
    (void)fputs("| request | role | does |\n|---|---|---|\n", out);
    for (size_t i = 0; i < endpoint_count; i++) {
        const struct endpoint *route = &endpoint_table[i];
        (void)fprintf(out, "| `%s %s` | %s | %s%s%s |\n", route->method, route->pattern,
                      route->role == ROLE_NONE ? "-" : role_name(route->role), route->summary,
                      route->help ? " " : "", route->help ? route->help : "");
    }
    (void)fputs("\n| parameter of | name | takes | means |\n|---|---|---|---|\n", out);
    for (size_t i = 0; i < endpoint_count; i++) {
        const struct endpoint *route = &endpoint_table[i];
        for (size_t p = 0; p < ENDPOINT_PARAMS_MAX && route->query[p].name; p++) {
            (void)fprintf(out, "| `%s %s` | `%s` | %s | %s |\n", route->method, route->pattern,
                          route->query[p].name, param_words(route->query[p].type),
                          route->query[p].help);
        }
    }
}
