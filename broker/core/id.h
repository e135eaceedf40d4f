/* id.h - ids of jobs, decisions and the like: a letter and Crockford base 32, time first. */
#ifndef BROKER_CORE_ID_H
#define BROKER_CORE_ID_H

#include "broker/core/clock.h"

#include <stdbool.h>

/* ID_SIZE holds "j" + 9 characters of time + 6 random ones + NUL, and some room for later forms. */
enum { ID_SIZE = 24, ID_LEN = 16, ID_SUFFIX_MIN = 4, NAME_SIZE = 64 };

/* Writes prefix + 9 base-32 digits of wall milliseconds + 6 random digits. Two ids of one clock never
 * collide within a millisecond by more than chance 2^-30; the store refuses a second one. */
void id_make(struct clock *clock, char prefix, char out[ID_SIZE]);

bool id_is_valid(const char *text);

/* Whether text could be an id or its last ID_SUFFIX_MIN or more characters. */
bool id_is_suffix(const char *text);

#endif
