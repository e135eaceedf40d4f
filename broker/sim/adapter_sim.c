/* adapter_sim.c - the way to a simulated member (sim_member.h) and back, with its faults.
 *
 * A call leaves, arrives after about half of the latency and takes effect there, and its answer is back
 * after the other half; what a listing says is the state at the time of its arrival. When the adapter is
 * closed, as when a broker dies, a request on its way arrives or does not, as the seed decides. */
#include "broker/sim/adapter_sim.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"
#include "broker/sim/random.h"
#include "broker/sim/sim_member.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RENDER_MAX = 4096, LOG_MAX = 512 };
#define NEVER INT64_MAX

static const struct key cluster_rows[] = {
    {.name = "latency",
     .type = KEY_DURATION,
     .offset = offsetof(struct sim_settings, latency),
     .standard = "20ms",
     .help = "to the member and back"},
    {.name = "jitter",
     .type = KEY_SHARE,
     .offset = offsetof(struct sim_settings, jitter),
     .standard = "20%",
     .high = SHARE_ONE,
     .help = "so much more or less, of latency and run times"},
    {.name = "speed",
     .type = KEY_CPUS,
     .offset = offsetof(struct sim_settings, speed),
     .standard = "1",
     .low = 1,
     .high = 1000 * 1000,
     .help = "2 runs jobs in half of their estimate"},
    {.name = "seed",
     .type = KEY_INTEGER,
     .offset = offsetof(struct sim_settings, seed),
     .standard = "0",
     .high = INT64_MAX,
     .help = "of its random numbers"},
    {.name = NULL},
};

static const struct key place_rows[] = {
    {.name = "gpu",
     .type = KEY_NAME,
     .flags = KEY_PLACE,
     .offset = offsetof(struct sim_place_settings, gpu),
     .help = "model of its GPUs, a name of `gpus`"},
    {.name = "gpu_count",
     .type = KEY_INTEGER,
     .flags = KEY_PLACE,
     .offset = offsetof(struct sim_place_settings, gpu_count),
     .standard = "0",
     .high = 100000,
     .help = "how many it has"},
    {.name = NULL},
};

struct sim_adapter;
struct request;
/* Takes effect at the member and fills the results; answers -1 with err when it is refused. */
typedef int (*arrive_fn)(struct request *request);

struct request { /* one call on its way */
    struct sim_adapter *adapter;
    struct adapter_call *call; /* NULL: answered */
    arrive_fn arrive;
    struct submit submit; /* ref of find, cancel and log; spec and owner of submit are owned */
    struct spec *spec;
    char *owner;
    int64_t arrive_ms, answer_ms; /* monotonic; NEVER */
    bool arrived;
    enum adapter_result result;
    struct error err;
    char native_id[NATIVE_SIZE];
    struct report *reports;
    size_t report_count;
    struct condition *conditions;
    char *text;
    size_t length;
    struct timer *timer;
    struct request *prev, *next;
};

struct sim_adapter {
    struct adapter base;
    struct clock *clock;
    struct sim_member *member;
    bool owns_member;
    int64_t latency, jitter;
    struct random random;
    struct request *first, *last; /* in the order of the calls */
};

static void request_free(struct request *request)
{
    struct sim_adapter *adapter = request->adapter;
    *(request->prev ? &request->prev->next : &adapter->first) = request->next;
    *(request->next ? &request->next->prev : &adapter->last) = request->prev;
    timer_destroy(request->timer);
    spec_unref(request->spec);
    free(request->owner);
    free(request->reports);
    free(request->conditions);
    free(request->text);
    free(request);
}

/* The one place where calls complete. */
static void complete(struct request *request, enum adapter_result result)
{
    struct adapter_call *call = request->call;
    char version[] = "simulated";
    request->call = NULL;
    call->result = result;
    call->err = request->err;
    if (result == ADAPTER_OK) {
        copy_text(call->native_id, sizeof call->native_id, request->native_id);
        call->reports = request->reports;
        call->report_count = request->report_count;
        call->conditions = request->conditions;
        call->version = version;
        call->text = request->text;
        call->length = request->length;
        call->log_complete = true;
    }
    call->done(call);
}

static void arrive(struct request *request)
{
    request->arrived = true;
    if (request->arrive(request) < 0) {
        request->result = request->result == ADAPTER_OK ? ADAPTER_FAILED : request->result;
    }
}

static int64_t next_time(const struct request *request)
{
    int64_t at = NEVER;
    if (request->call) {
        at = request->arrived || request->arrive_ms == NEVER ? request->answer_ms
                                                             : request->arrive_ms;
        at = at < request->call->deadline_ms ? at : request->call->deadline_ms;
    } else if (!request->arrived) {
        at = request->arrive_ms;
    }
    return at;
}

