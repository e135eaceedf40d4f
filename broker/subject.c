#include "broker/subject.h"

#include "broker/core/texts.h"

#include <string.h>

void subject_init(struct subject *subject, const struct job *job, int64_t now_ms)
{
    memset(subject, 0, sizeof *subject);
    subject->spec = job->spec;
    subject->owner = job->owner;
    subject->waited_ms = job->queued_ms ? now_ms - job->queued_ms : 0;
    for (int i = 0; i < job->attempt_count; i++) {
        if (job->attempts[i].outcome == OUTCOME_REJECTED) {
            texts_add(&subject->refused, job->attempts[i].place);
        }
    }
}

void subject_fini(struct subject *subject)
{
    texts_fini(&subject->refused);
}
