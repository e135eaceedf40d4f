/* zone.c - time zones by name, with a small cache.
 *
 * The cache is the only state: at most ZONES_MAX zones, under a mutex, so that any thread may ask. A
 * zone file that is replaced is seen after a restart. */
#include "broker/core/zone.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/core/alloc.h"
#include "broker/core/civil.h"
#include "broker/core/tzif.h"

#define ZONE_DIRECTORY "/usr/share/zoneinfo/"
#define DAY_MS INT64_C(86400000)

enum { ZONES_MAX = 16, ZONE_NAME_SIZE = 64, ZONE_FILE_MAX = 64 * 1024 };

static struct {
    pthread_mutex_t mutex;
    struct {
        char name[ZONE_NAME_SIZE];
        struct tzif *tzif;
    } zones[ZONES_MAX];
    size_t next; /* the one to be replaced */
} cache = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool name_is_sane(const char *zone)
{
    size_t length = strlen(zone);
    return length > 0 && length < ZONE_NAME_SIZE && zone[0] != '/' && zone[length - 1] != '/' &&
           strspn(zone, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/") ==
               length &&
           !strstr(zone, "//");
}

static int refuse(const char *zone, const char *why, struct error *err)
{
    error_set(err, ERROR_INVALID, "no time zone '%.60s'%s", zone, why);
    return error_expect(err, "UTC or a name like Europe/Berlin (package tzdata)");
}

static struct tzif *file_read(const char *zone)
{
    char path[sizeof ZONE_DIRECTORY + ZONE_NAME_SIZE];
    (void)snprintf(path, sizeof path, "%s%s", ZONE_DIRECTORY, zone);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return NULL;
    }
    unsigned char bytes[ZONE_FILE_MAX];
    size_t length = 0;
    ssize_t n = 0;
    while (length < sizeof bytes && (n = read(file, bytes + length, sizeof bytes - length)) > 0) {
        length += (size_t)n;
    }
    (void)close(file);
    return n == 0 ? tzif_create(bytes, length) : NULL;
}

/* The mutex is held. NULL: there is none. */
static const struct tzif *zone_find(const char *zone)
{
    for (size_t i = 0; i < ZONES_MAX; i++) {
        if (cache.zones[i].tzif && strcmp(cache.zones[i].name, zone) == 0) {
            return cache.zones[i].tzif;
        }
    }
    struct tzif *tzif = file_read(zone);
    if (tzif) {
        size_t i = cache.next++ % ZONES_MAX;
        tzif_destroy(cache.zones[i].tzif);
        copy_text(cache.zones[i].name, ZONE_NAME_SIZE, zone);
        cache.zones[i].tzif = tzif;
    }
    return tzif;
}

int zone_offset(const char *zone, int64_t wall_ms, int64_t *offset_ms, struct error *err)
{
    if (strcmp(zone, "UTC") == 0) {
        *offset_ms = 0;
        return 0;
    }
    if (!name_is_sane(zone)) {
        return refuse(zone, ": not a name of a zone", err);
    }
    int64_t seconds = wall_ms / 1000 - (wall_ms % 1000 < 0);
    (void)pthread_mutex_lock(&cache.mutex);
    const struct tzif *tzif = zone_find(zone);
    int64_t offset = tzif ? tzif_offset(tzif, seconds) : 0;
    (void)pthread_mutex_unlock(&cache.mutex);
    if (!tzif) {
        bool none = access(ZONE_DIRECTORY, R_OK) != 0;
        return refuse(zone, none ? ": no " ZONE_DIRECTORY " here" : "", err);
    }
    *offset_ms = offset * 1000;
    return 0;
}

int zone_check(const char *zone, struct error *err)
{
    int64_t offset = 0;
    return zone_offset(zone, 0, &offset, err);
}

int zone_from_local(const char *zone, int year, int month, int day, int hour, int minute,
                    int64_t *wall_ms, struct error *err)
{
    int64_t local =
        days_from_civil(year, month, day) * DAY_MS + (hour * INT64_C(60) + minute) * INT64_C(60000);
    int64_t before = 0, after = 0, there = 0;
    if (zone_offset(zone, local - DAY_MS, &before, err) != 0 ||
        zone_offset(zone, local + DAY_MS, &after, err) != 0 ||
        zone_offset(zone, local - before, &there, err) != 0) {
        return -1;
    }
    if (there != before) {
        int64_t behind = 0;
        if (zone_offset(zone, local - after, &behind, err) != 0) {
            return -1;
        }
        /* neither fits: the clock jumps over this time */
        *wall_ms = local - (behind == after ? after : before);
        return 0;
    }
    *wall_ms = local - before;
    return 0;
}