static void request_cb(void *arg)
{
    struct request *request = arg;
    int64_t now = clock_mono_ms(request->adapter->clock);
    if (!request->arrived && now >= request->arrive_ms) {
        arrive(request);
    }
    if (request->call && now >= request->answer_ms &&
        (request->arrived || request->arrive_ms == NEVER)) {
        complete(request, request->result);
    } else if (request->call && now >= request->call->deadline_ms) {
        error_set(&request->err, ERROR_TIMEOUT, "the simulated member does not answer");
        complete(request, ADAPTER_UNKNOWN);
    }
    int64_t next = next_time(request);
    if (next == NEVER) {
        request_free(request);
    } else {
        timer_start(request->timer, next - now);
    }
}

static int64_t half_way(struct sim_adapter *adapter)
{
    int64_t half = adapter->latency / 2, most = half * (adapter->jitter / 1000) / 1000;
    return half + (most > 0 ? random_between(&adapter->random, -most, most) : 0);
}

static bool is_within(int64_t now, int64_t from_ms, int64_t to_ms)
{
    return now >= from_ms && now < to_ms;
}

/* What goes wrong on the way, by the faults of the member. */
static void misfortune(struct request *request, bool is_submit)
{
    struct sim_faults *faults = sim_member_faults(request->adapter->member);
    int64_t now = clock_mono_ms(request->adapter->clock);
    if (is_within(now, faults->hang_from_ms, faults->hang_to_ms)) {
        request->arrive_ms = request->answer_ms = NEVER;
    } else if (is_within(now, faults->away_from_ms, faults->away_to_ms)) {
        request->arrive_ms = NEVER;
        request->result = ADAPTER_FAILED;
        error_set(&request->err, ERROR_UNAVAILABLE, "nobody listens at the simulated member");
    } else if (is_submit && faults->lose_requests > 0) {
        faults->lose_requests--;
        request->arrive_ms = NEVER;
        request->result = ADAPTER_UNKNOWN;
        error_set(&request->err, ERROR_UPSTREAM, "the connection broke");
    } else if (is_submit && faults->lose_answers > 0) {
        faults->lose_answers--;
        request->result = ADAPTER_UNKNOWN;
        error_set(&request->err, ERROR_UPSTREAM, "the connection broke");
    } else if (is_submit && faults->delay_submits > 0) {
        faults->delay_submits--;
        request->arrive_ms = now + faults->delay_ms;
        request->answer_ms = NEVER;
    }
}

static struct request *send_off(struct adapter *base, struct adapter_call *call, arrive_fn fn,
                                const struct attempt_ref *ref, const struct submit *submit)
{
    struct sim_adapter *adapter = (struct sim_adapter *)base;
    struct request *request = xcalloc(1, sizeof *request);
    int64_t now = clock_mono_ms(adapter->clock);
    request->adapter = adapter;
    request->call = call;
    request->arrive = fn;
    error_clear(&request->err);
    if (ref) {
        request->submit.ref = *ref;
    }
    if (submit) {
        request->submit = *submit;
        request->submit.spec = request->spec = spec_ref((struct spec *)submit->spec);
        request->submit.owner = request->owner = xstrdup(submit->owner);
    }
    request->arrive_ms = now + half_way(adapter);
    request->answer_ms = request->arrive_ms + half_way(adapter);
    misfortune(request, submit != NULL);
    request->prev = adapter->last;
    *(adapter->last ? &adapter->last->next : &adapter->first) = request;
    adapter->last = request;
    request->timer = clock_timer(adapter->clock, request_cb, request);
    timer_start(request->timer, next_time(request) - now);
    return request;
}

/* ------------------------------------------------------------------------------------------- calls */

static int probe_arrives(struct request *request)
{
    request->conditions = sim_member_probe(request->adapter->member);
    return 0;
}

static void sim_probe(struct adapter *adapter, struct adapter_call *call)
{
    (void)send_off(adapter, call, probe_arrives, NULL, NULL);
}

static int submit_arrives(struct request *request)
{
    return sim_member_submit(request->adapter->member, &request->submit, request->native_id,
                             &request->err);
}

static void sim_submit(struct adapter *adapter, const struct submit *submit,
                       struct adapter_call *call)
{
    (void)send_off(adapter, call, submit_arrives, NULL, submit);
}

static int find_arrives(struct request *request)
{
    request->reports = xcalloc(1, sizeof *request->reports);
    request->report_count = 1;
    sim_member_find(request->adapter->member, &request->submit.ref, request->reports);
    return 0;
}

static void sim_find(struct adapter *adapter, const struct attempt_ref *ref,
                     struct adapter_call *call)
{
    (void)send_off(adapter, call, find_arrives, ref, NULL);
}

