/* server.c - one MHD daemon per address, driven by the loop.
 *
 * Each daemon has an epoll descriptor, which the loop watches. After every MHD_run the daemon's next
 * deadline goes into a timer of the clock port. In this mode MHD does not wake on a resume, so whoever
 * resumes kicks the listener: its timer runs the daemon in the next turn, never from within a callback.
 *
 * Once a second the connections are looked at: MHD limits inactivity, not how long a request may be
 * trickled in or an answer trickled out, and it sees nothing at all of connections that sleep.
 *
 * Stop: no more connections; readers that wait are answered; what is under way gets stop_ms; the rest is
 * answered 503; then the daemons end. A daemon must have no sleeping connection when it ends. */
#include "api/parts.h"

#include "api/auth.h"
#include "api/exchange.h"
#include "api/listen.h"
#include "api/traffic.h"
#include "api/openapi.h"
#include "broker/core/alloc.h"
#include "broker/core/limits.h"

#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SWEEP_MS = 1000,
    STOP_MS = 5000,
    WAKE_MS = 200,
    STOP_TURN_MS = 20,
    FILE_BYTES_MAX = 256 * 1024,
    /* room for a header of the largest size, so that we refuse it, and for the answer's */
    CONNECTION_BYTES = LIMIT_HEADER_BYTES * 2
};

/* ---------------------------------------------------------------------------------- running a daemon */

static void listener_run(struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG timeout;
    if (!listener->daemon) {
        return;
    }
    (void)MHD_run(listener->daemon);
    if (MHD_get_timeout(listener->daemon, &timeout) == MHD_YES) {
        timer_start(listener->timer, (int64_t)timeout);
    } else {
        timer_stop(listener->timer);
    }
}

static void run_cb(void *arg)
{
    listener_run(arg);
}

static void ready_cb(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct listener *listener = poll->data;
    if (status < 0) { /* libuv has stopped the handle */
        listener->api->env.log("error", "the HTTP server cannot be watched any more");
        return;
    }
    listener_run(listener);
}

/* --------------------------------------------------------------------------------------- connections */

static void conn_open(struct listener *listener, struct MHD_Connection *mhd, void **context)
{
    struct conn *conn = xcalloc(1, sizeof *conn);
    struct ucred peer = {.uid = (uid_t)-1};
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof peer;
    conn->listener = listener;
    conn->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    conn->deadline_ms = clock_mono_ms(listener->api->env.clock) + api_idle_ms(listener->api);
    if (listener->is_unix) {
        (void)getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
        conn->uid = peer.uid;
        conn->is_loopback = true;
    } else {
        size = sizeof address;
        conn->is_loopback = getpeername(conn->fd, (struct sockaddr *)&address, &size) == 0 &&
                            listen_peer_is_here(&address);
    }
    conn->next = listener->conns;
    if (conn->next) {
        conn->next->prev = conn;
    }
    listener->conns = conn;
    listener->conn_count++;
    *context = conn;
}

static void conn_close(struct conn *conn)
{
    struct listener *listener = conn->listener;
    *(conn->prev ? &conn->prev->next : &listener->conns) = conn->next;
    if (conn->next) {
        conn->next->prev = conn->prev;
    }
    listener->conn_count--;
    free(conn);
}

static void connection_cb(void *arg, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn_open(arg, mhd, context);
    } else {
        conn_close(*context);
    }
}

/* The first line of a request: its target as it was sent. */
static void *target_cb(void *arg, const char *target, struct MHD_Connection *mhd)
{
    (void)arg;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return exchange_open(info->socket_context, mhd, target);
}

static enum MHD_Result access_cb(void *arg, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *length, void **context)
{
    (void)arg;
    (void)mhd;
    (void)url;
    (void)version;
    return exchange_access(*context, method, data, length) == 0 ? MHD_YES : MHD_NO;
}

static void completed_cb(void *arg, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)mhd;
    (void)code; /* "completed" is no proof that the client has it */
    if (*context) {
        exchange_close(*context);
        *context = NULL;
    }
}

/* ------------------------------------------------------------------------------------------- sweeping */

static void sweep_requests(struct api *api, int64_t now)
{
    struct error err;
    struct request *next;
    for (struct request *request = api->requests; request; request = next) {
        next = request->next;
        if (!request->suspended) {
            continue;
        }
        if (request->deadline_ms && now > request->deadline_ms) {
            error_set(&err, ERROR_TIMEOUT, "the broker has not answered in time");
            (void)error_expect(&err, "ask again; what was submitted with an Idempotency-Key is not "
                                     "made twice");
            exchange_give_up(request, &err);
        } else if (exchange_client_is_gone(request)) {
            error_set(&err, ERROR_UNAVAILABLE, "the client has gone");
            exchange_give_up(request, &err);
        }
    }
}

/* A client that sends nothing more while its request is not whole. MHD misses that when the last bytes
 * and the end came together; seen twice, so that what came last has been read. */
