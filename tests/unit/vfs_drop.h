/* vfs_drop.h - a SQLite VFS on which a power loss drops what was not synced.
 *
 * Files lie in the real file system; beside each the shim keeps what of it is durable, which only
 * xSync moves on. Real syncs are left out. After the crash point every change fails; at power loss,
 * with all connections closed, the files become what was durable. Torn: besides, each unsynced sector
 * of 512 bytes survives with a chance of one half. */
#ifndef TESTS_UNIT_VFS_DROP_H
#define TESTS_UNIT_VFS_DROP_H

#include <stdbool.h>
#include <stdint.h>

#define VFS_DROP_NAME "drop"

/* Registers the VFS (once) and forgets all files and faults. */
void vfs_drop_reset(uint64_t seed);
/* The n-th change (write, truncate, sync, delete) from now on is the crash point; 0: none. */
void vfs_drop_crash_at(int64_t n);
bool vfs_drop_crashed(void);
int64_t vfs_drop_syncs(void); /* since the reset */
/* Every write fails with SQLITE_FULL; every sync with SQLITE_IOERR_FSYNC. */
void vfs_drop_full(bool full);
void vfs_drop_fail_syncs(bool fail);
void vfs_drop_power_loss(bool torn);

#endif
