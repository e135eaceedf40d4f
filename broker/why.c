#include "broker/why.h"

#include "broker/core/alloc.h"
#include "broker/journal.h"
#include "broker/picture.h"
#include "broker/queue.h"
#include "broker/subject.h"
#include "policy/decide.h"

#include <string.h>

enum { FRESH_MS = 1000 }; /* a reader is not told what was true longer ago */

/* The schedule does not decide anew while nothing changes that could start a job; the sentence may
 * change all the same. */
static void refresh(struct context *context, struct shape *shape)
{
    struct subject subject;
    struct decision decision;
    memset(&decision, 0, sizeof decision);
    subject_init(&subject, shape->first->job, clock_wall_ms(context->clock));
    decide(picture_view(context->picture), &subject, &decision);
    copy_text(shape->why, sizeof shape->why,
              decision.chosen < 0 ? decision.summary : "it is about to be placed");
    shape->why_ms = clock_mono_ms(context->clock);
    decision_fini(&decision);
    subject_fini(&subject);
}

const char *why_waits(struct context *context, const struct job *job)
{
    const struct entry *entry = journal_find(context->journal, job->id);
    struct shape *shape = entry ? entry->shape : NULL;
    if (!shape) {
        return NULL;
    }
    if (!shape->why[0] || clock_mono_ms(context->clock) - shape->why_ms >= FRESH_MS) {
        refresh(context, shape);
    }
    return shape->why;
}