static bool sends_no_more(struct conn *conn)
{
    struct pollfd look = {.fd = conn->fd, .events = POLLRDHUP};
    bool over = (conn->phase == CONN_WAITS || conn->phase == CONN_BODY) && poll(&look, 1, 0) > 0;
    bool twice = over && conn->is_half;
    conn->is_half = over;
    return twice;
}

/* MHD notices the shut socket and closes the connection itself. */
static void sweep_conns(const struct listener *listener, int64_t now)
{
    for (struct conn *conn = listener->conns; conn; conn = conn->next) {
        if ((conn->deadline_ms && now > conn->deadline_ms) || sends_no_more(conn)) {
            (void)shutdown(conn->fd, SHUT_RDWR);
        }
    }
}

static void sweep_cb(void *arg)
{
    struct api *api = arg;
    int64_t now = clock_mono_ms(api->env.clock);
    sweep_requests(api, now);
    for (size_t i = 0; i < 2; i++) {
        sweep_conns(&api->listeners[i], now);
    }
    timer_start(api->sweep, SWEEP_MS);
}

/* ------------------------------------------------------------------------------------------- starting */

static int read_file(const char *path, char **out, struct error *err)
{
    FILE *file = fopen(path, "re");
    char *text = xcalloc(1, FILE_BYTES_MAX);
    size_t length = file ? fread(text, 1, FILE_BYTES_MAX, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    if (length == 0 || length == FILE_BYTES_MAX) {
        free(text);
        error_set(err, ERROR_INVALID, "the certificate %.150s cannot be read", path);
        return error_expect(err, "server.tls.certificate: a PEM file, the chain after it");
    }
    *out = text;
    return 0;
}

static int read_tls(struct listener *listener, const struct server_config *server,
                    struct error *err)
{
    if (!server->certificate) {
        return 0;
    }
    if (read_file(server->certificate, &listener->certificate, err) < 0) {
        return -1;
    }
    if (secret_read(&server->key, &listener->key, err) < 0) {
        return error_prefix(err, "server.tls.key");
    }
    return 0;
}

static struct MHD_Daemon *daemon_start(struct listener *listener)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, listener->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, listener->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){"NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"}},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    if (listener->certificate) {
        flags |= MHD_USE_TLS;
    }
    /* Half each: a crowd at the TCP address leaves the Unix socket usable. */
    return MHD_start_daemon(
        flags, 0, NULL, NULL, access_cb, listener, MHD_OPTION_LISTEN_SOCKET, listener->fd,
        MHD_OPTION_NOTIFY_COMPLETED, completed_cb, NULL, MHD_OPTION_NOTIFY_CONNECTION,
        connection_cb, listener, MHD_OPTION_URI_LOG_CALLBACK, target_cb, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(LIMIT_CONNECTIONS / 2), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(api_idle_ms(listener->api) / 1000), MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, listener->certificate ? tls : none, MHD_OPTION_END);
}

static int listener_start(struct listener *listener, struct error *err)
{
    struct api *api = listener->api;
    listener->daemon = daemon_start(listener);
    const union MHD_DaemonInfo *info =
        listener->daemon ? MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        if (!listener->daemon) {
            listener->fd = -1; /* whether MHD has closed it is not told; the process ends */
        }
        error_set(err, ERROR_INVALID, "the HTTP server does not start");
        return error_expect(err, listener->certificate
                                     ? "a certificate and the key that belongs to it, both PEM"
                                     : "enough file descriptors and memory");
    }
    listener->timer = clock_timer(api->env.clock, run_cb, listener);
    (void)uv_poll_init(api->env.loop, &listener->poll, info->epoll_fd);
    listener->poll.data = listener;
    listener->polling = true;
    api->closing++;
    (void)uv_poll_start(&listener->poll, UV_READABLE, ready_cb);
    listener_kick(listener);
    return 0;
}

static int start_unix(struct api *api, struct error *err)
{
    struct listener *listener = &api->listeners[0];
    listener->is_unix = true;
    listener->fd = listen_unix(api->socket_path, err);
    return listener->fd < 0 ? -1 : listener_start(listener, err);
}

/* "https://tieline.example.org:8443/x" -> "tieline.example.org" */
static char *host_of(const char *url)
{
    const char *start = strstr(url, "://");
    start = start ? start + strlen("://") : url;
    size_t length = *start == '[' ? strcspn(++start, "]") : strcspn(start, ":/");
    return xstrndup(start, length);
}

static void name_address(struct api *api, const struct listen_address *address, int port)
{
    const struct server_config *server = &api->env.federation->server;
    bool is_six = strchr(address->host, ':') != NULL;
    api->listen_host = xstrdup(address->host);
    api->address = xasprintf("%s://%s%s%s:%d", server->certificate ? "https" : "http",
                             is_six ? "[" : "", address->host, is_six ? "]" : "", port);
    api->url = xstrdup(server->url ? server->url : api->address);
    api->url_host = host_of(api->url);
}

