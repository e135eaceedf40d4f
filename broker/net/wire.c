/* wire.c - see wire.h.
 *
 * Paths of sockets hold 107 bytes at most. A state directory may be longer, so both ends go through
 * /proc/self/fd/N/sock, where N is the open directory. */
#include "broker/net/wire.h"

#include "broker/core/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ_STEP = 64 * 1024, BACKLOG = 64 };

int wire_encode(json_t *json, const void *bytes, size_t length, char **out, size_t *out_length,
                struct error *err)
{
    json_object_set_new(json, "v", json_integer(WIRE_VERSION));
    char *text = json_dumps(json, JSON_COMPACT);
    if (!text) {
        return error_set(err, ERROR_INTERNAL, "the message is no JSON");
    }
    size_t text_length = strlen(text);
    if (text_length > WIRE_JSON_MAX || length > WIRE_BYTES_MAX) {
        free(text);
        return error_set(err, ERROR_TOO_LARGE, "a message of %zu bytes is over the limit of %d",
                         text_length + length, WIRE_JSON_MAX);
    }
    uint32_t header[2] = {htonl((uint32_t)text_length), htonl((uint32_t)length)};
    *out_length = WIRE_HEADER + text_length + length;
    *out = xcalloc(1, *out_length);
    memcpy(*out, header, WIRE_HEADER);
    memcpy(*out + WIRE_HEADER, text, text_length);
    if (length) {
        memcpy(*out + WIRE_HEADER + text_length, bytes, length);
    }
    free(text);
    return 0;
}

void wire_reader_init(struct wire_reader *reader)
{
    memset(reader, 0, sizeof *reader);
}

void wire_reader_fini(struct wire_reader *reader)
{
    free(reader->data);
    wire_reader_init(reader);
}

char *wire_reader_room(struct wire_reader *reader, size_t *length)
{
    if (reader->start > 0) {
        memmove(reader->data, reader->data + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->room - reader->end < READ_STEP) {
        reader->room = reader->room * 2 + READ_STEP;
        reader->data = xrealloc(reader->data, reader->room, 1);
    }
    *length = reader->room - reader->end;
    return reader->data + reader->end;
}

void wire_reader_fed(struct wire_reader *reader, size_t length)
{
    reader->end += length;
}

static int parse(const char *text, size_t length, json_t **out, struct error *err)
{
    json_error_t why;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(json)) {
        json_decref(json);
        return error_set(err, ERROR_MALFORMED, "a message is no JSON object: %s", why.text);
    }
    json_int_t version = json_integer_value(json_object_get(json, "v"));
    if (version != WIRE_VERSION) {
        json_decref(json);
        return error_set(err, ERROR_UPSTREAM,
                         "the peer speaks version %lld of the protocol, not %d", (long long)version,
                         WIRE_VERSION);
    }
    *out = json;
    return 0;
}

int wire_reader_next(struct wire_reader *reader, struct wire_message *out, struct error *err)
{
    size_t have = reader->end - reader->start;
    if (have < WIRE_HEADER) {
        return 0;
    }
    uint32_t header[2];
    const char *at = reader->data + reader->start;
    memcpy(header, at, WIRE_HEADER);
    size_t text_length = ntohl(header[0]);
    size_t length = ntohl(header[1]);
    if (text_length > WIRE_JSON_MAX || length > WIRE_BYTES_MAX) {
        return error_set(err, ERROR_TOO_LARGE, "a message of %zu and %zu bytes is over its limit",
                         text_length, length);
    }
    if (have < WIRE_HEADER + text_length + length) {
        return 0;
    }
    if (parse(at + WIRE_HEADER, text_length, &out->json, err)) {
        return -1;
    }
    out->bytes = at + WIRE_HEADER + text_length;
    out->length = length;
    reader->start += WIRE_HEADER + text_length + length;
    return 1;
}

static int system_error(struct error *err, enum error_code code, const char *what, const char *dir)
{
    return error_set(err, code, "%s '%s/sock': %s", what, dir, strerror(errno));
}

/* Fills the address of name in the open directory. */
static void address_fill(struct sockaddr_un *address, int dir_fd, const char *name)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    (void)snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", dir_fd,
                   name);
}

/* Binds under another name and renames, so that nobody ever finds a socket that does not listen. */
static int bind_at(int fd, int dir_fd)
{
    struct sockaddr_un address;
    address_fill(&address, dir_fd, "sock.new");
    (void)unlinkat(dir_fd, "sock.new", 0);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) ||
        fchmodat(dir_fd, "sock.new", 0600, 0) || listen(fd, BACKLOG)) {
        return -1;
    }
    return renameat(dir_fd, "sock.new", dir_fd, "sock");
}

/* An open directory and a new socket; both -1 on failure. */
static int socket_open(const char *dir, int *dir_fd, struct error *err)
{
    *dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*dir_fd < 0) {
        return system_error(err, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE, "open",
                            dir);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        system_error(err, ERROR_UNAVAILABLE, "socket", dir);
        close(*dir_fd);
    }
    return fd;
}

int wire_listen(const char *dir, struct error *err)
{
    int dir_fd;
    int fd = socket_open(dir, &dir_fd, err);
    if (fd < 0) {
        return -1;
    }
    if (bind_at(fd, dir_fd)) {
        system_error(err, ERROR_UNAVAILABLE, "listen at", dir);
        close(fd);
        fd = -1;
    }
    close(dir_fd);
    return fd;
}

int wire_check_peer(int fd, struct error *err)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
        return error_set(err, ERROR_FORBIDDEN, "the peer cannot be known: %s", strerror(errno));
    }
    if (peer.uid != geteuid() && peer.uid != 0) {
        return error_set(err, ERROR_FORBIDDEN, "the peer runs as user %u", (unsigned)peer.uid);
    }
    return 0;
}

int wire_connect(const char *dir, struct error *err)
{
    int dir_fd;
    int fd = socket_open(dir, &dir_fd, err);
    if (fd < 0) {
        return -1;
    }
    struct sockaddr_un address;
    address_fill(&address, dir_fd, "sock");
    int failed = connect(fd, (const struct sockaddr *)&address, sizeof address);
    if (failed) {
        bool nobody = errno == ENOENT || errno == ECONNREFUSED;
        system_error(err, nobody ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE, "connect to", dir);
    }
    close(dir_fd);
    if (failed || wire_check_peer(fd, err)) {
        close(fd);
        return -1;
    }
    return fd;
}
