#include "broker/core/id.h"

#include <string.h>

static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void id_make(struct clock *clock, char prefix, char out[ID_SIZE])
{
    uint64_t time = (uint64_t)clock_wall_ms(clock);
    uint64_t random = clock_random(clock);
    out[0] = prefix;
    for (int i = 9; i >= 1; i--) {
        out[i] = digits[time & 31];
        time >>= 5;
    }
    for (int i = 10; i < ID_LEN; i++) {
        out[i] = digits[random & 31];
        random >>= 5;
    }
    out[ID_LEN] = '\0';
}

static bool is_base32(const char *text)
{
    return text[0] != '\0' && strspn(text, digits) == strlen(text);
}

bool id_is_valid(const char *text)
{
    size_t length = strlen(text);
    return length >= 15 && length < ID_SIZE && text[0] == 'j' && is_base32(text + 1);
}

bool id_is_suffix(const char *text)
{
    size_t length = strlen(text);
    return length >= ID_SUFFIX_MIN && length < ID_SIZE && (id_is_valid(text) || is_base32(text));
}
