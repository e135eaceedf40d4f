/* test_http.c - the HTTP client and the real clock against a server that misbehaves. */
#include "broker/net/clock_uv.h"
#include "broker/net/http.h"
#include "tests/unit/nasty.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

static uv_loop_t loop;
static struct clock *clock_real;
static struct http *http;
static struct nasty *server;

struct result {
    int runs;
    long status;
    enum error_code code;
    char text[ERROR_TEXT_MAX], type[64], body[64];
    size_t length;
    bool connected, sent;
    int64_t total_us;
};

/* ---- a name lookup that hangs, for names that end with ".hang" */

static pthread_mutex_t hang_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hang_change = PTHREAD_COND_INITIALIZER;
static bool hang_over;
static int hanging;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || !strstr(node, ".hang")) {
        return real(node, service, hints, out);
    }
    (void)pthread_mutex_lock(&hang_lock);
    hanging++;
    while (!hang_over) {
        (void)pthread_cond_wait(&hang_change, &hang_lock);
    }
    hanging--;
    (void)pthread_cond_broadcast(&hang_change);
    (void)pthread_mutex_unlock(&hang_lock);
    return EAI_AGAIN;
}

static int hang_count(void)
{
    (void)pthread_mutex_lock(&hang_lock);
    int count = hanging;
    (void)pthread_mutex_unlock(&hang_lock);
    return count;
}

static void hang_release(void)
{
    (void)pthread_mutex_lock(&hang_lock);
    hang_over = true;
    (void)pthread_cond_broadcast(&hang_change);
    while (hanging) {
        (void)pthread_cond_wait(&hang_change, &hang_lock);
    }
    (void)pthread_mutex_unlock(&hang_lock);
}

/* ---- helpers */

static void setup(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(uv_loop_init(&loop), 0);
    clock_real = clock_uv_create(&loop);
    http = http_create(&loop, clock_real);
    server = nasty_start(NULL);
    nasty_on(server, "GET /ok", NASTY_ANSWER, 200, "application/json", "{\"a\":1}");
    nasty_on(server, "POST /ok", NASTY_ANSWER, 201, "application/json", "{}");
    nasty_on(server, "DELETE /ok", NASTY_ANSWER, 204, "text/plain", "");
}

static void teardown(void)
{
    http_destroy(http);
    clock_uv_destroy(clock_real);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&loop), 0, "something is left on the loop");
    nasty_stop(server);
}

static void done(void *arg, const struct http_response *response)
{
    struct result *result = arg;
    result->runs++;
    uv_stop(&loop); /* else the turn waits for the next event */
    result->status = response->status;
    result->code = response->err.code;
    (void)snprintf(result->text, sizeof result->text, "%s", response->err.text);
    (void)snprintf(result->type, sizeof result->type, "%s", response->content_type);
    (void)snprintf(result->body, sizeof result->body, "%s", response->body);
    result->length = response->length;
    result->connected = response->connected;
    result->sent = response->sent;
    result->total_us = response->total_us;
}

static struct http_request *start_url(const char *method, const char *url, const char *unix_socket,
                                      const char *body, int64_t timeout_ms, struct result *result)
{
    struct http_spec spec = {
        .method = method,
        .url = url,
        .unix_socket = unix_socket,
        .headers = (const char *const[]){"Content-Type: application/json", "X-Mark: one", NULL},
        .body = body,
        .body_length = body ? strlen(body) : 0,
        .timeout_ms = timeout_ms,
        .connect_timeout_ms = timeout_ms,
        .body_max = 100000,
    };
    *result = (struct result){0};
    struct http_request *request = http_start(http, &spec, done, result);
    cr_assert_eq(result->runs, 0, "done ran from within http_start");
    return request;
}

static struct http_request *start(const char *method, const char *path, const char *body,
                                  int64_t timeout_ms, struct result *result)
{
    char url[256];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d%s", nasty_port(server), path);
    return start_url(method, url, NULL, body, timeout_ms, result);
}

static void mark(void *arg)
{
    *(bool *)arg = true;
}

/* Runs the loop until the result is there. */
static void await(struct result *result)
{
    bool late = false;
    struct timer *timer = clock_timer(clock_real, mark, &late);
    timer_start(timer, PATIENCE_MS);
    while (!result->runs && !late) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    timer_destroy(timer);
    cr_assert_eq(result->runs, 1, "not completed once");
}

