/* The table of routes, what derives from it, and the page that shows it. */
#include "api/api.h"
#include "api/endpoint.h"
#include "api/openapi.h"
#include "broker/core/spec.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct endpoint *find(const char *method, const char *target, struct error *err)
{
    static struct endpoint_match match;
    struct uri uri;
    char allow[64];
    cr_assert_eq(uri_parse(target, &uri, err), 0);
    int status = endpoint_find(method, &uri, &match, allow, err);
    uri_fini(&uri);
    return status == 0 ? match.route : NULL;
}

Test(api_routes, each_route_is_found_by_its_pattern_and_by_no_other)
{
    for (size_t i = 0; i < endpoint_count; i++) {
        struct error err;
        const struct endpoint *route = &endpoint_table[i];
        char target[128];
        (void)snprintf(target, sizeof target, "%s", route->pattern);
        for (char *c = target; *c; c++) {
            *c = *c == '{' || *c == '}' ? 'x' : *c;
        }
        cr_assert_eq(find(route->method, target, &err), route, "%s", target);
        cr_assert(route->handle && route->summary && route->gives && route->status);
        cr_assert_eq(!route->takes, !route->body_max, "%s", route->name);
        cr_assert_null(find("TRACE", target, &err));
        cr_assert_eq(err.code, ERROR_METHOD);
    }
}

Test(api_routes, what_changes_something_takes_a_role)
{
    for (size_t i = 0; i < endpoint_count; i++) {
        const struct endpoint *route = &endpoint_table[i];
        bool reads = strcmp(route->method, "GET") == 0;
        cr_assert(reads || route->role >= ROLE_SUBMIT, "%s", route->name);
        cr_assert(strncmp(route->pattern, "/v1/", 4) != 0 || route->role >= ROLE_READ, "%s",
                  route->name);
        cr_assert_not(route->open_here && !reads);
    }
}

Test(api_routes, names_are_unique)
{
    for (size_t i = 0; i < endpoint_count; i++) {
        for (size_t k = 0; k < i; k++) {
            cr_assert_str_neq(endpoint_table[i].name, endpoint_table[k].name);
        }
    }
}

static void check_references(const json_t *node, const json_t *schemas)
{
    const char *key;
    const json_t *item;
    size_t i;
    json_array_foreach(node, i, item)
    {
        check_references(item, schemas);
    }
    json_t *object = (json_t *)(uintptr_t)node;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (strcmp(key, "$ref") == 0) {
            const char *name = strrchr(json_string_value(value), '/') + 1;
            cr_assert_not_null(json_object_get(schemas, name), "no schema %s", name);
        }
        check_references(value, schemas);
    }
}

Test(api_routes, the_document_has_every_route_and_every_schema)
{
    json_t *document = openapi_document("http://localhost:7410");
    const json_t *paths = json_object_get(document, "paths");
    const json_t *schemas = json_object_get(json_object_get(document, "components"), "schemas");
    size_t operations = 0;
    for (size_t i = 0; i < endpoint_count; i++) {
        const struct endpoint *route = &endpoint_table[i];
        char method[16] = "";
        for (size_t c = 0; route->method[c]; c++) {
            method[c] = (char)(route->method[c] | 0x20);
        }
        const json_t *operation = json_object_get(json_object_get(paths, route->pattern), method);
        cr_assert_str_eq(json_string_value(json_object_get(operation, "operationId")), route->name);
        operations++;
    }
    size_t listed = 0;
    const char *key;
    json_t *item;
    json_t *all = (json_t *)(uintptr_t)paths;
    json_object_foreach(all, key, item)
    {
        listed += json_object_size(item);
    }
    cr_assert_eq(listed, operations);
    check_references(document, schemas);
    json_decref(document);
}

Test(api_routes, the_job_of_the_document_is_the_key_table)
{
    json_t *schema = schema_of_job();
    const json_t *properties = json_object_get(schema, "properties");
    cr_assert(json_is_false(json_object_get(schema, "additionalProperties")));
    for (const struct key *row = spec_keys; row->name; row++) {
        cr_assert(row->flags & KEY_HIDDEN || json_object_get(properties, row->name), "%s",
                  row->name);
    }
    json_decref(schema);
}

Test(api_routes, the_page_shows_the_table)
{
    char *table = NULL, *page = calloc(1, 1024 * 1024);
    size_t length = 0;
    FILE *out = open_memstream(&table, &length);
    api_routes_print(out);
    (void)fclose(out);
    FILE *file = fopen(DOCS "/api.md", "r");
    cr_assert_not_null(file);
    cr_assert_gt(fread(page, 1, 1024 * 1024 - 1, file), 0);
    (void)fclose(file);
    cr_assert_not_null(strstr(page, table), "docs/api.md is old; it should hold:\n%s", table);
    free(table);
    free(page);
}
