/* civil.h - dates of the Gregorian calendar as days, without any zone. */
#ifndef BROKER_CORE_CIVIL_H
#define BROKER_CORE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

/* Days since 1970-01-01 of a date of the Gregorian calendar, and back. month 1..12, day 1..31. */
int64_t days_from_civil(int64_t year, int month, int day);
void civil_from_days(int64_t days, int *year, int *month, int *day);
/* 0: Monday .. 6: Sunday. */
int weekday_of(int64_t days);
bool civil_is_valid(int year, int month, int day);

#endif