static int poll_arrives(struct request *request)
{
    request->reports = sim_member_list(request->adapter->member, &request->report_count);
    return 0;
}

static void sim_poll(struct adapter *adapter, struct adapter_call *call)
{
    (void)send_off(adapter, call, poll_arrives, NULL, NULL);
}

static int cancel_arrives(struct request *request)
{
    sim_member_cancel(request->adapter->member, &request->submit.ref);
    return 0;
}

static void sim_cancel(struct adapter *adapter, const struct attempt_ref *ref,
                       struct adapter_call *call)
{
    (void)send_off(adapter, call, cancel_arrives, ref, NULL);
}

static int log_arrives(struct request *request)
{
    struct report report;
    char line[LOG_MAX];
    sim_member_find(request->adapter->member, &request->submit.ref, &report);
    if (report.state == REPORT_ABSENT) {
        return error_set(&request->err, ERROR_NOT_FOUND, "the simulated member has forgotten %s",
                         report.name);
    }
    int length = snprintf(line, sizeof line, "%s is simulated: it prints nothing\n", report.name);
    request->text = xstrdup(line);
    request->length = (size_t)length;
    return 0;
}

static void sim_log(struct adapter *adapter, const struct attempt_ref *ref, int64_t offset,
                    struct adapter_call *call)
{
    (void)send_off(adapter, call, log_arrives, ref, NULL);
    (void)offset;
}

static void sim_forget(struct adapter *base, const struct attempt_ref *ref)
{
    sim_member_forget(((struct sim_adapter *)base)->member, ref);
}

static int sim_render(const struct adapter_env *env, const struct submit *submit, char **text,
                      struct error *err)
{
    const struct cluster *cluster = submit->ref.place->cluster;
    char duration[UNITS_TEXT_SIZE];
    struct strbuf buf;
    int64_t run_ms;
    int exit_code;
    (void)env;
    if (sim_run_of(cluster->settings, 0, submit, &run_ms, &exit_code, err) < 0) {
        return -1;
    }
    strbuf_init(&buf, RENDER_MAX);
    strbuf_printf(&buf, "# simulated: nothing is run\nname: %s\nplace: %s\nowner: %s\n",
                  submit->ref.name, submit->ref.place->name, submit->owner ? submit->owner : "");
    strbuf_printf(&buf, "run: about %s\nexit: %d\n", duration_text(run_ms, duration), exit_code);
    *text = strbuf_take(&buf);
    return 0;
}

/* ------------------------------------------------------------------------------------------ itself */

static int sim_open(const struct adapter_env *env, const struct cluster *cluster,
                    struct adapter **out, struct error *err)
{
    const struct sim_settings *settings = cluster->settings;
    struct sim_adapter *adapter = xcalloc(1, sizeof *adapter);
    (void)err;
    adapter->base = (struct adapter){&adapter_sim, cluster};
    adapter->clock = env->clock;
    adapter->latency = settings->latency;
    adapter->jitter = settings->jitter;
    random_init(&adapter->random, random_of_text(clock_random(env->clock), cluster->name));
    adapter->member = settings->member;
    if (!adapter->member) {
        adapter->owns_member = true;
        adapter->member = sim_member_create(env->clock, env->federation, cluster, 0);
    }
    *out = &adapter->base;
    return 0;
}

static void sim_close(struct adapter *base)
{
    struct sim_adapter *adapter = (struct sim_adapter *)base;
    struct request *request = adapter->first;
    while (request) {
        bool on_its_way = !request->arrived && request->arrive_ms != NEVER;
        if (on_its_way && (random_next(&adapter->random) & 1) != 0) {
            arrive(request);
        }
        if (request->call) {
            error_set(&request->err, ERROR_UNAVAILABLE, "the simulated adapter was closed");
            complete(request, ADAPTER_UNKNOWN);
        }
        struct request *next = request->next; /* after the answer, which may bring calls */
        request_free(request);
        request = next;
    }
    if (adapter->owns_member) {
        sim_member_destroy(adapter->member);
    }
    free(adapter);
}

const struct adapter_type adapter_sim = {
    .name = "sim",
    .summary = "A simulated cluster: nothing is run, jobs only take their time.",
    .cluster_rows = cluster_rows,
    .cluster_size = sizeof(struct sim_settings),
    .place_rows = place_rows,
    .place_size = sizeof(struct sim_place_settings),
    .has_log = true,
    .open = sim_open,
    .close = sim_close,
    .probe = sim_probe,
    .submit = sim_submit,
    .find = sim_find,
    .poll = sim_poll,
    .cancel = sim_cancel,
    .log = sim_log,
    .forget = sim_forget,
    .render = sim_render,
};
