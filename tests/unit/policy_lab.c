#include "tests/unit/policy_lab.h"

#include "broker/core/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *own(struct lab *lab, void *memory)
{
    if (lab->owned_count == LAB_OWNED) {
        abort();
    }
    lab->owned[lab->owned_count++] = memory;
    return memory;
}

static char *own_text(struct lab *lab, const char *text)
{
    return own(lab, xstrdup(text));
}

/* The next item of a list of rules; lists never move. */
static void *add(struct lab *lab, struct list *list, size_t size)
{
    if (!list->items) {
        list->items = own(lab, xcalloc(LAB_LIST, size));
    }
    if (list->count == LAB_LIST) {
        abort();
    }
    return (char *)list->items + size * list->count++;
}

struct texts lab_texts(struct lab *lab, const char *words)
{
    struct texts texts = {0};
    texts.items = own(lab, xcalloc(strlen(words) + 1, sizeof(char *)));
    while (*words) {
        size_t length = strcspn(words, " ");
        texts.items[texts.count++] = own(lab, xstrndup(words, length));
        words += length + strspn(words + length, " ");
    }
    return texts;
}

struct label lab_label(struct lab *lab, const char *name, const char *words)
{
    return (struct label){own_text(lab, name), lab_texts(lab, words)};
}

void lab_labels(struct lab *lab, struct labels *labels, const char *name, const char *words)
{
    if (!labels->items) {
        labels->items = own(lab, xcalloc(LAB_LIST, sizeof *labels->items));
    }
    labels->items[labels->count++] = lab_label(lab, name, words);
}

static struct cluster *cluster_of(struct lab *lab, const char *name, size_t length)
{
    struct federation *federation = &lab->federation;
    for (size_t i = 0; i < federation->cluster_count; i++) {
        if (strlen(lab->clusters[i].name) == length &&
            strncmp(lab->clusters[i].name, name, length) == 0) {
            return &lab->clusters[i];
        }
    }
    struct cluster *cluster = &lab->clusters[federation->cluster_count];
    cluster->name = own(lab, xstrndup(name, length));
    cluster->index = (int)federation->cluster_count;
    cluster->adapter = &lab->adapter;
    cluster->places = lab->places[federation->cluster_count++];
    return cluster;
}

struct place *lab_place(struct lab *lab, const char *name, enum place_kind kind)
{
    struct cluster *cluster = cluster_of(lab, name, strcspn(name, "/"));
    struct place *place = &cluster->places[cluster->place_count++];
    copy_text(place->name, sizeof place->name, name);
    place->local_name = own_text(lab, strchr(name, '/') ? strchr(name, '/') + 1 : name);
    place->cluster = cluster;
    place->kind = kind;
    place->max_waiting = 2;
    place->power.pue = 1000;
    place->index = -1;
    lab_ready(lab);
    return place;
}

static struct place_view idle_view(const struct place *place)
{
    struct place_view view = {.place = place,
                              .known = true,
                              .reachable = true,
                              .good_for_ms = MINUTE,
                              .health = SHARE_ONE};
    view.condition.up = true;
    view.condition.total = (struct resources){64 * CPU, 256 * GIB, 0};
    view.condition.free = view.condition.total;
    return view;
}

void lab_ready(struct lab *lab)
{
    struct federation *federation = &lab->federation;
    struct place_view old[LAB_CLUSTERS * LAB_PLACES];
    size_t old_count = federation->place_count, count = 0;
    memcpy(old, lab->views, sizeof old);
    for (size_t c = 0; c < federation->cluster_count; c++) {
        for (size_t p = 0; p < lab->clusters[c].place_count; p++) {
            struct place *place = &lab->places[c][p];
            lab->views[count] = idle_view(place);
            for (size_t i = 0; i < old_count; i++) {
                if (old[i].place == place) {
                    lab->views[count] = old[i];
                }
            }
            place->index = (int)count;
            lab->by_index[count++] = place;
        }
    }
    federation->place_count = count;
}

struct place_view *lab_view(struct lab *lab, const char *name)
{
    for (size_t i = 0; i < lab->federation.place_count; i++) {
        if (strcmp(lab->by_index[i]->name, name) == 0) {
            return &lab->views[i];
        }
    }
    abort();
}

