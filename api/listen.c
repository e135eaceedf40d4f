#include "api/listen.h"

#include "broker/core/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 512 };

static int fail(int fd, struct error *err, const char *what)
{
    error_set(err, ERROR_UNAVAILABLE, "cannot listen on %.200s: %s", what, strerror(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

static int unix_address(const char *path, struct sockaddr_un *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof out->sun_path) {
        error_set(err, ERROR_INVALID, "the path of the socket is too long: %.150s", path);
        return error_expect(err, "a state directory with a path of at most %zu bytes",
                            sizeof out->sun_path - sizeof "/tieline.sock.new");
    }
    copy_text(out->sun_path, sizeof out->sun_path, path);
    return 0;
}

static bool somebody_answers(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool answers = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    (void)close(fd);
    return answers;
}

/* Made under another name and put in place when nobody but us can reach it. */
static int bind_unix(const char *path, const char *temporary, struct error *err)
{
    struct sockaddr_un address;
    if (unix_address(temporary, &address, err) < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(temporary);
    mode_t old = umask(0177);
    int bound = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof address);
    (void)umask(old);
    if (bound < 0 || listen(fd, BACKLOG) < 0 || rename(temporary, path) < 0) {
        return fail(fd, err, path);
    }
    return fd;
}

int listen_unix(const char *path, struct error *err)
{
    struct sockaddr_un address;
    if (unix_address(path, &address, err) < 0) {
        return -1;
    }
    if (somebody_answers(&address)) {
        error_set(err, ERROR_CONFLICT, "another broker answers on %.150s", path);
        return error_expect(err, "stop it first, or use another state directory");
    }
    char *temporary = xasprintf("%s.new", path);
    int fd = bind_unix(path, temporary, err);
    free(temporary);
    return fd;
}

/* Returns the size of the address, as bind() wants it. */
static socklen_t tcp_address(const struct listen_address *address, struct sockaddr_storage *out)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    const char *host = strcmp(address->host, "localhost") == 0 ? "127.0.0.1" : address->host;
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)address->port);
        return sizeof *four;
    }
    (void)inet_pton(AF_INET6, host, &six->sin6_addr);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)address->port);
    return sizeof *six;
}

static int bound_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } address;
    socklen_t size = sizeof address;
    memset(&address, 0, sizeof address);
    if (getsockname(fd, &address.any, &size) < 0) {
        return 0;
    }
    return ntohs(address.four.sin_port); /* both families have it at the same place */
}

int listen_tcp(const struct listen_address *address, int *port, struct error *err)
{
    struct sockaddr_storage storage;
    socklen_t size = tcp_address(address, &storage);
    char what[ERROR_PATH_MAX];
    int on = 1;
    (void)snprintf(what, sizeof what, "%.150s port %d", address->host, address->port);
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, (const struct sockaddr *)&storage, size) < 0 || listen(fd, BACKLOG) < 0) {
        (void)fail(fd, err, what);
        return error_expect(err, "an address of this machine and a port that nobody uses");
    }
    *port = bound_port(fd);
    return fd;
}

int listen_check(const struct federation *federation, const struct listen_address *address,
                 struct error *err)
{
    const struct server_config *server = &federation->server;
    const char *lacks = NULL;
    if (!server->certificate) {
        lacks = "server.tls";
    } else if (!federation->tokens_file || access(federation->tokens_file, F_OK) < 0) {
        lacks = "auth.tokens"; /* a file is always named; there is none before the first token */
    }
    if (!lacks || listen_is_loopback(address)) {
        return 0;
    }
    error_set(err, ERROR_INVALID, "server.listen is %.100s, which others can reach, without %s",
              server->listen, lacks);
    return error_expect(
        err, "set server.tls, make a token with `tieline token add`, or listen on 127.0.0.1");
}

bool listen_peer_is_here(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    return address->ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127));
}
