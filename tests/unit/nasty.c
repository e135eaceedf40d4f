/* nasty.c - one thread accepts, one serves each connection; all end with the server. */
#include "tests/unit/nasty.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RULES_MAX = 64, RECORDS_MAX = 4096, CONNECTIONS_MAX = 4096, REQUEST_MAX = 16 << 20 };

struct rule {
    char *what;
    enum nasty_way way;
    int status;
    char *type, *body;
};

struct nasty {
    int fd, port;
    char path[108];
    pthread_t acceptor;
    pthread_mutex_t lock;
    pthread_cond_t stopping;
    bool stop;
    struct rule rules[RULES_MAX];
    int rule_count;
    char *records[RECORDS_MAX];
    int record_count;
    int fds[CONNECTIONS_MAX]; /* -1: closed */
    pthread_t threads[CONNECTIONS_MAX];
    int connection_count;
};

struct peer {
    struct nasty *server;
    int slot, fd;
    char *buffer;
    size_t have, room;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

static char *copy(const char *text)
{
    char *out = strdup(text ? text : "");
    if (!out) {
        die("strdup");
    }
    return out;
}

static bool send_all(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n <= 0) {
            return false;
        }
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

/* The length of the whole request at the start of the buffer, or 0 when more is needed. */
static size_t whole(const struct peer *peer)
{
    char *end = peer->have ? strstr(peer->buffer, "\r\n\r\n") : NULL;
    if (!end) {
        return 0;
    }
    size_t head = (size_t)(end - peer->buffer) + 4;
    const char *field = strcasestr(peer->buffer, "\r\ncontent-length:");
    size_t body = field && field < end ? strtoul(field + 17, NULL, 10) : 0;
    return peer->have >= head + body ? head + body : 0;
}

static void grow(struct peer *peer)
{
    if (peer->have < peer->room) {
        return;
    }
    peer->room = peer->room * 2 + 4096;
    peer->buffer = peer->room < REQUEST_MAX ? realloc(peer->buffer, peer->room + 1) : NULL;
    if (!peer->buffer) {
        die("grow");
    }
}

static size_t read_request(struct peer *peer)
{
    size_t length;
    while (!(length = whole(peer))) {
        grow(peer);
        ssize_t n = recv(peer->fd, peer->buffer + peer->have, peer->room - peer->have, 0);
        if (n <= 0) {
            return 0;
        }
        peer->have += (size_t)n;
        peer->buffer[peer->have] = '\0';
    }
    return length;
}

static bool fits(const char *what, const char *request)
{
    size_t length = strlen(what);
    if (length && what[length - 1] == '*') {
        return !strncmp(request, what, length - 1);
    }
    return !strncmp(request, what, length) && strchr(" ?", request[length]);
}

static struct rule rule_for(struct nasty *server, const char *request)
{
    struct rule found = {
        .way = NASTY_ANSWER, .status = 404, .type = "text/plain", .body = "no such URL"};
    for (int i = server->rule_count - 1; i >= 0; i--) {
        if (fits(server->rules[i].what, request)) {
            found = server->rules[i];
            break;
        }
    }
    found.type = copy(found.type);
    found.body = copy(found.body);
    return found;
}

static bool answer(int fd, const struct rule *rule, bool half)
{
    size_t length = strlen(rule->body);
    char head[512];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d Whatever\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s\r\n",
                     rule->status, rule->type, length,
                     rule->status / 100 == 3 ? "Location: /ok\r\n" : "");
    return send_all(fd, head, (size_t)n) && send_all(fd, rule->body, half ? length / 2 : length) &&
           !half;
}

/* Returns whether the connection goes on. */
static bool behave(struct nasty *server, int fd, const struct rule *rule, int nth)
{
    switch (rule->way) {
    case NASTY_ANSWER: return answer(fd, rule, false);
    case NASTY_HALF: return answer(fd, rule, true);
    case NASTY_DIE: return false;
    case NASTY_DIE_KEPT: return nth == 1 && answer(fd, rule, false);
    case NASTY_HANG:
        (void)pthread_mutex_lock(&server->lock);
        while (!server->stop) {
            (void)pthread_cond_wait(&server->stopping, &server->lock);
        }
        (void)pthread_mutex_unlock(&server->lock);
        return false;
    }
    return false;
}

static bool serve_one(struct peer *peer, int nth)
{
    struct nasty *server = peer->server;
    size_t length = read_request(peer);
    if (!length) {
        return false;
    }
    char *request = strndup(peer->buffer, length);
    memmove(peer->buffer, peer->buffer + length, peer->have - length + 1);
    peer->have -= length;
    (void)pthread_mutex_lock(&server->lock);
    struct rule rule = rule_for(server, request);
    if (server->record_count == RECORDS_MAX) {
        die("too many requests");
    }
    server->records[server->record_count++] = request;
    (void)pthread_mutex_unlock(&server->lock);
    bool more = behave(server, peer->fd, &rule, nth);
    free(rule.type);
    free(rule.body);
    return more;
}

