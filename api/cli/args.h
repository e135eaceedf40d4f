/* args.h - the words of a command line, taken apart by tables of flags. */
#ifndef API_CLI_ARGS_H
#define API_CLI_ARGS_H

#include "broker/core/error.h"

#include <stdbool.h>
#include <stddef.h>

struct flag {          /* a table ends with a row whose name is NULL */
    const char *name;  /* without "--" */
    char letter;       /* short form, or 0 */
    const char *takes; /* "FILE"; NULL: a switch */
    bool many;         /* may stand more than once */
    const char *help;
};

enum { ARGS_TABLES_MAX = 4 };

struct arg { /* a flag that was given */
    const struct flag *flag;
    const char *value; /* NULL: a switch */
};
struct args {
    const struct flag *tables[ARGS_TABLES_MAX];
    size_t table_count;
    struct arg *given;
    size_t given_count;
    const char **words; /* what is no flag, in order */
    size_t word_count;
    size_t after; /* index of the first word behind "--"; word_count: there is no "--" */
};

/* Takes argv apart (argv[0] is the first word). stop: the first word ends the flags, as "--" does.
 * INVALID with the nearest spelling. On failure args needs no args_fini. */
int args_parse(struct args *args, int argc, char **argv, bool stop, struct error *err);
void args_fini(struct args *args);

/* The value of the last flag of this name, or NULL; of a switch: "". */
const char *args_get(const struct args *args, const char *name);
bool args_has(const struct args *args, const char *name);

#endif
