/* command.h - the one table of commands, from which dispatch, help, docs/cli.md and the man page derive. */
#ifndef API_CLI_COMMAND_H
#define API_CLI_COMMAND_H

#include "api/cli/cli.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct command {
    const char *name; /* "policy check": two words */
    int (*run)(struct cli *cli, const struct args *args);
    const char *words; /* "ID..." */
    const char *summary;
    const char *help;         /* more of it, or NULL */
    const struct flag *flags; /* of its own, or NULL */
    bool client;              /* talks to a broker: takes the flags of that */
    bool job_flags;           /* takes a flag for each key of a job */
    bool is_run;              /* the first word ends the flags; a wrong line is "refused" */
    int words_min, words_max; /* words_max -1: any */
};
extern const struct command command_table[]; /* ends with a row whose name is NULL */
extern const struct flag common_flags[];     /* of every command */

/* The tables of flags that a command takes; the rest of out is NULL. Returns how many. */
size_t command_flags(const struct command *command, const struct flag *out[ARGS_TABLES_MAX]);
/* The command at the start of these words, and how many of them are its name; or NULL. */
const struct command *command_find(int argc, char **argv, int *used);

/* Runs a command line. Returns the exit status. */
int cli_main(const struct cli_parts *parts, int argc, char **argv);

/* docs/cli.md and docs/tieline.1. */
void cli_print_markdown(FILE *out);
void cli_print_man(FILE *out);
void cli_print_help(FILE *out);
void cli_print_command_help(const struct command *command, FILE *out);

/* The commands whose first word this is, with what they do. Returns how many. */
int cli_print_group(const char *word, FILE *out);

#endif