static void *serve(void *arg)
{
    struct peer *peer = arg;
    int nth = 1;
    while (serve_one(peer, nth)) {
        nth++;
    }
    (void)pthread_mutex_lock(&peer->server->lock);
    peer->server->fds[peer->slot] = -1;
    (void)close(peer->fd);
    (void)pthread_mutex_unlock(&peer->server->lock);
    free(peer->buffer);
    free(peer);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct nasty *server = arg;
    int fd;
    while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
        struct peer *peer = calloc(1, sizeof *peer);
        if (!peer) {
            die("calloc");
        }
        peer->server = server;
        peer->fd = fd;
        (void)pthread_mutex_lock(&server->lock);
        if (server->connection_count == CONNECTIONS_MAX) {
            die("too many connections");
        }
        peer->slot = server->connection_count++;
        server->fds[peer->slot] = fd;
        if (pthread_create(&server->threads[peer->slot], NULL, serve, peer)) {
            die("pthread_create");
        }
        (void)pthread_mutex_unlock(&server->lock);
    }
    return NULL;
}

static int listen_tcp(int backlog, int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) ||
        (backlog >= 0 && listen(fd, backlog)) ||
        getsockname(fd, (struct sockaddr *)&address, &length)) {
        die("listen");
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static int listen_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 16)) {
        die("listen");
    }
    return fd;
}

int nasty_hole(int fds[NASTY_HOLE_FDS])
{
    int port;
    fds[0] = listen_tcp(0, &port);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 1; i < NASTY_HOLE_FDS; i++) { /* fills the backlog: further SYNs are dropped */
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fds[i], (struct sockaddr *)&address, sizeof address) && errno != EINPROGRESS) {
            die("connect");
        }
    }
    return port;
}

int nasty_closed_port(void)
{
    int port;
    int fd = listen_tcp(-1, &port);
    (void)close(fd);
    return port;
}

int nasty_port(const struct nasty *server)
{
    return server->port;
}

void nasty_on(struct nasty *server, const char *what, enum nasty_way way, int status,
              const char *type, const char *body)
{
    (void)pthread_mutex_lock(&server->lock);
    int i = 0;
    while (i < server->rule_count && strcmp(server->rules[i].what, what) != 0) {
        i++;
    }
    struct rule *rule = &server->rules[i];
    if (i == server->rule_count) {
        if (i == RULES_MAX) {
            die("too many rules");
        }
        server->rule_count++;
        rule->what = copy(what);
    } else {
        free(rule->type);
        free(rule->body);
    }
    rule->way = way;
    rule->status = status;
    rule->type = copy(type);
    rule->body = copy(body);
    (void)pthread_mutex_unlock(&server->lock);
}

int nasty_count(struct nasty *server, const char *what)
{
    int count = 0;
    (void)pthread_mutex_lock(&server->lock);
    for (int i = 0; i < server->record_count; i++) {
        count += !strncmp(server->records[i], what, strlen(what));
    }
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

char *nasty_last(struct nasty *server, const char *what)
{
    char *found = NULL;
    (void)pthread_mutex_lock(&server->lock);
    for (int i = server->record_count - 1; i >= 0 && !found; i--) {
        if (!strncmp(server->records[i], what, strlen(what))) {
            found = copy(server->records[i]);
        }
    }
    (void)pthread_mutex_unlock(&server->lock);
    return found;
}

int nasty_connections(struct nasty *server)
{
    (void)pthread_mutex_lock(&server->lock);
    int count = server->connection_count;
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

struct nasty *nasty_start(const char *unix_path)
{
    struct nasty *server = calloc(1, sizeof *server);
    if (!server) {
        die("calloc");
    }
    (void)pthread_mutex_init(&server->lock, NULL);
    (void)pthread_cond_init(&server->stopping, NULL);
    if (unix_path) {
        (void)snprintf(server->path, sizeof server->path, "%s", unix_path);
        server->fd = listen_unix(unix_path);
    } else {
        server->fd = listen_tcp(64, &server->port);
    }
    if (pthread_create(&server->acceptor, NULL, accept_all, server)) {
        die("pthread_create");
    }
    return server;
}

void nasty_stop(struct nasty *server)
{
    (void)shutdown(server->fd, SHUT_RDWR); /* ends accept() */
    (void)pthread_join(server->acceptor, NULL);
    (void)close(server->fd);
    (void)pthread_mutex_lock(&server->lock);
    server->stop = true;
    (void)pthread_cond_broadcast(&server->stopping);
    for (int i = 0; i < server->connection_count; i++) {
        if (server->fds[i] >= 0) {
            (void)shutdown(server->fds[i], SHUT_RDWR);
        }
    }
    (void)pthread_mutex_unlock(&server->lock);
    for (int i = 0; i < server->connection_count; i++) {
        (void)pthread_join(server->threads[i], NULL);
    }
    for (int i = 0; i < server->record_count; i++) {
        free(server->records[i]);
    }
    for (int i = 0; i < server->rule_count; i++) {
        free(server->rules[i].what);
        free(server->rules[i].type);
        free(server->rules[i].body);
    }
    if (server->path[0]) {
        (void)unlink(server->path);
    }
    (void)pthread_cond_destroy(&server->stopping);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}
