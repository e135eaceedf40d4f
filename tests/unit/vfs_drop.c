#include "tests/unit/vfs_drop.h"

#include "broker/core/alloc.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR = 512, SECTORS_MAX = 1 << 16 };

/* One name. The file there may be another than the durable one until it is synced. */
struct state {
    char *path;
    bool durable_exists;
    bool replaced; /* the live file is new: none of it may mix with the durable one */
    char *durable;
    size_t durable_length;
    bool dirty[SECTORS_MAX];
    struct state *next;
};

struct drop_file {
    sqlite3_file base;
    struct state *state; /* NULL: a temporary file */
    sqlite3_file *real;
};

static struct {
    pthread_mutex_t mutex;
    sqlite3_vfs vfs;
    sqlite3_vfs *real;
    struct state *states;
    uint64_t random;
    int64_t changes_left, syncs; /* changes_left 0: no crash point */
    bool crashed, full, fail_syncs;
} drop = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void broken(const char *what)
{
    perror(what);
    abort();
}

static bool coin(void)
{
    drop.random ^= drop.random << 13;
    drop.random ^= drop.random >> 7;
    drop.random ^= drop.random << 17;
    return (drop.random >> 32) & 1;
}

static char *read_all(const char *path, size_t *length)
{
    struct stat info;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &info) < 0) {
        broken(path);
    }
    char *bytes = xcalloc((size_t)info.st_size + 1, 1);
    if (pread(file, bytes, (size_t)info.st_size, 0) != info.st_size) {
        broken(path);
    }
    (void)close(file);
    *length = (size_t)info.st_size;
    return bytes;
}

static struct state *find_state(const char *path)
{
    struct state *state = drop.states;
    while (state && strcmp(state->path, path) != 0) {
        state = state->next;
    }
    return state;
}

/* Of a file about to be opened: what is there when it is first seen counts as durable. */
static struct state *meet_state(const char *path)
{
    bool exists = access(path, F_OK) == 0;
    struct state *state = find_state(path);
    if (!state) {
        state = xcalloc(1, sizeof *state);
        state->path = xstrdup(path);
        state->durable_exists = exists;
        state->next = drop.states;
        drop.states = state;
        if (exists) {
            state->durable = read_all(path, &state->durable_length);
        }
    }
    state->replaced = state->replaced || !exists;
    return state;
}

/* Counts a change; true: the power is gone (from this one on). */
static bool change_fails(void)
{
    if (drop.changes_left > 0 && --drop.changes_left == 0) {
        drop.crashed = true;
    }
    return drop.crashed;
}

/* Reads through SQLite's own handle: closing another one would drop the process's locks. */
static void make_durable(struct state *state, sqlite3_file *real)
{
    sqlite3_int64 length;
    if (real->pMethods->xFileSize(real, &length) != SQLITE_OK) {
        broken(state->path);
    }
    char *live = xcalloc((size_t)length + 1, 1);
    if (length > 0 && real->pMethods->xRead(real, live, (int)length, 0) != SQLITE_OK) {
        broken(state->path);
    }
    free(state->durable);
    state->durable = live;
    state->durable_length = (size_t)length;
    state->durable_exists = true;
    state->replaced = false;
    memset(state->dirty, 0, sizeof state->dirty);
}

static struct drop_file *self_of(sqlite3_file *file)
{
    return (struct drop_file *)file;
}

static int drop_close(sqlite3_file *file)
{
    return self_of(file)->real->pMethods->xClose(self_of(file)->real);
}

static int drop_read(sqlite3_file *file, void *bytes, int length, sqlite3_int64 offset)
{
    return self_of(file)->real->pMethods->xRead(self_of(file)->real, bytes, length, offset);
}

static void mark(struct state *state, sqlite3_int64 offset, int length)
{
    for (sqlite3_int64 at = offset / SECTOR; at <= (offset + length - 1) / SECTOR; at++) {
        if (at >= SECTORS_MAX) {
            broken("vfs_drop: file too large");
        }
        state->dirty[at] = true;
    }
}

