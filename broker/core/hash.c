#include "broker/core/hash.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHA256_BYTES = 32 };

char *sha256_text(const void *bytes, size_t length, char out[SHA256_TEXT_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (EVP_Digest(bytes, length, hash, &size, EVP_sha256(), NULL) != 1 || size != SHA256_BYTES) {
        /* only without memory or with a broken library: a wrong hash would let anyone in */
        (void)fputs("tieline: SHA-256 is not available\n", stderr);
        abort();
    }
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 0xF];
    }
    out[SHA256_TEXT_SIZE - 1] = '\0';
    return out;
}
