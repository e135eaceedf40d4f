/* random.h - seeded random numbers of the simulator: xoshiro256**, seeded by splitmix64. */
#ifndef BROKER_SIM_RANDOM_H
#define BROKER_SIM_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* Evenly spread over low..high, both included. */
int64_t random_between(struct random *random, int64_t low, int64_t high);

/* One step of splitmix64: moves the state and returns a well mixed number. */
uint64_t random_mix(uint64_t *state);
/* A number that hangs on the seed and the text alone, whatever was drawn before. */
uint64_t random_of_text(uint64_t seed, const char *text);

#endif
