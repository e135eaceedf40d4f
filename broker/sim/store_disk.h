/* store_disk.h - what the simulated store has made durable, and its queries. Knows no time. */
#ifndef BROKER_SIM_STORE_DISK_H
#define BROKER_SIM_STORE_DISK_H

#include "broker/core/error.h"
#include "broker/core/store.h"
#include "broker/store_common.h"

#include <stdbool.h>
#include <stdint.h>

struct disk;
struct disk *disk_create(void);
void disk_destroy(struct disk *disk); /* takes NULL; no store may be open on it */

/* One store at a time. generation counts the openings, from 1. */
int disk_open(struct disk *disk, uint64_t *generation, struct error *err);
void disk_close(struct disk *disk);

/* Writes a batch and sets the results. -1 with CONFLICT: nothing was written, the items have failed. */
int disk_write(struct disk *disk, struct store_batch *batch, struct error *err);
void disk_read(const struct disk *disk, struct store_read *read);
int disk_load(const struct disk *disk, const struct store_loader *loader, int64_t now_ms,
              struct error *err);
void disk_prune(struct disk *disk, int64_t finished_before_ms, int64_t now_ms);

#endif
