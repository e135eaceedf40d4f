/* cli.h - the command line: what main hands over, what every command is given, and the one table of
 * commands from which dispatch, help, docs/cli.md and the man page derive. */
#ifndef API_CLI_CLI_H
#define API_CLI_CLI_H

#include "api/cli/args.h"
#include "broker/core/adapter.h"
#include "broker/core/clock.h"
#include "broker/core/error.h"
#include "broker/core/store.h"

#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

struct api;
struct broker;
struct federation;

struct cli_token { /* a line of the file of static tokens */
    const char *id, *owner, *team, *role, *created;
};
struct cli_page { /* a page that is printed from a table of the code; the last has no name */
    const char *name, *summary;
    void (*print)(FILE *out);
};

/* Layers that this one may not include. */
struct cli_parts {
    const struct adapter_type *const *adapters;
    int (*store_open)(const char *name, uv_loop_t *loop, struct clock *clock, struct store **out,
                      struct error *err);
    int (*api_open)(uv_loop_t *loop, struct clock *clock, struct broker *broker,
                    const struct federation *federation,
                    void (*log)(const char *level, const char *text), struct api **out,
                    struct error *err);
    void (*api_close)(struct api *api);
    const char *(*api_address)(const struct api *api);
    const char *(*api_socket)(const struct api *api);
    /* *out is the caller's. */
    int (*token_add)(const char *path, struct clock *clock, const char *owner, const char *team,
                     const char *role, char **out, struct error *err);
    int (*token_list)(const char *path, void (*row)(void *arg, const struct cli_token *token),
                      void *arg, struct error *err);
    int (*token_revoke)(const char *path, const char *id, struct error *err);
    int (*supervise)(int argc, char **argv);
    const struct cli_page *pages;
};

struct cli {
    const struct cli_parts *parts;
    uv_loop_t loop; /* holds the clock */
    struct clock *clock;
    bool json; /* --json */
};

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

enum { EXIT_USAGE = 2 };

/* Runs a command line. Returns the exit status. */
int cli_main(const struct cli_parts *parts, int argc, char **argv);

/* Prints an error with its place and what was expected to standard error. Returns 1. */
int cli_fail(const struct error *err);
/* A line to standard error: "tieline: ...". */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* docs/cli.md and docs/tieline.1. */
void cli_print_markdown(FILE *out);
void cli_print_man(FILE *out);
void cli_print_help(FILE *out);
void cli_print_command_help(const struct command *command, FILE *out);

#endif
