/* store_sql.h - the parts of the SQLite store: schema, writer, queries. Each takes a connection that
 * one thread owns; none knows of threads. */
#ifndef BROKER_STORE_SQL_H
#define BROKER_STORE_SQL_H

#include "broker/core/error.h"
#include "broker/core/store.h"
#include "broker/store_common.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { SQL_APPLICATION_ID = 0x5449454c /* "TIEL" */, SQL_BUSY_MS = 5000 };

/* Writes "doing: what SQLite says" into err with STORE. Returns -1. */
int sql_error(sqlite3 *db, struct error *err, const char *doing);
int sql_exec(sqlite3 *db, const char *sql, struct error *err);
/* The integer that a statement without parameters gives; 0 when it gives none. */
int sql_integer(sqlite3 *db, const char *sql, int64_t *out, struct error *err);
const char *sql_text(sqlite3_stmt *stmt, int column); /* never NULL */

/* store_sql_schema.c */
struct sql_place {
    const char *path, *vfs;
    bool no_sync;
};
enum sql_role { SQL_WRITER, SQL_READER };
int sql_connect(const struct sql_place *place, enum sql_role role, sqlite3 **out,
                struct error *err);

/* Makes a finished file durable: its bytes and its name. */
int sql_sync_file(const char *path, struct error *err);

/* One step leads from version i to i + 1. */
struct sql_schema {
    const char *const *steps;
    int version;
};
extern const struct sql_schema sql_schema;
/* Makes the tables of an empty file, or migrates an older one after a copy PATH.schema-N was made.
 * CONFLICT: a newer schema, or another program's file. */
int sql_schema_prepare(sqlite3 *db, const char *path, const struct sql_schema *schema,
                       struct error *err);

/* store_sql_write.c */
struct sql_entry { /* a batch on its way to disk */
    struct store_batch *batch;
    char **texts; /* of each item's event data; made on the loop thread, which owns the JSON */
    int64_t appended_ms; /* monotonic */
    struct error err;
    struct sql_entry *next;       /* in the line where it is */
    struct sql_entry *waits_next; /* the loop thread's */
};
struct sql_writer;
int sql_writer_create(sqlite3 *db, struct sql_writer **out, struct error *err);
void sql_writer_destroy(struct sql_writer *writer); /* takes NULL; leaves the connection open */
/* Writes a list of batches in one transaction. 0: committed; a batch that failed by its own fault has
 * its err and its items' results set. -1: nothing was committed, every batch has failed with err. */
int sql_writer_commit(struct sql_writer *writer, struct sql_entry *first, struct error *err);
/* Writes one number, to find out whether the disk takes writes again. */
int sql_writer_probe(struct sql_writer *writer, struct error *err);

struct sql_prune {
    int64_t finished_before_ms, now_ms;
};
/* One slice of pruning. 1: there is more; 0: done; -1: failed. */
int sql_writer_prune(struct sql_writer *writer, const struct sql_prune *prune, struct error *err);

/* store_sql_read.c */
/* Answers the read: fills rows and more, or err. */
void sql_read(sqlite3 *db, struct store_read *read);
int sql_load(sqlite3 *db, const struct store_loader *loader, int64_t now_ms, struct error *err);

#endif