void lab_shape(struct lab *lab, struct place *place, const char *name, int64_t cpus, int64_t gib,
               int64_t gpus, const char *gpu, int64_t milli, const char *currency, int64_t at_most)
{
    struct node_shape *shape = add(lab, &place->nodes, sizeof *shape);
    *shape = (struct node_shape){.name = own_text(lab, name),
                                 .cpus = cpus * CPU,
                                 .memory = gib * GIB,
                                 .gpus = gpus * CPU,
                                 .gpu = gpu ? own_text(lab, gpu) : NULL,
                                 .price = {.nano = milli * (MONEY_UNIT / 1000)},
                                 .at_most = at_most};
    copy_text(shape->price.currency, sizeof shape->price.currency, currency);
}

void lab_gpus(struct lab *lab, const char *place, const char *model, int64_t total, int64_t free)
{
    struct condition *now = &lab_view(lab, place)->condition;
    int index = 0;
    while (strcmp(lab->federation.gpus[index].name, model) != 0) {
        index++;
    }
    now->gpus[now->gpu_count++] = (struct gpu_count){index, total * CPU, free * CPU};
    now->total.gpus += total * CPU;
    now->free.gpus += free * CPU;
}

void lab_match_any(struct match *match)
{
    struct range any = {0, UNLIMITED};
    *match = (struct match){.needs = {.cpus = any, .gpus = any, .memory = any}};
}

struct guard *lab_guard(struct lab *lab, const char *name)
{
    struct guard *guard = add(lab, &lab->rules.guards, sizeof *guard);
    guard->name = own_text(lab, name);
    lab_match_any(&guard->match);
    return guard;
}

struct budget_rule *lab_budget(struct lab *lab, const char *name, int64_t units, int per)
{
    struct budget_rule *budget = add(lab, &lab->rules.budgets, sizeof *budget);
    budget->name = own_text(lab, name);
    budget->limit = (struct money){units * MONEY_UNIT, "EUR"};
    budget->per = per;
    lab_match_any(&budget->match);
    return budget;
}

struct burst_condition *lab_condition(struct lab *lab, struct burst_rule *burst)
{
    return add(lab, &burst->open, sizeof(struct burst_condition));
}

struct burst_rule *lab_burst(struct lab *lab, const char *name, int64_t pending)
{
    size_t index = lab->rules.bursts.count;
    struct burst_rule *burst = add(lab, &lab->rules.bursts, sizeof *burst);
    burst->name = own_text(lab, name);
    burst->at_most = (struct burst_limit){UNLIMITED, UNLIMITED};
    if (pending) {
        lab_condition(lab, burst)->pending = pending;
    }
    lab->bursts[index] = (struct burst_view){.rule = burst, .state = BURST_CLOSED};
    return burst;
}

struct route *lab_route(struct lab *lab, const char *name)
{
    struct route *route = add(lab, &lab->rules.routes, sizeof *route);
    route->name = own_text(lab, name);
    lab_match_any(&route->match);
    return route;
}

struct tier *lab_tier(struct lab *lab, struct route *route, const char *places)
{
    struct tier *tier = add(lab, &route->tiers, sizeof *tier);
    tier->places = lab_texts(lab, places);
    return tier;
}

struct class_rule *lab_class(struct lab *lab, const char *name, int64_t percents)
{
    struct class_rule *class = add(lab, &lab->rules.classes, sizeof *class);
    class->name = own_text(lab, name);
    class->waiting = (struct worth){.is_share = true, .share = percents * 10000};
    return class;
}

void lab_job(struct lab *lab, int64_t cpus, int64_t gib, int64_t minutes)
{
    struct spec *spec = &lab->spec;
    spec->needs.cpus = cpus * CPU;
    spec->needs.memory = gib * GIB;
    spec->time.estimate = minutes * MINUTE;
    spec->time.limit = minutes > 45 ? spec->time.estimate : 45 * MINUTE;
}

struct decision lab_decide(struct lab *lab)
{
    struct decision decision = {0};
    decide(&lab->view, &lab->subject, &decision);
    return decision;
}

const struct verdict_row *lab_row(const struct decision *decision, const char *place)
{
    for (size_t i = 0; i < decision->row_count; i++) {
        if (strcmp(decision->rows[i].place->name, place) == 0) {
            return &decision->rows[i];
        }
    }
    abort();
}

