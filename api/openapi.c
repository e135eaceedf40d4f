/* openapi.c - nothing is said here that a table does not say. */
#include "api/openapi.h"

#include "api/endpoint.h"
#include "broker/core/alloc.h"
#include "broker/core/spec.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *reference(const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", name));
}

/* ------------------------------------------------------------------------------ key table -> schema */

static json_t *rows_schema(const struct key *rows);

static json_t *texts_schema(void)
{
    return json_pack("{s:[s,s], s:{s:s}}", "type", "string", "array", "items", "type", "string");
}

static json_t *words_schema(const struct key *row)
{
    json_t *words = json_array();
    for (size_t i = 0; row->words[i]; i++) {
        json_array_append_new(words, json_string(row->words[i]));
    }
    return json_pack("{s:s, s:o}", "type", "string", "enum", words);
}

static json_t *integer_schema(const struct key *row)
{
    json_t *schema = json_pack("{s:s}", "type", "integer");
    if (row->low || row->high) {
        json_object_set_new(schema, "minimum", json_integer(row->low));
        json_object_set_new(schema, "maximum", json_integer(row->high));
    }
    return schema;
}

static json_t *type_schema(const struct key *row)
{
    switch (row->type) {
    case KEY_BOOL: return json_pack("{s:s}", "type", "boolean");
    case KEY_INTEGER: return integer_schema(row);
    case KEY_CPUS: return json_pack("{s:[s,s]}", "type", "number", "string");
    case KEY_ENUM: return words_schema(row);
    case KEY_TEXTS: return texts_schema();
    case KEY_LABELS:
        return json_pack("{s:s, s:o}", "type", "object", "additionalProperties", texts_schema());
    case KEY_SECRET: return json_pack("{s:s}", "type", "object");
    case KEY_SECTION: return rows_schema(row->rows);
    case KEY_NAMED:
        return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
                         rows_schema(row->rows));
    case KEY_ITEMS:
        return json_pack("{s:[s,s], s:o}", "type", "array", "object", "items",
                         rows_schema(row->rows));
    case KEY_CUSTOM: return json_object();
    default: return json_pack("{s:s}", "type", "string");
    }
}

/* null means that the key is not set. */
static void allow_null(json_t *schema)
{
    json_t *type = json_object_get(schema, "type");
    json_t *words = json_object_get(schema, "enum");
    if (json_is_string(type)) {
        json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
    } else if (json_is_array(type)) {
        json_array_append_new(type, json_string("null"));
    }
    if (words) {
        json_array_append_new(words, json_null());
    }
}

static json_t *row_schema(const struct key *row)
{
    json_t *schema = type_schema(row);
    if (row->flags & KEY_NULL) {
        allow_null(schema);
    }
    char *help = row->type_words ? xasprintf("%s (%s)", row->help ? row->help : "", row->type_words)
                                 : xstrdup(row->help ? row->help : "");
    json_object_set_new(schema, "description", json_string(help));
    free(help);
    if (row->standard && row->type != KEY_INTEGER && row->type != KEY_BOOL) {
        json_object_set_new(schema, "default", json_string(row->standard));
    }
    return schema;
}

/* The one recursion over tables: sections within sections. */
static json_t *rows_schema(const struct key *rows)
{
    json_t *properties = json_object(), *required = json_array();
    for (const struct key *row = rows; row->name; row++) {
        if (row->flags & KEY_HIDDEN) {
            continue;
        }
        json_object_set_new(properties, row->name, row_schema(row));
        if (row->flags & KEY_REQUIRED) {
            json_array_append_new(required, json_string(row->name));
        }
    }
    json_t *schema = json_pack("{s:s, s:o, s:{s:{}}, s:b}", "type", "object", "properties",
                               properties, "patternProperties", "^x-", "additionalProperties", 0);
    if (json_array_size(required)) {
        json_object_set(schema, "required", required);
    }
    json_decref(required);
    return schema;
}

json_t *schema_of_job(void)
{
    return rows_schema(spec_keys);
}

/* ------------------------------------------------------------------------------------------ one route */

static json_t *content(const char *type, const char *schema)
{
    json_t *media = json_object();
    json_object_set_new(media, "schema",
                        schema ? reference(schema) : json_pack("{s:s}", "type", "string"));
    return json_pack("{s:o}", type, media);
}

static void add_param(json_t *params, const char *where, const char *name, const char *type,
                      const char *help)
{
    json_array_append_new(params, json_pack("{s:s, s:s, s:b, s:s, s:{s:s}}", "name", name, "in",
                                            where, "required", strcmp(where, "path") == 0,
                                            "description", help, "schema", "type", type));
}

static json_t *route_params(const struct endpoint *route)
{
    json_t *params = json_array();
    for (const char *at = strchr(route->pattern, '{'); at; at = strchr(at + 1, '{')) {
        char *name = xstrndup(at + 1, strcspn(at + 1, "}"));
        add_param(params, "path", name, "string",
                  strcmp(name, "id") == 0 ? "id of a job, or its last 4 or more characters"
                                          : "name of a cluster or a place");
        free(name);
    }
    for (size_t i = 0; i < ENDPOINT_PARAMS_MAX && route->query[i].name; i++) {
        add_param(params, "query", route->query[i].name, param_schema_type(route->query[i].type),
                  route->query[i].help);
    }
    return params;
}

