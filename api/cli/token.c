/* token.c - `tieline token add`, `list` and `revoke`: the file of static tokens of this machine. */
#include "api/cli/commands.h"
#include "api/cli/location.h"
#include "api/cli/table.h"

#include "broker/core/alloc.h"
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

/* The file that the configuration names. The caller frees. */
static char *tokens_path(struct cli *cli, const struct args *args, struct error *err)
{
    struct federation *federation;
    const char *file = args_get(args, "file");
    if (file) {
        return xstrdup(file);
    }
    if (federation_find(cli, args, &federation, err) < 0) {
        return NULL;
    }
    char *path = xstrdup(federation->tokens_file);
    federation_destroy(federation);
    if (!path) {
        error_set(err, ERROR_INVALID, "the configuration names no file of tokens");
        (void)error_expect(err, "auth: {tokens: {file: /etc/tieline/tokens}}, or --file FILE");
    }
    return path;
}

int command_token_add(struct cli *cli, const struct args *args)
{
    struct error err;
    char *path = tokens_path(cli, args, &err), *token = NULL;
    const char *team = args_get(args, "team"), *role = args_get(args, "role");
    const char *owner = args->words[0];
    role = role ? role : "submit";
    int result =
        path ? cli->parts->token_add(path, cli->clock, owner, team, role, &token, &err) : -1;
    if (result == 0 && cli->json) {
        json_t *json = json_pack("{s:s, s:s, s:s, s:s}", "token", token, "owner", owner, "team",
                                 team ? team : "", "role", role);
        print_json(json);
        json_decref(json);
    } else if (result == 0) {
        (void)printf("%s\n", token);
        cli_say("this is the only time that it is shown; %s keeps a hash", path);
    }
    free(token);
    free(path);
    return result < 0 ? cli_fail(&err) : 0;
}

struct listing {
    const struct cli *cli;
    struct table table;
};

static void row_cb(void *arg, const struct cli_token *token)
{
    struct listing *listing = arg;
    if (listing->cli->json) {
        json_t *json =
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", token->id, "owner", token->owner, "team",
                      token->team, "role", token->role, "created", token->created);
        print_json(json);
        json_decref(json);
        return;
    }
    table_add(&listing->table, token->id);
    table_add(&listing->table, token->owner);
    table_add(&listing->table, token->team);
    table_add(&listing->table, token->role);
    table_add(&listing->table, token->created);
}

int command_token_list(struct cli *cli, const struct args *args)
{
    static const char *const heads[] = {"ID", "OWNER", "TEAM", "ROLE", "CREATED", NULL};
    struct error err;
    struct listing listing = {.cli = cli};
    char *path = tokens_path(cli, args, &err);
    table_init(&listing.table, heads);
    int result = path ? cli->parts->token_list(path, row_cb, &listing, &err) : -1;
    if (result == 0 && !cli->json) {
        table_print(&listing.table, 0, 0, stdout);
    }
    free(path);
    return result < 0 ? cli_fail(&err) : 0;
}

int command_token_revoke(struct cli *cli, const struct args *args)
{
    struct error err;
    char *path = tokens_path(cli, args, &err);
    int result = path ? cli->parts->token_revoke(path, args->words[0], &err) : -1;
    free(path);
    if (result == 0 && !cli->json) {
        (void)printf("%s is revoked\n", args->words[0]);
    }
    return result < 0 ? cli_fail(&err) : 0;
}
