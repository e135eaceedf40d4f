/* local.c - the `local` adapter: jobs are processes of this machine.
 *
 * It speaks to one `tieline supervise` per cluster (adapters/node/supervise.c; messages: requests.h
 * there), which starts, watches and ends the processes and outlives the broker. Every request is
 * idempotent: what was not answered when a connection broke is sent again on the next one, until its
 * deadline; then it is unknown. A submit is known by job, attempt, name and time of its placement. */
#include "adapters/adapters.h"

#include "adapters/jobenv.h"
#include "adapters/local_link.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REQUESTS_MAX = 2048, /* beyond: unknown at once */
    SENDS_MAX = 4,       /* of one request, each on a new connection */
    GRACE_MS = 10 * 1000,
    HELLO_ID = 0
};
static const char standard_shell[] = "/bin/sh";
static const char standard_path[] = "/usr/local/bin:/usr/bin:/bin";

struct local_settings {
    char *shell;
    int64_t grace;
};

static const struct key cluster_rows[] = {
    {.name = "shell",
     .type = KEY_TEXT,
     .offset = offsetof(struct local_settings, shell),
     .standard = "/bin/sh",
     .help = "What `run` is given to, with `-c`; words may follow the program."},
    {.name = "grace",
     .type = KEY_DURATION,
     .offset = offsetof(struct local_settings, grace),
     .standard = "10s",
     .help = "From TERM to KILL when a job is ended."},
    {.name = NULL},
};

struct local;
struct request;
/* Fills the results of the request's call and completes it. */
typedef void (*answer_fn)(struct request *request, const json_t *json, const char *bytes,
                          size_t length);

struct request {
    struct local *local;
    struct adapter_call *call; /* NULL: nobody waits for it */
    answer_fn answer;
    json_t *message;
    struct timer *timer;
    int64_t id;
    int sends;
    bool sent;    /* on the connection that is open */
    bool refused; /* err says why: completes in the next turn */
    struct error err;
    char job[ID_SIZE];
    int attempt;
    struct request *next;
};

struct local {
    struct adapter base;
    struct adapter_env env;
    struct link *link;
    struct request *requests, **requests_end; /* in the order of the calls */
    size_t count;
    int64_t last_id;
    char *home, *user, *login_shell;
};

static const struct local_settings *settings_of(const struct cluster *cluster)
{
    static const struct local_settings standard = {.shell = (char *)standard_shell,
                                                   .grace = GRACE_MS};
    return cluster->settings ? cluster->settings : &standard;
}

