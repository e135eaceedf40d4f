/* room.c - what a place has left for a job: its condition less our placements that it does not show yet
 * (algorithms of stale boards: own work in flight is always counted in). Only the resources that the
 * job needs are looked at, so a place without a free GPU is not full for a job without GPUs. */
#include "policy/internal.h"

#include <inttypes.h>
#include <string.h>

/* Beyond ten times the capacity nothing is told apart; keeps powers of ten finite. */
enum { USED_MAX = 10 * 1000 * 1000 };

static int64_t less(int64_t free, int64_t unseen)
{
    return free < 0 ? 0 : free - unseen;
}

static void room_set(struct room *room, int64_t need, int64_t total, int64_t free, int64_t unseen)
{
    *room = (struct room){.need = need};
    if (need > 0 && total > 0) {
        room->stated = true;
        room->total = total;
        room->free_stated = free >= 0;
        room->free = less(free, unseen);
    }
}

/* One job's GPUs are of one model: of those that will do, the one with the most free. */
static void room_of_gpus(struct option *option, const struct federation *federation)
{
    const struct place_view *view = option->view;
    const struct condition *now = &view->condition;
    int64_t need = option->spec->needs.gpus;
    room_set(&option->rooms[AMOUNT_GPUS], need, now->total.gpus, now->free.gpus, view->unseen.gpus);
    bool first = true;
    for (int i = 0; i < now->gpu_count; i++) {
        struct room room;
        const struct gpu_count *gpus = &now->gpus[i];
        if (!gpu_is_wanted(&option->spec->needs, federation->gpus[gpus->model].name)) {
            continue;
        }
        room_set(&room, need, gpus->total, gpus->free, view->unseen_gpus[i]);
        if (first || (room.stated && room.free > option->rooms[AMOUNT_GPUS].free)) {
            option->rooms[AMOUNT_GPUS] = room;
        }
        first = false;
    }
}

int64_t option_need(const struct option *option, enum amount amount)
{
    const struct needs *needs = &option->spec->needs;
    switch (amount) {
    case AMOUNT_CPUS: return needs->cpus;
    case AMOUNT_MEMORY: return needs->memory;
    case AMOUNT_GPUS: return needs->gpus;
    default: return option->spec->time.limit;
    }
}

int64_t option_machines(const struct option *option)
{
    const struct list *nodes = &option->view->place->nodes;
    int64_t sum = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node_shape *shape = RULES_AT(*nodes, struct node_shape, i);
        if (shape->at_most <= 0 || shape->at_most == UNLIMITED) {
            return 0;
        }
        sum = add_capped(sum, scale_down(shape->at_most, 1000, 1));
    }
    return sum;
}

static bool fits_stated(const struct option *option)
{
    for (int i = 0; i < ROOM_COUNT; i++) {
        const struct room *room = &option->rooms[i];
        if (room->stated && room->free_stated && room->free < room->need) {
            return false;
        }
    }
    return option->rooms[AMOUNT_CPUS].stated && option->rooms[AMOUNT_CPUS].free_stated;
}

static void add_load(struct option *option, int64_t used, int64_t takes)
{
    struct load *load = &option->loads[option->load_count++];
    load->used = used > USED_MAX ? USED_MAX : used;
    load->takes = takes > USED_MAX ? USED_MAX : takes;
    option->used = load->used > option->used ? load->used : option->used;
}

static void measure_stated(struct option *option)
{
    for (int i = 0; i < ROOM_COUNT; i++) {
        const struct room *room = &option->rooms[i];
        if (room->stated && room->free_stated) {
            int64_t in_use = room->free >= room->total ? 0 : room->total - room->free;
            add_load(option, scale_near(in_use, SHARE_ONE, room->total),
                     scale_near(room->need, SHARE_ONE, room->total));
        }
    }
}

static void measure_elastic(struct option *option)
{
    int64_t machines = option_machines(option), share = 0;
    const struct list *nodes = &option->view->place->nodes;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node_shape *shape = RULES_AT(*nodes, struct node_shape, i);
        if (shape_fits(shape, &option->spec->needs)) {
            int64_t one = shape_share(shape, &option->spec->needs);
            share = share == 0 || one < share ? one : share;
        }
    }
    if (machines > 0) {
        add_load(option, scale_near(option->view->rented_nodes, SHARE_ONE, machines),
                 scale_near(share, SHARE_ONE, machines));
    }
    option->fits = machines == 0 || add_capped(option->view->rented_nodes, share) <= machines;
}

void option_init(struct option *option, const struct federation *federation,
                 const struct place_view *view, const struct subject *subject,
                 struct verdict_row *row)
{
    const struct condition *now = &view->condition;
    memset(option, 0, sizeof *option);
    option->view = view;
    option->row = row;
    option->spec = spec_at(subject->spec, view->place);
    row->place = view->place;
    row->silent = subject->silent;
    room_set(&option->rooms[AMOUNT_CPUS], option->spec->needs.cpus, now->total.cpus, now->free.cpus,
             view->unseen.cpus);
    room_set(&option->rooms[AMOUNT_MEMORY], option->spec->needs.memory, now->total.memory,
             now->free.memory, view->unseen.memory);
    room_of_gpus(option, federation);
    option->elastic = view->place->nodes.count > 0 && now->total.cpus <= 0;
    if (option->elastic) {
        measure_elastic(option);
    } else {
        option->fits = fits_stated(option);
        measure_stated(option);
    }
}

void option_fini(struct option *option)
{
    spec_unref(option->spec);
}
