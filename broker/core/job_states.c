/* job_states.c - the states by name, what the API calls them, and their tables as documentation. */
#include "broker/core/job.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    bool final;
    const char *means;
} job_states[JOB_STATE_COUNT] = {
#define X(constant, name, final, means) [JOB_##constant] = {name, final, means},
    JOB_STATE_LIST(X)
#undef X
};

static const struct {
    const char *name;
    const char *means;
    const char *view; /* of an active job whose attempt is in this state */
} attempt_states[ATTEMPT_STATE_COUNT] = {
#define X(constant, name, means, view) [ATTEMPT_##constant] = {name, means, view},
    ATTEMPT_STATE_LIST(X)
#undef X
};

static const struct {
    const char *name, *cause, *means;
} outcomes[OUTCOME_COUNT] = {
#define X(constant, name, cause, means) [OUTCOME_##constant] = {name, cause, means},
    OUTCOME_LIST(X)
#undef X
};

struct transition {
    const char *from;
    enum event_kind kind;
    const char *to, *note;
};

static const struct transition job_transitions[] = {
#define X(state, event, next, note) {#state, EVENT_##event, #next, note},
    JOB_TRANSITION_LIST(X)
#undef X
};

static const struct transition attempt_transitions[] = {
#define X(state, event, next, note) {#state, EVENT_##event, #next, note},
    ATTEMPT_TRANSITION_LIST(X)
#undef X
};

#define FIND_IN(table, name)                                                                       \
    for (int i = 0; i < (int)(sizeof(table) / sizeof(table)[0]); i++) {                            \
        if (strcmp((table)[i].name, name) == 0) {                                                  \
            return i;                                                                              \
        }                                                                                          \
    }                                                                                              \
    return -1

int job_state_find(const char *name)
{
    FIND_IN(job_states, name);
}

int attempt_state_find(const char *name)
{
    FIND_IN(attempt_states, name);
}

int outcome_find(const char *name)
{
    FIND_IN(outcomes, name);
}

const char *job_state_name(enum job_state state)
{
    return job_states[state].name;
}

const char *attempt_state_name(enum attempt_state state)
{
    return attempt_states[state].name;
}

const char *outcome_name(enum outcome outcome)
{
    return outcomes[outcome].name;
}

const char *outcome_cause(enum outcome outcome)
{
    return outcomes[outcome].cause;
}

bool job_state_is_final(enum job_state state)
{
    return job_states[state].final;
}

bool job_is_final(const struct job *job)
{
    return job_states[job->state].final;
}

const char *job_view(const struct job *job)
{
    const struct attempt *attempt = job_attempt(job);
    if (job->state != JOB_ACTIVE || !attempt) {
        return job_states[job->state].name;
    }
    if (attempt->state == ATTEMPT_ENDED) { /* until it is decided what follows */
        return attempt->started_ms    ? attempt_states[ATTEMPT_RUNNING].view
               : attempt->accepted_ms ? attempt_states[ATTEMPT_ACCEPTED].view
                                      : attempt_states[ATTEMPT_INTENDED].view;
    }
    return attempt_states[attempt->state].view;
}

static void print_transitions(FILE *out, const struct transition *table, size_t count)
{
    (void)fprintf(out, "| in | event | leads to | note |\n|---|---|---|---|\n");
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out, "| %s | `%s` | %s | %s |\n", table[i].from, event_name(table[i].kind),
                      table[i].to, table[i].note);
    }
}

static void print_states(FILE *out)
{
    (void)fprintf(out, "\n## Job states\n\n| state | final | means |\n|---|---|---|\n");
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        (void)fprintf(out, "| `%s` | %s | %s |\n", job_states[i].name,
                      job_states[i].final ? "yes" : "", job_states[i].means);
    }
    (void)fprintf(out, "\n");
    print_transitions(out, job_transitions, sizeof job_transitions / sizeof job_transitions[0]);
    (void)fprintf(out, "\n## Attempt states\n\n| state | the API calls the job | means |\n"
                       "|---|---|---|\n");
    for (int i = 0; i < ATTEMPT_STATE_COUNT; i++) {
        (void)fprintf(out, "| `%s` | %s | %s |\n", attempt_states[i].name, attempt_states[i].view,
                      attempt_states[i].means);
    }
    (void)fprintf(out, "\n");
    print_transitions(out, attempt_transitions,
                      sizeof attempt_transitions / sizeof attempt_transitions[0]);
}

static void print_outcomes(FILE *out)
{
    (void)fprintf(out, "\n## Outcomes of an attempt\n\n"
                       "`retry` is the key of a job's `retry` that allows a further attempt.\n\n"
                       "| outcome | retry | means |\n|---|---|---|\n");
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        (void)fprintf(out, "| `%s` | %s | %s |\n", outcomes[i].name, outcomes[i].cause,
                      outcomes[i].means);
    }
}

static void print_events(FILE *out)
{
    (void)fprintf(out, "\n## Events\n\n| stream | event | says |\n|---|---|---|\n");
    for (int i = 0; i < EVENT_COUNT; i++) {
        enum event_kind kind = (enum event_kind)i;
        (void)fprintf(out, "| %s | `%s` | %s |\n", stream_name(event_stream(kind)),
                      event_name(kind), event_says(kind));
    }
}

void job_states_print(FILE *out)
{
    (void)fprintf(out,
                  "# Job states\n\n"
                  "Printed from the tables in `broker/core/job.h` and `broker/core/event.h`.\n\n"
                  "A job has a state, and so has each of its attempts. Only events change them;\n"
                  "an event that the tables do not list for a state is refused. The events of an\n"
                  "attempt are taken while the job is active or cancelling, and for its current\n"
                  "attempt alone. `late` is taken in every state and changes nothing.\n");
    print_states(out);
    print_outcomes(out);
    print_events(out);
}