static int64_t field(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

static const char *text_field(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

static void request_unlink(struct request *request)
{
    struct local *local = request->local;
    struct request **at = &local->requests;
    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    if (!*at) {
        local->requests_end = at;
    }
    local->count--;
}

static void request_free(struct request *request)
{
    timer_destroy(request->timer);
    json_decref(request->message);
    free(request);
}

static struct request *take_first(struct local *local)
{
    struct request *request = local->requests;
    if (request) {
        local->requests = request->next;
        local->requests_end = request->next ? local->requests_end : &local->requests;
        local->count--;
    }
    return request;
}

/* The one place where calls complete. The request is no longer in the list. */
static void finish(struct request *request, enum adapter_result result, const struct error *err)
{
    struct adapter_call *call = request->call;
    request_free(request);
    if (call) {
        call->result = result;
        if (err) {
            call->err = *err;
        }
        call->done(call);
    }
}

static void complete(struct request *request, enum adapter_result result, const struct error *err)
{
    request_unlink(request);
    finish(request, result, err);
}

static void request_fired(void *arg)
{
    struct request *request = arg;
    struct error err;
    if (request->refused) {
        err = request->err;
    } else if (request->sends > 0) {
        error_set(&err, ERROR_TIMEOUT, "the supervisor of '%s' did not answer in time",
                  request->local->base.cluster->name);
    } else {
        error_set(&err, ERROR_UNAVAILABLE, "the supervisor of '%s' cannot be reached: %s",
                  request->local->base.cluster->name, link_trouble(request->local->link));
    }
    complete(request, ADAPTER_UNKNOWN, &err);
}

/* Completions never run within the call: what is known at once waits for the next turn. */
static void refuse_later(struct request *request, const struct error *err)
{
    request->refused = true;
    request->err = *err;
    timer_start(request->timer, 0);
}

static void request_send(struct request *request)
{
    struct error err;
    if (request->sent || request->refused || request->sends >= SENDS_MAX) {
        return;
    }
    if (link_send(request->local->link, request->message, &err)) {
        refuse_later(request, &err);
        return;
    }
    request->sent = true;
    request->sends++;
}

/* Takes the message; asks it until the call's deadline. */
static struct request *ask_take(struct local *local, const char *op, json_t *message,
                                struct adapter_call *call, answer_fn answer)
{
    struct request *request = xcalloc(1, sizeof *request);
    int64_t now = clock_mono_ms(local->env.clock);
    int64_t deadline = call ? call->deadline_ms : now + LIMIT_CALL_MS;
    struct error err;
    request->local = local;
    request->call = call;
    request->answer = answer;
    request->message = message;
    request->id = ++local->last_id;
    request->timer = clock_timer(local->env.clock, request_fired, request);
    *local->requests_end = request;
    local->requests_end = &request->next;
    local->count++;
    json_object_set_new(message, "op", json_string(op));
    json_object_set_new(message, "id", json_integer(request->id));
    if (local->count > REQUESTS_MAX) {
        error_set(&err, ERROR_TOO_MANY, "%d requests wait for the supervisor", REQUESTS_MAX);
        refuse_later(request, &err);
        return request;
    }
    timer_start(request->timer, deadline - now);
    if (link_is_up(local->link)) {
        request_send(request);
    } else {
        link_wake(local->link);
    }
    return request;
}

static json_t *hello_message(const struct local *local)
{
    const struct cluster *cluster = local->base.cluster;
    json_t *places = json_array();
    for (size_t i = 0; i < cluster->place_count; i++) {
        const struct place *place = &cluster->places[i];
        json_array_append_new(places, json_pack("{s:s, s:I, s:I}", "name", place->local_name,
                                                "cpus", (json_int_t)place->capacity.cpus, "memory",
                                                (json_int_t)place->capacity.memory));
    }
    int64_t keep = local->env.federation ? local->env.federation->keep.logs : 0;
    return json_pack("{s:s, s:i, s:o, s:I}", "op", "hello", "id", HELLO_ID, "places", places,
                     "keep_logs_ms", (json_int_t)keep);
}

static void link_up(void *arg)
{
    struct local *local = arg;
    struct error err;
    json_t *hello = hello_message(local);
    int failed = link_send(local->link, hello, &err);
    json_decref(hello);
    for (struct request *request = local->requests; request && !failed; request = request->next) {
        request_send(request);
    }
}

static void link_down(void *arg)
{
    struct local *local = arg;
    for (struct request *request = local->requests; request; request = request->next) {
        request->sent = false;
    }
}

static bool link_wants(void *arg)
{
    const struct local *local = arg;
    return local->requests != NULL;
}

/* What the supervisor refused was not done; what it could not tell is unknown. */
static void complete_refused(struct request *request, const json_t *json)
{
    struct error err;
    const char *name = text_field(json, "code");
    enum error_code code = ERROR_UPSTREAM;
    for (int i = 0; i < ERROR_COUNT; i++) {
        if (strcmp(name, error_name((enum error_code)i)) == 0) {
            code = (enum error_code)i;
        }
    }
    /* CONFLICT: it was here before, in whatever shape; a broker whose store is old looks it up. */
    bool unknown = code == ERROR_UPSTREAM || code == ERROR_UNAVAILABLE || code == ERROR_INTERNAL ||
                   code == ERROR_CONFLICT;
    error_set(&err, code, "%s", text_field(json, "text"));
    complete(request, unknown ? ADAPTER_UNKNOWN : ADAPTER_FAILED, &err);
}

static void link_message(void *arg, const json_t *json, const char *bytes, size_t length)
{
    struct local *local = arg;
    bool ok = json_is_true(json_object_get(json, "ok"));
    int64_t id = field(json, "id");
    if (id == HELLO_ID && !ok && local->env.log) {
        local->env.log("error", local->base.cluster->name, text_field(json, "text"));
    }
    struct request *request = local->requests;
    while (request && request->id != id) {
        request = request->next;
    }
    if (!request) {
        return; /* it came after the deadline */
    }
    if (!ok) {
        complete_refused(request, json);
    } else if (request->call && request->answer) {
        request->answer(request, json, bytes, length);
    } else if (request->call) {
        copy_text(request->call->native_id, sizeof request->call->native_id,
                  text_field(json, "native"));
        complete(request, ADAPTER_OK, NULL);
    } else {
        complete(request, ADAPTER_OK, NULL);
    }
}

static enum outcome outcome_of(const char *word)
{
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        if (strcmp(word, outcome_name((enum outcome)i)) == 0) {
            return (enum outcome)i;
        }
    }
    return OUTCOME_OUTCOME_UNKNOWN;
}

static void report_fill(struct report *report, const json_t *json)
{
    const char *state = text_field(json, "state");
    const json_t *end = json_object_get(json, "exit");
    copy_text(report->job_id, sizeof report->job_id, text_field(json, "job"));
    copy_text(report->native_id, sizeof report->native_id, text_field(json, "native"));
    report->attempt = (int)field(json, "attempt");
    report->started_ms = field(json, "started_ms");
    report->state = strcmp(state, "pending") == 0 ? REPORT_PENDING
                    : strcmp(state, "ended") == 0 ? REPORT_ENDED
                                                  : REPORT_RUNNING;
    if (report->state == REPORT_ENDED) {
        report->outcome = outcome_of(text_field(end, "outcome"));
        report->exit_code = (int)field(end, "code");
        report->signal = (int)field(end, "signal");
        report->started_ms = field(end, "started_ms");
        report->ended_ms = field(end, "ended_ms");
        copy_text(report->reason, sizeof report->reason, text_field(end, "reason"));
    }
}

static void answer_poll(struct request *request, const json_t *json, const char *bytes,
                        size_t length)
{
    struct adapter_call *call = request->call;
    const json_t *reports = json_object_get(json, "reports");
    (void)bytes;
    (void)length;
    call->report_count = json_array_size(reports);
    struct report *out = xcalloc(call->report_count, sizeof *out);
    for (size_t i = 0; i < call->report_count; i++) {
        report_fill(&out[i], json_array_get(reports, i));
    }
    call->reports = out;
    complete(request, ADAPTER_OK, NULL);
    free(out);
}

static void answer_find(struct request *request, const json_t *json, const char *bytes,
                        size_t length)
{
    struct adapter_call *call = request->call;
    const json_t *found = json_object_get(json, "report");
    struct report report = {.state = REPORT_ABSENT, .attempt = request->attempt};
    (void)bytes;
    (void)length;
    copy_text(report.job_id, sizeof report.job_id, request->job);
    if (found) {
        report_fill(&report, found);
    }
    call->reports = &report;
    call->report_count = 1;
    complete(request, ADAPTER_OK, NULL);
}

static void condition_fill(struct condition *out, const json_t *place)
{
    out->up = true;
    out->waiting_cpus = field(place, "waiting_cpus");
    out->total.cpus = out->largest.cpus = field(place, "cpus");
    out->total.memory = out->largest.memory = field(place, "memory");
    out->free.cpus = field(place, "free_cpus");
    out->free.memory = field(place, "free_memory");
    out->running = field(place, "running");
    out->waiting = field(place, "waiting");
}

static const json_t *place_named(const json_t *places, const char *name)
{
    size_t i;
    const json_t *place;
    json_array_foreach((json_t *)places, i, place)
    {
        if (strcmp(text_field(place, "name"), name) == 0) {
            return place;
        }
    }
    return NULL;
}

static void answer_probe(struct request *request, const json_t *json, const char *bytes,
                         size_t length)
{
    struct adapter_call *call = request->call;
    const struct cluster *cluster = request->local->base.cluster;
    struct condition *out = xcalloc(cluster->place_count, sizeof *out);
    char version[128];
    (void)bytes;
    (void)length;
    for (size_t i = 0; i < cluster->place_count; i++) {
        const json_t *place =
            place_named(json_object_get(json, "places"), cluster->places[i].local_name);
        if (place) {
            condition_fill(&out[i], place);
        } else {
            copy_text(out[i].reason, sizeof out[i].reason, "the supervisor does not know it");
        }
    }
    copy_text(version, sizeof version, text_field(json, "version"));
    call->conditions = out;
    call->version = version;
    complete(request, ADAPTER_OK, NULL);
    free(out);
}

static void answer_log(struct request *request, const json_t *json, const char *bytes,
                       size_t length)
{
    struct adapter_call *call = request->call;
    char *text = xcalloc(length + 1, 1);
    memcpy(text, bytes, length);
    call->text = text;
    call->length = length;
    call->offset = field(json, "offset");
    call->log_complete = json_is_true(json_object_get(json, "complete"));
    complete(request, ADAPTER_OK, NULL);
    free(text);
}

static void probe(struct adapter *adapter, struct adapter_call *call)
{
    (void)ask_take((struct local *)adapter, "probe", json_object(), call, answer_probe);
}

static void poll_all(struct adapter *adapter, struct adapter_call *call)
{
    (void)ask_take((struct local *)adapter, "poll", json_object(), call, answer_poll);
}

static json_t *ref_message(const struct attempt_ref *ref)
{
    return json_pack("{s:s, s:i}", "job", ref->job_id, "attempt", ref->attempt);
}

static void find(struct adapter *adapter, const struct attempt_ref *ref, struct adapter_call *call)
{
    struct request *request =
        ask_take((struct local *)adapter, "find", ref_message(ref), call, answer_find);
    copy_text(request->job, sizeof request->job, ref->job_id);
    request->attempt = ref->attempt;
}

static void cancel(struct adapter *adapter, const struct attempt_ref *ref,
                   struct adapter_call *call)
{
    (void)ask_take((struct local *)adapter, "cancel", ref_message(ref), call, NULL);
}

static void read_log(struct adapter *adapter, const struct attempt_ref *ref, int64_t offset,
                     struct adapter_call *call)
{
    json_t *message = ref_message(ref);
    json_object_set_new(message, "offset", json_integer(offset));
    (void)ask_take((struct local *)adapter, "log", message, call, answer_log);
}

static void forget(struct adapter *adapter, const struct attempt_ref *ref)
{
    (void)ask_take((struct local *)adapter, "forget", ref_message(ref), NULL, NULL);
}

/* The words of the shell, "-c" and the text; or the command as it is. */
static json_t *argv_of(const struct spec *spec, const char *shell)
{
    json_t *argv = json_array();
    if (!spec->run) {
        for (size_t i = 0; i < spec->command.count; i++) {
            json_array_append_new(argv, json_string(spec->command.items[i]));
        }
        return argv;
    }
    for (const char *at = shell + strspn(shell, " \t"); *at; at += strspn(at, " \t")) {
        size_t length = strcspn(at, " \t");
        json_array_append_new(argv, json_stringn(at, length));
        at += length;
    }
    json_array_append_new(argv, json_string("-c"));
    json_array_append_new(argv, json_string(spec->run));
    return argv;
}

static json_t *env_of(const struct local *local, const struct submit *submit)
{
    struct jobenv env;
    const char *path = getenv("PATH");
    jobenv_build(&env, submit);
    jobenv_default(&env, "HOME", local->home);
    jobenv_default(&env, "USER", local->user);
    jobenv_default(&env, "LOGNAME", local->user);
    jobenv_default(&env, "SHELL", local->login_shell);
    jobenv_default(&env, "PATH", path && *path ? path : standard_path);
    json_t *lines = json_array();
    for (size_t i = 0; i < env.count; i++) {
        char *line = xasprintf("%s=%s", env.items[i].name, env.items[i].value);
        json_array_append_new(lines, json_string(line));
        free(line);
    }
    jobenv_fini(&env);
    return lines;
}

static json_t *submit_message(const struct local *local, const struct submit *submit)
{
    const struct attempt_ref *ref = &submit->ref;
    const struct spec *spec = submit->spec;
    const struct local_settings *settings = settings_of(ref->place->cluster);
    json_t *message = ref_message(ref);
    json_object_set_new(message, "name", json_string(ref->name));
    json_object_set_new(message, "intent_ms", json_integer(ref->intent_ms));
    json_object_set_new(message, "place", json_string(ref->place->local_name));
    json_object_set_new(message, "cpus", json_integer(spec->needs.cpus));
    json_object_set_new(message, "memory", json_integer(spec->needs.memory));
    json_object_set_new(message, "limit_ms", json_integer(spec->time.limit));
    json_object_set_new(message, "grace_ms", json_integer(settings->grace));
    json_object_set_new(message, "argv", argv_of(spec, settings->shell));
    json_object_set_new(message, "env", env_of(local, submit));
    return message;
}

static void submit_attempt(struct adapter *adapter, const struct submit *submit,
                           struct adapter_call *call)
{
    (void)ask_take((struct local *)adapter, "submit",
                   submit_message((struct local *)adapter, submit), call, NULL);
}

static void user_fill(struct local *local)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *home = user ? user->pw_dir : getenv("HOME");
    local->home = xstrdup(home ? home : "/");
    local->user = user ? xstrdup(user->pw_name) : xasprintf("%u", (unsigned)geteuid());
    local->login_shell =
        xstrdup(user && user->pw_shell && *user->pw_shell ? user->pw_shell : standard_shell);
}

