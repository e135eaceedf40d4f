/* keys.h - reading, freeing and printing by a key table: the one source of what a document may say.
 *
 * keys_read() walks a value by the table (key_table.h) and fills a struct; keys_print() prints the same
 * rows as documentation. An unknown key is an error with the nearest right spelling, at every depth;
 * keys that start with "x-" are ignored. */
#ifndef BROKER_CORE_KEYS_H
#define BROKER_CORE_KEYS_H

#include "broker/core/error.h"
#include "broker/core/key_table.h"
#include "broker/core/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Fills the struct at base (zeroed by the caller) from value, which must be a map or NULL (then only
 * defaults apply). First error wins, with its place. On failure base holds what can be given to
 * keys_free. */
int keys_read(const struct key *rows, const struct value *value, void *base,
              const struct keys_context *context, struct error *err);

/* As keys_read, but goes on after an error and hands each to found(arg, err). Returns how many. */
int keys_read_all(const struct key *rows, const struct value *value, void *base,
                  const struct keys_context *context,
                  void (*found)(void *arg, const struct error *err), void *arg);

/* Reads one value by one row, as keys_read would. */
int keys_read_one(const struct key *row, const struct value *value, void *field,
                  const struct keys_context *context, struct error *err);

/* Frees everything that keys_read allocated below base, not base itself; then zeroes it. */
void keys_free(const struct key *rows, void *base);

/* Prints the rows as a Markdown table: key, type, default, meaning; sections indented by dots. */
void keys_print(const struct key *rows, const char *prefix, FILE *out);

/* Reading a secret: resolves the reference now. out is owned by the caller and must be wiped. A file
 * that group or others can read is refused. */
int secret_read(const struct secret *secret, char **out, struct error *err);
void secret_wipe(char *text); /* wipes and frees; takes NULL */

const char *labels_get(const struct labels *labels, const char *name); /* first value or NULL */

#endif
