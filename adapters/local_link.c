/* local_link.c - see local_link.h.
 *
 * Handles live as long as the loop needs them, which may be longer than the adapter: each is freed in its
 * own close callback, and what comes after link_destroy finds no owner. */
#include "adapters/local_link.h"

#include "broker/core/alloc.h"
#include "broker/net/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum {
    RETRY_MIN_MS = 50,
    RETRY_MAX_MS = 5000,
    STDERR_MAX = 1024 * 1024 /* of the supervisor's log; beyond, it begins anew at the next start */
};

struct line { /* one connection */
    uv_pipe_t pipe;
    struct link *link; /* NULL: closing */
    struct wire_reader reader;
};

struct starter { /* one run of `tieline supervise --detach` */
    uv_process_t process;
    struct link *link; /* NULL: the adapter is gone */
};

struct sending {
    uv_write_t req;
    char *data;
};

struct link {
    struct adapter_env env;
    struct link_owner owner;
    char *dir, *member;
    struct line *line;       /* NULL: not connected */
    struct starter *starter; /* NULL: none runs */
    struct timer *retry;
    bool waiting; /* for the retry timer */
    int64_t delay_ms;
    char trouble[ERROR_TEXT_MAX];
};

static void line_closed_cb(uv_handle_t *handle)
{
    struct line *line = handle->data;
    wire_reader_fini(&line->reader);
    free(line);
}

static void line_close(struct link *link)
{
    struct line *line = link->line;
    if (line) {
        link->line = NULL;
        line->link = NULL;
        uv_close((uv_handle_t *)&line->pipe, line_closed_cb);
    }
}

static void retry_later(struct link *link)
{
    if (link->waiting) {
        return;
    }
    link->waiting = true;
    timer_start(link->retry, link->delay_ms);
    link->delay_ms = link->delay_ms * 2 < RETRY_MAX_MS ? link->delay_ms * 2 : RETRY_MAX_MS;
}

static void lose(struct link *link, const char *why)
{
    copy_text(link->trouble, sizeof link->trouble, why);
    line_close(link);
    link->owner.down(link->owner.arg);
    retry_later(link);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct line *line = handle->data;
    (void)suggested;
    size_t length;
    char *room = wire_reader_room(&line->reader, &length);
    *buf = uv_buf_init(room, (unsigned)length);
}

static void read_cb(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct line *line = stream->data;
    struct wire_message message;
    struct error err;
    int more = 0;
    (void)buf;
    if (!line->link) {
        return;
    }
    if (n < 0) {
        lose(line->link, "the supervisor closed the connection");
        return;
    }
    wire_reader_fed(&line->reader, (size_t)n);
    while (line->link && (more = wire_reader_next(&line->reader, &message, &err)) > 0) {
        line->link->delay_ms = RETRY_MIN_MS; /* it answers: the next loss is a new one */
        line->link->owner.message(line->link->owner.arg, message.json, message.bytes,
                                  message.length);
        json_decref(message.json);
    }
    if (line->link && more < 0) {
        lose(line->link, err.text);
    }
}

static int line_open(struct link *link, int fd)
{
    struct line *line = xcalloc(1, sizeof *line);
    wire_reader_init(&line->reader);
    line->link = link;
    link->line = line;
    (void)uv_pipe_init(link->env.loop, &line->pipe, 0);
    line->pipe.data = line;
    if (uv_pipe_open(&line->pipe, fd)) {
        close(fd);
        line_close(link);
        return -1;
    }
    if (uv_read_start((uv_stream_t *)&line->pipe, alloc_cb, read_cb)) {
        line_close(link);
        return -1;
    }
    link->trouble[0] = '\0';
    return 0;
}

/* 1: connected; 0: nobody listens; -1: not now. */
static int try_connect(struct link *link)
{
    struct error err;
    int fd = wire_connect(link->dir, &err);
    if (fd < 0) {
        copy_text(link->trouble, sizeof link->trouble, err.text);
        return err.code == ERROR_NOT_FOUND ? 0 : -1;
    }
    if (line_open(link, fd)) {
        copy_text(link->trouble, sizeof link->trouble, "the connection cannot be watched");
        return -1;
    }
    link->owner.up(link->owner.arg);
    return 1;
}

static void starter_closed_cb(uv_handle_t *handle)
{
    free(handle->data);
}

static void started_cb(uv_process_t *process, int64_t status, int signal)
{
    struct starter *starter = process->data;
    struct link *link = starter->link;
    uv_close((uv_handle_t *)process, starter_closed_cb);
    if (!link) {
        return;
    }
    link->starter = NULL;
    if (try_connect(link) <= 0) {
        (void)snprintf(link->trouble, sizeof link->trouble,
                       "the supervisor could not be started (status %lld, signal %d): see "
                       "%.200s/supervise.log",
                       (long long)status, signal, link->dir);
        retry_later(link);
    }
}

