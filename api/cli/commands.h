/* commands.h - one function per command; the table in cli.c names them. */
#ifndef API_CLI_COMMANDS_H
#define API_CLI_COMMANDS_H

#include "api/cli/cli.h"

#include <jansson.h>
#include <stdint.h>

int command_serve(struct cli *cli, const struct args *args);
int command_submit(struct cli *cli, const struct args *args);
int command_run(struct cli *cli, const struct args *args);
int command_list(struct cli *cli, const struct args *args);
int command_show(struct cli *cli, const struct args *args);
int command_wait(struct cli *cli, const struct args *args);
int command_logs(struct cli *cli, const struct args *args);
int command_cancel(struct cli *cli, const struct args *args);
int command_explain(struct cli *cli, const struct args *args);
int command_places(struct cli *cli, const struct args *args);
int command_bursts(struct cli *cli, const struct args *args);
int command_drain(struct cli *cli, const struct args *args);
int command_undrain(struct cli *cli, const struct args *args);
int command_policy_check(struct cli *cli, const struct args *args);
int command_policy_show(struct cli *cli, const struct args *args);
int command_policy_set(struct cli *cli, const struct args *args);
int command_token_add(struct cli *cli, const struct args *args);
int command_token_list(struct cli *cli, const struct args *args);
int command_token_revoke(struct cli *cli, const struct args *args);
int command_docs(struct cli *cli, const struct args *args);
int command_version(struct cli *cli, const struct args *args);
int command_help(struct cli *cli, const struct args *args);

/* What commands that talk to a broker share. */
enum { PATIENCE_MS = 5 * 1000, PATIENCE_LONG_MS = 10 * 60 * 1000, HOLD_MS = 20 * 1000 };

const char *json_text(const json_t *object, const char *name); /* "" when absent */
int64_t json_int(const json_t *object, const char *name);      /* 0 when absent */
int64_t json_time(const json_t *object, const char *name);     /* wall ms; 0 when absent */

/* "0 of 3 places can take it: " is what the lines around say anyway. */
const char *why_without_count(const char *why);

/* How long the last attempt ran, by its own times. Returns whether it ran and has ended. */
bool job_took(const json_t *job, int64_t *ms);

/* Whether this may be the id of a job, or the end of one. An empty word would name them all. */
int id_check(const char *id, struct error *err);

/* One line of compact JSON to standard output. */
void print_json(const json_t *json);

/* "14:21:40" of this machine's day, else "Tue 14:21" or "2026-03-09 14:21". */
void time_words(int64_t wall_ms, int64_t now_ms, char *out, size_t size);

#endif
