/* tokens.c - the file is replaced as a whole, under a lock beside it, so a reader never sees half of it.
 *
 * A line that cannot be read stops the start and every change, but not a running server: it drops that
 * line with a warning and takes the others, so that a removed token stops working at once. */
#include "api/tokens.h"

#include "broker/core/alloc.h"
#include "broker/core/limits.h"
#include "broker/core/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 8 * 1024 * 1024, ID_DIGITS = 16, SECRET_WORDS = 4, FIELDS = 5 };

struct file { /* what a read of the file gives */
    struct token *items;
    size_t count;
};

struct tokens {
    char *path;
    tokens_log_fn log;
    struct file file;
    struct stat seen; /* of the file that was read last; zeroed: none */
};

static const char *const role_words[] = {
#define X(constant, name) name,
    ROLE_LIST(X)
#undef X
};

static int role_find(const char *word)
{
    for (int i = ROLE_READ; i < ROLE_COUNT; i++) {
        if (strcmp(role_words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

static int check_role(const char *word, enum role *out, struct error *err)
{
    int role = role_find(word);
    if (role < 0) {
        error_set(err, ERROR_INVALID, "no role '%.40s'", word);
        return error_expect(err, "one of read, submit, operate, admin");
    }
    *out = (enum role)role;
    return 0;
}

static int check_owner(const char *owner, struct error *err)
{
    size_t length = strlen(owner);
    bool good =
        length > 0 && length < TOKEN_OWNER_SIZE && utf8_is_valid(owner, length) && owner[0] != '#';
    for (const char *c = owner; *c; c++) {
        good = good && (unsigned char)*c > ' ' && *c != 127;
    }
    if (!good) {
        error_set(err, ERROR_INVALID, "'%.60s' cannot be an owner", owner);
        return error_expect(err, "1 to %d bytes without blanks, like alice@example.org",
                            TOKEN_OWNER_SIZE - 1);
    }
    return 0;
}

static int check_team(const char *team, struct error *err)
{
    if (*team && !name_is_valid(team)) {
        error_set(err, ERROR_INVALID, "'%.60s' cannot be a team", team);
        return error_expect(err, "letters, digits, '.', '_' and '-'");
    }
    return 0;
}

static bool is_hex(const char *text, size_t length)
{
    return strlen(text) == length && strspn(text, "0123456789abcdef") == length;
}

/* "sha256:ID:HEX" */
static int parse_hash(char *text, struct token *out)
{
    char *id = strchr(text, ':');
    char *hash = id ? strchr(id + 1, ':') : NULL;
    if (!hash || strncmp(text, "sha256:", strlen("sha256:")) != 0) {
        return -1;
    }
    *hash++ = '\0';
    if (!is_hex(++id, ID_DIGITS) || !is_hex(hash, SHA256_TEXT_SIZE - 1)) {
        return -1;
    }
    copy_text(out->id, sizeof out->id, id);
    copy_text(out->hash, sizeof out->hash, hash);
    return 0;
}

static int parse_line(char *line, struct token *out, struct error *err)
{
    char *fields[FIELDS] = {NULL};
    char *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (count < FIELDS) {
            fields[count] = word;
        }
        count++;
    }
    if (count != FIELDS || parse_hash(fields[0], out) < 0) {
        error_set(err, ERROR_INVALID, "this is not the line of a token");
        return error_expect(err, "sha256:ID:HEX OWNER TEAM ROLE CREATED, as `tieline token add` "
                                 "writes it");
    }
    const char *team = strcmp(fields[2], "-") == 0 ? "" : fields[2];
    if (check_owner(fields[1], err) < 0 || check_team(team, err) < 0 ||
        check_role(fields[3], &out->role, err) < 0) {
        return -1;
    }
    copy_text(out->owner, sizeof out->owner, fields[1]);
    copy_text(out->team, sizeof out->team, team);
    copy_text(out->created, sizeof out->created, fields[4]);
    return 0;
}

static const struct token *find(const struct file *file, const char *id)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->items[i].id, id) == 0) {
            return &file->items[i];
        }
    }
    return NULL;
}

