/* slurm_discover.c - the OpenAPI document names all versions; where it is not served, each is tried. */
#include "adapters/slurm_discover.h"

#include "adapters/slurm_result.h"
#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <stdio.h>
#include <stdlib.h>

static const int versions[] = {45, 44, 43, 42, 41, 40, 38}; /* newest first */
enum { VERSION_COUNT = sizeof versions / sizeof *versions };

struct slurm_discovery {
    struct slurm_line *line;
    int64_t deadline_ms;
    slurm_discovered_fn done;
    void *arg;
    size_t tried;
    slurm_reply_fn tried_cb;
};

int slurm_version_pick(uint64_t served)
{
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        if (served >> versions[i] & 1) {
            return versions[i];
        }
    }
    return 0;
}

static void finish(struct slurm_discovery *discovery, int version, bool accounting,
                   const struct error *err)
{
    discovery->done(discovery->arg, version, accounting, err);
    free(discovery);
}

static void fail_with(struct slurm_discovery *discovery, const struct slurm_reply *reply)
{
    struct error err;
    (void)slurm_reply_error(reply, &err);
    (void)error_prefix(&err, "looking for the API version");
    finish(discovery, 0, false, &err);
}

static void try_next(struct slurm_discovery *discovery)
{
    if (discovery->tried == VERSION_COUNT) {
        struct error err;
        error_set(&err, ERROR_UPSTREAM,
                  "no slurmrestd there, or none of a version that is spoken here");
        (void)error_expect(&err, "v0.0.38 or v0.0.40 to v0.0.45");
        finish(discovery, 0, false, &err);
        return;
    }
    char path[64];
    (void)snprintf(path, sizeof path, "/slurm/v0.0.%d/ping", versions[discovery->tried++]);
    slurm_line_send(discovery->line, "GET", path, NULL, discovery->deadline_ms, discovery->tried_cb,
                    discovery);
}

static bool is_missing(const struct slurm_answer *answer)
{
    return answer->status == 404 && !answer->is_json;
}

static void tried_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_discovery *discovery = arg;
    if (!reply->answer || slurm_answer_is_unauthorized(reply->answer)) {
        fail_with(discovery, reply);
    } else if (reply->answer->is_json) { /* even an error: the version is known there */
        finish(discovery, versions[discovery->tried - 1], true, NULL);
    } else if (is_missing(reply->answer)) {
        try_next(discovery);
    } else {
        fail_with(discovery, reply);
    }
    slurm_answer_destroy(reply->answer);
}

static void refuse(struct slurm_discovery *discovery, uint64_t served)
{
    struct strbuf text;
    strbuf_init(&text, ERROR_TEXT_MAX / 2);
    for (int version = 0; version < 64; version++) {
        if (served >> version & 1) {
            strbuf_printf(&text, "%sv0.0.%d", text.length ? ", " : "", version);
        }
    }
    struct error err;
    error_set(&err, ERROR_UPSTREAM, "slurmrestd serves only %s", text.text);
    (void)error_expect(&err, "v0.0.38 or v0.0.40 to v0.0.45");
    strbuf_fini(&text);
    finish(discovery, 0, false, &err);
}

static void document_cb(void *arg, struct slurm_reply *reply)
{
    struct slurm_discovery *discovery = arg;
    const struct slurm_answer *answer = reply->answer;
    if (!answer || slurm_answer_is_unauthorized(answer)) {
        fail_with(discovery, reply);
    } else if (answer->versions) {
        int version = slurm_version_pick(answer->versions);
        if (version) {
            finish(discovery, version, answer->accounting >> version & 1, NULL);
        } else {
            refuse(discovery, answer->versions);
        }
    } else if (answer->status == 404) { /* an administrator may serve no documents */
        try_next(discovery);
    } else {
        fail_with(discovery, reply);
    }
    slurm_answer_destroy(reply->answer);
}

struct slurm_discovery *slurm_discover(struct slurm_line *line, int64_t deadline_ms,
                                       slurm_discovered_fn done, void *arg)
{
    struct slurm_discovery *discovery = xcalloc(1, sizeof *discovery);
    *discovery = (struct slurm_discovery){
        .line = line, .deadline_ms = deadline_ms, .done = done, .arg = arg, .tried_cb = tried_cb};
    slurm_line_send(line, "GET", "/openapi/v3", NULL, deadline_ms, document_cb, discovery);
    return discovery;
}

void slurm_discovery_destroy(struct slurm_discovery *discovery)
{
    free(discovery);
}
