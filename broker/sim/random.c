#include "broker/sim/random.h"

#define FNV_START UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t rotate(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

uint64_t random_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t random_of_text(uint64_t seed, const char *text)
{
    uint64_t state = seed ^ FNV_START;
    for (; *text; text++) {
        state = (state ^ (unsigned char)*text) * FNV_PRIME;
    }
    return random_mix(&state);
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

int64_t random_between(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(random_next(random) % (uint64_t)(high - low + 1));
}

void random_init(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        random->state[i] = random_mix(&seed);
    }
}
