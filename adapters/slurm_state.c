/* slurm_state.c - tables of Slurm's words.
 *
 * A job has one base state and any number of flags. Releases before 23.11 show a single word, and a
 * flag then hides the base. A word that is not in the table is no reason to end a job: without a known
 * base it counts as running, and is looked at again. */
#include "adapters/slurm_state.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum effect {
    BASE,       /* the state itself */
    HOLDS_BACK, /* whatever the base: it will wait or run again */
    HOLDS_ON,   /* whatever the base: it still has resources */
    NOT_OURS,
    NO_START, /* with an ended base: it never ran */
    NOTHING,
};

static const struct {
    const char *word;
    enum effect effect;
    enum slurm_phase phase;
    enum outcome outcome;
} job_words[] = {
    {"PENDING", BASE, SLURM_PENDING, OUTCOME_NONE},
    {"RUNNING", BASE, SLURM_RUNNING, OUTCOME_NONE},
    {"SUSPENDED", BASE, SLURM_RUNNING, OUTCOME_NONE},
    {"COMPLETED", BASE, SLURM_ENDED, OUTCOME_EXIT},
    {"CANCELLED", BASE, SLURM_ENDED, OUTCOME_CANCELLED},
    {"FAILED", BASE, SLURM_ENDED, OUTCOME_EXIT},
    {"TIMEOUT", BASE, SLURM_ENDED, OUTCOME_TIME_LIMIT},
    {"DEADLINE", BASE, SLURM_ENDED, OUTCOME_TIME_LIMIT},
    {"NODE_FAIL", BASE, SLURM_ENDED, OUTCOME_RECLAIMED},
    {"PREEMPTED", BASE, SLURM_ENDED, OUTCOME_RECLAIMED},
    {"BOOT_FAIL", BASE, SLURM_ENDED, OUTCOME_START_FAILED},
    {"OUT_OF_MEMORY", BASE, SLURM_ENDED, OUTCOME_OUT_OF_MEMORY},
    {"COMPLETING", HOLDS_ON, SLURM_RUNNING, OUTCOME_NONE},
    {"STAGE_OUT", HOLDS_ON, SLURM_RUNNING, OUTCOME_NONE},
    {"STOPPED", HOLDS_ON, SLURM_RUNNING, OUTCOME_NONE},
    {"SIGNALING", HOLDS_ON, SLURM_RUNNING, OUTCOME_NONE},
    {"RESIZING", HOLDS_ON, SLURM_RUNNING, OUTCOME_NONE},
    {"CONFIGURING", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"POWER_UP_NODE", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"REQUEUED", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"REQUEUE_HOLD", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"REQUEUE_FED", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"SPECIAL_EXIT", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"RESV_DEL_HOLD", HOLDS_BACK, SLURM_PENDING, OUTCOME_NONE},
    {"REVOKED", NOT_OURS, SLURM_SIBLING, OUTCOME_NONE},
    {"LAUNCH_FAILED", NO_START, SLURM_ENDED, OUTCOME_NONE},
    {"UPDATE_DB", NOTHING, SLURM_RUNNING, OUTCOME_NONE},
    {"RECONFIG_FAIL", NOTHING, SLURM_RUNNING, OUTCOME_NONE},
    {"EXPEDITING", NOTHING, SLURM_RUNNING, OUTCOME_NONE},
};

static size_t find_word(const char *word)
{
    size_t i = 0;
    /* accounting writes "CANCELLED by 1000" */
    size_t length = strcspn(word, " ");
    while (i < sizeof job_words / sizeof *job_words &&
           (strncasecmp(job_words[i].word, word, length) != 0 || job_words[i].word[length])) {
        i++;
    }
    return i;
}

/* slurmd reports its own failures in place of a wait status: 4000 and up, which reads as "died of
 * signal 32 or more". */
static bool launch_failed(const struct slurm_job *job)
{
    enum { FIRST_REAL_TIME_SIGNAL = 32 };
    return strstr(job->reason, "JobLaunchFailure") &&
           (job->signal >= FIRST_REAL_TIME_SIGNAL || (!job->signal && !job->exit_code));
}

static enum outcome outcome_of_failed(const struct slurm_job *job)
{
    if (launch_failed(job)) {
        return OUTCOME_START_FAILED;
    }
    if (job->signal) {
        return OUTCOME_SIGNAL;
    }
    if (job->exit_code) {
        return OUTCOME_EXIT;
    }
    return job->start_ms ? OUTCOME_OUTCOME_UNKNOWN : OUTCOME_START_FAILED;
}

void slurm_state_judge(const struct slurm_words *words, struct slurm_job *job)
{
    bool seen[NOTHING + 1] = {false};
    job->phase = SLURM_RUNNING;
    job->outcome = OUTCOME_NONE;
    bool failed = false;
    for (size_t i = 0; i < words->count; i++) {
        size_t row = find_word(words->items[i]);
        if (row == sizeof job_words / sizeof *job_words) {
            continue;
        }
        seen[job_words[row].effect] = true;
        if (job_words[row].effect == BASE) {
            job->phase = job_words[row].phase;
            job->outcome = job_words[row].outcome;
            failed = !strcmp(job_words[row].word, "FAILED");
        }
    }
    if (job->phase == SLURM_ENDED && failed) {
        job->outcome = seen[NO_START] ? OUTCOME_START_FAILED : outcome_of_failed(job);
    }
    if (seen[HOLDS_ON] || seen[HOLDS_BACK]) {
        job->phase = seen[HOLDS_BACK] ? SLURM_PENDING : SLURM_RUNNING;
        job->outcome = OUTCOME_NONE;
    }
    if (seen[NOT_OURS]) {
        job->phase = SLURM_SIBLING;
        job->outcome = OUTCOME_NONE;
    }
}

void slurm_state_set_wait(struct slurm_job *job, int64_t status)
{
    job->signal = (int)(status & 0x7f);
    job->exit_code = job->signal ? 0 : (int)((status >> 8) & 0xff);
}

bool slurm_node_is_usable(const struct slurm_words *words)
{
    static const char *const good[] = {"IDLE", "MIXED", "ALLOCATED"};
    static const char *const bad[] = {"DOWN",     "DRAIN",          "DRAINED",     "DRAINING",
                                      "FAIL",     "ERROR",          "UNKNOWN",     "FUTURE",
                                      "RESERVED", "NOT_RESPONDING", "MAINT",       "MAINTENANCE",
                                      "BLOCKED",  "INVALID",        "INVALID_REG", "REBOOT_ISSUED"};
    bool usable = false;
    for (size_t i = 0; i < words->count; i++) {
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            if (!strcasecmp(words->items[i], bad[k])) {
                return false;
            }
        }
        for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
            usable |= !strcasecmp(words->items[i], good[k]);
        }
    }
    return usable;
}
