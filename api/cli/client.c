/* client.c - see client.h. One curl handle in a multi handle of its own, so that a signal can end a
 * call that waits. */
#include "api/cli/client.h"

#include "api/cli/location.h"
#include "api/cli/interrupt.h"
#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"
#include "broker/core/value.h"

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECT_MS = 10 * 1000,
    CALL_MS = 60 * 1000, /* beyond what the broker may hold a call on purpose */
    CALL_MIN_MS = 10 * 1000,
    CALL_HURRY_MS = 3 * 1000,
    BACKOFF_MIN_MS = 1000,
    BACKOFF_MAX_MS = 15 * 1000,
    POLL_MS = 1000,
    ANSWER_MAX = 64 * 1024 * 1024,
    ANSWER_DEPTH_MAX = 64,
    DETAIL_MAX = 200
};

struct client {
    struct cli *cli;
    struct location location;
    CURLM *multi;
    struct strbuf answer;
    int64_t patience_ms, retry_after_ms;
    long status;
    bool json, hurry, interrupted, told;
    char fault[CURL_ERROR_SIZE];
};

const struct flag client_flags[] = {
    {"url", 0, "URL", false, "the broker: https://HOST, http://HOST:PORT or unix:PATH"},
    {"state-dir", 0, "DIR", false, "state directory of a broker on this machine"},
    {"config", 0, "FILE", false, "tieline.yaml of a broker on this machine"},
    {"patience", 0, "TIME", false, "go on so long when the broker does not answer"},
    {.name = NULL},
};

static size_t write_cb(char *data, size_t size, size_t count, void *arg)
{
    struct client *client = arg;
    strbuf_add(&client->answer, data, size * count);
    return client->answer.full ? 0 : size * count;
}

static size_t header_cb(char *data, size_t size, size_t count, void *arg)
{
    static const char type[] = "content-type:", after[] = "retry-after:";
    struct client *client = arg;
    size_t length = size * count;
    char line[DETAIL_MAX];
    int64_t seconds;
    struct error err;
    copy_text(line, length + 1 < sizeof line ? length + 1 : sizeof line, data);
    line[strcspn(line, "\r\n")] = '\0';
    if (strncasecmp(line, type, sizeof type - 1) == 0) {
        client->json = strstr(line, "json") != NULL;
    } else if (strncasecmp(line, after, sizeof after - 1) == 0) {
        const char *value = line + sizeof after - 1;
        if (integer_parse(value + strspn(value, " "), 0, 3600, &seconds, &err) == 0) {
            client->retry_after_ms = seconds * 1000;
        }
    }
    return length;
}

static void add_header(struct curl_slist **list, const char *name, const char *value)
{
    char *line = xasprintf("%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(*list, line);
    free(line);
    if (!longer) {
        abort(); /* no memory */
    }
    *list = longer;
}

static struct curl_slist *headers_of(const struct client *client, const struct call *call)
{
    struct curl_slist *list = NULL;
    add_header(&list, "Accept", "application/json");
    add_header(&list, "Expect", "");
    if (call->body) {
        add_header(&list, "Content-Type", call->type ? call->type : "application/json");
    } else {
        add_header(&list, "Content-Type", ""); /* libcurl says it is a form otherwise */
    }
    if (call->key) {
        char *quoted = xasprintf("\"%s\"", call->key);
        add_header(&list, "Idempotency-Key", quoted);
        free(quoted);
    }
    if (client->location.token) {
        char *bearer = xasprintf("Bearer %s", client->location.token);
        add_header(&list, "Authorization", bearer);
        free(bearer);
    }
    return list;
}

static void set_where(struct client *client, CURL *easy, const char *url)
{
    const char *ca = getenv("TIELINE_CA");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (client->location.socket) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->location.socket);
    }
    if (client->location.is_local) {
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    }
    if (ca && *ca) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    }
}

/* A broker that hangs is not waited for much longer than patience says, but a bulk takes its time. */
static long call_timeout(const struct client *client, const struct call *call)
{
    if (client->hurry) {
        return (long)(call->wait_ms + CALL_HURRY_MS);
    }
    int64_t most = client->patience_ms > CALL_MIN_MS ? client->patience_ms : CALL_MIN_MS;
    return (long)(call->wait_ms + (call->body || most > CALL_MS ? CALL_MS : most));
}

static void set_call(struct client *client, CURL *easy, const struct call *call)
{
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->body) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(call->body));
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body);
    } else if (strcmp(call->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
    }
    /* libcurl sends a request again when a kept connection turns out dead: not one that counts. */
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->repeat ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, call_timeout(client, call));
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "tieline/" TIELINE_VERSION);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->fault);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_cb);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_cb);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
}

static bool is_interrupted(const struct client *client)
{
    return !client->hurry && interrupt_signal() != 0;
}

