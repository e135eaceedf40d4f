/* exitlog.c - see exitlog.h. */
#include "adapters/node/exitlog.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CRC_DIGITS = 8, CRC_WIDTH = CRC_DIGITS + 1, GROUP_MAX = 256 * 1024 * 1024 };
static const char log_name[] = "exits";
static const char new_name[] = "exits.new";

struct exitlog {
    int dir_fd, fd;
    int64_t size; /* of what is good and durable */
    int64_t damaged, groups, records, waiting;
    struct strbuf group;
};

static uint32_t crc32_of(const char *bytes, size_t length)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (UINT32_C(0xEDB88320) & (0U - (crc & 1U)));
        }
    }
    return ~crc;
}

static void line_add(struct strbuf *buf, const json_t *record)
{
    char *text = json_dumps(record, JSON_COMPACT);
    if (!text) {
        abort(); /* our own record is no JSON */
    }
    size_t length = strlen(text);
    strbuf_printf(buf, "%08x ", crc32_of(text, length));
    strbuf_add(buf, text, length);
    strbuf_add(buf, "\n", 1);
    free(text);
}

/* The record of a line without its line end, or NULL. */
static json_t *line_parse(const char *line, size_t length)
{
    char digits[CRC_WIDTH];
    if (length < CRC_WIDTH || line[CRC_DIGITS] != ' ') {
        return NULL;
    }
    memcpy(digits, line, CRC_DIGITS);
    digits[CRC_DIGITS] = '\0';
    char *end;
    unsigned long crc = strtoul(digits, &end, 16);
    line += CRC_WIDTH;
    length -= CRC_WIDTH;
    if (*end || crc != crc32_of(line, length)) {
        return NULL;
    }
    json_t *record = json_loadb(line, length, 0, NULL);
    if (!json_is_object(record)) {
        json_decref(record);
        return NULL;
    }
    return record;
}

/* Reads all lines; returns the length of what is good: a bad last line is torn, not damaged. */
static int64_t lines_read(struct exitlog *log, const char *text, size_t length,
                          void (*seen)(void *arg, const json_t *record), void *arg)
{
    const char *at = text;
    const char *end = text + length;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        json_t *record = stop ? line_parse(at, (size_t)(stop - at)) : NULL;
        if (!record && (!stop || stop + 1 == end)) {
            break;
        }
        if (record) {
            seen(arg, record);
            json_decref(record);
        } else {
            log->damaged++;
        }
        at = stop + 1;
    }
    return at - text;
}

static int system_error(struct error *err, const char *what)
{
    return error_set(err, ERROR_STORE, "%s the exit log: %s", what, strerror(errno));
}

/* Reads the whole file; the caller frees text. */
static int file_read(int fd, char **text, size_t *length, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info)) {
        system_error(err, "look at");
        return -1;
    }
    *text = xcalloc((size_t)info.st_size + 1, 1);
    *length = 0;
    while (*length < (size_t)info.st_size) {
        ssize_t n = pread(fd, *text + *length, (size_t)info.st_size - *length, (off_t)*length);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        *length += (size_t)n;
    }
    if (*length < (size_t)info.st_size) {
        free(*text);
        system_error(err, "read");
        return -1;
    }
    return 0;
}

static int write_all(int fd, const char *bytes, size_t length, int64_t at)
{
    while (length > 0) {
        ssize_t n = pwrite(fd, bytes, length, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return -1;
        }
        bytes += n;
        at += n;
        length -= (size_t)n;
    }
    return 0;
}

static int load(struct exitlog *log, void (*seen)(void *arg, const json_t *record), void *arg,
                struct error *err)
{
    char *text;
    size_t length;
    if (file_read(log->fd, &text, &length, err)) {
        return -1;
    }
    log->size = lines_read(log, text, length, seen, arg);
    free(text);
    if (log->size < (int64_t)length && (ftruncate(log->fd, log->size) || fsync(log->fd))) {
        return system_error(err, "cut the torn end of");
    }
    return 0;
}

void exitlog_add(struct exitlog *log, const json_t *record)
{
    line_add(&log->group, record);
    log->waiting++;
}

bool exitlog_is_dirty(const struct exitlog *log)
{
    return log->waiting > 0;
}

int exitlog_sync(struct exitlog *log, struct error *err)
{
    if (!log->waiting) {
        return 0;
    }
    if (log->group.full) {
        return error_set(err, ERROR_STORE, "a group of records is over %d bytes", GROUP_MAX);
    }
    if (write_all(log->fd, log->group.text, log->group.length, log->size) || fdatasync(log->fd)) {
        return system_error(err, "write");
    }
    log->size += (int64_t)log->group.length;
    log->records += log->waiting;
    log->groups++;
    log->waiting = 0;
    strbuf_fini(&log->group);
    return 0;
}

int exitlog_rewrite(struct exitlog *log, const json_t *records, bool *replaced, struct error *err)
{
    struct strbuf text;
    strbuf_init(&text, GROUP_MAX);
    size_t i;
    const json_t *record;
    json_array_foreach((json_t *)records, i, record)
    {
        line_add(&text, record);
    }
    int fd = openat(log->dir_fd, new_name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    *replaced = fd >= 0 && !text.full && !write_all(fd, text.text, text.length, 0) && !fsync(fd) &&
                !renameat(log->dir_fd, new_name, log->dir_fd, log_name);
    if (!*replaced) {
        system_error(err, "rewrite");
        if (fd >= 0) {
            close(fd);
        }
        strbuf_fini(&text);
        return -1;
    }
    close(log->fd);
    log->fd = fd;
    log->size = (int64_t)text.length;
    strbuf_fini(&text);
    return fsync(log->dir_fd) ? system_error(err, "keep the new name of") : 0;
}

int64_t exitlog_size(const struct exitlog *log)
{
    return log->size;
}

int64_t exitlog_damaged(const struct exitlog *log)
{
    return log->damaged;
}

void exitlog_counts(const struct exitlog *log, int64_t *groups, int64_t *records)
{
    *groups = log->groups;
    *records = log->records;
}

int exitlog_open(const char *dir, void (*seen)(void *arg, const json_t *record), void *arg,
                 struct exitlog **out, struct error *err)
{
    struct exitlog *log = xcalloc(1, sizeof *log);
    strbuf_init(&log->group, GROUP_MAX);
    log->fd = -1;
    log->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (log->dir_fd >= 0) {
        log->fd = openat(log->dir_fd, log_name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    }
    if (log->fd < 0) {
        system_error(err, "open");
    } else if (fsync(log->dir_fd)) {
        system_error(err, "keep");
    } else if (!load(log, seen, arg, err)) {
        *out = log;
        return 0;
    }
    exitlog_close(log);
    return -1;
}

void exitlog_close(struct exitlog *log)
{
    if (!log) {
        return;
    }
    if (log->fd >= 0) {
        close(log->fd);
    }
    if (log->dir_fd >= 0) {
        close(log->dir_fd);
    }
    strbuf_fini(&log->group);
    free(log);
}
