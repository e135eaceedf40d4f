/* picture.c - the world as the broker believes it to be, and what it has promised of it.
 *
 * unseen = what our attempts hold and the last condition does not show, minus what it still shows of
 * attempts that have ended since. A condition shows what ran before its probe was sent. */
#include "broker/picture.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"
#include "policy/budget.h"

#include <stdlib.h>
#include <string.h>

struct credit { /* an attempt that ended, and that the last condition still counts as running */
    struct resources holds;
    int gpu_index;
    int64_t ended_ms;
};
struct place_state {
    struct entry *first; /* bookings */
    struct credit *credits;
    size_t credit_count, credit_room;
    int64_t last_arrival_ms;
    int64_t started_ms; /* monotonic: when the last condition was asked for */
    char drain_by[NAME_SIZE], drain_note[WHY_SIZE];
    int64_t drain_since_ms;
};
struct cluster_state {
    bool probed;
    bool reachable;
    int64_t silent_since_ms, observed_ms, round_trip_ms;
    int64_t health;
    char version[128], fault[ERROR_TEXT_MAX];
};
struct budget_state {
    int64_t period_start_ms;
};
struct burst_entry {
    char name[NAME_SIZE];
    struct burst_memory memory;
    struct burst_facts facts;
    int64_t since_ms;
};

struct picture {
    struct context *context;
    struct view view;
    struct place_state *places;
    struct cluster_state *clusters;
    struct budget_state *budgets;
    struct burst_entry *bursts;
    size_t burst_count, budget_count;
    int64_t epoch; /* what opens a place, other than room there, counts it up */
};

enum { SHELF_PROBES = 3, SHELF_MIN_MS = 30000 };

static int64_t mono(const struct picture *picture)
{
    return clock_mono_ms(picture->context->clock);
}

static void add(struct place_view *place, const struct resources *holds, int gpu_index, int sign)
{
    place->unseen.cpus += sign * holds->cpus;
    place->unseen.memory += sign * holds->memory;
    place->unseen.gpus += sign * holds->gpus;
    if (gpu_index >= 0) {
        place->unseen_gpus[gpu_index] += sign * holds->gpus;
    }
}

