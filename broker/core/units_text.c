/* units_text.c - words and patterns: nearest spelling, wildcards, names, UTF-8. */
#include "broker/core/units.h"

#include <string.h>

enum { WORD_MAX = 128, DISTANCE_MAX = 3, NAME_MAX_LENGTH = 63 };

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours; case does not count. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][WORD_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) {
        last[j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t other = lower(a[i - 1]) != lower(b[j - 1]);
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + other);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = least(row[j], before[j - 2] + 1);
            }
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b_length];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count)
{
    size_t length = strlen(word);
    const char *best = NULL;
    /* a third of the word may be wrong: else it is another word */
    size_t limit = least(length / 3 + (length < 3), DISTANCE_MAX);
    if (length == 0 || length > WORD_MAX) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other == 0 || other > WORD_MAX || other > length + limit || length > other + limit) {
            continue;
        }
        size_t distance = edit_distance(word, length, candidates[i], other);
        if (distance <= limit && distance < length) {
            best = candidates[i];
            if (distance == 0) {
                break;
            }
            limit = distance - 1;
        }
    }
    return best;
}

bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

bool name_is_valid(const char *text)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t length = strlen(text);
    return length > 0 && length <= NAME_MAX_LENGTH && strspn(text, first) > 0 &&
           text[strspn(
               text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

/* How many bytes follow a first byte, and the least code point of that length; -1: not a first byte. */
static int tail_of(unsigned char first, uint32_t *low, uint32_t *bits)
{
    if (first < 0x80) {
        *low = 0;
        *bits = first;
        return first == 0 ? -1 : 0;
    }
    if (first >= 0xC2 && first < 0xE0) {
        *low = 0x80;
        *bits = first & 0x1FU;
        return 1;
    }
    if (first >= 0xE0 && first < 0xF0) {
        *low = 0x800;
        *bits = first & 0x0FU;
        return 2;
    }
    *low = 0x10000;
    *bits = first & 0x07U;
    return first >= 0xF0 && first < 0xF5 ? 3 : -1;
}

bool utf8_is_valid(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        uint32_t low = 0, code = 0;
        int tail = tail_of((unsigned char)text[i], &low, &code);
        if (tail < 0 || (size_t)tail > length - i - 1) {
            return false;
        }
        for (; tail > 0; tail--) {
            unsigned char next = (unsigned char)text[++i];
            if ((next & 0xC0) != 0x80) {
                return false;
            }
            code = code << 6 | (next & 0x3FU);
        }
        if (code < low || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
            return false;
        }
    }
    return true;
}