static void ask(const char *method, const char *path, const char *body, int64_t timeout_ms,
                struct result *result)
{
    (void)start(method, path, body, timeout_ms, result);
    await(result);
}

TestSuite(http, .init = setup, .fini = teardown, .timeout = 60);

/* ---- the clock */

struct tick {
    int count;
    struct timer *timer;
};

static void count_and_destroy(void *arg)
{
    struct tick *tick = arg;
    tick->count++;
    timer_destroy(tick->timer);
}

Test(http, timers_fire_once_never_early_and_die_in_their_own_function)
{
    struct tick tick = {0}, stopped = {0};
    tick.timer = clock_timer(clock_real, count_and_destroy, &tick);
    stopped.timer = clock_timer(clock_real, count_and_destroy, &stopped);
    int64_t begin = clock_mono_ms(clock_real);
    (void)usleep(30000); /* long work in this turn must not eat the delay */
    int64_t armed = clock_mono_ms(clock_real);
    timer_start(tick.timer, 20);
    timer_start(stopped.timer, 0);
    cr_assert_eq(stopped.count, 0);
    timer_stop(stopped.timer);
    while (!tick.count) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    cr_assert_geq(clock_mono_ms(clock_real) - armed, 19);
    cr_assert_geq(armed, begin + 29);
    cr_assert_eq(tick.count, 1);
    cr_assert_eq(stopped.count, 0);
    timer_destroy(stopped.timer);
    timer_destroy(NULL);
}

Test(http, random_numbers_and_wall_time)
{
    cr_assert_neq(clock_random(clock_real), clock_random(clock_real));
    cr_assert_gt(clock_wall_ms(clock_real), INT64_C(1700000000000));
}

/* ---- answers */

Test(http, get_is_answered_over_one_kept_connection)
{
    struct result result;
    for (int i = 0; i < 3; i++) {
        ask("GET", "/ok", NULL, 5000, &result);
        cr_assert_eq(result.status, 200);
        cr_assert_eq(result.code, ERROR_NONE);
        cr_assert_str_eq(result.body, "{\"a\":1}");
        cr_assert_str_eq(result.type, "application/json");
        cr_assert(result.connected && result.sent);
    }
    cr_assert_eq(nasty_connections(server), 1);
    char *request = nasty_last(server, "GET /ok");
    cr_assert(strstr(request, "X-Mark: one\r\n"));
    free(request);
}

Test(http, post_states_its_length_and_never_uses_an_old_connection)
{
    struct result result;
    ask("GET", "/ok", NULL, 5000, &result);
    ask("POST", "/ok", "{\"b\":2}", 5000, &result);
    cr_assert_eq(result.status, 201);
    ask("POST", "/ok", "{\"b\":2}", 5000, &result);
    cr_assert_eq(nasty_connections(server), 3);
    char *request = nasty_last(server, "POST /ok");
    cr_assert(strstr(request, "Content-Length: 7\r\n"));
    cr_assert_not(strstr(request, "Expect:"));
    cr_assert_not(strstr(request, "Transfer-Encoding"));
    cr_assert(strstr(request, "\r\n\r\n{\"b\":2}"));
    free(request);
}

Test(http, long_post_is_sent_at_once)
{
    size_t length = 3 << 20;
    char *body = malloc(length + 1);
    memset(body, 'x', length);
    body[length] = '\0';
    struct result result;
    ask("POST", "/ok", body, 10000, &result);
    cr_assert_eq(result.status, 201);
    char *request = nasty_last(server, "POST /ok");
    cr_assert_not(strstr(request, "Expect:"));
    free(request);
    free(body);
}

Test(http, other_methods_and_empty_bodies)
{
    struct result result;
    ask("DELETE", "/ok", NULL, 5000, &result);
    cr_assert_eq(result.status, 204);
    cr_assert_str_eq(result.body, "");
    ask("POST", "/ok", NULL, 5000, &result);
    cr_assert_eq(result.status, 201);
}

Test(http, redirects_are_not_followed)
{
    struct result result;
    nasty_on(server, "GET /moved", NASTY_ANSWER, 302, "text/html", "<p>");
    ask("GET", "/moved", NULL, 5000, &result);
    cr_assert_eq(result.status, 302);
    cr_assert_eq(nasty_count(server, "GET /ok"), 0);
}