static int add_line(struct file *file, char *line, struct error *err)
{
    struct token token = {.role = ROLE_NONE};
    if (parse_line(line, &token, err) < 0) {
        return -1;
    }
    if (file->count == LIMIT_TOKENS) {
        return error_set(err, ERROR_TOO_LARGE, "more than %d tokens", LIMIT_TOKENS);
    }
    if ((file->count & (file->count - 1)) == 0) {
        file->items = xrealloc(file->items, file->count ? file->count * 2 : 1, sizeof *file->items);
    }
    file->items[file->count++] = token;
    return 0;
}

/* bad: what to do with a line that cannot be read; NULL: that fails the whole. */
static int parse_file(const char *path, char *text, tokens_log_fn bad, struct file *out,
                      struct error *err)
{
    struct file file = {NULL, 0};
    int number = 0;
    for (char *line = text; line;) {
        char *next = strchr(line, '\n');
        if (next) {
            *next++ = '\0';
        }
        number++;
        const char *first = line + strspn(line, " \t\r");
        if (*first && *first != '#' && add_line(&file, line, err) < 0) {
            if (!bad) {
                copy_text(err->file, sizeof err->file, path);
                err->line = number;
                err->column = 1;
                free(file.items);
                return error_prefix(err, "%.150s:%d", path, number);
            }
            char message[ERROR_TEXT_MAX];
            (void)snprintf(message, sizeof message, "%.150s:%d: %.200s; the line is ignored", path,
                           number, err->text);
            bad("warn", message);
        }
        line = next;
    }
    *out = file;
    return 0;
}

static int check_mode(const char *path, const struct stat *stat, struct error *err)
{
    if (!S_ISREG(stat->st_mode)) {
        return error_set(err, ERROR_INVALID, "%.150s is not a regular file", path);
    }
    if (stat->st_mode & (S_IWGRP | S_IWOTH)) {
        error_set(err, ERROR_INVALID, "others can write %.150s (mode %03o)", path,
                  (unsigned)(stat->st_mode & 0777U));
        return error_expect(err, "chmod 600 %.150s", path);
    }
    if (stat->st_size > FILE_MAX) {
        return error_set(err, ERROR_TOO_LARGE, "%.150s has more than %d bytes", path,
                         (int)FILE_MAX);
    }
    return 0;
}

