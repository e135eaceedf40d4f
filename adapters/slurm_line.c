/* slurm_line.c - tokens of the rate are kept in thousandths of a request times its period, so that no
 * fraction is lost. Long answers are parsed on the loop's thread pool: the listing of a large cluster
 * has tens of megabytes, and the loop serves other members meanwhile.
 *
 * Invariant: an item is in the line (waiting) or under way, never both. After slurm_line_destroy what is
 * under way has line NULL and frees itself when curl and the pool have let go of it. */
#include "adapters/slurm_line.h"

#include "adapters/slurm_token.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/net/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN_MS = 100, /* an answer is given so long before the deadline */
    CONNECT_MS = 5000,
    PARSE_HERE_MAX = 64 * 1024, /* bytes; longer answers go to the pool */
    HEADERS_MAX = 5
};

struct item {
    struct slurm_line *line;
    struct item *next; /* waiting or active */
    char *method, *path, *body;
    int64_t deadline_ms;
    slurm_reply_fn done;
    void *arg;
    bool is_second;               /* was sent before, with a token that is no longer ours */
    char *token;                  /* that it was sent with */
    struct http_request *request; /* NULL: not at curl */
    uv_work_t work;
    char *text, *type;
    size_t length;
    long status;
    struct slurm_answer *answer;
};

struct slurm_line {
    struct slurm_line_config config;
    struct slurm_token token;
    struct timer *timer;
    struct item *waiting;
    struct item *active;
    size_t waiting_count, active_count;
    int64_t credit; /* of the rate: a request costs per_ms; grows by count each millisecond */
    int64_t credited_ms;
};

/* ---- items */

static void remove_item(struct item **list, const struct item *item)
{
    while (*list && *list != item) {
        list = &(*list)->next;
    }
    if (*list) {
        *list = item->next;
    }
}

static struct item *pop(struct item **list)
{
    struct item *item = *list;
    if (item) {
        *list = item->next;
    }
    return item;
}

static void item_free(struct item *item)
{
    free(item->method);
    free(item->path);
    free(item->body);
    secret_wipe(item->token);
    free(item->text);
    free(item->type);
    slurm_answer_destroy(item->answer);
    free(item);
}

static void enqueue(struct slurm_line *line, struct item *item)
{
    struct item **last = &line->waiting;
    while (*last) {
        last = &(*last)->next;
    }
    item->next = NULL;
    *last = item;
    line->waiting_count++;
    timer_start(line->timer, 0);
}

/* The item must be in no list. */
static void complete(struct item *item, struct slurm_reply *reply)
{
    item->done(item->arg, reply);
    item_free(item);
}

static void fail(struct item *item, const struct error *err, bool sent)
{
    struct slurm_reply reply = {.answer = NULL, .err = *err, .sent = sent};
    complete(item, &reply);
}

/* ---- answers */

/* With another token than the refused one, and sure that nothing was done: once more. */
static bool send_again(struct item *item)
{
    struct slurm_line *line = item->line;
    bool repeatable =
        slurm_answer_is_unauthorized(item->answer) || strcmp(item->method, "POST") != 0;
    if (!slurm_answer_may_be_unauthorized(item->answer) ||
        !slurm_token_renew(&line->token, item->token) || item->is_second || !repeatable) {
        return false;
    }
    item->is_second = true;
    slurm_answer_destroy(item->answer);
    item->answer = NULL;
    enqueue(line, item);
    return true;
}

static void leave(struct item *item)
{
    remove_item(&item->line->active, item);
    item->line->active_count--;
    timer_start(item->line->timer, 0);
}

static void deliver(struct item *item)
{
    leave(item);
    if (send_again(item)) {
        return;
    }
    struct slurm_reply reply = {.answer = item->answer, .sent = true};
    item->answer = NULL;
    complete(item, &reply);
}

static void parse_cb(uv_work_t *work)
{
    struct item *item = work->data;
    item->answer = slurm_parse(item->status, item->type, item->text, item->length);
}

static void parsed_cb(uv_work_t *work, int status)
{
    (void)status; /* never cancelled */
    struct item *item = work->data;
    free(item->text);
    free(item->type);
    item->text = item->type = NULL;
    if (item->line) {
        deliver(item);
    } else {
        item_free(item);
    }
}

static void parse_elsewhere(struct item *item, const struct http_response *response)
{
    item->text = xcalloc(response->length + 1, 1);
    memcpy(item->text, response->body, response->length);
    item->length = response->length;
    item->type = xstrdup(response->content_type);
    item->status = response->status;
    item->work.data = item;
    if (uv_queue_work(item->line->config.env->loop, &item->work, parse_cb, parsed_cb)) {
        parse_cb(&item->work);
        parsed_cb(&item->work, 0);
    }
}

static void answered_cb(void *arg, const struct http_response *response)
{
    struct item *item = arg;
    item->request = NULL;
    if (!item->line) {
        item_free(item);
        return;
    }
    if (!response->status) {
        leave(item);
        fail(item, &response->err, response->sent);
    } else if (response->length > PARSE_HERE_MAX) {
        parse_elsewhere(item, response);
    } else {
        item->answer =
            slurm_parse(response->status, response->content_type, response->body, response->length);
        deliver(item);
    }
}

/* ---- sending */

static int64_t now_of(const struct slurm_line *line)
{
    return clock_mono_ms(line->config.env->clock);
}

