/* value.h - a parsed document, from YAML or JSON alike, that remembers where each part stood.
 *
 * Scalars keep their text and whether they were quoted; the key tables (keys.h) decide types. So one
 * table checks a job in YAML, the same job in JSON, and the configuration. */
#ifndef BROKER_CORE_VALUE_H
#define BROKER_CORE_VALUE_H

#include "broker/core/error.h"

#include <jansson.h>
#include <stddef.h>

enum value_kind { VALUE_NULL, VALUE_SCALAR, VALUE_LIST, VALUE_MAP };
enum value_style { VALUE_PLAIN, VALUE_QUOTED, VALUE_NUMBER, VALUE_TRUE, VALUE_FALSE };

/* A node of the tree. From YAML: SCALAR with style PLAIN (the text decides) or QUOTED (a string).
 * From JSON: strings are QUOTED, but typed texts ("90s") are accepted there as in YAML; numbers and
 * booleans keep their own style. line 0: unknown (JSON); then the pointer tells the place. */
struct value {
    enum value_kind kind;
    enum value_style style;
    int line, column, width; /* of the value; counted from 1 */
    char *text;              /* SCALAR; UTF-8 without NUL */
    char *key;               /* when the parent is a MAP */
    int key_line, key_column;
    struct value *parent;
    struct value **items; /* LIST, MAP: in the order of the source */
    size_t count;
};

/* Limits of every document: 1 MiB of text, 32 levels, 100,000 nodes. */
enum { VALUE_BYTES_MAX = 1024 * 1024, VALUE_DEPTH_MAX = 32, VALUE_NODES_MAX = 100000 };

struct value *value_create(enum value_kind kind);
void value_destroy(struct value *value); /* takes NULL; destroys what is below */

/* Adds item at the end and takes it. key: NULL for lists. */
void value_add_take(struct value *parent, const char *key, struct value *item);

/* Returns the item of a map, or NULL. */
const struct value *value_get(const struct value *map, const char *key);

/* What a node means: YAML 1.2 core rules for PLAIN text; QUOTED is always TEXT. */
enum value_meaning {
    VALUE_MEANS_NULL,
    VALUE_MEANS_TRUE,
    VALUE_MEANS_FALSE,
    VALUE_MEANS_INTEGER,
    VALUE_MEANS_REAL,
    VALUE_MEANS_TEXT,
    VALUE_MEANS_LIST,
    VALUE_MEANS_MAP
};
enum value_meaning value_meaning(const struct value *value);

/* Reads one JSON document, each key once, within these limits; *out is a new reference. MALFORMED and
 * nesting say line and column; beyond bytes_max: TOO_LARGE. */
int json_read(const char *text, size_t length, size_t bytes_max, int depth_max, json_t **out,
              struct error *err);

/* Parses JSON: one document, UTF-8, no duplicate keys, within the limits. MALFORMED says line and
 * column, INVALID or TOO_LARGE else. */
int value_from_json(const char *text, size_t length, struct value **out, struct error *err);
int value_from_jansson(const json_t *json, struct value **out, struct error *err);

/* The JSON of a value: plain scalars are typed as YAML 1.2 core does (null, booleans, numbers), quoted
 * ones are strings. Returns a new reference. */
json_t *value_to_json(const struct value *value);

struct value *value_clone(const struct value *value);

/* Writes the JSON pointer of value from its root, and line and column, into err. Returns -1. */
int value_error(const struct value *value, struct error *err, enum error_code code,
                const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same for the key of a value: line and column are those of the key. */
int value_key_error(const struct value *value, struct error *err, enum error_code code,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds the place of value to an error that is set already. Returns -1. */
int value_locate(const struct value *value, struct error *err);

#endif
