/* tzif.h - one time zone file (RFC 9636), parsed. For zone.c and its tests. */
#ifndef BROKER_CORE_TZIF_H
#define BROKER_CORE_TZIF_H

#include <stddef.h>
#include <stdint.h>

struct tzif;

/* Returns NULL when the bytes are no such file. */
struct tzif *tzif_create(const unsigned char *bytes, size_t length);
void tzif_destroy(struct tzif *tzif); /* takes NULL */

/* Seconds east of UTC at this second since 1970. */
int32_t tzif_offset(const struct tzif *tzif, int64_t seconds);

#endif