static void user_free(struct local *local)
{
    free(local->home);
    free(local->user);
    free(local->login_shell);
}

static int render(const struct adapter_env *env, const struct submit *submit, char **text,
                  struct error *err)
{
    struct local local = {.env = *env};
    user_fill(&local);
    json_t *message = submit_message(&local, submit);
    *text = json_dumps(message, JSON_INDENT(2));
    json_decref(message);
    user_free(&local);
    return *text ? 0 : error_set(err, ERROR_INVALID, "the job holds text that is no UTF-8");
}

static int local_open(const struct adapter_env *env, const struct cluster *cluster,
                      struct adapter **out, struct error *err)
{
    if (!env->loop || !env->program || !env->state_dir) {
        return error_set(err, ERROR_INTERNAL, "local members need a loop, a program and a folder");
    }
    struct local *local = xcalloc(1, sizeof *local);
    char *dir = xasprintf("%s/local/%s", env->state_dir, cluster->name);
    struct link_owner owner = {.arg = local,
                               .up = link_up,
                               .down = link_down,
                               .message = link_message,
                               .wants = link_wants};
    local->base.type = &adapter_local;
    local->base.cluster = cluster;
    local->env = *env;
    local->requests_end = &local->requests;
    local->link = link_create(env, dir, cluster->name, &owner);
    user_fill(local);
    free(dir);
    *out = &local->base;
    return 0;
}

static void local_close(struct adapter *adapter)
{
    struct local *local = (struct local *)adapter;
    struct error err;
    if (!local) {
        return;
    }
    error_set(&err, ERROR_UNAVAILABLE, "the broker stops");
    struct request *request;
    while ((request = take_first(local))) {
        finish(request, ADAPTER_UNKNOWN, &err);
    }
    json_t *bye = json_pack("{s:s, s:i}", "op", "bye", "id", HELLO_ID);
    link_destroy(local->link, bye);
    json_decref(bye);
    user_free(local);
    free(local);
}

const struct adapter_type adapter_local = {
    .name = "local",
    .summary = "Processes of this machine, kept by a supervisor that outlives the broker.",
    .cluster_rows = cluster_rows,
    .cluster_size = sizeof(struct local_settings),
    .idempotent_create = true,
    .has_log = true,
    .poll_ms = 200, /* a socket on this machine: cheap */
    .open = local_open,
    .close = local_close,
    .probe = probe,
    .submit = submit_attempt,
    .find = find,
    .poll = poll_all,
    .cancel = cancel,
    .log = read_log,
    .forget = forget,
    .render = render,
};