static json_t *route_body(const struct endpoint *route)
{
    json_t *types = json_object();
    for (const char *at = route->takes; *at; at += strspn(at, " ")) {
        char *type = xstrndup(at, strcspn(at, " "));
        json_t *one = content(type, strstr(type, "ndjson") ? NULL : route->request);
        if (strcmp(route->name, "submitJobs") == 0 && !strstr(type, "ndjson")) {
            /* one job, or an array of them */
            json_t *schema = json_pack("{s:[o, {s:s, s:o}]}", "oneOf", reference(route->request),
                                       "type", "array", "items", reference(route->request));
            json_object_set_new(json_object_get(one, type), "schema", schema);
        }
        json_object_update(types, one);
        json_decref(one);
        at += strlen(type);
        free(type);
    }
    return json_pack("{s:o, s:b}", "content", types, "required", !route->body_optional);
}

static json_t *response(const char *description, json_t *content_take)
{
    return json_pack("{s:s, s:o}", "description", description, "content", content_take);
}

static json_t *route_responses(const struct endpoint *route)
{
    char status[16];
    (void)snprintf(status, sizeof status, "%d", route->status);
    json_t *responses = json_object();
    json_t *good = content(route->gives, route->schema);
    if (strcmp(route->name, "getJobLog") == 0) {
        json_t *text = content("text/plain", NULL);
        json_object_update(good, text);
        json_decref(text);
    }
    json_object_set_new(responses, status, response(route->summary, good));
    if (strcmp(route->name, "submitJobs") == 0) {
        json_t *any = json_pack("{s:{s:{s:[o, o]}}}", "application/json", "schema", "oneOf",
                                reference("BulkResult"), reference("Job"));
        json_object_set_new(responses, "200",
                            response("Results of many; or the job that the key had made.", any));
    }
    json_object_set_new(responses, "default",
                        response("A problem.", content("application/problem+json", "Problem")));
    return responses;
}

static json_t *route_operation(const struct endpoint *route)
{
    json_t *operation =
        json_pack("{s:s, s:s, s:o, s:o}", "operationId", route->name, "summary", route->summary,
                  "parameters", route_params(route), "responses", route_responses(route));
    if (route->help) {
        json_object_set_new(operation, "description", json_string(route->help));
    }
    if (route->takes) {
        json_object_set_new(operation, "requestBody", route_body(route));
    }
    if (strcmp(route->name, "submitJobs") == 0) {
        add_param(json_object_get(operation, "parameters"), "header", "Idempotency-Key", "string",
                  "the same key and body give the same job; 1 to 255 characters");
    }
    if (route->role == ROLE_NONE) {
        json_object_set_new(operation, "security", json_array());
    }
    return operation;
}

/* --------------------------------------------------------------------------------------- the document */

static void lower(char *text)
{
    for (; *text; text++) {
        *text = (char)(*text >= 'A' && *text <= 'Z' ? *text - 'A' + 'a' : *text);
    }
}

static json_t *document_paths(void)
{
    json_t *paths = json_object();
    for (size_t i = 0; i < endpoint_count; i++) {
        const struct endpoint *route = &endpoint_table[i];
        char *method = xstrdup(route->method);
        lower(method);
        json_t *path = json_object_get(paths, route->pattern);
        if (!path) {
            path = json_object();
            json_object_set_new(paths, route->pattern, path);
        }
        json_object_set_new(path, method, route_operation(route));
        free(method);
    }
    return paths;
}

static json_t *document_schemas(void)
{
    json_t *schemas = json_object();
    for (const struct schema_row *row = schema_table; row->name; row++) {
        json_t *schema = json_loads(row->text, JSON_REJECT_DUPLICATES, NULL);
        assert(schema);
        json_object_set_new(schemas, row->name, schema);
    }
    json_object_set_new(schemas, "JobSpec", schema_of_job());
    return schemas;
}

json_t *openapi_document(const char *url)
{
    json_t *document = json_pack(
        "{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}}", "openapi", "3.1.0", "info", "title", "Tieline",
        "version", TIELINE_VERSION, "description",
        "One queue to many clusters. All times are RFC 3339 in UTC; durations and sizes are text "
        "with a unit. Every error is an RFC 9457 problem.",
        "license", "name", "Apache-2.0", "identifier", "Apache-2.0");
    if (url) {
        json_object_set_new(document, "servers", json_pack("[{s:s}]", "url", url));
    }
    json_object_set_new(document, "security", json_pack("[{s:[]}]", "token"));
    json_object_set_new(document, "paths", document_paths());
    json_t *components = json_pack("{s:o, s:{s:{s:s, s:s, s:s}}}", "schemas", document_schemas(),
                                   "securitySchemes", "token", "type", "http", "scheme", "bearer",
                                   "description", "A token of `tieline token add`.");
    json_object_set_new(document, "components", components);
    return document;
}
