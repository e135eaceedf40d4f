/* auth.c - an explicit token always decides; without one, the user at the other end of a Unix socket.
 *
 * The local token is for this machine alone: a peer elsewhere that has it is refused. */
#include "api/auth.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USERS_KEPT = 64, PASSWD_BYTES = 16 * 1024, LOCAL_TOKEN_MIN = 32 };

struct user {
    uid_t uid;
    char name[TOKEN_OWNER_SIZE];
};

struct auth {
    uid_t uid; /* that the broker runs as */
    char *local_token;
    char *local_path;
    struct tokens *tokens;         /* NULL: none are configured */
    struct user users[USERS_KEPT]; /* names that were looked up; the oldest is replaced */
    size_t user_count, user_next;
};

const char *role_name(enum role role)
{
    static const char *const words[] = {
#define X(constant, name) name,
        ROLE_LIST(X)
#undef X
    };
    return words[role];
}

static void look_up(uid_t uid, char out[TOKEN_OWNER_SIZE])
{
    struct passwd entry, *found = NULL;
    char *buffer = xcalloc(1, PASSWD_BYTES);
    if (getpwuid_r(uid, &entry, buffer, PASSWD_BYTES, &found) == 0 && found) {
        copy_text(out, TOKEN_OWNER_SIZE, found->pw_name);
    } else {
        (void)snprintf(out, TOKEN_OWNER_SIZE, "uid:%u", (unsigned)uid);
    }
    free(buffer);
}

static const char *user_name(struct auth *auth, uid_t uid)
{
    for (size_t i = 0; i < auth->user_count; i++) {
        if (auth->users[i].uid == uid) {
            return auth->users[i].name;
        }
    }
    struct user *user = &auth->users[auth->user_next];
    auth->user_next = (auth->user_next + 1) % USERS_KEPT;
    if (auth->user_count < USERS_KEPT) {
        auth->user_count++;
    }
    user->uid = uid;
    look_up(uid, user->name);
    return user->name;
}

static int unauthorized(const struct auth *auth, const struct conn *conn, const char *what,
                        struct error *err)
{
    error_set(err, ERROR_UNAUTHORIZED, "%s", what);
    if (conn->is_loopback) {
        return error_expect(err, "Authorization: Bearer TOKEN; this machine's is in %.120s",
                            auth->local_path);
    }
    return error_expect(err, "Authorization: Bearer TOKEN, as `tieline token add` prints it");
}

static void become(struct identity *out, const char *owner, const char *team, enum role role)
{
    copy_text(out->owner, sizeof out->owner, owner);
    copy_text(out->team, sizeof out->team, team);
    out->role = role;
}

static int by_token(struct auth *auth, const struct conn *conn, const char *authorization,
                    struct identity *out, struct error *err)
{
    size_t scheme = strcspn(authorization, " ");
    if (scheme != strlen("Bearer") || strncasecmp(authorization, "Bearer", scheme) != 0) {
        return unauthorized(auth, conn, "the Authorization is not a bearer token", err);
    }
    const char *text = authorization + scheme + strspn(authorization + scheme, " ");
    if (conn->is_loopback && token_equal(text, auth->local_token)) {
        become(out, user_name(auth, auth->uid), "", ROLE_ADMIN);
        return 0;
    }
    const struct token *token = token_check(auth->tokens, text);
    if (!token) {
        return unauthorized(auth, conn, "the token is not known here", err);
    }
    become(out, token->owner, token->team, token->role);
    return 0;
}

int auth_identify(struct auth *auth, const struct conn *conn, const char *authorization,
                  struct identity *out, struct error *err)
{
    if (authorization) {
        return by_token(auth, conn, authorization, out, err);
    }
    if (!conn->listener->is_unix) {
        return unauthorized(auth, conn, "no token in the request", err);
    }
    bool master = conn->uid == auth->uid || conn->uid == 0;
    become(out, user_name(auth, conn->uid), "", master ? ROLE_ADMIN : ROLE_SUBMIT);
    return 0;
}

/* 1: read, 0: not there, -1: refused. */
static int read_local(struct auth *auth, struct error *err)
{
    char text[TOKEN_SIZE] = "";
    struct stat stat;
    int fd = open(auth->local_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT ? 0
                               : error_set(err, ERROR_INVALID, "%.150s cannot be opened: %s",
                                           auth->local_path, strerror(errno));
    }
    bool ours = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_uid == auth->uid &&
                !(stat.st_mode & (S_IRWXG | S_IRWXO));
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (!ours) {
        error_set(err, ERROR_INVALID, "%.150s is not a file of the broker's user alone",
                  auth->local_path);
        return error_expect(err, "remove it: a new one is made at the start");
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (n < 0 || strlen(text) < LOCAL_TOKEN_MIN) {
        error_set(err, ERROR_INVALID, "%.150s holds no token", auth->local_path);
        return error_expect(err, "remove it: a new one is made at the start");
    }
    auth->local_token = xstrdup(text);
    return 1;
}

static int write_local(struct auth *auth, struct clock *clock, struct error *err)
{
    char text[TOKEN_SIZE];
    token_make(clock, text);
    auth->local_token = xstrdup(text);
    char *line = xasprintf("%s\n", text);
    char *temporary = xasprintf("%s.new", auth->local_path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    size_t length = strlen(line);
    bool good = fd >= 0 && write(fd, line, length) == (ssize_t)length && fsync(fd) == 0;
    good = fd >= 0 && close(fd) == 0 && good;
    good = good && rename(temporary, auth->local_path) == 0;
    if (!good) {
        error_set(err, ERROR_INTERNAL, "%.150s cannot be written: %s", auth->local_path,
                  strerror(errno));
        (void)unlink(temporary);
    }
    explicit_bzero(line, length);
    free(line);
    free(temporary);
    explicit_bzero(text, sizeof text);
    return good ? 0 : -1;
}

int auth_create(const struct api_env *env, struct auth **out, struct error *err)
{
    struct auth *auth = xcalloc(1, sizeof *auth);
    auth->uid = geteuid();
    auth->local_path = xasprintf("%s/token", env->federation->state_dir);
    int found = read_local(auth, err);
    if (found == 0) {
        found = write_local(auth, env->clock, err);
    }
    const char *file = env->federation->tokens_file;
    if (found < 0 || (file && tokens_open(file, env->log, &auth->tokens, err) < 0)) {
        auth_destroy(auth);
        return -1;
    }
    *out = auth;
    return 0;
}

void auth_destroy(struct auth *auth)
{
    if (!auth) {
        return;
    }
    if (auth->local_token) {
        explicit_bzero(auth->local_token, strlen(auth->local_token));
    }
    free(auth->local_token);
    free(auth->local_path);
    tokens_close(auth->tokens);
    free(auth);
}
