/* subject.h - a job as the decision sees it. */
#ifndef BROKER_SUBJECT_H
#define BROKER_SUBJECT_H

#include "broker/core/job.h"
#include "policy/decide.h"

/* Borrows the job's spec and owner; subject_fini frees the rest. */
void subject_init(struct subject *subject, const struct job *job, int64_t now_ms);
void subject_fini(struct subject *subject);

#endif
