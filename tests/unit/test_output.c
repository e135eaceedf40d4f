/* test_output.c - capped output: what is kept, what is dropped, and that offsets stay true. */
#include "adapters/node/output.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAP = 4000, TOTAL = 100000 };

static char dir[64];

static void set_up(void)
{
    (void)snprintf(dir, sizeof dir, "/tmp/tieline-output.XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void tear_down(void)
{
    char command[96];
    (void)snprintf(command, sizeof command, "rm -r '%s'", dir);
    cr_expect_eq(system(command), 0);
}

TestSuite(output, .init = set_up, .fini = tear_down);

static char byte_at(int64_t offset)
{
    return (char)('a' + offset % 23);
}

/* Writes so many bytes in uneven pieces. */
static void write_bytes(struct output *output, int64_t length)
{
    char piece[777];
    while (length > 0) {
        size_t part = length < (int64_t)sizeof piece ? (size_t)length : sizeof piece;
        for (size_t i = 0; i < part; i++) {
            piece[i] = byte_at(output->written + (int64_t)i);
        }
        output_write(output, piece, part);
        length -= (int64_t)part;
    }
}

static struct output_chunk read_at(int64_t offset, char *bytes, size_t size)
{
    struct output_chunk chunk;
    struct error err;
    cr_assert_eq(output_read(dir, CAP, offset, bytes, size, &chunk, &err), 0, "%s", err.text);
    return chunk;
}

/* Reads from the start to the end, checks every kept byte; returns how many bytes came. */
static int64_t read_all(size_t size, int *marks)
{
    char *bytes = calloc(1, size + 1);
    int64_t offset = 0;
    int64_t total = 0;
    struct output_chunk chunk = read_at(0, bytes, size);
    *marks = 0;
    while (chunk.length > 0) {
        cr_assert_geq(chunk.offset, offset);
        bytes[chunk.length] = '\0';
        if (strstr(bytes, "[tieline: ")) {
            (*marks)++;
        } else {
            cr_assert_eq(chunk.offset, offset, "a gap without a mark");
            for (size_t i = 0; i < chunk.length; i++) {
                cr_assert_eq(bytes[i], byte_at(chunk.offset + (int64_t)i));
            }
        }
        total += (int64_t)chunk.length;
        offset = chunk.offset + (int64_t)chunk.length;
        chunk = read_at(offset, bytes, size);
    }
    cr_expect_eq(offset, chunk.end);
    free(bytes);
    return total;
}

static void write_and_read(int64_t length, int want_marks)
{
    struct output output;
    struct error err;
    int marks;
    cr_assert_eq(output_open(&output, dir, CAP, &err), 0, "%s", err.text);
    write_bytes(&output, length);
    output_close(&output);
    cr_expect_not(output.failed);
    int64_t total = read_all(300, &marks);
    cr_expect_eq(marks, want_marks, "%d marks in %d bytes", marks, (int)length);
    if (!want_marks) {
        cr_expect_eq(total, length);
    } else {
        cr_expect_leq(total, CAP + 80);
        cr_expect_geq(total, CAP / 4 * 3);
    }
}

Test(output, short_one_is_whole)
{
    write_and_read(1, 0);
}

Test(output, up_to_the_cap_all_is_kept)
{
    write_and_read(CAP, 0);
}

Test(output, beyond_it_the_middle_is_dropped)
{
    write_and_read(TOTAL, 1);
}

Test(output, exactly_at_a_border)
{
    write_and_read(CAP / 2, 0);
}

Test(output, first_dropped_segment)
{
    write_and_read(CAP + 1, 1);
}

Test(output, files_stay_within_the_cap)
{
    struct output output;
    struct error err;
    char command[128];
    cr_assert_eq(output_open(&output, dir, CAP, &err), 0);
    write_bytes(&output, TOTAL);
    output_close(&output);
    (void)snprintf(command, sizeof command, "test $(cat '%s'/out.* | wc -c) -le %d", dir, CAP);
    cr_expect_eq(system(command), 0);
}

Test(output, mark_says_how_many)
{
    struct output output;
    struct error err;
    char bytes[200] = "";
    cr_assert_eq(output_open(&output, dir, CAP, &err), 0);
    write_bytes(&output, 10000); /* head 0..2000, kept from 8000: segments of 1000, two are kept */
    struct output_chunk chunk = read_at(2000, bytes, sizeof bytes - 1);
    cr_expect_str_eq(bytes, "\n[tieline: 6000 bytes dropped]\n");
    cr_expect_eq(chunk.offset + (int64_t)chunk.length, 8000);
    memset(bytes, 0, sizeof bytes);
    chunk = read_at(7995, bytes, sizeof bytes - 1); /* no room for a mark: no half of one */
    cr_expect_eq(chunk.offset, 8000);
    cr_expect_eq(bytes[0], byte_at(8000));
    output_close(&output);
}

Test(output, beyond_the_end_there_is_nothing)
{
    struct output output;
    struct error err;
    char bytes[10];
    cr_assert_eq(output_open(&output, dir, CAP, &err), 0);
    write_bytes(&output, 50);
    struct output_chunk chunk = read_at(60, bytes, sizeof bytes);
    cr_expect_eq(chunk.length, 0);
    cr_expect_eq(chunk.offset, 50);
    cr_expect_eq(chunk.end, 50);
    output_close(&output);
    cr_expect_eq(output_read("/no/such/dir", CAP, 0, bytes, sizeof bytes, &chunk, &err), -1);
    cr_expect_eq(err.code, ERROR_NOT_FOUND);
}

Test(output, lost_bytes_do_not_move_the_others)
{
    struct output output;
    struct error err;
    cr_assert_eq(output_open(&output, dir, CAP, &err), 0);
    write_bytes(&output, 10);
    int fd = output.fd;
    output.fd = -1; /* as if the disk had refused */
    write_bytes(&output, 10);
    output.fd = fd;
    write_bytes(&output, 10);
    cr_expect(output.failed);
    char bytes[40];
    struct output_chunk chunk = read_at(20, bytes, sizeof bytes);
    cr_expect_eq(chunk.length, 10);
    cr_expect_eq(bytes[0], byte_at(20));
    output_close(&output);
}