/* Runs until the transfer is over. Returns its result; CURLE_ABORTED_BY_CALLBACK: a signal came. */
static CURLcode transfer(struct client *client)
{
    int running = 1, left;
    struct curl_waitfd wake = {.fd = interrupt_fd(), .events = CURL_WAIT_POLLIN};
    unsigned wakes = wake.fd >= 0 && !client->hurry;
    while (running) {
        if (is_interrupted(client)) {
            return CURLE_ABORTED_BY_CALLBACK;
        }
        if (curl_multi_perform(client->multi, &running) != CURLM_OK) {
            return CURLE_FAILED_INIT;
        }
        if (running && curl_multi_poll(client->multi, &wake, wakes, POLL_MS, NULL) != CURLM_OK) {
            return CURLE_FAILED_INIT;
        }
    }
    CURLMsg *message = curl_multi_info_read(client->multi, &left);
    return message ? message->data.result : CURLE_FAILED_INIT;
}

static void set_fault(struct client *client, CURL *easy, CURLcode code)
{
    long number = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number > 0) {
        copy_text(client->fault, sizeof client->fault, strerror((int)number));
    } else if (!client->fault[0]) {
        copy_text(client->fault, sizeof client->fault, curl_easy_strerror(code));
    }
}

/* One try. Returns the result of libcurl; status and answer are in client. */
static CURLcode try_once(struct client *client, const struct call *call)
{
    CURL *easy = curl_easy_init();
    char *url = xasprintf("%s%s", client->location.base, call->path);
    struct curl_slist *headers = headers_of(client, call);
    if (!easy) {
        abort(); /* no memory */
    }
    client->status = 0;
    client->json = false;
    client->retry_after_ms = 0;
    client->fault[0] = '\0';
    strbuf_fini(&client->answer);
    strbuf_init(&client->answer, ANSWER_MAX);
    set_where(client, easy, url);
    set_call(client, easy, call);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_multi_add_handle(client->multi, easy);
    CURLcode code = transfer(client);
    if (code == CURLE_OK) {
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &client->status);
    } else {
        set_fault(client, easy, code);
    }
    curl_multi_remove_handle(client->multi, easy);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    free(url);
    return code;
}

static enum error_code code_of(const char *name, long status)
{
    for (int code = ERROR_NONE + 1; name && code < ERROR_COUNT; code++) {
        if (strcmp(name, error_name((enum error_code)code)) == 0) {
            return (enum error_code)code;
        }
    }
    return status == 401   ? ERROR_UNAUTHORIZED
           : status == 403 ? ERROR_FORBIDDEN
           : status == 404 ? ERROR_NOT_FOUND
           : status == 429 ? ERROR_TOO_MANY
           : status >= 500 ? ERROR_UNAVAILABLE
                           : ERROR_INVALID;
}

static const char *text_of(const json_t *problem, const char *name)
{
    const char *text = json_string_value(json_object_get(problem, name));
    return text ? text : "";
}

static int problem_to_error(const struct client *client, const json_t *problem, struct error *err)
{
    static const char prefix[] = "urn:tieline:problem:";
    const char *type = text_of(problem, "type");
    const char *name =
        strncmp(type, prefix, sizeof prefix - 1) == 0 ? type + sizeof prefix - 1 : NULL;
    if (!*text_of(problem, "detail")) {
        error_set(err, code_of(name, client->status), "the broker answered HTTP %ld",
                  client->status);
        return error_expect(err, "is %.120s the address of a broker?", client_where(client));
    }
    error_set(err, code_of(name, client->status), "%s", text_of(problem, "detail"));
    if (*text_of(problem, "expected")) {
        (void)error_expect(err, "%s", text_of(problem, "expected"));
    }
    copy_text(err->pointer, sizeof err->pointer, text_of(problem, "pointer"));
    copy_text(err->file, sizeof err->file, text_of(problem, "file"));
    err->line = (int)json_integer_value(json_object_get(problem, "line"));
    err->column = (int)json_integer_value(json_object_get(problem, "column"));
    return -1;
}

static int unreachable(const struct client *client, CURLcode code, struct error *err)
{
    bool strange = code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
                   code == CURLE_WEIRD_SERVER_REPLY || code == CURLE_UNSUPPORTED_PROTOCOL;
    error_set(err, ERROR_UNAVAILABLE, "the broker at %.120s does not answer: %.200s",
              client_where(client), client->fault);
    if (strange && strncmp(client->location.base, "http://", 7) == 0 && client_is_url(client)) {
        (void)error_expect(err,
                           "something listens there and does not speak HTTP: is it https://%s?",
                           client->location.base + 7);
    }
    return -1;
}

/* What the whole answer says. */
static int understand(struct client *client, json_t **out, struct error *err)
{
    json_t *json = NULL;
    struct error json_err;
    bool fine = client->status >= 200 && client->status < 300;
    const char *text = client->answer.text ? client->answer.text : "";
    bool bad = client->json && json_read(text, client->answer.length, ANSWER_MAX, ANSWER_DEPTH_MAX,
                                         &json, &json_err) < 0;
    if (!fine) {
        (void)problem_to_error(client, json, err);
        json_decref(json);
        return -1;
    }
    if (bad || (!client->json && client->answer.length > 0)) {
        error_set(err, ERROR_UPSTREAM, "the answer of %.120s is not understood%s%s",
                  client_where(client), bad ? ": " : "", bad ? json_err.text : "");
        return error_expect(err, "is this the address of a broker, and as new as this program?");
    }
    *out = json;
    return 0;
}

