/* server.h - the supervisor's loop: connections, and the one way in which state changes.
 *
 * Whatever happens in a turn of the loop changes `works` at once, adds its record to the exit log and
 * queues its answers. At the end of the turn the log is synced once; only then are the answers sent and
 * the keepers forked. So nobody ever hears of what is not on disk. When the log cannot be written, the
 * supervisor ends: its jobs go on, and the next one starts from what is on disk. */
#ifndef ADAPTERS_NODE_SERVER_H
#define ADAPTERS_NODE_SERVER_H

#include "adapters/node/exitlog.h"
#include "adapters/node/works.h"
#include "broker/core/clock.h"
#include "broker/net/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <uv.h>

struct server;
struct conn;

struct server_hooks {
    /* A request; json is borrowed. Answers with server_reply, now or never. */
    void (*request)(struct server *server, struct conn *conn, const json_t *json);
    /* The start of this attempt is on disk: fork its keeper. */
    void (*start)(struct server *server, struct work *work);
    /* Nothing is left to do and nobody is connected: may the process end? */
    bool (*may_rest)(struct server *server);
};

struct server {
    uv_loop_t loop;
    struct clock *clock;
    struct server_hooks hooks;
    char *dir;      /* of the member, absolute */
    char *jobs_dir; /* dir/jobs: one directory per attempt */
    char *trash_dir;
    char boot[PROC_BOOT_SIZE];
    int64_t idle_ms, output_cap, keep_logs_ms;
    struct rlimit job_files; /* of descriptors, for jobs */
    struct works works;
    struct exitlog *log;
    bool greeted; /* the places are known: attempts may start */
    bool bye;     /* the broker has left: end as soon as there is nothing to do */
    bool ending;  /* its directory was removed: nothing starts, it ends after its jobs */
    uv_pipe_t listener;
    uv_prepare_t prepare;
    uv_check_t check;
    struct conn **conns;
    size_t conn_count;
    struct reply *replies, **replies_end;
    struct work **starting; /* their start is in the group that waits */
    size_t starting_count, starting_room;
    bool changed; /* the schedule may be another */
    struct timer *idle_timer;
    bool idle_armed;
    struct keeping *keeping; /* keeps.c */
};

/* Applies a record and adds it to the group of this turn. */
void server_record_take(struct server *server, json_t *record);

/* Answers request: fields of body are added to {"id","ok":true}. */
void server_reply_take(struct server *server, struct conn *conn, const json_t *request,
                       json_t *body, const char *bytes, size_t length);
void server_refuse(struct server *server, struct conn *conn, const json_t *request,
                   const struct error *err);

/* One line to stderr, with the time. */
void server_say(struct server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The directory of an attempt; the caller frees it. */
char *server_job_dir(const struct server *server, const char *job, int attempt);

/* Takes the listening socket and begins to serve. */
int server_listen(struct server *server, int fd, struct error *err);

/* Opens what is in dir: replays the log. */
int server_open(struct server *server, const char *dir, struct error *err);
void server_close(struct server *server);

#endif
