/* key_table.h - the rows of a key table, and the structs that their fields are.
 *
 * A table is an array of rows that ends with a row whose name is NULL. What reads it: keys.h. */
#ifndef BROKER_CORE_KEY_TABLE_H
#define BROKER_CORE_KEY_TABLE_H

#include "broker/core/error.h"
#include "broker/core/texts.h"
#include "broker/core/units.h"
#include "broker/core/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(constant, words for the documentation, C type at the offset) */
#define KEY_TYPE_LIST(X)                                                                           \
    X(TEXT, "text", char *) /* heap; freed by keys_free */                                         \
    X(NAME, "name", char *) /* [A-Za-z0-9][A-Za-z0-9._-]*, up to 63 */                             \
    X(BOOL, "true or false", bool)                                                                 \
    X(INTEGER, "whole number", int64_t) /* within low..high of the row */                          \
    X(CPUS, "number", int64_t)          /* thousandths */                                          \
    X(DURATION, "duration", int64_t)    /* ms */                                                   \
    X(SIZE, "size", int64_t)            /* bytes */                                                \
    X(MONEY, "money", struct money)                                                                \
    X(PRICE_HOUR, "money/h", struct money)                                                         \
    X(PRICE_KWH, "money/kWh", struct money)                                                        \
    X(SHARE, "share", int64_t) /* millionths */                                                    \
    X(RATE, "rate", struct rate)                                                                   \
    X(POWER, "power", int64_t) /* milliwatts */                                                    \
    X(RANGE, "range", struct range)                                                                \
    X(INSTANT, "instant", int64_t) /* wall ms */                                                   \
    X(ENUM, "one of", int)         /* index into the row's words */                                \
    X(TEXTS, "text or list of texts", struct texts)                                                \
    X(LABELS, "map of texts", struct labels) /* name: value; value may be a list in matches */     \
    X(SECRET, "{file:}, {env:} or {command: []}", struct secret)                                   \
    X(SECTION, "map", struct)            /* sub rows, struct embedded at the offset */             \
    X(NAMED, "map by name", struct list) /* name -> sub rows; items carry char *name first */      \
    X(ITEMS, "list", struct list)        /* list of maps by sub rows; one alone may stand */       \
    X(CUSTOM, "", void)                  /* the row's own function */

enum key_type {
#define X(constant, words, type) KEY_##constant,
    KEY_TYPE_LIST(X)
#undef X
        KEY_TYPE_COUNT
};

struct label {
    char *name;
    struct texts values;
};
struct labels {
    struct label *items;
    size_t count;
};
struct secret { /* exactly one is set; all empty: not given */
    char *file;
    char *env;
    struct texts command;
};
struct list { /* items are structs of the row's item_size, owned */
    void *items;
    size_t count;
};

/* What custom readers are handed besides the value. */
struct keys_context {
    const char *zone; /* of instants; NULL: they must state their offset, as in a job */
    void *arg;        /* of whoever called keys_read */
};

typedef int (*key_read_fn)(const struct value *value, void *field,
                           const struct keys_context *context, struct error *err);
typedef void (*key_free_fn)(void *field);

enum key_flags {
    KEY_REQUIRED = 1,
    KEY_PLACE = 2,    /* a place may set it again; the place's value wins */
    KEY_TEMPLATE = 4, /* takes {owner} and the like */
    KEY_NULL = 8,     /* null is allowed and means the same as an absent key */
    KEY_HIDDEN = 16,  /* not printed in the documentation */
};

struct key {
    const char *name;
    enum key_type type;
    int flags;
    size_t offset;            /* of the field in the struct */
    const char *standard;     /* default as it would be typed; NULL: zero */
    const char *help;         /* one sentence for the documentation */
    int64_t low, high;        /* INTEGER, CPUS, SIZE, DURATION: range; both 0: any >= 0 */
    const char *const *words; /* ENUM: NULL-terminated */
    const struct key *rows;   /* SECTION, NAMED, ITEMS */
    size_t item_size;         /* NAMED, ITEMS */
    size_t max_items;         /* TEXTS, LABELS, NAMED, ITEMS; 0: 1000 */
    size_t given;             /* offset + 1 of a bool: the key stood there; 0: none */
    key_read_fn read;         /* CUSTOM; or a hook, see below; or NULL */
    key_free_fn free;         /* frees what read made, before the rows are freed; or NULL */
    const char *type_words;   /* CUSTOM: for the documentation; others: NULL */
};

/* Hooks: `read` of a SECTION is called with the section after its rows, of NAMED and ITEMS with each item
 * after its rows; only when the key stands there and all below it was read well. NAMED: names are
 * checked by name_is_valid(). An absent SECTION gets the defaults of its rows; nothing in it is
 * required then. */

#endif