/* Its stderr. The directory is made here, so that there is a place for it. */
static int open_stderr(const struct link *link)
{
    char *parent = xasprintf("%s/local", link->env.state_dir);
    char *path = xasprintf("%s/supervise.log", link->dir);
    struct stat info;
    (void)mkdir(parent, 0700);
    (void)mkdir(link->dir, 0700);
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
    if (!stat(path, &info) && info.st_size > STDERR_MAX) {
        flags |= O_TRUNC;
    }
    int fd = open(path, flags, 0600);
    free(path);
    free(parent);
    return fd;
}

static int spawn(struct link *link, struct starter *starter, int log_fd)
{
    char *argv[] = {(char *)link->env.program,
                    "supervise",
                    "--dir",
                    link->dir,
                    "--member",
                    link->member,
                    "--detach",
                    NULL};
    uv_stdio_container_t stdio[3] = {{.flags = UV_IGNORE}};
    stdio[1].flags = stdio[2].flags = log_fd < 0 ? UV_IGNORE : UV_INHERIT_FD;
    stdio[1].data.fd = stdio[2].data.fd = log_fd;
    uv_process_options_t options = {
        .exit_cb = started_cb,
        .file = link->env.program,
        .args = argv,
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = 3,
        .stdio = stdio,
    };
    return uv_spawn(link->env.loop, &starter->process, &options);
}

static void start_supervisor(struct link *link)
{
    struct starter *starter = xcalloc(1, sizeof *starter);
    int log_fd = open_stderr(link);
    starter->link = link;
    starter->process.data = starter;
    link->starter = starter;
    int failed = spawn(link, starter, log_fd);
    if (log_fd >= 0) {
        close(log_fd);
    }
    if (failed) {
        (void)snprintf(link->trouble, sizeof link->trouble,
                       "the supervisor could not be started: '%.200s': %s", link->env.program,
                       uv_strerror(failed));
        link->starter = NULL;
        starter->link = NULL;
        uv_close((uv_handle_t *)&starter->process, starter_closed_cb);
        retry_later(link);
    }
}

static void connect_or_start(struct link *link)
{
    if (link->line || link->starter || link->waiting) {
        return;
    }
    int connected = try_connect(link);
    if (connected == 0) {
        start_supervisor(link);
    } else if (connected < 0) {
        retry_later(link);
    }
}

static void retry_fired(void *arg)
{
    struct link *link = arg;
    link->waiting = false;
    if (link->owner.wants(link->owner.arg)) {
        connect_or_start(link);
    }
}

bool link_is_up(const struct link *link)
{
    return link->line != NULL;
}

const char *link_trouble(const struct link *link)
{
    return link->trouble;
}

void link_wake(struct link *link)
{
    connect_or_start(link);
}

static void sent_cb(uv_write_t *req, int status)
{
    struct sending *sending = req->data;
    (void)status; /* the read side sees the loss */
    free(sending->data);
    free(sending);
}

int link_send(struct link *link, json_t *json, struct error *err)
{
    char *data;
    size_t length;
    if (!link->line) {
        return error_set(err, ERROR_UNAVAILABLE, "%s", link->trouble);
    }
    uv_stream_t *stream = (uv_stream_t *)&link->line->pipe;
    if (uv_stream_get_write_queue_size(stream) > WIRE_QUEUE_MAX) {
        return error_set(err, ERROR_UNAVAILABLE, "the supervisor does not take requests");
    }
    if (wire_encode(json, NULL, 0, &data, &length, err)) {
        return -1;
    }
    struct sending *sending = xcalloc(1, sizeof *sending);
    sending->data = data;
    sending->req.data = sending;
    uv_buf_t buf = uv_buf_init(data, (unsigned)length);
    int failed = uv_write(&sending->req, stream, &buf, 1, sent_cb);
    if (failed) {
        sent_cb(&sending->req, failed);
        return error_set(err, ERROR_UNAVAILABLE, "ask the supervisor: %s", uv_strerror(failed));
    }
    return 0;
}

static void say_farewell(struct link *link, json_t *farewell)
{
    char *data;
    size_t length;
    struct error err;
    if (!link->line || wire_encode(farewell, NULL, 0, &data, &length, &err)) {
        return;
    }
    uv_buf_t buf = uv_buf_init(data, (unsigned)length);
    (void)uv_try_write((uv_stream_t *)&link->line->pipe, &buf, 1); /* else it idles for a while */
    free(data);
}

struct link *link_create(const struct adapter_env *env, const char *dir, const char *member,
                         const struct link_owner *owner)
{
    struct link *link = xcalloc(1, sizeof *link);
    link->env = *env;
    link->owner = *owner;
    link->dir = xstrdup(dir);
    link->member = xstrdup(member);
    link->delay_ms = RETRY_MIN_MS;
    link->retry = clock_timer(env->clock, retry_fired, link);
    return link;
}

void link_destroy(struct link *link, json_t *farewell)
{
    if (!link) {
        return;
    }
    if (farewell) {
        say_farewell(link, farewell);
    }
    line_close(link);
    if (link->starter) {
        /* It goes on alone: the loop may end before it does, and nothing of it may be left then. */
        uv_close((uv_handle_t *)&link->starter->process, starter_closed_cb);
    }
    timer_destroy(link->retry);
    free(link->dir);
    free(link->member);
    free(link);
}
