/* head.c - what browsers and confused proxies could do is refused here, before anything else.
 *
 * A web page cannot set Host and cannot leave out Origin on what it posts, so a name that is not ours
 * (DNS rebinding) and any Origin at all are refused. Two lengths, or a length beside an encoding, would
 * let two parsers see two different requests. */
#include "api/head.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/strbuf.h"
#include "broker/core/units.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { HOST_MAX = 256 };

struct field {
    const char *name;
    size_t offset;
};
static const struct field fields[] = {
    {"Host", offsetof(struct head, host)},
    {"Origin", offsetof(struct head, origin)},
    {"Authorization", offsetof(struct head, authorization)},
    {"Content-Type", offsetof(struct head, content_type)},
    {"Content-Length", offsetof(struct head, length_text)},
    {"Transfer-Encoding", offsetof(struct head, encoding)},
    {"Idempotency-Key", offsetof(struct head, key)},
    {"Forwarded", offsetof(struct head, forwarded)},
    {"X-Forwarded-For", offsetof(struct head, forwarded)},
};

static enum MHD_Result read_field_cb(void *arg, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    (void)kind;
    struct head *head = arg;
    head->bytes += strlen(name) + strlen(value ? value : "") + strlen(": \r\n");
    head->expects = head->expects || strcasecmp(name, "Expect") == 0;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strcasecmp(name, fields[i].name) == 0) {
            const char **slot = (const char **)((char *)head + fields[i].offset);
            if (*slot && slot != &head->forwarded) {
                head->twice = true;
                head->which = fields[i].name;
            }
            *slot = value ? value : "";
        }
    }
    return MHD_YES;
}

void head_read(struct MHD_Connection *mhd, struct head *head)
{
    int64_t length;
    struct error err;
    *head = (struct head){.length = -1};
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, read_field_cb, head);
    if (head->length_text && !head->encoding) {
        bool number = integer_parse(head->length_text, 0, INT64_MAX, &length, &err) == 0 &&
                      strspn(head->length_text, "0123456789") == strlen(head->length_text);
        head->length = number ? length : -1;
        head->bad_frame = !number;
    }
    bool framed_twice = head->twice && (strcasecmp(head->which, "Content-Length") == 0 ||
                                        strcasecmp(head->which, "Transfer-Encoding") == 0);
    head->bad_frame = head->bad_frame || framed_twice || (head->length_text && head->encoding) ||
                      (head->encoding && strcasecmp(head->encoding, "chunked") != 0);
}

/* "name", "name:port", "[v6]:port" -> name in lower case without brackets. */
static bool host_name(const char *host, char out[HOST_MAX])
{
    bool bracketed = host[0] == '[';
    size_t length = bracketed ? strcspn(host + 1, "]") : strcspn(host, ":");
    const char *start = bracketed ? host + 1 : host;
    const char *rest = start + length;
    if (bracketed) {
        if (*rest != ']') {
            return false;
        }
        rest++;
    }
    if (length == 0 || length >= HOST_MAX ||
        (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1)))) {
        return false;
    }
    memcpy(out, start, length);
    out[length] = '\0';
    return true;
}

/* The address that the client connected to, as text; of an IPv4 client of [::] in either form. */
static bool is_local_address(int fd, const char *host)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    unsigned char number[sizeof(struct in6_addr)];
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        return false;
    }
    const struct in6_addr *six = &((struct sockaddr_in6 *)&address)->sin6_addr;
    if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six) &&
        inet_pton(AF_INET, host, number) == 1) {
        return memcmp(&six->s6_addr[sizeof *six - sizeof(struct in_addr)], number,
                      sizeof(struct in_addr)) == 0;
    }
    if (inet_pton(address.ss_family, host, number) != 1) {
        return false;
    }
    if (address.ss_family == AF_INET) {
        return memcmp(&((struct sockaddr_in *)&address)->sin_addr, number,
                      sizeof(struct in_addr)) == 0;
    }
    return memcmp(six, number, sizeof *six) == 0;
}

bool head_host_is_ours(const struct api *api, int fd, const char *host)
{
    char name[HOST_MAX];
    if (!host_name(host, name)) {
        return false;
    }
    char *given = name;
    const struct listen_address address = {given, 0};
    return listen_is_loopback(&address) || strcasecmp(name, "localhost") == 0 ||
           (api->url_host && strcasecmp(name, api->url_host) == 0) ||
           (api->listen_host && strcasecmp(name, api->listen_host) == 0) ||
           is_local_address(fd, name);
}