static int read_text(int fd, size_t size, struct strbuf *out)
{
    char chunk[4096];
    ssize_t n;
    strbuf_init(out, FILE_MAX);
    while ((n = read(fd, chunk, sizeof chunk)) != 0 && out->length <= size + sizeof chunk) {
        if (n < 0 && errno != EINTR) {
            strbuf_fini(out);
            return -1;
        }
        strbuf_add(out, chunk, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* A file that is not there is empty; *stat is zeroed then. */
static int read_file(const char *path, tokens_log_fn bad, struct file *out, struct stat *stat,
                     struct error *err)
{
    struct strbuf text;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = (struct file){NULL, 0};
    memset(stat, 0, sizeof *stat);
    if (fd < 0) {
        return errno == ENOENT ? 0
                               : error_set(err, ERROR_INVALID, "%.150s cannot be opened: %s", path,
                                           strerror(errno));
    }
    int status = -1;
    if (fstat(fd, stat) < 0) {
        error_set(err, ERROR_INVALID, "%.150s: %s", path, strerror(errno));
    } else if (check_mode(path, stat, err) == 0) {
        if (read_text(fd, (size_t)stat->st_size, &text) < 0) {
            error_set(err, ERROR_INVALID, "%.150s cannot be read: %s", path, strerror(errno));
        } else {
            char *copy = strbuf_take(&text);
            status = parse_file(path, copy, bad, out, err);
            free(copy);
        }
    }
    (void)close(fd);
    return status;
}

static int write_all(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);
        if (n < 0 && errno != EINTR) {
            return -1;
        }
        text += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Of the file, or of its folder when there is no file. */
static int stat_owner(const char *path, struct stat *out)
{
    if (stat(path, out) == 0) {
        return 0;
    }
    const char *slash = strrchr(path, '/');
    char *folder = slash ? xstrndup(path, (size_t)(slash - path) + 1) : xstrdup(".");
    int status = errno == ENOENT ? stat(folder, out) : -1;
    free(folder);
    return status;
}

/* What root makes must be readable for the broker, which runs as another user. A file with a second name
 * may be somebody else's: it is left alone. */
static int give_to_owner(int fd, const char *path)
{
    struct stat owner, own;
    if (geteuid() != 0) {
        return 0;
    }
    if (stat_owner(path, &owner) < 0 || fstat(fd, &own) < 0) {
        return -1;
    }
    bool is_given = own.st_uid == owner.st_uid && own.st_gid == owner.st_gid;
    if (is_given || !S_ISREG(own.st_mode) || own.st_nlink != 1) {
        return 0;
    }
    return fchown(fd, owner.st_uid, owner.st_gid);
}

/* Replaces the file in one step. */
static int write_file(const char *path, const struct file *file, struct error *err)
{
    struct strbuf text;
    strbuf_init(&text, FILE_MAX);
    strbuf_puts(&text, "# Tokens of Tieline: hashes. Written by `tieline token add`.\n");
    for (size_t i = 0; i < file->count; i++) {
        const struct token *t = &file->items[i];
        strbuf_printf(&text, "sha256:%s:%s %s %s %s %s\n", t->id, t->hash, t->owner,
                      t->team[0] ? t->team : "-", role_words[t->role], t->created);
    }
    char *temporary = xasprintf("%s.new", path);
    (void)unlink(temporary); /* of a change that was cut off */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = fd >= 0 && !text.full && give_to_owner(fd, path) == 0 &&
                write_all(fd, text.text, text.length) == 0 && fsync(fd) == 0;
    good = fd >= 0 && close(fd) == 0 && good;
    if (!good || rename(temporary, path) < 0) {
        error_set(err, ERROR_INTERNAL, "%.150s cannot be written: %s", path, strerror(errno));
        (void)unlink(temporary);
        good = false;
    }
    free(temporary);
    strbuf_fini(&text);
    return good ? 0 : -1;
}

/* Of all that change the file, one at a time. Returns a descriptor to close, or -1. */
static int lock(const char *path, struct error *err)
{
    char *name = xasprintf("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || give_to_owner(fd, path) < 0 || flock(fd, LOCK_EX) < 0) {
        error_set(err, ERROR_INTERNAL, "%.150s cannot be locked: %s", name, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        fd = -1;
    }
    free(name);
    return fd;
}

void token_make(struct clock *clock, char out[TOKEN_SIZE])
{
    uint64_t word[SECRET_WORDS];
    uint64_t id = clock_random(clock);
    for (size_t i = 0; i < SECRET_WORDS; i++) {
        word[i] = clock_random(clock);
    }
    (void)snprintf(out, TOKEN_SIZE, "tl_%016" PRIx64 "_%016" PRIx64 "%016" PRIx64 "%016" PRIx64, id,
                   word[0] ^ word[3], word[1], word[2]);
}

bool token_equal(const char *a, const char *b)
{
    char hash_a[SHA256_TEXT_SIZE], hash_b[SHA256_TEXT_SIZE];
    unsigned differ = 0;
    sha256_text(a, strlen(a), hash_a); /* the same length, whatever the texts are */
    sha256_text(b, strlen(b), hash_b);
    for (size_t i = 0; i < SHA256_TEXT_SIZE - 1; i++) {
        differ |= (unsigned)(hash_a[i] ^ hash_b[i]);
    }
    return differ == 0;
}

/* The id within "tl_ID_SECRET"; false when text has not that form. */
static bool token_id(const char *text, char out[TOKEN_ID_SIZE])
{
    size_t prefix = strlen("tl_");
    if (strncmp(text, "tl_", prefix) != 0 || strlen(text) >= TOKEN_SIZE ||
        strlen(text) <= prefix + ID_DIGITS || text[prefix + ID_DIGITS] != '_') {
        return false;
    }
    memcpy(out, text + prefix, ID_DIGITS);
    out[ID_DIGITS] = '\0';
    return is_hex(out, ID_DIGITS);
}

static int add_locked(const char *path, const struct token *token, struct error *err)
{
    struct file file;
    struct stat stat;
    if (read_file(path, NULL, &file, &stat, err) < 0) {
        return -1;
    }
    int status = -1;
    if (file.count >= LIMIT_TOKENS) {
        error_set(err, ERROR_TOO_LARGE, "%.150s holds %d tokens, no more are taken", path,
                  LIMIT_TOKENS);
        (void)error_expect(err, "revoke those that nobody uses");
    } else {
        file.items = xrealloc(file.items, file.count + 1, sizeof *file.items);
        file.items[file.count++] = *token;
        status = write_file(path, &file, err);
    }
    free(file.items);
    return status;
}

int token_add(const char *path, struct clock *clock, const char *owner, const char *team,
              const char *role, char out[TOKEN_SIZE], struct error *err)
{
    struct token token = {.role = ROLE_NONE};
    if (check_owner(owner, err) < 0 || check_team(team ? team : "", err) < 0 ||
        check_role(role, &token.role, err) < 0) {
        return -1;
    }
    char text[TOKEN_SIZE];
    token_make(clock, text);
    (void)token_id(text, token.id);
    sha256_text(text, strlen(text), token.hash);
    copy_text(token.owner, sizeof token.owner, owner);
    copy_text(token.team, sizeof token.team, team);
    instant_text(clock_wall_ms(clock), token.created);
    int fd = lock(path, err);
    if (fd < 0) {
        return -1;
    }
    int status = add_locked(path, &token, err);
    (void)close(fd);
    if (status == 0) {
        copy_text(out, TOKEN_SIZE, text);
    }
    explicit_bzero(text, sizeof text);
    return status;
}

int token_list(const char *path, struct token **out, size_t *count, struct error *err)
{
    struct file file;
    struct stat stat;
    if (read_file(path, NULL, &file, &stat, err) < 0) {
        return -1;
    }
    *out = file.items;
    *count = file.count;
    return 0;
}

static int revoke_locked(const char *path, const char *id, struct error *err)
{
    struct file file;
    struct stat stat;
    if (read_file(path, NULL, &file, &stat, err) < 0) {
        return -1;
    }
    int status = -1;
    const struct token *token = find(&file, id);
    if (file.items && token) {
        size_t index = (size_t)(token - file.items);
        memmove(&file.items[index], &file.items[index + 1],
                (file.count - index - 1) * sizeof *file.items);
        file.count--;
        status = write_file(path, &file, err);
    } else {
        error_set(err, ERROR_NOT_FOUND, "no token %.40s in %.150s", id, path);
        (void)error_expect(err, "an id that `tieline token list` shows");
    }
    free(file.items);
    return status;
}

int token_revoke(const char *path, const char *id, struct error *err)
{
    int fd = lock(path, err);
    if (fd < 0) {
        return -1;
    }
    int status = revoke_locked(path, id, err);
    (void)close(fd);
    return status;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A file that cannot be read at all leaves what was known, with one warning. */
static void reload(struct tokens *tokens)
{
    struct stat now;
    struct file file;
    struct error err;
    if (stat(tokens->path, &now) < 0) {
        memset(&now, 0, sizeof now);
    }
    if (same_file(&now, &tokens->seen)) {
        return;
    }
    if (read_file(tokens->path, tokens->log, &file, &tokens->seen, &err) < 0) {
        char message[ERROR_TEXT_MAX + 64];
        tokens->seen = now;
        (void)snprintf(message, sizeof message, "%s; the tokens known before stay", err.text);
        tokens->log("error", message);
        return;
    }
    free(tokens->file.items);
    tokens->file = file;
}

const struct token *token_check(struct tokens *tokens, const char *text)
{
    char id[TOKEN_ID_SIZE], hash[SHA256_TEXT_SIZE];
    if (!tokens) {
        return NULL;
    }
    reload(tokens);
    if (!token_id(text, id)) {
        return NULL;
    }
    const struct token *token = find(&tokens->file, id);
    sha256_text(text, strlen(text), hash);
    return token && token_equal(hash, token->hash) ? token : NULL;
}

int tokens_open(const char *path, tokens_log_fn log, struct tokens **out, struct error *err)
{
    struct tokens *tokens = xcalloc(1, sizeof *tokens);
    tokens->path = xstrdup(path);
    tokens->log = log;
    if (read_file(path, NULL, &tokens->file, &tokens->seen, err) < 0) {
        tokens_close(tokens);
        return -1;
    }
    *out = tokens;
    return 0;
}

void tokens_close(struct tokens *tokens)
{
    if (!tokens) {
        return;
    }
    free(tokens->file.items);
    free(tokens->path);
    free(tokens);
}