static int start_tcp(struct api *api, struct error *err)
{
    const struct federation *federation = api->env.federation;
    struct listener *listener = &api->listeners[1];
    struct listen_address address = {NULL, 0};
    int port = 0;
    if (listen_parse(federation->server.listen, &address, err) < 0) {
        return -1;
    }
    int status = listen_check(federation, &address, err);
    if (status == 0 && (status = read_tls(listener, &federation->server, err)) == 0) {
        listener->fd = listen_tcp(&address, &port, err);
        status = listener->fd < 0 ? -1 : 0;
    }
    if (status == 0) {
        name_address(api, &address, port);
    }
    free(address.host);
    return status < 0 ? -1 : listener_start(listener, err);
}

static int start(struct api *api, struct error *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL); /* a client that went is an error code, not our end */
    if (auth_create(&api->env, &api->auth, err) < 0 || start_unix(api, err) < 0 ||
        start_tcp(api, err) < 0) {
        return -1;
    }
    json_t *document = openapi_document(api->url);
    api->openapi = json_dumps(document, JSON_INDENT(1));
    json_decref(document);
    timer_start(api->sweep, SWEEP_MS);
    return 0;
}

int api_create(const struct api_env *env, struct api **out, struct error *err)
{
    struct api *api = xcalloc(1, sizeof *api);
    api->env = *env;
    api->closing = 1;
    api->traffic = traffic_create();
    api->sweep = clock_timer(env->clock, sweep_cb, api);
    api->socket_path = xasprintf("%s/tieline.sock", env->federation->state_dir);
    for (size_t i = 0; i < 2; i++) {
        api->listeners[i].api = api;
        api->listeners[i].fd = -1;
    }
    if (start(api, err) < 0) {
        api_destroy(api);
        return -1;
    }
    *out = api;
    return 0;
}

const char *api_url(const struct api *api)
{
    return api->url;
}

const char *api_address(const struct api *api)
{
    return api->address;
}

const char *api_socket(const struct api *api)
{
    return api->socket_path;
}

/* ------------------------------------------------------------------------------------------- stopping */

static void quiesce(struct listener *listener)
{
    if (listener->daemon) {
        (void)MHD_quiesce_daemon(listener->daemon);
    }
    if (listener->fd >= 0) {
        (void)close(listener->fd);
        listener->fd = -1;
    }
}

static void turn_cb(void *arg)
{
    (void)arg; /* its only purpose: the loop does not sleep longer */
}

/* Runs the loop until no request is left or the time is over. */
static void wait_for_requests(struct api *api, int64_t ms)
{
    struct timer *turn = clock_timer(api->env.clock, turn_cb, NULL);
    int64_t end = clock_mono_ms(api->env.clock) + ms;
    while (api->requests && clock_mono_ms(api->env.clock) < end) {
        timer_start(turn, STOP_TURN_MS);
        (void)uv_run(api->env.loop, UV_RUN_ONCE);
    }
    timer_destroy(turn);
}

static void end_streams(struct api *api)
{
    struct request *next;
    struct error err;
    error_set(&err, ERROR_UNAVAILABLE, "the broker stops");
    for (struct request *request = api->requests; request; request = next) {
        next = request->next;
        if (request->waits) {
            exchange_give_up(request, &err);
        }
    }
}

static void give_up_all(struct api *api)
{
    struct request *next;
    struct error err;
    error_set(&err, ERROR_UNAVAILABLE, "the broker stops");
    for (struct request *request = api->requests; request; request = next) {
        next = request->next;
        if (request->suspended) {
            exchange_give_up(request, &err);
        }
    }
}

static void api_free(struct api *api)
{
    if (--api->closing > 0) {
        return;
    }
    auth_destroy(api->auth);
    traffic_destroy(api->traffic);
    free(api->socket_path);
    free(api->url);
    free(api->address);
    free(api->url_host);
    free(api->listen_host);
    free(api->openapi);
    free(api);
}

static void closed_cb(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    api_free(listener->api);
}

static void listener_stop(struct listener *listener)
{
    if (listener->polling) { /* before its descriptor is closed */
        (void)uv_poll_stop(&listener->poll);
        uv_close((uv_handle_t *)&listener->poll, closed_cb);
    }
    struct MHD_Daemon *daemon = listener->daemon;
    listener->daemon = NULL;
    if (daemon) {
        (void)MHD_run(daemon); /* takes notice of what was resumed */
        MHD_stop_daemon(daemon);
    }
    timer_destroy(listener->timer);
    free(listener->certificate);
    secret_wipe(listener->key);
}

void api_destroy(struct api *api)
{
    if (!api) {
        return;
    }
    api->stopping = true;
    for (size_t i = 0; i < 2; i++) {
        quiesce(&api->listeners[i]);
    }
    if (api->listeners[0].daemon) {
        (void)unlink(api->socket_path);
    }
    if (api->requests) {
        broker_wake_all(api->env.broker); /* long polls get the state as it is */
        wait_for_requests(api, WAKE_MS);
    }
    end_streams(api);
    wait_for_requests(api, api->env.stop_ms ? api->env.stop_ms : STOP_MS);
    give_up_all(api);
    wait_for_requests(api, STOP_TURN_MS * 5);
    give_up_all(api);
    for (size_t i = 0; i < 2; i++) {
        listener_stop(&api->listeners[i]);
    }
    timer_destroy(api->sweep);
    api_free(api);
}