static int check_frame(const struct head *head, struct error *err)
{
    if (head->bad_frame) {
        error_set(err, ERROR_MALFORMED, "the end of the body is in doubt");
        return error_expect(err, "one Content-Length, or 'Transfer-Encoding: chunked' alone");
    }
    if (head->twice) {
        error_set(err, ERROR_MALFORMED, "the header field %s stands twice", head->which);
        return error_expect(err, "one of it");
    }
    if (head->bytes > LIMIT_HEADER_BYTES) {
        error_set(err, ERROR_HEADERS, "the header has %zu bytes", head->bytes);
        return error_expect(err, "at most %d", LIMIT_HEADER_BYTES);
    }
    return 0;
}

int head_check(const struct head *head, const struct conn *conn, struct error *err)
{
    if (check_frame(head, err) < 0) {
        return -1;
    }
    if (!head->host || !*head->host) {
        error_set(err, ERROR_MALFORMED, "no Host in the header");
        return error_expect(err, "Host: the name or address of this server");
    }
    if (!conn->listener->is_unix && !head_host_is_ours(conn->listener->api, conn->fd, head->host)) {
        error_set(err, ERROR_MISDIRECTED, "the Host '%.100s' is not this server", head->host);
        return error_expect(err, "localhost, or the host of server.url");
    }
    if (head->origin) {
        error_set(err, ERROR_FORBIDDEN, "requests that come from a web page are not served");
        return error_expect(err, "a client that sends no Origin");
    }
    return 0;
}

bool head_type_is(const struct head *head, const char *type)
{
    const char *given = head->content_type ? head->content_type : "";
    size_t length = strcspn(given, "; \t");
    return length == strlen(type) && strncasecmp(given, type, length) == 0;
}

int head_check_type(const struct head *head, const char *takes, struct error *err)
{
    for (const char *at = takes; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        char *type = xstrndup(at, length);
        bool fits = head_type_is(head, type);
        free(type);
        if (fits) {
            return 0;
        }
        at += length;
    }
    error_set(err, ERROR_MEDIA_TYPE, "the content type is '%.80s'",
              head->content_type ? head->content_type : "not stated");
    return error_expect(err, "Content-Type: one of %s", takes);
}

static int bad_key(struct error *err, const char *text)
{
    error_set(err, ERROR_INVALID, "the Idempotency-Key %s", text);
    return error_expect(err, "1 to %d printable ASCII characters, in quotes or without",
                        LIMIT_KEY_BYTES);
}

/* A structured-field string (RFC 8941) without its quotes. */
static int unquote(const char *text, struct strbuf *out, struct error *err)
{
    size_t length = strlen(text);
    if (length < 2 || text[length - 1] != '"') {
        return bad_key(err, "has an open quote");
    }
    for (size_t i = 1; i < length - 1; i++) {
        if (text[i] == '"') {
            return bad_key(err, "goes on after its closing quote");
        }
        if (text[i] == '\\') {
            i++;
            if (i == length - 1 || (text[i] != '"' && text[i] != '\\')) {
                return bad_key(err, "has an escape that means nothing");
            }
        }
        strbuf_add(out, &text[i], 1);
    }
    return 0;
}

int head_key(const struct head *head, char **out, struct error *err)
{
    *out = NULL;
    if (!head->key) {
        return 0;
    }
    struct strbuf key;
    strbuf_init(&key, LIMIT_HEADER_BYTES);
    int status = 0;
    if (head->key[0] == '"') {
        status = unquote(head->key, &key, err);
    } else {
        strbuf_puts(&key, head->key);
    }
    for (size_t i = 0; status == 0 && i < key.length; i++) {
        if ((unsigned char)key.text[i] < ' ' || (unsigned char)key.text[i] > '~') {
            status = bad_key(err, "has a character that is not printable ASCII");
        }
    }
    if (status == 0 && (key.length == 0 || key.length > LIMIT_KEY_BYTES)) {
        status = bad_key(err, key.length ? "is too long" : "is empty");
    }
    if (status == 0) {
        *out = strbuf_take(&key);
    }
    strbuf_fini(&key);
    return status;
}
