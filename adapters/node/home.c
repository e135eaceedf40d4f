/* home.c - see home.h. */
#include "adapters/node/home.h"

#include "adapters/node/keeps.h"
#include "broker/core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_MS = 2000 };

struct home {
    struct server *server;
    struct timer *timer;
    int lock;    /* of dir/lock */
    int jobs_fd; /* dir/jobs: as long as it is open, no other directory is the same; -1: not watched */
};

/* Whether there is nothing at the path. What cannot be told does not count. */
static bool is_gone(const char *dir, const char *name, struct stat *info)
{
    char *path = xasprintf("%s/%s", dir, name);
    bool gone = stat(path, info) && (errno == ENOENT || errno == ENOTDIR);
    free(path);
    return gone;
}

/* Whether something else, or nothing, is where fd was opened. */
static bool is_other(int fd, const char *dir, const char *name)
{
    struct stat held;
    struct stat there = {.st_ino = 0};
    if (is_gone(dir, name, &there)) {
        return true;
    }
    return there.st_ino && !fstat(fd, &held) &&
           (held.st_ino != there.st_ino || held.st_dev != there.st_dev);
}

static void look_fired(void *arg)
{
    struct home *home = arg;
    struct server *server = home->server;
    struct stat info;
    if ((home->jobs_fd >= 0 && is_other(home->jobs_fd, server->dir, "jobs")) ||
        is_gone(server->dir, "exits", &info)) {
        server_say(server, "'%s' was removed: its jobs are ended, then it ends", server->dir);
        server->ending = true;
        keeps_cancel_all(server);
    } else if (is_other(home->lock, server->dir, "lock") || is_gone(server->dir, "sock", &info)) {
        server_say(server, "the lock or the socket was removed: ends, running jobs go on");
        uv_stop(&server->loop);
    } else {
        timer_start(home->timer, LOOK_MS);
    }
}

struct home *home_watch(struct server *server, int lock)
{
    struct home *home = xcalloc(1, sizeof *home);
    home->server = server;
    home->lock = lock;
    home->jobs_fd = open(server->jobs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    home->timer = clock_timer(server->clock, look_fired, home);
    timer_start(home->timer, LOOK_MS);
    return home;
}

void home_unwatch(struct home *home)
{
    if (!home) {
        return;
    }
    timer_destroy(home->timer);
    if (home->jobs_fd >= 0) {
        close(home->jobs_fd);
    }
    free(home);
}
