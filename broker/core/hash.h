/* hash.h - SHA-256 as text: of the policy, of request bodies, of API tokens. */
#ifndef BROKER_CORE_HASH_H
#define BROKER_CORE_HASH_H

#include <stddef.h>

enum { SHA256_TEXT_SIZE = 65 };

/* Lower-case hexadecimal. Returns out. */
char *sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_SIZE]);

#endif