static int drop_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    struct drop_file *self = self_of(file);
    pthread_mutex_lock(&drop.mutex);
    bool was_crashed = drop.crashed;
    int code = change_fails() ? SQLITE_IOERR_WRITE : drop.full ? SQLITE_FULL : SQLITE_OK;
    /* The write that meets the crash may reach the disk in parts. */
    if (code == SQLITE_OK || (code == SQLITE_IOERR_WRITE && !was_crashed)) {
        int real = self->real->pMethods->xWrite(self->real, bytes, length, offset);
        code = code == SQLITE_OK ? real : code;
        if (self->state) {
            mark(self->state, offset, length);
        }
    }
    pthread_mutex_unlock(&drop.mutex);
    return code;
}

static int drop_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct drop_file *self = self_of(file);
    pthread_mutex_lock(&drop.mutex);
    int code =
        change_fails() ? SQLITE_IOERR_TRUNCATE : self->real->pMethods->xTruncate(self->real, size);
    pthread_mutex_unlock(&drop.mutex);
    return code;
}

static int drop_sync(sqlite3_file *file, int flags)
{
    struct drop_file *self = self_of(file);
    (void)flags;
    pthread_mutex_lock(&drop.mutex);
    int code = change_fails() || drop.fail_syncs ? SQLITE_IOERR_FSYNC : SQLITE_OK;
    if (code == SQLITE_OK && self->state) {
        drop.syncs++;
        make_durable(self->state, self->real);
    }
    pthread_mutex_unlock(&drop.mutex);
    return code;
}

static int drop_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return self_of(file)->real->pMethods->xFileSize(self_of(file)->real, size);
}

static int drop_lock(sqlite3_file *file, int level)
{
    return self_of(file)->real->pMethods->xLock(self_of(file)->real, level);
}

static int drop_unlock(sqlite3_file *file, int level)
{
    return self_of(file)->real->pMethods->xUnlock(self_of(file)->real, level);
}

static int drop_reserved(sqlite3_file *file, int *out)
{
    return self_of(file)->real->pMethods->xCheckReservedLock(self_of(file)->real, out);
}

static int drop_control(sqlite3_file *file, int op, void *arg)
{
    return self_of(file)->real->pMethods->xFileControl(self_of(file)->real, op, arg);
}

static int drop_sector_size(sqlite3_file *file)
{
    return self_of(file)->real->pMethods->xSectorSize(self_of(file)->real);
}

static int drop_device(sqlite3_file *file)
{
    return self_of(file)->real->pMethods->xDeviceCharacteristics(self_of(file)->real);
}

static int drop_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **out)
{
    return self_of(file)->real->pMethods->xShmMap(self_of(file)->real, page, size, extend, out);
}

static int drop_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return self_of(file)->real->pMethods->xShmLock(self_of(file)->real, offset, n, flags);
}

static void drop_shm_barrier(sqlite3_file *file)
{
    self_of(file)->real->pMethods->xShmBarrier(self_of(file)->real);
}

static int drop_shm_unmap(sqlite3_file *file, int delete)
{
    return self_of(file)->real->pMethods->xShmUnmap(self_of(file)->real, delete);
}

static const sqlite3_io_methods drop_methods = {
    .iVersion = 2, /* without memory maps, which would go around the shim */
    .xClose = drop_close,
    .xRead = drop_read,
    .xWrite = drop_write,
    .xTruncate = drop_truncate,
    .xSync = drop_sync,
    .xFileSize = drop_size,
    .xLock = drop_lock,
    .xUnlock = drop_unlock,
    .xCheckReservedLock = drop_reserved,
    .xFileControl = drop_control,
    .xSectorSize = drop_sector_size,
    .xDeviceCharacteristics = drop_device,
    .xShmMap = drop_shm_map,
    .xShmLock = drop_shm_lock,
    .xShmBarrier = drop_shm_barrier,
    .xShmUnmap = drop_shm_unmap,
};

static int drop_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *out_flags)
{
    (void)vfs;
    struct drop_file *self = self_of(file);
    self->base.pMethods = NULL;
    self->real = (sqlite3_file *)(self + 1);
    pthread_mutex_lock(&drop.mutex);
    self->state = name ? meet_state(name) : NULL;
    int code = drop.real->xOpen(drop.real, name, self->real, flags, out_flags);
    pthread_mutex_unlock(&drop.mutex);
    if (code == SQLITE_OK) {
        self->base.pMethods = &drop_methods;
    }
    return code;
}