Test(http, html_is_an_answer_with_its_type)
{
    struct result result;
    nasty_on(server, "GET /html", NASTY_ANSWER, 503, "text/html", "<h1>Bad gateway</h1>");
    ask("GET", "/html", NULL, 5000, &result);
    cr_assert_eq(result.status, 503);
    cr_assert_str_eq(result.type, "text/html");
}

Test(http, unix_socket)
{
    char path[100];
    (void)snprintf(path, sizeof path, "/tmp/tieline-test-http.%d", (int)getpid());
    struct nasty *local = nasty_start(path);
    nasty_on(local, "GET /ok", NASTY_ANSWER, 200, "text/plain", "here");
    struct result result;
    (void)start_url("GET", "http://localhost/ok", path, NULL, 5000, &result);
    await(&result);
    cr_assert_eq(result.status, 200);
    cr_assert_str_eq(result.body, "here");
    nasty_stop(local);
    (void)start_url("POST", "http://localhost/ok", path, "x", 5000, &result);
    await(&result);
    cr_assert_eq(result.code, ERROR_UNAVAILABLE);
    cr_assert_not(result.sent);
}

/* ---- no whole answer */

Test(http, refused_connection_was_not_sent)
{
    char url[64];
    struct result result;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", nasty_closed_port());
    (void)start_url("POST", url, NULL, "x", 5000, &result);
    await(&result);
    cr_assert_eq(result.status, 0);
    cr_assert_eq(result.code, ERROR_UNAVAILABLE);
    cr_assert_not(result.connected || result.sent);
    cr_assert_neq(result.text[0], '\0');
}

Test(http, hanging_connect_ends_in_time_and_was_not_sent)
{
    int fds[NASTY_HOLE_FDS];
    char url[64];
    struct result result, other;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", nasty_hole(fds));
    (void)start_url("POST", url, NULL, "x", 700, &result);
    (void)start("GET", "/ok", NULL, 5000, &other);
    int64_t begin = clock_mono_ms(clock_real);
    await(&other);
    cr_assert_eq(other.status, 200);
    cr_assert_eq(result.runs, 0);
    cr_assert_lt(clock_mono_ms(clock_real) - begin, 500, "the hung one held the other up");
    await(&result);
    cr_assert_eq(result.code, ERROR_TIMEOUT);
    cr_assert_not(result.connected || result.sent);
    for (int i = 0; i < NASTY_HOLE_FDS; i++) {
        (void)close(fds[i]);
    }
}

Test(http, hanging_answer_ends_in_time_and_was_sent)
{
    struct result result;
    nasty_on(server, "POST /hang", NASTY_HANG, 0, NULL, NULL);
    int64_t begin = clock_mono_ms(clock_real);
    ask("POST", "/hang", "{}", 300, &result);
    cr_assert_geq(clock_mono_ms(clock_real) - begin, 290);
    cr_assert_eq(result.status, 0);
    cr_assert_eq(result.code, ERROR_TIMEOUT);
    cr_assert(result.connected && result.sent);
}

Test(http, half_a_body_is_no_answer)
{
    struct result result;
    nasty_on(server, "POST /half", NASTY_HALF, 200, "application/json", "{\"job_id\": 123456789}");
    ask("POST", "/half", "{}", 5000, &result);
    cr_assert_eq(result.status, 0);
    cr_assert_eq(result.code, ERROR_UPSTREAM);
    cr_assert(result.sent);
}

Test(http, body_over_the_cap)
{
    char *body = calloc(1, 200001);
    memset(body, 'a', 200000);
    nasty_on(server, "GET /big", NASTY_ANSWER, 200, "text/plain", body);
    body[100000] = '\0';
    nasty_on(server, "GET /just", NASTY_ANSWER, 200, "text/plain", body);
    struct result result;
    ask("GET", "/big", NULL, 5000, &result);
    cr_assert_eq(result.status, 0);
    cr_assert_eq(result.code, ERROR_TOO_LARGE);
    ask("GET", "/just", NULL, 5000, &result);
    cr_assert_eq(result.status, 200);
    cr_assert_eq(result.length, 100000);
    free(body);
}

