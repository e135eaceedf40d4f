/* server.c - see server.h. */
#include "adapters/node/server.h"

#include "broker/core/alloc.h"
#include "broker/core/units.h"
#include "broker/net/clock_uv.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    CONNS_MAX = 32,
    LISTEN_BACKLOG = 64,
    LOG_COMPACT = 8 * 1024 * 1024, /* a log below this is never rewritten */
    RECORD_BYTES = 512             /* about what one attempt needs in a rewritten log */
};

struct conn {
    uv_pipe_t pipe;
    struct server *server;
    struct wire_reader reader;
    bool closing;
};

struct reply {         /* waits for the end of the turn */
    struct conn *conn; /* NULL: it has closed */
    char *data;
    size_t length;
    struct reply *next;
};

struct sending {
    uv_write_t req;
    char *data;
};

void server_say(struct server *server, const char *format, ...)
{
    char when[UNITS_TEXT_SIZE];
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "%s supervise: %s\n", instant_text(clock_wall_ms(server->clock), when),
                  text);
    (void)fflush(stderr);
}

char *server_job_dir(const struct server *server, const char *job, int attempt)
{
    return xasprintf("%s/%s-%d", server->jobs_dir, job, attempt);
}

void server_record_take(struct server *server, json_t *record)
{
    assert(record);
    works_apply(&server->works, record);
    exitlog_add(server->log, record);
    json_decref(record);
    server->changed = true;
}

static void conn_closed_cb(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    wire_reader_fini(&conn->reader);
    free(conn);
}

static void conn_close(struct conn *conn)
{
    struct server *server = conn->server;
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    for (struct reply *reply = server->replies; reply; reply = reply->next) {
        if (reply->conn == conn) {
            reply->conn = NULL;
        }
    }
    for (size_t i = 0; i < server->conn_count; i++) {
        if (server->conns[i] == conn) {
            server->conns[i] = server->conns[--server->conn_count];
        }
    }
    uv_close((uv_handle_t *)&conn->pipe, conn_closed_cb);
}

static int queue_reply(struct server *server, struct conn *conn, json_t *json, const char *bytes,
                       size_t length, struct error *err)
{
    struct reply *reply = xcalloc(1, sizeof *reply);
    reply->conn = conn;
    if (wire_encode(json, bytes, length, &reply->data, &reply->length, err)) {
        free(reply);
        return -1;
    }
    *server->replies_end = reply;
    server->replies_end = &reply->next;
    return 0;
}

void server_refuse(struct server *server, struct conn *conn, const json_t *request,
                   const struct error *err)
{
    json_t *json =
        json_pack("{s:b, s:s, s:s}", "ok", 0, "code", error_name(err->code), "text", err->text);
    if (!json) { /* the text quotes what is no UTF-8 */
        json = json_pack("{s:b, s:s, s:s}", "ok", 0, "code", error_name(err->code), "text",
                         error_title(err->code));
    }
    struct error ignored; /* this one is always small enough */
    json_object_set(json, "id", json_object_get(request, "id"));
    (void)queue_reply(server, conn, json, NULL, 0, &ignored);
    json_decref(json);
}

void server_reply_take(struct server *server, struct conn *conn, const json_t *request,
                       json_t *body, const char *bytes, size_t length)
{
    struct error err;
    assert(body);
    json_object_set(body, "id", json_object_get(request, "id"));
    json_object_set_new(body, "ok", json_true());
    if (queue_reply(server, conn, body, bytes, length, &err)) {
        server_refuse(server, conn, request, &err);
    }
    json_decref(body);
}

static void sent_cb(uv_write_t *req, int status)
{
    struct sending *sending = req->data;
    (void)status; /* the read side sees that the peer is gone */
    free(sending->data);
    free(sending);
}

static void send_take(struct conn *conn, char *data, size_t length)
{
    struct sending *sending = xcalloc(1, sizeof *sending);
    sending->data = data;
    sending->req.data = sending;
    uv_buf_t buf = uv_buf_init(data, (unsigned)length);
    uv_stream_t *stream = (uv_stream_t *)&conn->pipe;
    if (uv_write(&sending->req, stream, &buf, 1, sent_cb)) {
        sent_cb(&sending->req, UV_ECANCELED);
        conn_close(conn);
    } else if (uv_stream_get_write_queue_size(stream) > WIRE_QUEUE_MAX) {
        server_say(conn->server, "a peer does not read its answers: closed");
        conn_close(conn);
    }
}