static int burst_index(const struct picture *picture, const char *name)
{
    for (size_t i = 0; name[0] && i < picture->burst_count; i++) {
        if (strcmp(picture->bursts[i].name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int budget_index(const struct picture *picture, const char *name)
{
    const struct list *budgets = &picture->context->rules->budgets;
    for (size_t i = 0; i < budgets->count; i++) {
        if (strcmp(RULES_AT(*budgets, struct budget_rule, i)->name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* Adds to (or takes from) the sums of bursts and budgets what a booking holds. */
static void count_money(struct picture *picture, const struct booking *booking, int sign)
{
    int burst = burst_index(picture, booking->burst);
    if (burst >= 0) {
        picture->view.bursts[burst].jobs += sign;
        picture->view.bursts[burst].nodes += sign * booking->nodes;
    }
    for (size_t i = 0; i < booking->budgets.count; i++) {
        int budget = budget_index(picture, booking->budgets.items[i]);
        if (budget >= 0) {
            picture->view.budgets[budget].booked += sign * booking->booked;
        }
    }
}

static void hold(struct picture *picture, struct entry *entry)
{
    struct booking *booking = &entry->booking;
    struct place_state *state = &picture->places[booking->place];
    struct place_view *place = &picture->view.places[booking->place];
    booking->held = true;
    booking->prev = NULL;
    booking->next = state->first;
    if (state->first) {
        state->first->booking.prev = entry;
    }
    state->first = entry;
    place->waiting_ours += booking->running ? 0 : 1;
    place->running_ours += booking->running ? 1 : 0;
    place->unseen_jobs++;
    place->rented_nodes += booking->nodes;
    add(place, &booking->holds, booking->gpu_index, 1);
    count_money(picture, booking, 1);
}

/* The GPUs of one of the models that will do; condition.gpus is how the place counts them. */
static int gpu_index_of(const struct picture *picture, int place, const struct needs *needs)
{
    const struct condition *condition = &picture->view.places[place].condition;
    for (int i = 0; needs->gpus > 0 && i < condition->gpu_count; i++) {
        const char *model = picture->context->federation->gpus[condition->gpus[i].model].name;
        if (needs->gpu.count == 0 || texts_contain(&needs->gpu, model)) {
            return i;
        }
    }
    return -1;
}

static void set_holds(struct picture *picture, struct entry *entry, int place)
{
    struct booking *booking = &entry->booking;
    struct spec *spec = spec_at(entry->job->spec, picture->context->federation->places[place]);
    memset(booking, 0, sizeof *booking);
    booking->place = place;
    booking->holds = (struct resources){spec->needs.cpus, spec->needs.memory, spec->needs.gpus};
    booking->gpu_index = gpu_index_of(picture, place, &spec->needs);
    spec_unref(spec);
}

static void note_arrival(struct picture *picture, int place)
{
    struct place_state *state = &picture->places[place];
    struct place_view *view = &picture->view.places[place];
    int64_t now = mono(picture);
    if (state->last_arrival_ms) {
        int64_t gap = now - state->last_arrival_ms;
        view->arrivals_ms = view->arrivals_ms ? view->arrivals_ms + (gap - view->arrivals_ms) / 10
                                              : (gap > 0 ? gap : 1);
    }
    state->last_arrival_ms = now;
}

static int64_t good_for(const struct cluster *cluster)
{
    int64_t good = SHELF_PROBES * cluster->probe;
    return good < SHELF_MIN_MS ? SHELF_MIN_MS : good;
}

/* 0 also while the first probe is under way. */
static int64_t silent_ms(const struct cluster_state *state, int64_t now)
{
    return state->reachable || !state->silent_since_ms ? 0 : now - state->silent_since_ms;
}

const struct view *picture_view(struct picture *picture)
{
    const struct federation *federation = picture->context->federation;
    int64_t now = mono(picture);
    picture->view.now_ms = clock_wall_ms(picture->context->clock);
    picture->view.rules = picture->context->rules;
    for (size_t i = 0; i < federation->place_count; i++) {
        struct place_view *place = &picture->view.places[i];
        const struct cluster *cluster = federation->places[i]->cluster;
        const struct cluster_state *state = &picture->clusters[cluster->index];
        place->known = state->probed;
        place->reachable = state->reachable;
        place->silent_ms = silent_ms(state, now);
        place->age_ms = now - state->observed_ms;
        place->good_for_ms = good_for(cluster);
        place->health = state->health;
    }
    for (size_t i = 0; i < picture->burst_count; i++) {
        picture->view.bursts[i].state = picture->bursts[i].memory.state;
        picture->view.bursts[i].facts = &picture->bursts[i].facts;
        picture->view.bursts[i].why = picture->bursts[i].memory.why;
    }
    return &picture->view;
}

static bool has(int64_t need, int64_t total, int64_t free, int64_t unseen)
{
    return need <= 0 || total <= 0 || free < 0 || free - unseen >= need;
}

bool picture_has_room(const struct picture *picture, int index, const struct needs *needs)
{
    const struct place_view *place = &picture->view.places[index];
    const struct condition *now = &place->condition;
    return place->waiting_ours < place->place->max_waiting ||
           (has(needs->cpus, now->total.cpus, now->free.cpus, place->unseen.cpus) &&
            has(needs->memory, now->total.memory, now->free.memory, place->unseen.memory));
}

int64_t picture_epoch(const struct picture *picture)
{
    return picture->epoch;
}

/* What the condition shows is no longer unseen. Returns whether that changed anything. */
static bool recount(struct picture *picture, int index, int64_t started_ms)
{
    struct place_state *state = &picture->places[index];
    struct place_view *place = &picture->view.places[index];
    struct resources before = place->unseen;
    state->started_ms = started_ms;
    memset(&place->unseen, 0, sizeof place->unseen);
    memset(place->unseen_gpus, 0, sizeof place->unseen_gpus);
    place->unseen_jobs = 0;
    for (struct entry *entry = state->first; entry; entry = entry->booking.next) {
        struct booking *booking = &entry->booking;
        booking->shown_running = booking->running && booking->running_ms < started_ms;
        if (!booking->shown_running) {
            add(place, &booking->holds, booking->gpu_index, 1);
        }
        if (!booking->accepted_ms || booking->accepted_ms >= started_ms) {
            place->unseen_jobs++;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < state->credit_count; i++) {
        if (state->credits[i].ended_ms >= started_ms) {
            state->credits[kept++] = state->credits[i];
            add(place, &state->credits[i].holds, state->credits[i].gpu_index, -1);
        }
    }
    state->credit_count = kept;
    return before.cpus != place->unseen.cpus || before.memory != place->unseen.memory ||
           before.gpus != place->unseen.gpus;
}

static bool is_equal(const struct resources *a, const struct resources *b)
{
    return a->cpus == b->cpus && a->memory == b->memory && a->gpus == b->gpus;
}

/* Whether only what is in use has changed. */
static bool is_same_place(const struct condition *a, const struct condition *b)
{
    bool same = a->up == b->up && strcmp(a->reason, b->reason) == 0 &&
                is_equal(&a->total, &b->total) && is_equal(&a->largest, &b->largest) &&
                a->max_time == b->max_time && a->gpu_count == b->gpu_count;
    for (int i = 0; same && i < a->gpu_count; i++) {
        same = a->gpus[i].model == b->gpus[i].model && a->gpus[i].total == b->gpus[i].total;
    }
    return same;
}

static bool is_same_use(const struct condition *a, const struct condition *b)
{
    bool same = is_equal(&a->free, &b->free) && a->running == b->running &&
                a->waiting == b->waiting && a->waiting_cpus == b->waiting_cpus;
    for (int i = 0; same && i < a->gpu_count && i < b->gpu_count; i++) {
        same = a->gpus[i].free == b->gpus[i].free;
    }
    return same;
}

bool picture_condition(struct picture *picture, int cluster, const struct condition *conditions,
                       const char *version, int64_t started_ms, int64_t round_trip_ms)
{
    const struct cluster *config = &picture->context->federation->clusters[cluster];
    struct cluster_state *state = &picture->clusters[cluster];
    bool stale = mono(picture) - state->observed_ms > good_for(config);
    bool changed = !state->probed || !state->reachable || stale;
    picture->epoch += changed;
    state->probed = true;
    state->reachable = true;
    state->observed_ms = mono(picture);
    state->round_trip_ms = round_trip_ms;
    state->health += (SHARE_ONE - state->health) * 3 / 10;
    if (SHARE_ONE - state->health < 10) {
        state->health = SHARE_ONE;
    }
    state->fault[0] = '\0';
    copy_text(state->version, sizeof state->version, version);
    for (size_t i = 0; i < config->place_count; i++) {
        int index = config->places[i].index;
        struct condition *now = &picture->view.places[index].condition;
        bool same = is_same_place(now, &conditions[i]);
        changed |= !same || !is_same_use(now, &conditions[i]);
        picture->epoch += !same;
        *now = conditions[i];
        changed |= recount(picture, index, started_ms);
    }
    return changed;
}

bool picture_silent(struct picture *picture, int cluster, const char *why)
{
    struct cluster_state *state = &picture->clusters[cluster];
    bool was = state->reachable;
    bool never = !state->reachable && !state->silent_since_ms; /* it has not answered once */
    picture->epoch += was;
    copy_text(state->fault, sizeof state->fault, why);
    state->health = state->health * 7 / 10;
    if (state->reachable) {
        state->silent_since_ms = state->observed_ms; /* it hung: its last word was that */
    } else if (!state->silent_since_ms) {
        state->silent_since_ms = mono(picture);
    }
    state->reachable = false;
    return was || never;
}

bool picture_is_reachable(const struct picture *picture, int cluster)
{
    return picture->clusters[cluster].reachable;
}

const char *picture_version(const struct picture *picture, int cluster)
{
    return picture->clusters[cluster].version;
}

const char *picture_fault(const struct picture *picture, int cluster)
{
    return picture->clusters[cluster].fault;
}

int64_t picture_silent_ms(const struct picture *picture, int cluster)
{
    const struct cluster_state *state = &picture->clusters[cluster];
    return silent_ms(state, mono(picture));
}

struct entry *picture_bookings(const struct picture *picture, int place)
{
    return picture->places[place].first;
}

int64_t picture_round_trip_ms(const struct picture *picture, int cluster)
{
    return picture->clusters[cluster].round_trip_ms;
}

void picture_dark(const struct picture *picture, int *dark, int *known)
{
    *dark = 0;
    *known = 0;
    for (size_t i = 0; i < picture->context->federation->cluster_count; i++) {
        *known += picture->clusters[i].probed ? 1 : 0;
        *dark += picture->clusters[i].probed && !picture->clusters[i].reachable ? 1 : 0;
    }
}

void picture_drain(struct picture *picture, int place, bool drained, const char *by,
                   const char *note, int64_t since_ms)
{
    struct place_state *state = &picture->places[place];
    struct place_view *view = &picture->view.places[place];
    picture->epoch++;
    view->drained = drained;
    copy_text(view->drain_note, sizeof view->drain_note, note);
    copy_text(state->drain_note, sizeof state->drain_note, note);
    copy_text(state->drain_by, sizeof state->drain_by, by);
    state->drain_since_ms = since_ms;
}

json_t *picture_drain_to_json(const struct picture *picture, int place)
{
    const struct place_state *state = &picture->places[place];
    if (!picture->view.places[place].drained) {
        return NULL;
    }
    return json_pack("{s:s, s:s, s:I}", "by", state->drain_by, "note", state->drain_note, "since",
                     (json_int_t)state->drain_since_ms);
}

void picture_drain_from_json(struct picture *picture, int place, const json_t *json)
{
    const char *by = json_string_value(json_object_get(json, "by"));
    const char *note = json_string_value(json_object_get(json, "note"));
    picture_drain(picture, place, by != NULL, by, note,
                  json_integer_value(json_object_get(json, "since")));
}

void picture_set_recovering(struct picture *picture, bool recovering)
{
    picture->epoch++;
    for (size_t i = 0; i < picture->context->federation->place_count; i++) {
        picture->view.places[i].recovering = recovering;
    }
}

bool picture_is_recovering(const struct picture *picture)
{
    return picture->context->federation->place_count > 0 && picture->view.places[0].recovering;
}

void picture_set_looking(struct picture *picture, bool looking)
{
    picture->epoch++;
    for (size_t i = 0; i < picture->context->federation->place_count; i++) {
        picture->view.places[i].looking = looking;
    }
}

bool picture_is_looking(const struct picture *picture)
{
    return picture->context->federation->place_count > 0 && picture->view.places[0].looking;
}

void picture_book(struct picture *picture, struct entry *entry, const struct verdict_row *row,
                  const struct decision *decision)
{
    int place = row->place->index;
    set_holds(picture, entry, place);
    copy_text(entry->booking.burst, sizeof entry->booking.burst, decision->burst);
    entry->booking.nodes = row->nodes;
    entry->booking.booked = row->booked;
    texts_copy(&entry->booking.budgets, &decision->budgets);
    note_arrival(picture, place);
    hold(picture, entry);
}

void picture_rebook(struct picture *picture, struct entry *entry)
{
    const struct attempt *attempt = job_attempt(entry->job);
    const struct place *place = federation_place(picture->context->federation, attempt->place);
    if (!place) {
        return;
    }
    set_holds(picture, entry, place->index);
    struct booking *booking = &entry->booking;
    copy_text(booking->burst, sizeof booking->burst, attempt->burst);
    booking->nodes = attempt->nodes;
    booking->booked = attempt->booked;
    texts_copy(&booking->budgets, &attempt->budgets);
    /* What is there was there before any probe of this broker: the first condition shows it. */
    int64_t before = mono(picture) > 1 ? mono(picture) - 1 : 1;
    booking->running = attempt->started_ms > 0;
    booking->running_ms = booking->running ? before : 0;
    booking->accepted_ms = attempt->accepted_ms ? before : 0;
    hold(picture, entry);
}

void picture_accepted(struct picture *picture, struct entry *entry)
{
    if (entry->booking.held && !entry->booking.accepted_ms) {
        entry->booking.accepted_ms = mono(picture);
    }
}

void picture_running(struct picture *picture, struct entry *entry)
{
    struct booking *booking = &entry->booking;
    if (!booking->held || booking->running) {
        return;
    }
    picture_accepted(picture, entry);
    booking->running = true;
    booking->running_ms = mono(picture);
    picture->view.places[booking->place].waiting_ours--;
    picture->view.places[booking->place].running_ours++;
}

/* Monotonic time of the end of the current attempt: as the member states it, else now. */
static int64_t end_of(const struct picture *picture, const struct entry *entry)
{
    const struct attempt *attempt = job_attempt(entry->job);
    int64_t ago = attempt && attempt->ended_ms
                      ? clock_wall_ms(picture->context->clock) - attempt->ended_ms
                      : 0;
    return mono(picture) - (ago > 0 ? ago : 0);
}

/* The last condition counts it as running: that much more is free than it says. */
static void remember_credit(struct picture *picture, const struct booking *booking,
                            int64_t ended_ms)
{
    struct place_state *state = &picture->places[booking->place];
    if (state->credit_count == state->credit_room) {
        state->credit_room = state->credit_room ? state->credit_room * 2 : 16;
        state->credits = xrealloc(state->credits, state->credit_room, sizeof *state->credits);
    }
    state->credits[state->credit_count++] =
        (struct credit){booking->holds, booking->gpu_index, ended_ms};
}

void picture_release(struct picture *picture, struct entry *entry)
{
    struct booking *booking = &entry->booking;
    if (!booking->held) {
        return;
    }
    struct place_state *state = &picture->places[booking->place];
    struct place_view *place = &picture->view.places[booking->place];
    *(booking->prev ? &booking->prev->booking.next : &state->first) = booking->next;
    if (booking->next) {
        booking->next->booking.prev = booking->prev;
    }
    *(booking->running ? &place->running_ours : &place->waiting_ours) -= 1;
    place->unseen_jobs -= place->unseen_jobs > 0 ? 1 : 0;
    place->rented_nodes -= booking->nodes;
    int64_t ended_ms = end_of(picture, entry);
    if (!booking->shown_running) {
        add(place, &booking->holds, booking->gpu_index, -1);
    } else if (ended_ms >= state->started_ms) { /* else its end is in the last condition already */
        add(place, &booking->holds, booking->gpu_index, -1);
        remember_credit(picture, booking, ended_ms);
    }
    count_money(picture, booking, -1);
    picture->epoch += booking->budgets.count > 0 || booking->nodes > 0 || booking->burst[0];
    texts_fini(&booking->budgets);
    memset(booking, 0, sizeof *booking);
}

int64_t picture_rent(const struct attempt *attempt, int64_t started_ms, int64_t ended_ms)
{
    int64_t started = started_ms ? started_ms : attempt->started_ms;
    return started && ended_ms > started ? budget_rent(attempt->price_hour, ended_ms - started) : 0;
}

static json_t *budgets_to_json(const struct picture *picture)
{
    const struct list *budgets = &picture->context->rules->budgets;
    json_t *sums = json_array();
    for (size_t i = 0; i < budgets->count; i++) {
        json_array_append_new(sums,
                              json_pack("{s:s, s:I, s:I}", "name",
                                        RULES_AT(*budgets, struct budget_rule, i)->name, "period",
                                        (json_int_t)picture->budgets[i].period_start_ms, "settled",
                                        (json_int_t)picture->view.budgets[i].settled));
    }
    return json_pack("{s:o}", "budgets", sums);
}

/* What is settled is no longer booked, so that nothing counts twice until the booking is released. */
static void set_booked(struct picture *picture, struct booking *booking, int64_t booked)
{
    if (booking->held) {
        count_money(picture, booking, -1);
        booking->booked = booked > 0 ? booked : 0;
        count_money(picture, booking, 1);
    }
}

struct store_doc *picture_settle(struct picture *picture, struct entry *entry, int64_t settled)
{
    const struct attempt *attempt = job_attempt(entry->job);
    picture_budget_periods(picture);
    set_booked(picture, &entry->booking, attempt->booked - (settled > 0 ? settled : 0));
    bool any = false;
    for (size_t i = 0; i < attempt->budgets.count; i++) {
        int budget = budget_index(picture, attempt->budgets.items[i]);
        if (budget >= 0) {
            picture->view.budgets[budget].settled += settled;
            any = true;
        }
    }
    return any ? store_doc_create(STORE_META, "budgets", clock_wall_ms(picture->context->clock),
                                  budgets_to_json(picture))
               : NULL;
}

void picture_budgets_from_json(struct picture *picture, const json_t *json)
{
    size_t i;
    json_t *sum;
    json_array_foreach(json_object_get(json, "budgets"), i, sum)
    {
        const char *name = json_string_value(json_object_get(sum, "name"));
        int budget = name ? budget_index(picture, name) : -1;
        int64_t period = json_integer_value(json_object_get(sum, "period"));
        /* A later period than now's: the clock was set back. What was spent stays spent. */
        if (budget >= 0 && period >= picture->budgets[budget].period_start_ms) {
            picture->budgets[budget].period_start_ms = period;
            picture->view.budgets[budget].settled =
                json_integer_value(json_object_get(sum, "settled"));
        }
    }
}

void picture_budget_periods(struct picture *picture)
{
    const struct list *budgets = &picture->context->rules->budgets;
    int64_t now = clock_wall_ms(picture->context->clock);
    for (size_t i = 0; i < budgets->count; i++) {
        const struct budget_rule *rule = RULES_AT(*budgets, struct budget_rule, i);
        int64_t start = budget_period_start(rule, now, picture->context->federation->timezone);
        if (rule->per == BUDGET_JOB) {
            picture->view.budgets[i].settled = 0;
        } else if (start >
                   picture->budgets[i].period_start_ms) { /* never back, whatever the clock does */
            picture->view.budgets[i].settled = 0;
            picture->budgets[i].period_start_ms = start;
            picture->epoch++;
        }
    }
}

void picture_burst_facts(struct picture *picture, int burst, const struct burst_facts *facts)
{
    picture->bursts[burst].facts = *facts;
}

struct burst_memory *picture_burst(struct picture *picture, int burst)
{
    return &picture->bursts[burst].memory;
}

int64_t picture_burst_since(const struct picture *picture, int burst)
{
    return picture->bursts[burst].since_ms;
}

void picture_burst_set_since(struct picture *picture, int burst, int64_t since_ms)
{
    picture->bursts[burst].since_ms = since_ms;
    picture->epoch++;
}

void picture_ran(struct picture *picture, int place, int64_t run_ms)
{
    struct place_view *view = &picture->view.places[place];
    int64_t run = run_ms > 0 ? run_ms : 1;
    view->service_ms = view->service_ms ? view->service_ms + (run - view->service_ms) / 10 : run;
}

/* Sums of budgets that the new policy keeps by name go on. */
static void carry_budgets(struct picture *picture, const json_t *before)
{
    const struct rules *rules = picture->context->rules;
    free(picture->budgets);
    free(picture->view.budgets);
    picture->budget_count = rules->budgets.count;
    picture->budgets = xcalloc(picture->budget_count, sizeof *picture->budgets);
    picture->view.budgets = xcalloc(picture->budget_count, sizeof *picture->view.budgets);
    picture_budget_periods(picture);
    if (before) {
        picture_budgets_from_json(picture, before);
    }
}

static void carry_bursts(struct picture *picture)
{
    const struct list *rules = &picture->context->rules->bursts;
    struct burst_entry *bursts = xcalloc(rules->count, sizeof *bursts);
    for (size_t i = 0; i < rules->count; i++) {
        const char *name = RULES_AT(*rules, struct burst_rule, i)->name;
        int old = burst_index(picture, name);
        if (old >= 0) {
            bursts[i] = picture->bursts[old];
        }
        copy_text(bursts[i].name, sizeof bursts[i].name, name);
    }
    free(picture->bursts);
    free(picture->view.bursts);
    picture->bursts = bursts;
    picture->burst_count = rules->count;
    picture->view.bursts = xcalloc(rules->count, sizeof *picture->view.bursts);
    for (size_t i = 0; i < rules->count; i++) {
        picture->view.bursts[i].rule = RULES_AT(*rules, struct burst_rule, i);
    }
}

json_t *picture_budgets(const struct picture *picture)
{
    return budgets_to_json(picture);
}

void picture_rules_changed(struct picture *picture, const json_t *before)
{
    picture->epoch++;
    carry_budgets(picture, before);
    carry_bursts(picture);
    for (size_t i = 0; i < picture->context->federation->place_count; i++) {
        for (struct entry *entry = picture->places[i].first; entry; entry = entry->booking.next) {
            count_money(picture, &entry->booking, 1);
        }
    }
}

struct picture *picture_create(struct context *context)
{
    struct picture *picture = xcalloc(1, sizeof *picture);
    const struct federation *federation = context->federation;
    picture->context = context;
    picture->view.federation = federation;
    picture->view.rules = context->rules;
    picture->places = xcalloc(federation->place_count, sizeof *picture->places);
    picture->view.places = xcalloc(federation->place_count, sizeof *picture->view.places);
    picture->clusters = xcalloc(federation->cluster_count, sizeof *picture->clusters);
    for (size_t i = 0; i < federation->place_count; i++) {
        picture->view.places[i].place = federation->places[i];
    }
    for (size_t i = 0; i < federation->cluster_count; i++) {
        picture->clusters[i].health = SHARE_ONE;
    }
    picture_rules_changed(picture, NULL);
    return picture;
}

void picture_destroy(struct picture *picture)
{
    if (!picture) {
        return;
    }
    for (size_t i = 0; i < picture->context->federation->place_count; i++) {
        while (picture->places[i].first) {
            picture_release(picture, picture->places[i].first);
        }
        free(picture->places[i].credits);
    }
    free(picture->places);
    free(picture->clusters);
    free(picture->budgets);
    free(picture->bursts);
    free(picture->view.places);
    free(picture->view.bursts);
    free(picture->view.budgets);
    free(picture);
}