static void start(struct item *item, const char *token)
{
    struct slurm_line *line = item->line;
    const char *url = line->config.url;
    bool is_unix = !strncmp(url, "unix:", 5);
    char *target = xasprintf("%s%s", is_unix ? "http://localhost" : url, item->path);
    char *name = xasprintf("X-SLURM-USER-NAME: %s", line->config.user ? line->config.user : "");
    char *secret = xasprintf("X-SLURM-USER-TOKEN: %s", token ? token : "");
    const char *headers[HEADERS_MAX] = {"Content-Type: application/json"};
    size_t count = 1;
    if (line->config.user) {
        headers[count++] = name;
    }
    if (token) {
        headers[count++] = secret;
    }
    struct http_spec spec = {
        .method = item->method,
        .url = target,
        .unix_socket = is_unix ? url + 5 : NULL,
        .headers = headers,
        .body = item->body,
        .body_length = item->body ? strlen(item->body) : 0,
        .timeout_ms = item->deadline_ms - MARGIN_MS - now_of(line),
        .connect_timeout_ms = CONNECT_MS,
        .body_max = LIMIT_MEMBER_BODY,
    };
    item->request = http_start(line->config.env->http, &spec, answered_cb, item);
    free(target);
    free(name);
    secret_wipe(secret);
}

static void send_one(struct item *item)
{
    struct slurm_line *line = item->line;
    const char *token;
    struct error err;
    if (slurm_token_get(&line->token, &token, &err)) {
        fail(item, &err, false);
        return;
    }
    secret_wipe(item->token);
    item->token = xstrdup(token);
    item->next = line->active;
    line->active = item;
    line->active_count++;
    start(item, item->token);
}

/* Takes the first that waits past its deadline out of the line. */
static struct item *take_late(struct slurm_line *line, int64_t now)
{
    for (struct item **at = &line->waiting; *at; at = &(*at)->next) {
        struct item *item = *at;
        if (item->deadline_ms - MARGIN_MS <= now) {
            *at = item->next;
            line->waiting_count--;
            return item;
        }
    }
    return NULL;
}

/* What is late in the line was never sent. A completion may change the line. */
static void expire(struct slurm_line *line, int64_t now)
{
    struct item *item;
    while ((item = take_late(line, now))) {
        struct error err;
        error_set(&err, ERROR_UNAVAILABLE,
                  item->deadline_ms ? "not sent: `requests` allowed no further call in time"
                                    : "not sent: too many calls are in line for this cluster");
        fail(item, &err, item->is_second);
    }
}

/* Takes what one request costs. Returns 0, or how many ms to wait. */
static int64_t pay(struct slurm_line *line, int64_t now)
{
    const struct rate *rate = &line->config.requests;
    if (rate->count <= 0) {
        return 0;
    }
    int64_t most =
        rate->count * rate->per_ms; /* after a pause, as many at once as one period has */
    int64_t elapsed = now - line->credited_ms;
    line->credited_ms = now;
    line->credit = elapsed > rate->per_ms ? most : line->credit + elapsed * rate->count;
    line->credit = line->credit > most ? most : line->credit;
    if (line->credit >= rate->per_ms) {
        line->credit -= rate->per_ms;
        return 0;
    }
    return (rate->per_ms - line->credit + rate->count - 1) / rate->count;
}

static int64_t first_deadline(const struct slurm_line *line)
{
    int64_t first = INT64_MAX;
    for (const struct item *item = line->waiting; item; item = item->next) {
        first = item->deadline_ms < first ? item->deadline_ms : first;
    }
    return first - MARGIN_MS;
}

static void pump_cb(void *arg)
{
    struct slurm_line *line = arg;
    int64_t wait = INT64_MAX;
    expire(line, now_of(line));
    while (line->waiting && line->active_count < LIMIT_MEMBER_CALLS) {
        wait = pay(line, now_of(line));
        if (wait) {
            break;
        }
        struct item *item = pop(&line->waiting);
        line->waiting_count--;
        send_one(item);
    }
    if (line->waiting) {
        int64_t left = first_deadline(line) - now_of(line);
        timer_start(line->timer, left < wait ? left : wait);
    }
}

void slurm_line_send(struct slurm_line *line, const char *method, const char *path,
                     const char *body, int64_t deadline_ms, slurm_reply_fn done, void *arg)
{
    struct item *item = xcalloc(1, sizeof *item);
    *item = (struct item){.line = line, .done = done, .arg = arg};
    item->method = xstrdup(method);
    item->path = xstrdup(path);
    item->body = xstrdup(body);
    /* A full line: the deadline is now. */
    item->deadline_ms = line->waiting_count < LIMIT_MEMBER_LINE ? deadline_ms : 0;
    enqueue(line, item);
}

struct slurm_line *slurm_line_create(const struct slurm_line_config *config)
{
    struct slurm_line *line = xcalloc(1, sizeof *line);
    line->config = *config;
    line->timer = clock_timer(config->env->clock, pump_cb, line);
    line->credit = config->requests.count * config->requests.per_ms;
    line->credited_ms = clock_mono_ms(config->env->clock);
    slurm_token_init(&line->token, config->token, config->env->clock);
    return line;
}

void slurm_line_destroy(struct slurm_line *line)
{
    if (!line) {
        return;
    }
    struct item *item;
    while ((item = pop(&line->waiting))) {
        item_free(item);
    }
    while ((item = pop(&line->active))) {
        item->line = NULL;
        if (item->request) {
            http_cancel(item->request);
        }
    }
    timer_destroy(line->timer);
    slurm_token_fini(&line->token);
    free(line);
}
