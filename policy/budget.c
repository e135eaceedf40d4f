/* budget.c - which budgets count a job, the start of their period, and rent as integers. */
#include "policy/budget.h"

#include "policy/internal.h"
#include "policy/match.h"

#include "broker/core/zone.h"

enum { HOUR_MS = 3600 * 1000, DAY_MS = 24 * HOUR_MS };

bool budget_counts(const struct budget_rule *budget, const struct spec *spec, const char *owner,
                   const struct place *place)
{
    if (!place_kind_is_rented(place->kind) || !match_fits(&budget->match, spec, owner)) {
        return false;
    }
    for (size_t i = 0; i < budget->places.count; i++) {
        if (place_is_named(place, budget->places.items[i])) {
            return true;
        }
    }
    return budget->places.count == 0;
}

/* Local midnight of a date; a zone that cannot be used counts as UTC: it was checked at load. */
static int64_t midnight(const char *zone, int64_t days)
{
    struct error err;
    int64_t wall_ms;
    int year, month, day;
    civil_from_days(days, &year, &month, &day);
    if (zone_from_local(zone, year, month, day, 0, 0, &wall_ms, &err) < 0) {
        wall_ms = days * DAY_MS;
    }
    return wall_ms;
}

static int64_t floor_days(int64_t local_ms)
{
    return local_ms / DAY_MS - (local_ms % DAY_MS < 0);
}

static int64_t first_day(int per, int64_t days)
{
    int year, month, day;
    civil_from_days(days, &year, &month, &day);
    switch (per) {
    case BUDGET_WEEK: return days - weekday_of(days);
    case BUDGET_MONTH: return days_from_civil(year, month, 1);
    case BUDGET_YEAR: return days_from_civil(year, 1, 1);
    default: return days;
    }
}

int64_t budget_period_start(const struct budget_rule *budget, int64_t now_ms, const char *zone)
{
    struct error err;
    int64_t offset_ms;
    const char *name = zone ? zone : "UTC";
    if (budget->per == BUDGET_JOB) {
        return 0;
    }
    if (zone_offset(name, now_ms, &offset_ms, &err) < 0) {
        offset_ms = 0;
    }
    return midnight(name, first_day(budget->per, floor_days(now_ms + offset_ms)));
}

int64_t budget_rent(int64_t price_hour, int64_t duration_ms)
{
    return scale_up(price_hour, duration_ms, HOUR_MS);
}
