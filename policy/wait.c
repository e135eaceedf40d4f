/* wait.c - how long a job would wait at a place until it starts.
 *
 * The board of the place is looked at first: a job that fits into what is free, less our own placements
 * that the board does not show yet, starts at once. Else the work ahead of it drains at the rate of the
 * place (fluid). Queueing theory (Erlang C, Allen and Cunneen) serves where the board says too little. */
#include "policy/internal.h"

#include <math.h>

/* The recursion is linear in the servers; more of them are scaled down to so many, which waits longer
 * by a little: never too little. */
enum { SERVERS_MAX = 4096 };

double wait_erlang_c(int64_t servers, double load)
{
    double blocked = 1.0; /* Erlang B */
    if (load <= 0.0 || servers <= 0) {
        return 0.0;
    }
    if (load >= (double)servers) {
        return 1.0;
    }
    for (int64_t k = 1; k <= servers; k++) {
        blocked = load * blocked / ((double)k + load * blocked);
    }
    return blocked / (1.0 - load / (double)servers * (1.0 - blocked));
}

double wait_mean(int64_t servers, double load, double ca2, double cs2)
{
    double free = (double)servers - load;
    return wait_erlang_c(servers, load) / free * (ca2 + cs2) / 2.0;
}

double wait_p95(int64_t servers, double load)
{
    double late = wait_erlang_c(servers, load);
    double span = log(late / 0.05) / ((double)servers - load);
    return span > 0.0 ? span : 0.0;
}

static double part(int64_t amount, int64_t total)
{
    return (double)amount / (double)total;
}

/* What a job there wants on the average: of those that run, else this one. Thousandths of CPUs. */
static double mean_cpus(const struct option *option)
{
    const struct room *cpus = &option->rooms[AMOUNT_CPUS];
    const struct condition *now = &option->view->condition;
    if (now->running > 0 && now->free.cpus >= 0 && now->total.cpus > now->free.cpus) {
        return (double)(now->total.cpus - now->free.cpus) / (double)now->running;
    }
    return (double)cpus->need;
}

/* Share of the place that the jobs ahead of ours want; ours alone when the place does not say. */
static double ahead(const struct option *option, double servers)
{
    const struct condition *now = &option->view->condition;
    int64_t waiting = now->waiting >= 0 ? now->waiting : option->view->waiting_ours;
    if (now->waiting_cpus >= 0) {
        return part(now->waiting_cpus, option->rooms[AMOUNT_CPUS].total);
    }
    return (double)waiting / servers;
}

/* Shares of the place to be freed until the job starts: what it lacks itself, over all resources. */
static double lacking(const struct option *option)
{
    double most = 0.0;
    for (int a = 0; a < ROOM_COUNT; a++) {
        const struct room *room = &option->rooms[a];
        int64_t lacks = room->need - (room->free_stated ? room->free : 0);
        if (room->stated && part(lacks, room->total) > most) {
            most = part(lacks, room->total);
        }
    }
    return most;
}

static int64_t to_ms(double ms)
{
    return ms < 9.0e18 ? (int64_t)llround(ms) : UNLIMITED;
}

/* Nothing is free, and how many wait is not stated: the formula for those that must wait. */
static bool formula_ms(const struct place_view *view, double servers, double *ms)
{
    double load, count = floor(servers > (double)SERVERS_MAX ? (double)SERVERS_MAX : servers);
    if (view->service_ms <= 0 || view->arrivals_ms <= 0) {
        return false;
    }
    load = part(view->service_ms, view->arrivals_ms) * count / servers;
    if (load >= count) {
        return false;
    }
    /* Without knowing what is free the wait counts for as much as it is likely. */
    double sure = view->condition.free.cpus >= 0 ? 1.0 : wait_erlang_c((int64_t)count, load);
    *ms = sure * (double)view->service_ms / (count - load) * count / servers;
    return true;
}

int64_t wait_expected(const struct option *option)
{
    const struct place_view *view = option->view;
    const struct room *cpus = &option->rooms[AMOUNT_CPUS];
    const struct condition *now = &view->condition;
    bool queue_stated = now->waiting >= 0 || now->waiting_cpus >= 0;
    double service =
        (double)(view->service_ms > 0 ? view->service_ms : option->spec->time.estimate);
    double servers, ms;
    if (option->fits || option->elastic || !cpus->stated) {
        return 0;
    }
    servers = (double)cpus->total / mean_cpus(option);
    if (servers < 1.0) {
        servers = 1.0;
    }
    if ((!queue_stated || !cpus->free_stated) && formula_ms(view, servers, &ms)) {
        return to_ms(ms);
    }
    return to_ms((ahead(option, servers) + lacking(option)) * service);
}
