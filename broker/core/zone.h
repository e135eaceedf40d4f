/* zone.h - the offsets of time zones, read from the system's zone files (RFC 9636,
 * formerly 8536). "UTC" needs no file. Not tied to the process's own zone; may be called on any thread. */
#ifndef BROKER_CORE_ZONE_H
#define BROKER_CORE_ZONE_H

#include "broker/core/civil.h"
#include "broker/core/error.h"

#include <stdint.h>

/* Whether a zone of this name can be used; INVALID: no such name, or the system has no zone files. */
int zone_check(const char *zone, struct error *err);

/* What must be added to UTC at that instant to get the zone's local time, in ms. */
int zone_offset(const char *zone, int64_t wall_ms, int64_t *offset_ms, struct error *err);

/* The instant of a local time. One that happens twice is the first; one that the clock jumps over is
 * read with the offset from before, so that it lies behind the jump. */
int zone_from_local(const char *zone, int year, int month, int day, int hour, int minute,
                    int64_t *wall_ms, struct error *err);

#endif
