/* test_wire.c - messages over a Unix socket: whole, in pieces, too large, and of others. */
#include "broker/net/wire.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char *encode(json_t *json, const char *bytes, size_t length, size_t *out_length)
{
    char *data = NULL;
    struct error err;
    cr_assert_eq(wire_encode(json, bytes, length, &data, out_length, &err), 0, "%s", err.text);
    json_decref(json);
    return data;
}

static void feed(struct wire_reader *reader, const char *data, size_t length)
{
    size_t room;
    char *at = wire_reader_room(reader, &room);
    cr_assert_geq(room, length);
    memcpy(at, data, length);
    wire_reader_fed(reader, length);
}

Test(wire, message_byte_by_byte)
{
    struct wire_reader reader;
    struct wire_message message;
    struct error err;
    size_t length;
    char *data = encode(json_pack("{s:s}", "op", "poll"), "a\0b", 3, &length);
    wire_reader_init(&reader);
    for (size_t i = 0; i + 1 < length; i++) {
        feed(&reader, data + i, 1);
        cr_assert_eq(wire_reader_next(&reader, &message, &err), 0);
    }
    feed(&reader, data + length - 1, 1);
    cr_assert_eq(wire_reader_next(&reader, &message, &err), 1);
    cr_expect_str_eq(json_string_value(json_object_get(message.json, "op")), "poll");
    cr_expect_eq(message.length, 3);
    cr_expect_arr_eq(message.bytes, "a\0b", 3);
    json_decref(message.json);
    cr_expect_eq(wire_reader_next(&reader, &message, &err), 0);
    wire_reader_fini(&reader);
    free(data);
}

Test(wire, many_messages_at_once)
{
    struct wire_reader reader;
    struct wire_message message;
    struct error err;
    wire_reader_init(&reader);
    for (int i = 0; i < 1000; i++) {
        size_t length;
        char *data = encode(json_pack("{s:i}", "n", i), NULL, 0, &length);
        feed(&reader, data, length);
        free(data);
    }
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(wire_reader_next(&reader, &message, &err), 1);
        cr_assert_eq(json_integer_value(json_object_get(message.json, "n")), i);
        json_decref(message.json);
    }
    cr_expect_eq(wire_reader_next(&reader, &message, &err), 0);
    wire_reader_fini(&reader);
}

static enum error_code code_of(const void *data, size_t length)
{
    struct wire_reader reader;
    struct wire_message message;
    struct error err = {.code = ERROR_NONE};
    wire_reader_init(&reader);
    feed(&reader, data, length);
    cr_expect_eq(wire_reader_next(&reader, &message, &err), -1);
    wire_reader_fini(&reader);
    return err.code;
}

Test(wire, broken_peers)
{
    uint32_t large[2] = {htonl(WIRE_JSON_MAX + 1), 0};
    uint32_t much[2] = {htonl(2), htonl(WIRE_BYTES_MAX + 1)};
    cr_expect_eq(code_of(large, sizeof large), ERROR_TOO_LARGE);
    cr_expect_eq(code_of(much, sizeof much), ERROR_TOO_LARGE);
    cr_expect_eq(code_of("GET / HTTP/1.1\r\n\r\n", 18), ERROR_TOO_LARGE);
    cr_expect_eq(code_of("\0\0\0\3\0\0\0\0{]}", 11), ERROR_MALFORMED);
    cr_expect_eq(code_of("\0\0\0\2\0\0\0\0[]", 10), ERROR_MALFORMED);
    cr_expect_eq(code_of("\0\0\0\7\0\0\0\0{\"v\":9}", 15), ERROR_UPSTREAM);
}

Test(wire, too_large_is_not_sent)
{
    struct error err;
    char *data = NULL;
    size_t length;
    char *text = calloc(1, WIRE_JSON_MAX + 1);
    memset(text, 'x', WIRE_JSON_MAX);
    json_t *json = json_pack("{s:s}", "text", text);
    cr_expect_eq(wire_encode(json, NULL, 0, &data, &length, &err), -1);
    cr_expect_eq(err.code, ERROR_TOO_LARGE);
    cr_expect_null(data);
    json_decref(json);
    free(text);
}

Test(wire, socket_in_a_long_directory)
{
    char dir[256] = "/tmp/tieline-wire.XXXXXX";
    char path[300];
    struct stat info;
    struct error err;
    cr_assert_not_null(mkdtemp(dir));
    size_t base = strlen(dir);
    (void)snprintf(dir + base, sizeof dir - base, "/%0150d", 0); /* more than an address holds */
    cr_assert_eq(mkdir(dir, 0700), 0);
    cr_expect_eq(wire_connect(dir, &err), -1);
    cr_expect_eq(err.code, ERROR_NOT_FOUND);
    int listener = wire_listen(dir, &err);
    cr_assert_geq(listener, 0, "%s", err.text);
    int peer = wire_connect(dir, &err);
    cr_assert_geq(peer, 0, "%s", err.text);
    (void)snprintf(path, sizeof path, "%s/sock", dir);
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0600);
    close(peer);
    close(listener);
    cr_expect_eq(wire_connect(dir, &err), -1, "nobody listens at the socket that is left");
    cr_expect_eq(err.code, ERROR_NOT_FOUND);
    listener = wire_listen(dir, &err);
    cr_expect_geq(listener, 0, "%s", err.text);
    close(listener);
    cr_expect_eq(unlink(path), 0);
    cr_expect_eq(rmdir(dir), 0);
    dir[base] = '\0';
    cr_expect_eq(rmdir(dir), 0);
}
