#include "broker/lookup.h"

#include "broker/core/alloc.h"
#include "broker/journal.h"

#include <stdlib.h>
#include <string.h>

struct lookup {
    struct context *context;
    lookup_fn done;
    void *arg;
    char id[ID_SIZE];
    struct timer *timer;
};

static void lookup_free(struct lookup *lookup)
{
    timer_destroy(lookup->timer);
    free(lookup);
}

int lookup_from_row(const json_t *row, struct job **out, struct error *err)
{
    const json_t *submit = json_object_get(row, "submit");
    struct spec *spec;
    if (spec_restore(json_object_get(submit, "spec"), json_object_get(submit, "defaults"),
                     json_string_value(json_object_get(submit, "team")), &spec, err) < 0) {
        return -1;
    }
    int result = job_from_row(json_object_get(row, "row"), spec, out, err);
    spec_unref(spec);
    return result;
}

static void answer(struct lookup *lookup, const struct job *job, const struct error *err)
{
    struct error none;
    error_clear(&none);
    lookup->done(lookup->arg, job, err ? err : &none);
    lookup_free(lookup);
}

static void rows_done(void *arg, json_t *rows, bool more, const struct error *err)
{
    struct lookup *lookup = arg;
    struct error mine;
    (void)more;
    if (err->code) {
        answer(lookup, NULL, err);
        return;
    }
    if (json_array_size(rows) == 0) {
        (void)error_set(&mine, ERROR_NOT_FOUND, "there is no job '%s'", lookup->id);
        (void)error_expect(&mine, "an id, or the last %d or more characters of one", ID_SUFFIX_MIN);
        answer(lookup, NULL, &mine);
        return;
    }
    if (json_array_size(rows) > 1) {
        (void)error_set(&mine, ERROR_CONFLICT, "'%s' is the end of more than one job's id",
                        lookup->id);
        (void)error_expect(&mine, "more characters of the id");
        answer(lookup, NULL, &mine);
        return;
    }
    const json_t *row = json_array_get(rows, 0);
    const struct entry *entry =
        journal_find(lookup->context->journal, json_string_value(json_object_get(row, "id")));
    if (entry) {
        answer(lookup, entry->job, NULL);
        return;
    }
    struct job *job;
    if (lookup_from_row(row, &job, &mine) < 0) {
        answer(lookup, NULL, &mine);
        return;
    }
    answer(lookup, job, NULL);
    job_unref(job);
}

static void start_cb(void *arg)
{
    struct lookup *lookup = arg;
    struct error err;
    const struct entry *entry = journal_find(lookup->context->journal, lookup->id);
    if (entry && entry->job->state != JOB_NEW) {
        answer(lookup, entry->job, NULL);
        return;
    }
    if (!id_is_suffix(lookup->id)) {
        (void)error_set(&err, ERROR_NOT_FOUND, "'%s' is not an id", lookup->id);
        (void)error_expect(&err, "an id, or the last %d or more characters of one", ID_SUFFIX_MIN);
        answer(lookup, NULL, &err);
        return;
    }
    struct store_filter filter = {.suffix = lookup->id, .limit = 2};
    lookup->context->store->ops->jobs(lookup->context->store, &filter, rows_done, lookup);
}

void lookup_job(struct context *context, const char *id, lookup_fn done, void *arg)
{
    struct lookup *lookup = xcalloc(1, sizeof *lookup);
    lookup->context = context;
    lookup->done = done;
    lookup->arg = arg;
    copy_text(lookup->id, sizeof lookup->id, id);
    lookup->timer = clock_timer(context->clock, start_cb, lookup);
    timer_start(lookup->timer, 0);
}
