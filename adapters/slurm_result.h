/* slurm_result.h - what a reply means for the request: done, not done, or nobody knows. */
#ifndef ADAPTERS_SLURM_RESULT_H
#define ADAPTERS_SLURM_RESULT_H

#include "adapters/slurm_line.h"

/* 200, JSON, no errors. */
bool slurm_reply_is_good(const struct slurm_reply *reply);
/* The controller does not know the job: never had it, or has forgotten it. */
bool slurm_reply_is_no_job(const struct slurm_reply *reply);

/* Sets err from a reply that cannot be used. Returns -1. */
int slurm_reply_error(const struct slurm_reply *reply, struct error *err);

/* Of a submit. err is set unless OK: UNAVAILABLE, UNAUTHORIZED: it never came to be looked at; others:
 * it was refused. */
enum adapter_result slurm_submit_result(const struct slurm_reply *reply, struct error *err);
/* Of a cancel. OK: asked, or already over. */
enum adapter_result slurm_cancel_result(const struct slurm_reply *reply, struct error *err);

#endif
