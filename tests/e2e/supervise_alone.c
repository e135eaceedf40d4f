/* supervise_alone.c - the part of the program that supervises, alone: for tests of the `local` member. */
#include "adapters/node/supervise.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "supervise") != 0) {
        (void)fputs("usage: supervise_alone supervise ...\n", stderr);
        return 2;
    }
    return supervise_main(argc - 1, argv + 1);
}
