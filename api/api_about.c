/* api_about.c - about the broker itself: health, metrics, the description of this interface. */
#include "api/answer.h"
#include "api/handlers.h"
#include "api/traffic.h"

#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void answer_plain(struct request *request, const char *text)
{
    answer_text(request, request->match.route->status, request->match.route->gives, xstrdup(text),
                strlen(text));
}

void serve_about_root(struct request *request)
{
    char *text =
        xasprintf("Tieline %s: one queue to many clusters. Federation '%s'.\n\n"
                  "POST /v1/jobs            submit     curl -H 'Authorization: Bearer TOKEN' \\\n"
                  "                                    -H 'Content-Type: application/json' \\\n"
                  "                                    -d '{\"run\": \"make test\"}' %s/v1/jobs\n"
                  "GET  /v1/jobs            list\n"
                  "GET  /v1/places          where jobs can go\n"
                  "GET  /openapi.json       everything else\n",
                  TIELINE_VERSION, request->api->env.federation->name, request->api->url);
    answer_plain(request, text);
    free(text);
}

void serve_about_health(struct request *request)
{
    answer_plain(request, "ok\n");
}

void serve_about_ready(struct request *request)
{
    struct error err;
    if (request->api->stopping) {
        error_set(&err, ERROR_UNAVAILABLE, "the broker stops");
        answer_error(request, &err);
    } else if (broker_ready(request->api->env.broker, &err) < 0) {
        answer_error(request, &err);
    } else {
        answer_plain(request, "ready\n");
    }
}

void serve_about_metrics(struct request *request)
{
    struct error err;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out) {
        broker_metrics(request->api->env.broker, out);
        traffic_print(request->api, out);
    }
    if (!out || fclose(out) != 0) {
        free(text);
        error_set(&err, ERROR_INTERNAL, "the metrics could not be printed");
        answer_error(request, &err);
        return;
    }
    answer_text(request, request->match.route->status, request->match.route->gives, text, length);
}

void serve_about_openapi(struct request *request)
{
    answer_plain(request, request->api->openapi);
}
