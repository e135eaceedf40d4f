/* listen.c - where the server listens: "host:port" taken apart, and whether it is this machine alone. */
#include "broker/core/cluster.h"

#include "broker/core/alloc.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535, HOST_MAX = 253 };

static int refuse(const char *text, struct error *err)
{
    error_set(err, ERROR_INVALID, "'%.100s' is not an address to listen on", text);
    return error_expect(err, "host and port, like 127.0.0.1:7410, [::1]:7410 or 0.0.0.0:7410");
}

static bool is_number(const char *host, int family)
{
    struct in6_addr address;
    return inet_pton(family, host, &address) == 1;
}

int listen_parse(const char *text, struct listen_address *out, struct error *err)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : 0;
    int64_t port = 0;
    struct error inner;
    if (length == 0 || length > HOST_MAX ||
        integer_parse(colon + 1, 0, PORT_MAX, &port, &inner) != 0) {
        return refuse(text, err);
    }
    bool bracketed = text[0] == '[' && text[length - 1] == ']';
    char *host = bracketed ? xstrndup(text + 1, length - 2) : xstrndup(text, length);
    bool good = bracketed ? is_number(host, AF_INET6)
                          : is_number(host, AF_INET) || strcmp(host, "localhost") == 0;
    if (!good) {
        free(host);
        return refuse(text, err);
    }
    out->host = host;
    out->port = (int)port;
    return 0;
}

bool listen_is_loopback(const struct listen_address *address)
{
    struct in_addr four;
    if (inet_pton(AF_INET, address->host, &four) == 1) {
        return ntohl(four.s_addr) >> 24 == 127;
    }
    return strcmp(address->host, "::1") == 0 || strcmp(address->host, "localhost") == 0;
}
