/* submit.h - posting one job under a key. */
#ifndef API_CLI_SUBMIT_H
#define API_CLI_SUBMIT_H

#include "api/cli/client.h"

#include <stdbool.h>

enum { KEY_RANDOM_SIZE = 40 };

/* A key that nobody else has. */
void key_random(struct cli *cli, char out[KEY_RANDOM_SIZE]);

/* Posts one job. *out: the job as the broker gives it. *existing: the key had made it before. */
int post_job(struct client *client, const json_t *job, const char *key, json_t **out,
             bool *existing, struct error *err);

#endif
