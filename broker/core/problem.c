#include "broker/core/problem.h"

#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>

/* A text may quote what a client sent, and be cut within a character: what JSON cannot hold is '?'. */
static json_t *safe_text(const char *text)
{
    json_t *json = json_string(text);
    if (!json) {
        char *copy = xstrdup(text);
        for (char *c = copy; *c; c++) {
            *c = (unsigned char)*c < 128 ? *c : '?';
        }
        json = json_string(copy);
        free(copy);
    }
    return json;
}

static void set_text(json_t *problem, const char *name, const char *text)
{
    if (text[0]) {
        json_object_set_new(problem, name, safe_text(text));
    }
}

json_t *error_to_problem(const struct error *err)
{
    json_t *problem = json_object();
    char type[64];
    (void)snprintf(type, sizeof type, "urn:tieline:problem:%s", error_name(err->code));
    set_text(problem, "type", type);
    set_text(problem, "title", error_title(err->code));
    json_object_set_new(problem, "status", json_integer(error_status(err->code)));
    set_text(problem, "detail", err->text);
    set_text(problem, "expected", err->expected);
    set_text(problem, "pointer", err->pointer);
    set_text(problem, "file", err->file);
    if (err->line) {
        json_object_set_new(problem, "line", json_integer(err->line));
        json_object_set_new(problem, "column", json_integer(err->column));
    }
    if (error_retry_helps(err->code)) {
        json_object_set_new(problem, "retry", json_true());
    }
    return problem;
}
