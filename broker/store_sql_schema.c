/* store_sql_schema.c - connections, the tables, and how an older file becomes a newer one.
 *
 * PRAGMA user_version is the number of steps a file has seen. A step never changes once it was
 * released; a new release adds steps at the end. All steps that a file lacks run in one transaction, so
 * that a crash leaves either the old file or the new one. */
#include "broker/store_sql.h"

#include "broker/core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* jobs.key_id and keys.orphan: a key is in force until its time is over and its job is gone. */
static const char step_1[] =
    "CREATE TABLE events (seq INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, stream TEXT NOT NULL,"
    " kind TEXT NOT NULL, id TEXT NOT NULL, attempt INTEGER NOT NULL, v INTEGER NOT NULL,"
    " data TEXT NOT NULL);"
    "CREATE INDEX events_id ON events(id);"
    "CREATE INDEX events_others ON events(at_ms) WHERE stream <> 'job';"
    "CREATE TABLE jobs (id TEXT PRIMARY KEY, owner TEXT NOT NULL, team TEXT NOT NULL,"
    " class TEXT NOT NULL, name TEXT NOT NULL, state TEXT NOT NULL, place TEXT NOT NULL,"
    " attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL,"
    " submit_seq INTEGER NOT NULL, key_id INTEGER, row TEXT NOT NULL);"
    "CREATE INDEX jobs_live ON jobs(submit_seq) WHERE finished_ms = 0;"
    "CREATE INDEX jobs_finished ON jobs(finished_ms) WHERE finished_ms > 0;"
    "CREATE INDEX jobs_owner ON jobs(owner, id);"
    "CREATE INDEX jobs_submitted ON jobs(submitted_ms);"
    "CREATE INDEX jobs_suffix ON jobs(substr(id, -4));"
    "CREATE TABLE keys (id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL,"
    " fingerprint TEXT NOT NULL, job_id TEXT NOT NULL, expires_ms INTEGER NOT NULL,"
    " orphan INTEGER NOT NULL, UNIQUE (scope, key));"
    "CREATE INDEX keys_orphan ON keys(expires_ms) WHERE orphan = 1;"
    "CREATE TABLE decisions (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
    " at_ms INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE INDEX decisions_at ON decisions(at_ms);"
    "CREATE TABLE policies (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,"
    " at_ms INTEGER NOT NULL, text TEXT NOT NULL);"
    "CREATE TABLE signals (n INTEGER PRIMARY KEY, id TEXT NOT NULL, at_ms INTEGER NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE INDEX signals_id ON signals(id);"
    "CREATE INDEX signals_at ON signals(at_ms);"
    "CREATE TABLE meta (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at_ms INTEGER NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE TABLE tombstones (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;";

static const char *const steps[] = {step_1};
const struct sql_schema sql_schema = {steps, (int)(sizeof steps / sizeof steps[0])};

int sql_error(sqlite3 *db, struct error *err, const char *doing)
{
    return error_set(err, ERROR_STORE, "%s: %s", doing, db ? sqlite3_errmsg(db) : "out of memory");
}

int sql_exec(sqlite3 *db, const char *sql, struct error *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_error(db, err, "store");
}

int sql_integer(sqlite3 *db, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        return sql_error(db, err, "store");
    }
    int code = sqlite3_step(stmt);
    int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    int result = code == SQLITE_ROW || code == SQLITE_DONE ? 0 : sql_error(db, err, "store");
    (void)sqlite3_finalize(stmt);
    if (result == 0) {
        *out = value;
    }
    return result;
}

const char *sql_text(sqlite3_stmt *stmt, int column)
{
    const unsigned char *text = sqlite3_column_text(stmt, column);
    return text ? (const char *)text : "";
}

static const char *role_sql(const struct sql_place *place, enum sql_role role)
{
    if (role == SQL_READER) {
        return "PRAGMA query_only = ON";
    }
    /* auto_vacuum counts only before the first table exists. */
    return place->no_sync ? "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
                            "PRAGMA synchronous = OFF; PRAGMA journal_size_limit = 67108864;"
                          : "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
                            "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;";
}

static int check_mode(sqlite3 *db, const char *path, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool wal = sqlite3_prepare_v2(db, "PRAGMA journal_mode", -1, &stmt, NULL) == SQLITE_OK &&
               sqlite3_step(stmt) == SQLITE_ROW && strcmp(sql_text(stmt, 0), "wal") == 0;
    (void)sqlite3_finalize(stmt);
    if (wal) {
        return 0;
    }
    (void)error_set(err, ERROR_STORE, "%s: this file system cannot hold a write-ahead log", path);
    return error_expect(err, "a local disk (no network file system)");
}