static bool may_pass(const struct client *client, CURLcode code)
{
    if (code != CURLE_OK) {
        return code != CURLE_ABORTED_BY_CALLBACK && code != CURLE_PEER_FAILED_VERIFICATION &&
               code != CURLE_SSL_CACERT_BADFILE && code != CURLE_URL_MALFORMAT &&
               code != CURLE_UNSUPPORTED_PROTOCOL && code != CURLE_WRITE_ERROR;
    }
    return client->status == 429 || client->status >= 500;
}

/* 1 s, 2 s, 4 s ... 15 s, each by a random amount shorter so that clients do not come back at once. */
static int64_t delay_of(struct client *client, int tries)
{
    int64_t delay = BACKOFF_MIN_MS;
    for (int i = 0; i < tries && delay < BACKOFF_MAX_MS; i++) {
        delay *= 2;
    }
    if (delay > BACKOFF_MAX_MS) {
        delay = BACKOFF_MAX_MS;
    }
    delay -= (int64_t)(clock_random(client->cli->clock) % (uint64_t)(delay / 2));
    return client->retry_after_ms > delay ? client->retry_after_ms : delay;
}

static void tell_of_retry(struct client *client, CURLcode code)
{
    char time[UNITS_TEXT_SIZE];
    if (client->told) {
        return;
    }
    client->told = true;
    (void)duration_short(client->patience_ms, time);
    if (code != CURLE_OK) {
        cli_say("no answer from %s (%s); trying for %s", client_where(client), client->fault, time);
    } else {
        cli_say("%s cannot do this now (HTTP %ld); trying for %s", client_where(client),
                client->status, time);
    }
}

int client_call(struct client *client, const struct call *call, json_t **out, struct error *err)
{
    int64_t begun = client_now(client), delay;
    CURLcode code;
    client->interrupted = false;
    for (int tries = 0;; tries++) {
        code = try_once(client, call);
        delay = delay_of(client, tries);
        if (!call->repeat || !may_pass(client, code) ||
            client_now(client) + delay - begun > client->patience_ms) {
            break;
        }
        tell_of_retry(client, code);
        client_sleep(client, delay);
        if (is_interrupted(client)) {
            code = CURLE_ABORTED_BY_CALLBACK;
            break;
        }
    }
    *out = NULL;
    client->interrupted = code == CURLE_ABORTED_BY_CALLBACK;
    if (code != CURLE_OK) {
        client->status = 0;
        return unreachable(client, code, err);
    }
    if (client->told && !may_pass(client, code)) {
        cli_say("the broker is back");
        client->told = false;
    }
    return understand(client, out, err);
}

int client_get(struct client *client, const char *path, json_t **out, struct error *err)
{
    const struct call call = {.method = "GET", .path = path, .repeat = true};
    return client_call(client, &call, out, err);
}

long client_status(const struct client *client)
{
    return client->status;
}

bool client_was_interrupted(const struct client *client)
{
    return client->interrupted;
}

void client_hurry(struct client *client, int64_t patience_ms)
{
    client->hurry = true;
    client->patience_ms = patience_ms;
}

void client_sleep(struct client *client, int64_t ms)
{
    int64_t until = client_now(client) + ms, left = ms;
    struct pollfd wake = {.fd = client->hurry ? -1 : interrupt_fd(), .events = POLLIN};
    while (left > 0 && !is_interrupted(client)) {
        if (poll(&wake, 1, (int)left) < 0 && errno != EINTR) {
            return;
        }
        left = until - client_now(client);
    }
}

const char *client_where(const struct client *client)
{
    return client->location.socket ? client->location.socket : client->location.base;
}

bool client_is_url(const struct client *client)
{
    return !client->location.socket;
}

char *client_escape(const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, (int)strlen(text));
    if (!escaped) {
        abort(); /* no memory */
    }
    char *copy = xstrdup(escaped);
    curl_free(escaped);
    return copy;
}

int64_t client_now(const struct client *client)
{
    return clock_mono_ms(client->cli->clock);
}

int client_open(struct cli *cli, const struct args *args, int64_t patience_ms, struct client **out,
                struct error *err)
{
    struct client *client = xcalloc(1, sizeof *client);
    const char *patience = args_get(args, "patience");
    client->cli = cli;
    client->patience_ms = patience_ms;
    strbuf_init(&client->answer, ANSWER_MAX);
    if ((patience && duration_parse(patience, &client->patience_ms, err) < 0) ||
        location_find(cli, args, &client->location, err) < 0) {
        client_close(client);
        return -1;
    }
    client->multi = curl_multi_init();
    if (!client->multi) {
        client_close(client);
        return error_set(err, ERROR_INTERNAL, "libcurl cannot be used");
    }
    *out = client;
    return 0;
}

void client_close(struct client *client)
{
    if (!client) {
        return;
    }
    if (client->multi) {
        curl_multi_cleanup(client->multi);
    }
    location_fini(&client->location);
    strbuf_fini(&client->answer);
    free(client);
}