static int drop_delete(sqlite3_vfs *vfs, const char *name, int sync_folder)
{
    (void)vfs;
    pthread_mutex_lock(&drop.mutex);
    int code = change_fails() ? SQLITE_IOERR_DELETE : drop.real->xDelete(drop.real, name, 0);
    struct state *state = find_state(name);
    if (code == SQLITE_OK && state) {
        state->replaced = true;
        state->durable_exists = state->durable_exists && !sync_folder;
    }
    pthread_mutex_unlock(&drop.mutex);
    return code;
}

static void install(void)
{
    drop.real = sqlite3_vfs_find(NULL);
    drop.vfs = *drop.real;
    drop.vfs.pNext = NULL;
    drop.vfs.zName = VFS_DROP_NAME;
    drop.vfs.szOsFile = (int)sizeof(struct drop_file) + drop.real->szOsFile;
    drop.vfs.xOpen = drop_open;
    drop.vfs.xDelete = drop_delete;
    if (sqlite3_vfs_register(&drop.vfs, 0) != SQLITE_OK) {
        broken("sqlite3_vfs_register");
    }
}

static void forget(void)
{
    while (drop.states) {
        struct state *state = drop.states;
        drop.states = state->next;
        free(state->path);
        free(state->durable);
        free(state);
    }
    drop.crashed = drop.full = drop.fail_syncs = false;
    drop.changes_left = 0;
}

void vfs_drop_reset(uint64_t seed)
{
    if (!drop.real) {
        install();
    }
    forget();
    drop.syncs = 0;
    drop.random = seed * 2 + 1;
}

void vfs_drop_crash_at(int64_t n)
{
    pthread_mutex_lock(&drop.mutex);
    drop.changes_left = n;
    pthread_mutex_unlock(&drop.mutex);
}

bool vfs_drop_crashed(void)
{
    pthread_mutex_lock(&drop.mutex);
    bool crashed = drop.crashed;
    pthread_mutex_unlock(&drop.mutex);
    return crashed;
}

int64_t vfs_drop_syncs(void)
{
    pthread_mutex_lock(&drop.mutex);
    int64_t syncs = drop.syncs;
    pthread_mutex_unlock(&drop.mutex);
    return syncs;
}

void vfs_drop_full(bool full)
{
    pthread_mutex_lock(&drop.mutex);
    drop.full = full;
    pthread_mutex_unlock(&drop.mutex);
}

void vfs_drop_fail_syncs(bool fail)
{
    pthread_mutex_lock(&drop.mutex);
    drop.fail_syncs = fail;
    pthread_mutex_unlock(&drop.mutex);
}

/* Lets some of the unsynced sectors survive. */
static void tear(struct state *state)
{
    if (state->replaced || access(state->path, F_OK) != 0) {
        return;
    }
    size_t length;
    char *live = read_all(state->path, &length);
    for (size_t at = 0; at * SECTOR < length && at < SECTORS_MAX; at++) {
        if (!state->dirty[at] || !coin()) {
            continue;
        }
        size_t from = at * SECTOR;
        size_t bytes = length - from < SECTOR ? length - from : SECTOR;
        if (from + bytes > state->durable_length) {
            state->durable = xrealloc(state->durable, from + bytes, 1);
            memset(state->durable + state->durable_length, 0, from + bytes - state->durable_length);
            state->durable_length = from + bytes;
        }
        memcpy(state->durable + from, live + from, bytes);
    }
    free(live);
}

static void restore(const struct state *state)
{
    if (!state->durable_exists) {
        (void)unlink(state->path);
        return;
    }
    int file = open(state->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 ||
        write(file, state->durable, state->durable_length) != (ssize_t)state->durable_length) {
        broken(state->path);
    }
    (void)close(file);
}

void vfs_drop_power_loss(bool torn)
{
    for (struct state *state = drop.states; state; state = state->next) {
        if (torn) {
            tear(state);
        }
        restore(state);
        char *shared = xasprintf("%s-shm", state->path);
        (void)unlink(shared);
        free(shared);
    }
    forget();
}