/* Before anything is written to it. */
static int check_owner(sqlite3 *db, const char *path, bool *empty, struct error *err)
{
    int64_t owner = 0, tables = 0;
    if (sql_integer(db, "PRAGMA application_id", &owner, err) < 0 ||
        sql_integer(db, "SELECT count(*) FROM sqlite_master", &tables, err) < 0) {
        return error_prefix(err, "%s", path);
    }
    *empty = owner == 0 && tables == 0;
    if (*empty || owner == SQL_APPLICATION_ID) {
        return 0;
    }
    (void)error_set(err, ERROR_CONFLICT, "%s is the SQLite file of another program", path);
    return error_expect(err, "a path of its own for the store");
}

int sql_connect(const struct sql_place *place, enum sql_role role, sqlite3 **out, struct error *err)
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(place->path, &db, flags, place->vfs) != SQLITE_OK) {
        (void)sql_error(db, err, place->path);
        goto fail;
    }
    (void)sqlite3_busy_timeout(db, SQL_BUSY_MS);
    bool empty;
    if (check_owner(db, place->path, &empty, err) < 0) {
        goto fail;
    }
    if (sql_exec(db, "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF", err) < 0 ||
        sql_exec(db, role_sql(place, role), err) < 0) {
        (void)error_prefix(err, "%s", place->path);
        goto fail;
    }
    if (role == SQL_WRITER && check_mode(db, place->path, err) < 0) {
        goto fail;
    }
    *out = db;
    return 0;
fail:
    (void)sqlite3_close(db);
    return -1;
}

int sql_sync_file(const char *path, struct error *err)
{
    int result = -1;
    char *copy = xstrdup(path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || folder < 0 || fsync(file) < 0 || fsync(folder) < 0) {
        (void)error_set(err, ERROR_STORE, "%s: %s", path, strerror(errno));
    } else {
        result = 0;
    }
    if (file >= 0) {
        (void)close(file);
    }
    if (folder >= 0) {
        (void)close(folder);
    }
    free(copy);
    return result;
}

/* Copies the file as it is to PATH.schema-N; a copy that is there is whole and of the same version. */
static int copy_before(sqlite3 *db, const char *path, int version, struct error *err)
{
    char *whole = xasprintf("%s.schema-%d", path, version);
    char *part = xasprintf("%s.part", whole);
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", part);
    int result = -1;
    int file = -1;
    if (unlink(part) < 0 && errno != ENOENT) {
        (void)error_set(err, ERROR_STORE, "%s: %s", part, strerror(errno));
        goto out;
    }
    file = open(part, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) {
        (void)error_set(err, ERROR_STORE, "%s: %s", part, strerror(errno));
        goto out;
    }
    (void)close(file);
    if (sql_exec(db, sql, err) < 0 || sql_sync_file(part, err) < 0) {
        goto out;
    }
    if (rename(part, whole) < 0) {
        (void)error_set(err, ERROR_STORE, "%s: %s", whole, strerror(errno));
        goto out;
    }
    result = sql_sync_file(whole, err);
out:
    if (result < 0) {
        (void)error_prefix(err, "copy before the migration");
        (void)unlink(part);
    }
    sqlite3_free(sql);
    free(part);
    free(whole);
    return result;
}

static int run_steps(sqlite3 *db, const struct sql_schema *schema, int from, struct error *err)
{
    if (sql_exec(db, "BEGIN IMMEDIATE", err) < 0) {
        return -1;
    }
    for (int i = from; i < schema->version; i++) {
        if (sql_exec(db, schema->steps[i], err) < 0) {
            (void)error_prefix(err, "step to schema %d", i + 1);
            goto fail;
        }
    }
    char sql[128];
    (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT",
                   schema->version, (int)SQL_APPLICATION_ID);
    if (sql_exec(db, sql, err) == 0) {
        return 0;
    }
fail:
    (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return -1;
}

static int refuse_newer(const char *path, int64_t version, const struct sql_schema *schema,
                        struct error *err)
{
    (void)error_set(err, ERROR_CONFLICT,
                    "%s was written by a newer release: it has schema %lld, this one knows %d",
                    path, (long long)version, schema->version);
    return error_expect(err, "that release, or the copy from before it: FILE.schema-%d",
                        schema->version);
}

int sql_schema_prepare(sqlite3 *db, const char *path, const struct sql_schema *schema,
                       struct error *err)
{
    int64_t version = 0;
    bool empty = false;
    if (check_owner(db, path, &empty, err) < 0 ||
        sql_integer(db, "PRAGMA user_version", &version, err) < 0) {
        return -1;
    }
    if (version > schema->version) {
        return refuse_newer(path, version, schema, err);
    }
    if (version == schema->version) {
        return 0;
    }
    if (!empty && copy_before(db, path, (int)version, err) < 0) {
        return -1;
    }
    return run_steps(db, schema, (int)version, err);
}
