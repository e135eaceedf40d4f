/* recover.c - restart reads the rows of live jobs, not the log.
 *
 * An attempt that was INTENDED when the last broker died may have been sent. Where the member's create is
 * idempotent it is sent again; elsewhere it becomes UNSURE and is looked up first. */
#include "broker/recover.h"

#include "broker/journal.h"
#include "broker/member.h"
#include "broker/picture.h"

#include <stdlib.h>

struct loading {
    struct context *context;
    const struct recover_hooks *hooks;
};

/* Work at a place that is gone from the configuration could neither be watched nor ended. */
static int check_place(const struct context *context, const struct job *job, struct error *err)
{
    const struct attempt *attempt = job_attempt(job);
    bool live = job->state == JOB_ACTIVE || job->state == JOB_CANCELLING;
    if (!live || !attempt || attempt->state == ATTEMPT_ENDED ||
        federation_place(context->federation, attempt->place)) {
        return 0;
    }
    error_set(err, ERROR_INVALID, "job %s is at %s, which is not configured", job->id,
              attempt->place);
    return error_expect(err, "put it back, and drain it until its jobs have ended");
}

static int load_job(void *arg, const json_t *row, const struct event *submit, struct error *err)
{
    struct loading *loading = arg;
    struct spec *spec;
    struct job *job;
    if (spec_restore(json_object_get(submit->data, "spec"),
                     json_object_get(submit->data, "defaults"), event_str(submit, "team"), &spec,
                     err) < 0) {
        return error_prefix(err, "job %s", submit->id);
    }
    int result = job_from_row(row, spec, &job, err);
    spec_unref(spec);
    if (result < 0) {
        return error_prefix(err, "job %s", submit->id);
    }
    job->submit_seq = submit->seq;
    if (check_place(loading->context, job, err) < 0) {
        job_unref(job);
        return -1;
    }
    journal_add_take(loading->context->journal, job);
    return 0;
}

static int load_doc(void *arg, enum store_table table, const char *id, const char *text,
                    struct error *err)
{
    struct loading *loading = arg;
    json_error_t json_err;
    json_t *json = json_loads(text, 0, &json_err);
    if (!json) {
        return error_set(err, ERROR_STORE, "the document %s cannot be read: %s", id, json_err.text);
    }
    loading->hooks->doc(loading->hooks->arg, table, id, json);
    json_decref(json);
    return 0;
}

static int load_tombstone(void *arg, const struct event *event, struct error *err)
{
    struct loading *loading = arg;
    return loading->hooks->tombstone(loading->hooks->arg, event, err);
}

int recover_load(struct context *context, const struct recover_hooks *hooks, struct error *err)
{
    struct loading loading = {context, hooks};
    struct store_loader loader = {&loading, load_job, load_doc, load_tombstone};
    return context->store->ops->load(context->store, &loader, err);
}

void recover_bookings(struct context *context)
{
    for (struct entry *entry = journal_first(context->journal); entry; entry = entry->next) {
        const struct attempt *attempt = job_attempt(entry->job);
        bool active = entry->job->state == JOB_ACTIVE || entry->job->state == JOB_CANCELLING;
        if (active && attempt && attempt->state != ATTEMPT_ENDED) {
            picture_rebook(context->picture, entry);
        }
    }
}

bool recover_is_unsure(struct context *context, const struct job *job)
{
    const struct attempt *attempt = job_attempt(job);
    const struct place *place = federation_place(context->federation, attempt->place);
    return attempt->state == ATTEMPT_INTENDED && place &&
           !member_type(context->members, place->cluster->index)->idempotent_create;
}