static void send_replies(struct server *server)
{
    while (server->replies) {
        struct reply *reply = server->replies;
        server->replies = reply->next;
        if (!server->replies) {
            server->replies_end = &server->replies;
        }
        if (reply->conn) {
            send_take(reply->conn, reply->data, reply->length);
        } else {
            free(reply->data);
        }
        free(reply);
    }
}

static void begin_start(void *arg, struct work *work)
{
    struct server *server = arg;
    json_t *record = work_record("start", work);
    json_object_set_new(record, "boot", json_string(server->boot));
    json_object_set_new(record, "at_ms", json_integer(clock_wall_ms(server->clock)));
    server_record_take(server, record);
    if (server->starting_count == server->starting_room) {
        server->starting_room = server->starting_room * 2 + 16;
        server->starting = xrealloc(server->starting, server->starting_room, sizeof(struct work *));
    }
    server->starting[server->starting_count++] = work;
}

static void sync_or_end(struct server *server)
{
    struct error err;
    if (exitlog_sync(server->log, &err)) {
        server_say(server, "%s; ends here, running jobs go on", err.text);
        _Exit(EXIT_FAILURE);
    }
    int64_t useful = (int64_t)(server->works.queued_bytes + server->works.count * RECORD_BYTES +
                               server->works.seen_count * RECORD_BYTES / 4);
    if (exitlog_size(server->log) < LOG_COMPACT || exitlog_size(server->log) < 4 * useful) {
        return;
    }
    json_t *records = works_records(&server->works);
    bool replaced;
    if (exitlog_rewrite(server->log, records, &replaced, &err)) {
        server_say(server, "%s; %s", err.text,
                   replaced ? "ends here, running jobs go on" : "goes on with the old one");
        if (replaced) {
            _Exit(EXIT_FAILURE);
        }
    }
    json_decref(records);
}

static void idle_fired(void *arg)
{
    struct server *server = arg;
    server->idle_armed = false;
    uv_stop(&server->loop);
}

static void consider_rest(struct server *server)
{
    if (server->ending && server->hooks.may_rest(server)) {
        uv_stop(&server->loop);
        return;
    }
    bool rest =
        server->conn_count == 0 && !server->starting_count && server->hooks.may_rest(server);
    if (rest && !server->idle_armed) {
        server->idle_armed = true;
        timer_start(server->idle_timer, server->bye ? 0 : server->idle_ms);
    } else if (!rest && server->idle_armed) {
        server->idle_armed = false;
        timer_stop(server->idle_timer);
    }
}

/* The end of a turn. Forking may add records (a start that failed): then once more. */
static void end_turn(struct server *server)
{
    do {
        if (server->changed && server->greeted && !server->ending) {
            works_schedule(&server->works, begin_start, server);
        }
        server->changed = false;
        sync_or_end(server);
        send_replies(server);
        for (size_t i = 0; i < server->starting_count; i++) {
            server->hooks.start(server, server->starting[i]);
        }
        server->starting_count = 0;
    } while (exitlog_is_dirty(server->log));
    consider_rest(server);
}

static void prepare_cb(uv_prepare_t *handle)
{
    end_turn(handle->data);
}

static void check_cb(uv_check_t *handle)
{
    end_turn(handle->data);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct conn *conn = handle->data;
    (void)suggested;
    size_t length;
    char *room = wire_reader_room(&conn->reader, &length);
    *buf = uv_buf_init(room, (unsigned)length);
}

static void read_cb(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    struct wire_message message;
    struct error err;
    (void)buf;
    if (n < 0) {
        conn_close(conn);
        return;
    }
    wire_reader_fed(&conn->reader, (size_t)n);
    int more = 0;
    while (!conn->closing && (more = wire_reader_next(&conn->reader, &message, &err)) > 0) {
        conn->server->hooks.request(conn->server, conn, message.json);
        json_decref(message.json);
    }
    if (more < 0) {
        server_say(conn->server, "a peer is closed: %s", err.text);
        conn_close(conn);
    }
}

