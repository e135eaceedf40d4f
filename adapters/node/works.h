/* works.h - what a supervisor knows: its attempts, those it has forgotten, and the slots of its places.
 *
 * No process and no file is touched here. works_apply() is the only writer of an attempt's state; the
 * same records in the same order give the same state, so a restart replays the exit log. Records:
 *   {"k":"accept","at_ms","work":{...}}            the submit as received; refuses nothing
 *   {"k":"start","job","attempt","boot","at_ms"}   written before its keeper is forked
 *   {"k":"unstart","job","attempt"}                proven that no keeper ever began
 *   {"k":"cancel","job","attempt"}                 its keeper is to be told
 *   {"k":"end","job","attempt","exit":{...}}       as keeper.h prints it
 *   {"k":"forget","job","attempt","at_ms"}         the broker has the end on its disk
 *   {"k":"seen","job","attempts","at_ms"}          bits of attempts that were forgotten */
#ifndef ADAPTERS_NODE_WORKS_H
#define ADAPTERS_NODE_WORKS_H

#include "adapters/node/keeper.h"
#include "adapters/node/proc.h"
#include "broker/core/error.h"
#include "broker/core/id.h"
#include "broker/core/map.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    WORKS_MAX = 2048, /* attempts at once; beyond: refused */
    WORKS_QUEUED_BYTES =
        64 * 1024 * 1024,   /* of what waiting attempts are to run; beyond: refused */
    WORKS_SEEN_MAX = 65536, /* forgotten jobs remembered; beyond: the oldest go */
    WORKS_PLACES_MAX = 256,
    WORK_KEY_SIZE = ID_SIZE + 8
};

/* LOST: its keeper died without a word; what is left of it is being ended. Set by keeps.c and never
 * recorded: the next supervisor finds it so again. */
enum work_state { WORK_QUEUED, WORK_STARTED, WORK_LOST, WORK_ENDED };

struct work {
    char key[WORK_KEY_SIZE]; /* "<job>-<attempt>" */
    char job[ID_SIZE];
    int attempt;
    char name[NAME_SIZE];
    char place[NAME_SIZE];
    int64_t intent_ms, cpus, memory, limit_ms, grace_ms;
    json_t *argv, *env; /* NULL once it has started */
    size_t bytes;       /* of argv and env */
    enum work_state state;
    bool cancelled;
    int64_t started_ms;
    char boot[PROC_BOOT_SIZE]; /* of its start */
    struct keeper_exit end;
    struct keep *keep; /* the supervisor's hold on its keeper, or NULL */
};

struct slots { /* one place */
    char name[NAME_SIZE];
    int64_t cpus, memory; /* capacity */
    int64_t used_cpus, used_memory, running, waiting, waiting_cpus;
    bool blocked; /* the first that waits does not fit: those behind it wait too */
};

struct seen {
    char job[ID_SIZE];
    uint32_t attempts;
    int64_t at_ms;
};

struct works {
    struct work **items; /* in the order of acceptance */
    size_t count, room;
    struct map by_key;
    struct seen **seen;
    size_t seen_count, seen_room;
    struct map seen_by_job;
    struct slots places[WORKS_PLACES_MAX];
    size_t place_count;
    size_t queued_bytes;
};

void works_init(struct works *works);
void works_fini(struct works *works);

void works_apply(struct works *works, const json_t *record);
struct work *works_find(const struct works *works, const char *job, int attempt);
/* Whether the attempt was here and is forgotten. */
bool works_was_seen(const struct works *works, const char *job, int attempt);

/* Sets the places and their capacity: [{"name","cpus","memory"}]. */
int works_places(struct works *works, const json_t *places, struct error *err);
struct slots *works_place(struct works *works, const char *name);

/* Whether a submit may be taken. 1: yes; 0: this very attempt is here already; -1: refused. */
int works_admit(struct works *works, const json_t *submit, struct error *err);

/* Counts what each place gives away. */
void works_count(struct works *works);

/* Counts, then calls start for every attempt that has its turn: first come,
 * first served in each place. start must apply the start record. */
void works_schedule(struct works *works, void (*start)(void *arg, struct work *work), void *arg);

/* Its keeper lives: what it runs need not be kept any more. */
void works_started(struct works *works, struct work *work);

/* Forgets jobs that were forgotten by the broker before. */
void works_prune(struct works *works, int64_t before_ms);

json_t *work_report(const struct work *work);
json_t *work_record(const char *kind, const struct work *work);
/* Records that give this state again. */
json_t *works_records(const struct works *works);

#endif