const char *lab_chosen(const struct decision *decision)
{
    return decision->chosen < 0 ? "" : decision->rows[decision->chosen].place->name;
}

uint64_t lab_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t lab_range(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(lab_random(state) % (uint64_t)(high - low + 1));
}

static const char *const models[] = {"a100-80", "h100", "l40s", "a10g"};

struct lab *lab_create(void)
{
    struct lab *lab = xcalloc(1, sizeof *lab);
    size_t count = sizeof models / sizeof models[0];
    lab->adapter.name = "sim";
    lab->federation.name = own_text(lab, "lab");
    lab->federation.clusters = lab->clusters;
    lab->federation.places = lab->by_index;
    lab->federation.gpus = own(lab, xcalloc(count, sizeof(struct gpu_model)));
    lab->federation.gpu_count = count;
    for (size_t i = 0; i < count; i++) {
        lab->federation.gpus[i] = (struct gpu_model){own_text(lab, models[i]), 80 * GIB, 1000};
    }
    copy_text(lab->rules.currency, sizeof lab->rules.currency, "EUR");
    copy_text(lab->rules.hash, sizeof lab->rules.hash, "9f31c2a7");
    struct rate_of_exchange *rate = add(lab, &lab->rules.rates, sizeof *rate);
    *rate = (struct rate_of_exchange){own_text(lab, "USD"), {920000000, "EUR"}};
    lab->rules.default_class = own_text(lab, "batch");
    lab->spec.refs = 1;
    lab->spec.name = own_text(lab, "job");
    lab->spec.class_name = own_text(lab, "batch");
    lab->spec.team = own_text(lab, "media");
    lab_job(lab, 4, 6, 20);
    lab->subject = (struct subject){.spec = &lab->spec, .owner = "alice@example.org"};
    lab->view = (struct view){.rules = &lab->rules,
                              .federation = &lab->federation,
                              .places = lab->views,
                              .bursts = lab->bursts,
                              .budgets = lab->budgets};
    return lab;
}

/* Power of a place: milliwatts of a core, and the price of a kilowatt hour. */
static void set_power(struct lab *lab, struct place *place, int64_t cpu, int64_t pue,
                      int64_t nano_kwh)
{
    place->power.cpu = cpu;
    place->power.pue = pue;
    place->power.tariff = own_text(lab, "exchange-de");
    place->electricity = (struct money){nano_kwh, "EUR"};
}

struct lab *lab_site(void)
{
    struct lab *lab = lab_create();
    set_power(lab, lab_place(lab, "hpc/cpu", PLACE_OWNED), 4000, 1350, 312000000);
    set_power(lab, lab_place(lab, "hpc/gpu", PLACE_OWNED), 4000, 1350, 312000000);
    set_power(lab, lab_place(lab, "k8s/ci", PLACE_OWNED), 4000, 1200, 312000000);
    set_power(lab, lab_place(lab, "edge", PLACE_OWNED), 6000, 1000, 208100000);
    struct place *spot = lab_place(lab, "aws/spot", PLACE_SPOT);
    lab_shape(lab, spot, "c6i.4xlarge", 16, 32, 0, NULL, 298, "USD", 40);
    lab_shape(lab, spot, "g5.2xlarge", 8, 32, 1, "a10g", 600, "USD", 16);
    struct place *certain = lab_place(lab, "aws/on-demand", PLACE_ON_DEMAND);
    lab_shape(lab, certain, "c6i.4xlarge", 16, 32, 0, NULL, 776, "USD", 10);
    lab_shape(lab, certain, "g5.2xlarge", 8, 32, 1, "a10g", 1515, "USD", 4);
    for (size_t i = 0; i < 2; i++) {
        const char *name = i ? "aws/on-demand" : "aws/spot";
        struct condition *now = &lab_view(lab, name)->condition;
        now->total = now->free = (struct resources){-1, -1, -1};
    }
    lab_gpus(lab, "hpc/gpu", "a100-80", 4, 4);
    lab_class(lab, "batch", 1);
    return lab;
}

void lab_destroy(struct lab *lab)
{
    for (size_t i = 0; i < lab->owned_count; i++) {
        free(lab->owned[i]);
    }
    free(lab);
}
