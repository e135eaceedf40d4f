/* keys_scalar.h - reading one value by one row, and its messages. For keys*.c alone. */
#ifndef BROKER_CORE_KEYS_SCALAR_H
#define BROKER_CORE_KEYS_SCALAR_H

#include "broker/core/key_table.h"

/* Every type but SECRET, SECTION, NAMED and ITEMS. The error has its place. */
int keys_read_scalar(const struct key *row, const struct value *value, void *field,
                     const struct keys_context *context, struct error *err);

/* "'name' must be a size, but this is a list". Returns -1. */
int keys_misfit(const struct key *row, const struct value *value, struct error *err);

/* "did you mean 'word'?", or the words themselves. Returns -1. */
int keys_expect_word(struct error *err, const char *word, const char *const *words, size_t count);

size_t keys_max_items(const struct key *row);
const char *keys_type_words(enum key_type type);
const char *keys_type_example(enum key_type type);

#endif
