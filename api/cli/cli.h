/* cli.h - what main hands over to the command line, what every command is given, and how it speaks. */
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

enum { EXIT_USAGE = 2 };

/* Prints an error with its place and what was expected to standard error. Returns 1. */
int cli_fail(const struct error *err);
/* "policy.yaml:3:4: " of an error that knows its place, else "". Returns out. */
char *cli_place(const struct error *err, char *out, size_t size);
/* A line to standard error: "tieline: ...". */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
