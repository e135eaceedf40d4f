/* match.c - whether a `match` of the policy fits a job. All keys that are given must fit; of a list, any
 * entry. Patterns are globs. */
#include "policy/match.h"

#include "policy/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NEED_TEXT = 96 };

struct misses {
    int count;
    bool other; /* for the key of the sentence the job has another value, not none */
    char *out;  /* sentence on the first */
    size_t size;
};

/* Counts a key that does not fit; whether it is the one that the sentence is about. */
static bool is_told(struct misses *misses)
{
    return misses->count++ == 0 && misses->size;
}

static void tell(struct misses *misses, const char *key, const char *wanted, const char *has)
{
    misses->other = has && has[0];
    (void)snprintf(misses->out, misses->size, "wants %s = %s, the job has %s", key, wanted,
                   misses->other ? has : "none");
}

static void need_word(struct misses *misses, const char *key, const struct texts *wanted,
                      const char *has)
{
    char text[NEED_TEXT];
    if (wanted->count && !texts_match(wanted, has ? has : "") && is_told(misses)) {
        join_texts(wanted, " or ", text, sizeof text);
        tell(misses, key, text, has);
    }
}

static void need_label(struct misses *misses, const struct label *wanted,
                       const struct labels *labels)
{
    const char *has = labels_get(labels, wanted->name);
    char key[NEED_TEXT], text[NEED_TEXT];
    if ((!has || !texts_match(&wanted->values, has)) && is_told(misses)) {
        (void)snprintf(key, sizeof key, "labels.%s", wanted->name);
        join_texts(&wanted->values, " or ", text, sizeof text);
        tell(misses, key, text, has);
    }
}

static void need_range(struct misses *misses, enum amount amount, const struct range *range,
                       int64_t has)
{
    char low[AMOUNT_TEXT_SIZE], high[AMOUNT_TEXT_SIZE] = "", text[2 * AMOUNT_TEXT_SIZE + 4];
    char have[AMOUNT_TEXT_SIZE];
    if ((has >= range->low && has <= range->high) || !is_told(misses)) {
        return;
    }
    amount_figure(amount, range->low, low);
    if (range->high != UNLIMITED) {
        amount_figure(amount, range->high, high);
    }
    (void)snprintf(text, sizeof text, "%s..%s", low, high);
    tell(misses, amount_noun(amount, 0), text, amount_figure(amount, has, have));
}

static void need_gpu(struct misses *misses, const struct texts *wanted, const struct texts *has)
{
    char text[NEED_TEXT], have[NEED_TEXT];
    bool any = wanted->count == 0;
    for (size_t i = 0; i < has->count && !any; i++) {
        any = texts_match(wanted, has->items[i]);
    }
    if (!any && is_told(misses)) {
        join_texts(wanted, " or ", text, sizeof text);
        join_texts(has, ", ", have, sizeof have);
        tell(misses, "needs.gpu", text, have);
    }
}

static void need_protected(struct misses *misses, enum tristate wanted, bool has)
{
    if (wanted != ANY && (wanted == YES) != has && is_told(misses)) {
        tell(misses, "protected", wanted == YES ? "true" : "false", has ? "true" : "false");
    }
}

static struct misses count_misses(const struct match *match, const struct spec *spec,
                                  const char *owner, char *out, size_t size)
{
    struct misses misses = {.out = out, .size = size};
    if (size) {
        out[0] = '\0';
    }
    need_word(&misses, "class", &match->class_name, spec->class_name);
    need_word(&misses, "team", &match->team, spec->team);
    need_word(&misses, "owner", &match->owner, owner);
    need_word(&misses, "name", &match->name, spec->name);
    for (size_t i = 0; i < match->labels.count; i++) {
        need_label(&misses, &match->labels.items[i], &spec->labels);
    }
    need_range(&misses, AMOUNT_CPUS, &match->needs.cpus, spec->needs.cpus);
    need_range(&misses, AMOUNT_MEMORY, &match->needs.memory, spec->needs.memory);
    need_range(&misses, AMOUNT_GPUS, &match->needs.gpus, spec->needs.gpus);
    need_gpu(&misses, &match->needs.gpu, &spec->needs.gpu);
    need_protected(&misses, match->is_protected, spec->is_protected);
    return misses;
}

int match_misses(const struct match *match, const struct spec *spec, const char *owner, char *out,
                 size_t size)
{
    return count_misses(match, spec, owner, out, size).count;
}

bool match_is_near(const struct match *match, const struct spec *spec, const char *owner, char *out,
                   size_t size)
{
    struct misses misses = count_misses(match, spec, owner, out, size);
    return misses.count == 1 && misses.other;
}

/* A pattern covers another when it matches its text: a "*" of the other is only ever met by a "*". */
static bool texts_cover(const struct texts *a, const struct texts *b)
{
    if (a->count == 0) {
        return true;
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!texts_match(a, b->items[i])) {
            return false;
        }
    }
    return b->count > 0;
}

static const struct label *label_find(const struct labels *labels, const char *name)
{
    for (size_t i = 0; i < labels->count; i++) {
        if (strcmp(labels->items[i].name, name) == 0) {
            return &labels->items[i];
        }
    }
    return NULL;
}

static bool labels_cover(const struct labels *a, const struct labels *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct label *other = label_find(b, a->items[i].name);
        /* A label without values takes no job; of other keys an empty list takes all. */
        if (!other || !a->items[i].values.count ||
            !texts_cover(&a->items[i].values, &other->values)) {
            return false;
        }
    }
    return true;
}

static bool range_covers(const struct range *a, const struct range *b)
{
    return a->low <= b->low && a->high >= b->high;
}

bool match_fits(const struct match *match, const struct spec *spec, const char *owner)
{
    return match_misses(match, spec, owner, NULL, 0) == 0;
}

bool match_covers(const struct match *a, const struct match *b)
{
    return texts_cover(&a->class_name, &b->class_name) && texts_cover(&a->team, &b->team) &&
           texts_cover(&a->owner, &b->owner) && texts_cover(&a->name, &b->name) &&
           labels_cover(&a->labels, &b->labels) && range_covers(&a->needs.cpus, &b->needs.cpus) &&
           range_covers(&a->needs.memory, &b->needs.memory) &&
           range_covers(&a->needs.gpus, &b->needs.gpus) &&
           texts_cover(&a->needs.gpu, &b->needs.gpu) &&
           (a->is_protected == ANY || a->is_protected == b->is_protected);
}