Test(http, post_that_was_read_and_lost_is_received_once)
{
    struct result result;
    nasty_on(server, "POST /die", NASTY_DIE, 0, NULL, NULL);
    ask("GET", "/ok", NULL, 5000, &result); /* leaves a connection that could be reused */
    ask("POST", "/die", "{}", 5000, &result);
    cr_assert_eq(result.status, 0);
    cr_assert_eq(result.code, ERROR_UPSTREAM);
    cr_assert(result.sent);
    cr_assert_eq(nasty_count(server, "POST /die"), 1);
}

Test(http, get_on_a_connection_that_died_is_tried_again)
{
    struct result result;
    nasty_on(server, "GET /kept", NASTY_DIE_KEPT, 200, "text/plain", "yes");
    ask("GET", "/kept", NULL, 5000, &result);
    ask("GET", "/kept", NULL, 5000, &result);
    cr_assert_eq(result.status, 200);
    cr_assert_eq(nasty_count(server, "GET /kept"), 3);
}

Test(http, bad_urls)
{
    static const char *const urls[] = {"ftp://127.0.0.1/", "http://", "http://127.0.0.1:99999/",
                                       "file:///etc/passwd"};
    struct result result;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        (void)start_url("GET", urls[i], NULL, NULL, 5000, &result);
        await(&result);
        cr_assert_eq(result.status, 0, "%s", urls[i]);
        cr_assert_not(result.sent);
    }
}

/* ---- giving up */

Test(http, cancel_completes_in_the_next_turn)
{
    struct result result;
    nasty_on(server, "GET /hang", NASTY_HANG, 0, NULL, NULL);
    struct http_request *request = start("GET", "/hang", NULL, 5000, &result);
    while (!nasty_count(server, "GET /hang")) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    http_cancel(request);
    http_cancel(request);
    cr_assert_eq(result.runs, 0);
    await(&result);
    cr_assert_eq(result.code, ERROR_UNAVAILABLE);
}

Test(http, a_hung_name_lookup_blocks_nobody)
{
    struct result result, other;
    struct http_request *request =
        start_url("GET", "http://name.hang/", NULL, NULL, 60000, &result);
    while (!hang_count()) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    int64_t begin = clock_mono_ms(clock_real);
    http_cancel(request);
    await(&result);
    (void)start_url("GET", "http://name.hang/", NULL, NULL, 200, &other);
    await(&other);
    cr_assert_eq(other.code, ERROR_TIMEOUT);
    cr_assert_not(other.connected);
    cr_assert_lt(clock_mono_ms(clock_real) - begin, 3000);
    hang_release();
}

Test(http, destroy_completes_all)
{
    struct result hung, connecting;
    int fds[NASTY_HOLE_FDS];
    char url[64];
    nasty_on(server, "GET /hang", NASTY_HANG, 0, NULL, NULL);
    (void)start("GET", "/hang", NULL, 5000, &hung);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", nasty_hole(fds));
    (void)start_url("GET", url, NULL, NULL, 5000, &connecting);
    while (!nasty_count(server, "GET /hang")) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    http_destroy(http);
    cr_assert_eq(hung.runs, 1);
    cr_assert_eq(connecting.runs, 1);
    cr_assert_eq(hung.code, ERROR_UNAVAILABLE);
    http = http_create(&loop, clock_real);
    for (int i = 0; i < NASTY_HOLE_FDS; i++) {
        (void)close(fds[i]);
    }
}

Test(http, many_at_once_each_exactly_once)
{
    enum { MANY = 200 };
    static struct result results[MANY];
    nasty_on(server, "GET /die", NASTY_DIE, 0, NULL, NULL);
    nasty_on(server, "GET /half", NASTY_HALF, 200, "text/plain", "0123456789");
    for (int i = 0; i < MANY; i++) {
        (void)start("GET",
                    i % 3 == 0   ? "/ok"
                    : i % 3 == 1 ? "/die"
                                 : "/half",
                    NULL, 9000, &results[i]);
    }
    for (int i = 0; i < MANY; i++) {
        if (!results[i].runs) {
            await(&results[i]);
        }
        cr_assert_eq(results[i].runs, 1);
        cr_assert_eq(results[i].status, i % 3 == 0 ? 200 : 0);
    }
}
