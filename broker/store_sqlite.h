/* store_sqlite.h - the default store: one SQLite file. docs/stores.md says what is on disk. */
#ifndef BROKER_STORE_SQLITE_H
#define BROKER_STORE_SQLITE_H

#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/store.h"

#include <stdbool.h>
#include <uv.h>

struct store_sqlite_options { /* zero: as in production */
    const char *vfs;          /* name of a registered SQLite VFS; NULL: the default one */
    bool no_sync; /* synchronous=OFF: loses acknowledged events. Only for tests of the tests. */
};

/* Opens, makes or migrates the file of "sqlite:/path". CONFLICT: another broker has it open, or a newer
 * release wrote it. options may be NULL. The loop must turn once more after the store's close. */
int store_sqlite_open(const char *name, uv_loop_t *loop, struct clock *clock,
                      const struct store_sqlite_options *options, struct store **out,
                      struct error *err);

#endif
