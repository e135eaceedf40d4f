#include "api/traffic.h"

#include "api/request.h"
#include "api/endpoint.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <inttypes.h>
#include <stdlib.h>

/* Statuses that are told apart; any other counts as the first. */
static const int statuses[] = {0,   200, 201, 202, 400, 401, 403, 404, 405, 409, 410,
                               413, 415, 421, 422, 429, 431, 500, 502, 503, 504};
enum { STATUS_COUNT = sizeof statuses / sizeof statuses[0], ROUTES_MAX = 64 };

static const int64_t bounds_ms[] = {1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10000};
enum { BOUND_COUNT = sizeof bounds_ms / sizeof bounds_ms[0] };

/* X(constant, name, type, help): docs/metrics.md is printed from it too */
#define TRAFFIC_LIST(X)                                                                            \
    X(REQUESTS_TOTAL, "tieline_http_requests_total", "counter",                                    \
      "Requests by route; code 0: the connection ended before the answer")                         \
    X(DURATION, "tieline_http_request_duration_seconds", "histogram",                              \
      "Time of a request, without those that wait on purpose")                                     \
    X(CONNECTIONS, "tieline_http_connections", "gauge", "Open connections")                        \
    X(FOLLOWERS, "tieline_http_followers", "gauge", "Long polls and streams under way")            \
    X(FOLLOWERS_LIMIT, "tieline_http_followers_limit", "gauge", "How many there may be")           \
    X(BODY_BYTES, "tieline_http_body_bytes", "gauge", "Bytes of request bodies held")

enum traffic_metric {
#define X(constant, name, type, help) TRAFFIC_##constant,
    TRAFFIC_LIST(X)
#undef X
};

static const struct {
    const char *name, *type, *help;
} metrics[] = {
#define X(constant, name, type, help) {name, type, help},
    TRAFFIC_LIST(X)
#undef X
};

struct traffic {
    int64_t requests[ROUTES_MAX][STATUS_COUNT]; /* the last row: no route fitted */
    int64_t took[BOUND_COUNT + 1];
    int64_t took_ms;
};

struct traffic *traffic_create(void)
{
    return xcalloc(1, sizeof(struct traffic));
}

void traffic_destroy(struct traffic *traffic)
{
    free(traffic);
}

static size_t status_index(int status)
{
    for (size_t i = 0; i < STATUS_COUNT; i++) {
        if (statuses[i] == status) {
            return i;
        }
    }
    return 0;
}

void traffic_request(struct traffic *traffic, const struct endpoint *route, int status, int64_t ms)
{
    size_t row = route ? (size_t)(route - endpoint_table) : ROUTES_MAX - 1;
    traffic->requests[row][status_index(status)]++;
    if (ms < 0) {
        return;
    }
    size_t bound = 0;
    while (bound < BOUND_COUNT && ms > bounds_ms[bound]) {
        bound++;
    }
    traffic->took[bound]++;
    traffic->took_ms += ms;
}

static void print_head(FILE *out, enum traffic_metric metric)
{
    (void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[metric].name, metrics[metric].help,
                  metrics[metric].name, metrics[metric].type);
}

static void print_requests(const struct traffic *traffic, FILE *out)
{
    print_head(out, TRAFFIC_REQUESTS_TOTAL);
    for (size_t row = 0; row < ROUTES_MAX; row++) {
        const struct endpoint *route = row < endpoint_count ? &endpoint_table[row] : NULL;
        for (size_t i = 0; i < STATUS_COUNT; i++) {
            if (traffic->requests[row][i]) {
                (void)fprintf(out,
                              "tieline_http_requests_total{method=\"%s\",route=\"%s\",code=\"%d\"} "
                              "%" PRId64 "\n",
                              route ? route->method : "", route ? route->pattern : "none",
                              statuses[i], traffic->requests[row][i]);
            }
        }
    }
}

static void print_durations(const struct traffic *traffic, FILE *out)
{
    int64_t count = 0;
    print_head(out, TRAFFIC_DURATION);
    for (size_t i = 0; i < BOUND_COUNT; i++) {
        count += traffic->took[i];
        (void)fprintf(out,
                      "tieline_http_request_duration_seconds_bucket{le=\"%" PRId64 ".%03" PRId64
                      "\"} %" PRId64 "\n",
                      bounds_ms[i] / 1000, bounds_ms[i] % 1000, count);
    }
    count += traffic->took[BOUND_COUNT];
    (void)fprintf(out,
                  "tieline_http_request_duration_seconds_bucket{le=\"+Inf\"} %" PRId64 "\n"
                  "tieline_http_request_duration_seconds_sum %" PRId64 ".%03" PRId64 "\n"
                  "tieline_http_request_duration_seconds_count %" PRId64 "\n",
                  count, traffic->took_ms / 1000, traffic->took_ms % 1000, count);
}

static void print_gauges(const struct api *api, FILE *out)
{
    int waiting = 0;
    for (const struct request *request = api->requests; request; request = request->next) {
        waiting += request->waits;
    }
    print_head(out, TRAFFIC_CONNECTIONS);
    (void)fprintf(out,
                  "tieline_http_connections{listener=\"unix\"} %d\n"
                  "tieline_http_connections{listener=\"tcp\"} %d\n",
                  api->listeners[0].conn_count, api->listeners[1].conn_count);
    print_head(out, TRAFFIC_FOLLOWERS);
    (void)fprintf(out, "tieline_http_followers %d\n", waiting);
    print_head(out, TRAFFIC_FOLLOWERS_LIMIT);
    (void)fprintf(out, "tieline_http_followers_limit %d\n", LIMIT_FOLLOWERS);
    print_head(out, TRAFFIC_BODY_BYTES);
    (void)fprintf(out, "tieline_http_body_bytes %zu\n", api->body_bytes);
}

void traffic_print(const struct api *api, FILE *out)
{
    print_requests(api->traffic, out);
    print_durations(api->traffic, out);
    print_gauges(api, out);
}

void traffic_docs(FILE *out)
{
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        (void)fprintf(out, "| `%s` | %s | %s |\n", metrics[i].name, metrics[i].type,
                      metrics[i].help);
    }
}
