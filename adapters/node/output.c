/* output.c - see output.h. */
#include "adapters/node/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_LENGTH = 40, MARK_MAX = 80 };

struct kept { /* segments that a directory holds; -1: none */
    int64_t first, last;
};

static int64_t head_size(int64_t cap)
{
    return cap / 2;
}

static int64_t segment_size(int64_t cap)
{
    return cap / 4;
}

static int64_t segment_start(int64_t cap, int64_t segment)
{
    return segment < 0 ? 0 : head_size(cap) + segment * segment_size(cap);
}

static int64_t segment_of(int64_t cap, int64_t offset)
{
    return offset < head_size(cap) ? -1 : (offset - head_size(cap)) / segment_size(cap);
}

static void segment_name(int64_t segment, char out[NAME_MAX_LENGTH])
{
    if (segment < 0) {
        (void)snprintf(out, NAME_MAX_LENGTH, "out.head");
    } else {
        (void)snprintf(out, NAME_MAX_LENGTH, "out.%" PRId64, segment);
    }
}

static int segment_open(int dir_fd, int64_t segment, int flags)
{
    char name[NAME_MAX_LENGTH];
    segment_name(segment, name);
    return openat(dir_fd, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int output_open(struct output *output, const char *dir, int64_t cap, struct error *err)
{
    memset(output, 0, sizeof *output);
    output->cap = cap;
    output->segment = -1;
    output->fd = -1;
    output->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (output->dir_fd >= 0) {
        output->fd = segment_open(output->dir_fd, -1, O_WRONLY | O_CREAT | O_TRUNC);
    }
    if (output->fd < 0) {
        error_set(err, ERROR_UNAVAILABLE, "the output in '%s' cannot be kept: %s", dir,
                  strerror(errno));
        output_close(output);
        return -1;
    }
    return 0;
}

/* Goes on to the segment and forgets the one before the previous. */
static void rotate(struct output *output, int64_t segment)
{
    if (output->fd >= 0) {
        close(output->fd);
    }
    if (segment >= 2) {
        char name[NAME_MAX_LENGTH];
        segment_name(segment - 2, name);
        (void)unlinkat(output->dir_fd, name, 0);
    }
    output->segment = segment;
    output->fd = segment_open(output->dir_fd, segment, O_WRONLY | O_CREAT | O_TRUNC);
}

/* Bytes keep their place in the file, also after some were refused: offsets stay true. */
static void write_at(struct output *output, const char *bytes, size_t length)
{
    int64_t at = output->written - segment_start(output->cap, output->segment);
    while (length > 0) {
        ssize_t n = output->fd < 0 ? -1 : pwrite(output->fd, bytes, length, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            output->failed = true;
            return;
        }
        bytes += n;
        at += n;
        length -= (size_t)n;
    }
}

void output_write(struct output *output, const char *bytes, size_t length)
{
    while (length > 0) {
        int64_t segment = segment_of(output->cap, output->written);
        if (segment != output->segment) {
            rotate(output, segment);
        }
        int64_t room = segment_start(output->cap, segment + 1) - output->written;
        size_t part = (int64_t)length < room ? length : (size_t)room;
        write_at(output, bytes, part);
        output->written += (int64_t)part;
        bytes += part;
        length -= part;
    }
}

void output_close(struct output *output)
{
    if (output->fd >= 0) {
        close(output->fd);
    }
    if (output->dir_fd >= 0) {
        close(output->dir_fd);
    }
    output->fd = output->dir_fd = -1;
}

static struct kept kept_read(int dir_fd)
{
    struct kept kept = {.first = -1, .last = -1};
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, "out.", 4) != 0) {
            continue;
        }
        char *end;
        int64_t segment = strtoll(entry->d_name + 4, &end, 10);
        if (end != entry->d_name + 4 && !*end && segment >= 0) {
            kept.first = kept.first < 0 || segment < kept.first ? segment : kept.first;
            kept.last = segment > kept.last ? segment : kept.last;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return kept;
}

static int64_t file_size(int dir_fd, int64_t segment)
{
    char name[NAME_MAX_LENGTH];
    struct stat info;
    segment_name(segment, name);
    return fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) ? 0 : (int64_t)info.st_size;
}

/* The line that stands for what was dropped. It ends right before the first byte that is kept, so that
 * offset and length lead there. */
static bool mark_dropped(int64_t from, int64_t kept_from, char *bytes, size_t size,
                         struct output_chunk *out)
{
    char line[MARK_MAX];
    int length =
        snprintf(line, sizeof line, "\n[tieline: %" PRId64 " bytes dropped]\n", kept_from - from);
    if (length > kept_from - from || (size_t)length > size) {
        return false;
    }
    memcpy(bytes, line, (size_t)length);
    out->offset = kept_from - length;
    out->length = (size_t)length;
    return true;
}

static int chunk_read(int dir_fd, int64_t cap, int64_t offset, char *bytes, size_t size,
                      struct output_chunk *out)
{
    int64_t segment = segment_of(cap, offset);
    int64_t start = segment_start(cap, segment);
    int64_t limit = segment_start(cap, segment + 1) - offset;
    size_t want = (int64_t)size < limit ? size : (size_t)limit;
    int fd = segment_open(dir_fd, segment, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : pread(fd, bytes, want, offset - start);
    if (fd >= 0) {
        close(fd);
    }
    out->offset = offset;
    out->length = n > 0 ? (size_t)n : 0;
    return fd < 0 ? -1 : 0;
}

/* One try; -1: a segment was dropped meanwhile. */
static int try_read(int dir_fd, int64_t cap, int64_t offset, char *bytes, size_t size,
                    struct output_chunk *out)
{
    struct kept kept = kept_read(dir_fd);
    int64_t kept_from = kept.first < 0 ? 0 : segment_start(cap, kept.first);
    out->end = segment_start(cap, kept.last) + file_size(dir_fd, kept.last);
    out->length = 0;
    out->offset = offset < out->end ? offset : out->end;
    if (offset >= out->end) {
        return 0;
    }
    if (kept.first > 0 && offset >= head_size(cap) && offset < kept_from) {
        if (mark_dropped(offset, kept_from, bytes, size, out)) {
            return 0;
        }
        offset = kept_from;
    }
    return chunk_read(dir_fd, cap, offset, bytes, size, out);
}

int output_read(const char *dir, int64_t cap, int64_t offset, char *bytes, size_t size,
                struct output_chunk *out, struct error *err)
{
    int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        return error_set(err, ERROR_NOT_FOUND, "no output is kept of this attempt");
    }
    if (offset < 0) {
        offset = 0;
    }
    int result = -1;
    for (int tries = 0; tries < 3 && result; tries++) {
        result = try_read(dir_fd, cap, offset, bytes, size, out);
    }
    close(dir_fd);
    /* No file yet: the job has not begun to write. */
    if (result && out->end == 0) {
        out->length = 0;
        result = 0;
    }
    return result
               ? error_set(err, ERROR_UNAVAILABLE, "the output cannot be read: %s", strerror(errno))
               : 0;
}