/* Whether the peer is one of ours and there is room for it. */
static bool conn_admit(struct server *server, struct conn *conn)
{
    struct error err;
    uv_os_fd_t fd = -1;
    if (server->conn_count > CONNS_MAX) {
        server_say(server, "a peer is not served: %d connections are open", CONNS_MAX);
        return false;
    }
    if (uv_fileno((uv_handle_t *)&conn->pipe, &fd) || wire_check_peer(fd, &err)) {
        server_say(server, "a peer is refused: %s", fd < 0 ? "no descriptor" : err.text);
        return false;
    }
    return true;
}

static void connection_cb(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    if (status) {
        server_say(server, "accept: %s", uv_strerror(status));
        return;
    }
    struct conn *conn = xcalloc(1, sizeof *conn);
    conn->server = server;
    wire_reader_init(&conn->reader);
    (void)uv_pipe_init(&server->loop, &conn->pipe, 0);
    conn->pipe.data = conn;
    server->conns[server->conn_count++] = conn;
    if (uv_accept(listener, (uv_stream_t *)&conn->pipe) || !conn_admit(server, conn) ||
        uv_read_start((uv_stream_t *)&conn->pipe, alloc_cb, read_cb)) {
        conn_close(conn);
    }
}

int server_listen(struct server *server, int fd, struct error *err)
{
    int failed = uv_pipe_open(&server->listener, fd);
    if (!failed) {
        failed = uv_listen((uv_stream_t *)&server->listener, LISTEN_BACKLOG, connection_cb);
    }
    if (!failed) {
        failed = uv_prepare_start(&server->prepare, prepare_cb);
    }
    if (!failed) {
        failed = uv_check_start(&server->check, check_cb);
    }
    return failed ? error_set(err, ERROR_UNAVAILABLE, "serve: %s", uv_strerror(failed)) : 0;
}

static void seen_record(void *arg, const json_t *record)
{
    works_apply(arg, record);
}

static int make_dir(const char *path, struct error *err)
{
    if (mkdir(path, 0700) && errno != EEXIST) {
        return error_set(err, ERROR_UNAVAILABLE, "make '%s': %s", path, strerror(errno));
    }
    return 0;
}

static void init_handles(struct server *server)
{
    (void)uv_pipe_init(&server->loop, &server->listener, 0);
    (void)uv_prepare_init(&server->loop, &server->prepare);
    (void)uv_check_init(&server->loop, &server->check);
    server->listener.data = server->prepare.data = server->check.data = server;
}

int server_open(struct server *server, const char *dir, struct error *err)
{
    works_init(&server->works);
    server->replies_end = &server->replies;
    server->conns = xcalloc(CONNS_MAX + 1, sizeof(struct conn *));
    server->dir = xstrdup(dir);
    server->jobs_dir = xasprintf("%s/jobs", dir);
    server->trash_dir = xasprintf("%s/trash", dir);
    proc_boot(server->boot);
    int failed = uv_loop_init(&server->loop);
    if (failed) {
        return error_set(err, ERROR_UNAVAILABLE, "make a loop: %s", uv_strerror(failed));
    }
    init_handles(server);
    server->clock = clock_uv_create(&server->loop);
    server->idle_timer = clock_timer(server->clock, idle_fired, server);
    if (make_dir(server->jobs_dir, err) || make_dir(server->trash_dir, err) ||
        exitlog_open(dir, seen_record, &server->works, &server->log, err)) {
        return -1;
    }
    if (exitlog_damaged(server->log)) {
        server_say(server, "%lld records of the exit log are damaged and left out",
                   (long long)exitlog_damaged(server->log));
    }
    return 0;
}

void server_close(struct server *server)
{
    while (server->conn_count) {
        conn_close(server->conns[0]);
    }
    send_replies(server);
    if (server->clock) {
        timer_destroy(server->idle_timer);
        uv_close((uv_handle_t *)&server->listener, NULL);
        uv_close((uv_handle_t *)&server->prepare, NULL);
        uv_close((uv_handle_t *)&server->check, NULL);
        (void)uv_run(&server->loop, UV_RUN_DEFAULT);
        clock_uv_destroy(server->clock);
        (void)uv_loop_close(&server->loop);
    }
    exitlog_close(server->log);
    works_fini(&server->works);
    free(server->conns);
    free(server->starting);
    free(server->dir);
    free(server->jobs_dir);
    free(server->trash_dir);
}
