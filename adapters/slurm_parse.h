/* slurm_parse.h - what slurmrestd answers, of every version, as plain structs.
 *
 * The versions differ in nearly every field: numbers are plain, {set, infinite, number}, null or
 * "Infinity"; a state is a word or a list; an exit code is a wait status or a struct. Whatever form is
 * met is read, whichever version was asked, since administrators can change it. */
#ifndef ADAPTERS_SLURM_PARSE_H
#define ADAPTERS_SLURM_PARSE_H

#include "adapters/slurm_job.h"
#include "broker/core/keys.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slurm_node {
    char *name, *gres, *gres_used;
    struct texts partitions;
    bool usable; /* takes jobs, now or when others have left it */
    int64_t cpus, cpus_used;
    int64_t memory, memory_used; /* MiB */
};

struct slurm_partition {
    char *name;
    bool up, is_default;
    char state[32];
    int64_t max_ms; /* 0: no limit */
};

struct slurm_fault { /* the errors of an answer, or its text when that is not JSON */
    int number;      /* of Slurm; 0: none was given */
    char text[300];
};

struct slurm_answer {
    long status;
    bool is_json;
    bool is_html;
    bool has_errors;
    bool is_unchanged; /* "nothing changed", not "nothing there" */
    struct slurm_fault fault;
    int64_t job_id; /* of a submit; 0: none */
    char release[32];
    uint64_t versions, accounting; /* bit N: v0.0.N is served under /slurm, under /slurmdb */
    bool has_jobs, has_nodes, has_partitions;
    struct slurm_job *jobs;
    size_t job_count;
    struct slurm_node *nodes;
    size_t node_count;
    struct slurm_partition *partitions;
    size_t partition_count;
};

/* Never fails: what is no JSON has is_json false and its beginning as text. Safe on any thread. */
struct slurm_answer *slurm_parse(long status, const char *content_type, const char *text,
                                 size_t length);
void slurm_answer_destroy(struct slurm_answer *answer); /* takes NULL */

/* Whether the request surely was not carried out for want of credentials; and whether it may be so,
 * as old releases say the same of a dead controller. */
bool slurm_answer_is_unauthorized(const struct slurm_answer *answer);
bool slurm_answer_may_be_unauthorized(const struct slurm_answer *answer);

#endif
