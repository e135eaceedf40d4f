/* yaml.h - one YAML 1.2 document as a value that remembers where each part stood. */
#ifndef CONFIG_YAML_H
#define CONFIG_YAML_H

#include "broker/core/error.h"
#include "broker/core/value.h"

#include <stddef.h>

/* Parses exactly one document in UTF-8. Lines and columns count from 1. An empty document is VALUE_NULL.
 * Anchors and aliases work, what they expand to counts towards the limits of value.h. Refused, with
 * place: duplicate keys, merge keys, tags, keys that are no plain words, several documents. */
int yaml_parse(const char *text, size_t length, struct value **out, struct error *err);

#endif
