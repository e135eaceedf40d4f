/* location.h - where the broker is, and what it is told to trust. */
#ifndef API_CLI_LOCATION_H
#define API_CLI_LOCATION_H

#include "api/cli/cli.h"

struct location {
    char *base;    /* "https://tieline.example.org", "http://localhost" for a socket */
    char *socket;  /* path, or NULL */
    char *token;   /* or NULL */
    bool is_local; /* no proxy is asked */
};

int location_find(struct cli *cli, const struct args *args, struct location *out,
                  struct error *err);
void location_fini(struct location *location);

/* The folder of the broker: --state-dir, TIELINE_STATE, the configuration's, the default. Caller frees. */
char *state_dir_find(struct cli *cli, const struct args *args);
/* The configuration that a command means: --config, else DEFAULT_CONFIG when it is there. NULL: the
 * built-in one, also for --config builtin. */
const char *config_path_find(const struct args *args);
/* Loads it and applies --state and TIELINE_STATE. */
int federation_find(struct cli *cli, const struct args *args, struct federation **out,
                    struct error *err);

#define DEFAULT_CONFIG "/etc/tieline/tieline.yaml"

#endif
