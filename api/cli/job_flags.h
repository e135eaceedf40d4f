/* job_flags.h - a job from files, flags and words. The flags are made from the key table of the job:
 * each key has one, with the last part of its name. */
#ifndef API_CLI_JOB_FLAGS_H
#define API_CLI_JOB_FLAGS_H

#include "api/cli/args.h"

#include <jansson.h>

/* The table of flags, made at the first call. */
const struct flag *job_flags(void);

/* Sets in job (an object) what the flags of args say, and its command to the words behind "--". */
int job_flags_apply(const struct args *args, json_t *job, struct error *err);

/* The jobs of the files that are named before "--"; a file may hold one, a list of them, or
 * one in each line (NDJSON). Without a file: one job of flags and words alone. *out is an array. */
int jobs_read(const struct args *args, json_t **out, struct error *err);
/* The same of one file, or NULL. */
int jobs_read_file(const struct args *args, const char *path, json_t *jobs, struct error *err);

/* JSON text as the broker wants it; the caller frees. */
char *job_text(const json_t *json);

/* Says in err where that stands what err->pointer of the index-th job names: "--cpus" as its pointer, or
 * file and line. path NULL: the jobs are those of jobs_read(). What cannot be found stays as it is. */
void job_locate(const struct args *args, const char *path, size_t index, struct error *err);

#endif
