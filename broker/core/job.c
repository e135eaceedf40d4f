/* job.c - the life of a job in memory. */
#include "broker/core/job.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>
#include <string.h>

struct job *job_create(const char *id)
{
    struct job *job = xcalloc(1, sizeof *job);
    job->refs = 1;
    copy_text(job->id, sizeof job->id, id);
    return job;
}

struct job *job_ref(struct job *job)
{
    job->refs++;
    return job;
}

struct job *job_clone(const struct job *job)
{
    struct job *copy = xcalloc(1, sizeof *copy);
    *copy = *job;
    copy->refs = 1;
    copy->spec = job->spec ? spec_ref(job->spec) : NULL;
    copy->owner = xstrdup(job->owner);
    copy->key = xstrdup(job->key);
    copy->attempts = NULL;
    if (job->attempt_count) {
        size_t count = (size_t)job->attempt_count;
        copy->attempts = xcalloc(count, sizeof *copy->attempts);
        memcpy(copy->attempts, job->attempts, count * sizeof *copy->attempts);
        for (size_t i = 0; i < count; i++) {
            texts_copy(&copy->attempts[i].budgets, &job->attempts[i].budgets);
        }
    }
    return copy;
}

void job_unref(struct job *job)
{
    if (!job || --job->refs > 0) {
        return;
    }
    for (int i = 0; i < job->attempt_count; i++) {
        texts_fini(&job->attempts[i].budgets);
    }
    free(job->attempts);
    spec_unref(job->spec);
    free(job->owner);
    free(job->key);
    free(job);
}
