/* file.c - whole files as text, within their limit; a job file as a value. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"
#include "config/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 16 * 1024 };

static int refuse(struct error *err, const char *path, const char *why)
{
    error_set(err, ERROR_INVALID, "cannot read %.200s: %s", path, why);
    copy_text(err->file, sizeof err->file, path);
    return error_expect(err, "a text file that this user can read");
}

static int read_all(int file, const char *path, struct strbuf *buf, struct error *err)
{
    char chunk[CHUNK];
    ssize_t n;
    while ((n = read(file, chunk, sizeof chunk)) != 0) {
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return refuse(err, path, strerror(errno));
        }
        strbuf_add(buf, chunk, (size_t)n);
        if (buf->full) {
            error_set(err, ERROR_TOO_LARGE, "%.200s has more than %d bytes", path,
                      (int)VALUE_BYTES_MAX);
            return error_expect(err, "at most %d bytes", (int)VALUE_BYTES_MAX);
        }
    }
    return 0;
}

static bool looks_like_json(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(" \t\r\n", text[i]) && text[i]) {
        i++;
    }
    return i < length && (text[i] == '{' || text[i] == '[');
}

static bool is_json_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".json") == 0;
}

/* A flow map of YAML begins like JSON: when JSON fails, YAML has the last word, unless the name says. */
static int parse_job(const char *path, const char *text, size_t length, struct value **out,
                     struct error *err)
{
    if (looks_like_json(text, length) || is_json_name(path)) {
        if (value_from_json(text, length, out, err) == 0) {
            return 0;
        }
        if (is_json_name(path)) {
            return -1;
        }
    }
    return yaml_parse(text, length, out, err);
}

int config_file_read(const char *path, char **text, size_t *length, struct error *err)
{
    bool standard = strcmp(path, "-") == 0;
    struct stat stat;
    /* a FIFO is fine, a device or a folder is a mistake */
    int file = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file < 0) {
        return refuse(err, path, strerror(errno));
    }
    struct strbuf buf;
    strbuf_init(&buf, VALUE_BYTES_MAX);
    int status = -1;
    if (fstat(file, &stat) != 0 || S_ISDIR(stat.st_mode)) {
        refuse(err, path, "it is a folder");
    } else {
        status = read_all(file, standard ? "standard input" : path, &buf, err);
    }
    if (!standard) {
        (void)close(file);
    }
    if (status == 0) {
        *length = buf.length;
        *text = strbuf_take(&buf);
    }
    strbuf_fini(&buf);
    return status;
}

int config_job_parse(const char *text, size_t length, const char *path, struct value **out,
                     struct error *err)
{
    if (parse_job(path, text, length, out, err) != 0) {
        copy_text(err->file, sizeof err->file, path);
        return -1;
    }
    return 0;
}

int config_job_load(const char *path, struct value **out, struct error *err)
{
    char *text = NULL;
    size_t length = 0;
    if (config_file_read(path, &text, &length, err) != 0) {
        return -1;
    }
    int status = config_job_parse(text, length, path, out, err);
    free(text);
    return status;
}
