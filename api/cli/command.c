/* command.c - the table of commands, and what becomes of a command line.
 *
 * A command of two words ("policy check") stands in the table as such. A word that is no command gets the
 * nearest one as an answer, and so does an option. */
#include "api/cli/command.h"

#include "api/cli/client.h"
#include "api/cli/commands.h"
#include "api/cli/location.h"
#include "api/cli/exit_status.h"
#include "api/cli/job_flags.h"
#include "broker/core/alloc.h"
#include "broker/core/units.h"
#include "broker/net/clock_uv.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMANDS_MAX = 64, LINE_MAX_BYTES = 1024, LOOP_TURNS = 2000 };

const struct flag common_flags[] = {
    {"json", 0, NULL, false, "JSON; of lists one object per line"},
    {"help", 'h', NULL, false, "what this command does"},
    {.name = NULL},
};

#define END_OF_FLAGS                                                                               \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define HERE_FLAGS                                                                                 \
    {"config", 0, "FILE", false,                                                                   \
     "tieline.yaml; default " DEFAULT_CONFIG " if it is there, else builtin"},                     \
    {                                                                                              \
        "state", 0, "DIR", false,                                                                  \
            "state directory; default TIELINE_STATE, else the configuration's"                     \
    }

static const struct flag serve_flags[] = {
    HERE_FLAGS,
    {"listen", 0, "HOST:PORT", false, "instead of the configuration's; port 0: any free one"},
    {"accept-world", 0, NULL, false,
     "go on although members show work that the store does not know"},
    END_OF_FLAGS,
};
static const struct flag submit_flags[] = {
    {"key", 0, "KEY", false, "idempotency key: the same key gives the same job"},
    {"render", 0, "PLACE", false, "print exactly what would be sent there, and submit nothing"},
    END_OF_FLAGS,
};
static const struct flag run_flags[] = {
    {"job", 0, "FILE", false, "a job to begin with; flags and words change it"},
    {"key", 0, "KEY", false, "attach to the job with this key, or return its result"},
    {"fresh", 0, NULL, false,
     "run again although the newest job with this key has succeeded; it becomes the newest"},
    {"result", 0, "FILE", false, "write how it ended as JSON"},
    END_OF_FLAGS,
};
static const struct flag list_flags[] = {
    {"state", 's', "STATE", false,
     "as the list shows it: held queued placed dispatched running unknown cancelling succeeded "
     "failed cancelled expired; or live, final, active"},
    {"owner", 0, "OWNER", false, "who submitted it"},
    {"team", 0, "TEAM", false, "its team"},
    {"class", 0, "CLASS", false, "its class"},
    {"name", 0, "NAME", false, "its name"},
    {"place", 0, "PLACE", false, "where its last attempt was put"},
    {"since", 0, "TIME", false,
     "submitted since: 2h (before now), or RFC 3339, 2026-03-09T14:00:00Z"},
    {"until", 0, "TIME", false, "submitted before: as --since"},
    {"limit", 'n', "N", false, "show no more than the N newest; default 100"},
    END_OF_FLAGS,
};
static const struct flag logs_flags[] = {
    {"follow", 'f', NULL, false, "go on until the job has ended"},
    {"attempt", 0, "N", false, "of this attempt; default the last"},
    END_OF_FLAGS,
};
static const struct flag explain_flags[] = {
    {"job", 0, "FILE", false, "of a job that was not submitted"},
    END_OF_FLAGS,
};
static const struct flag drain_flags[] = {
    {"note", 0, "TEXT", false, "why, for those who will ask"},
    END_OF_FLAGS,
};
static const struct flag policy_set_flags[] = {
    {"dry-run", 0, NULL, false, "only check it there"},
    END_OF_FLAGS,
};
static const struct flag token_flags[] = {
    HERE_FLAGS,
    {"file", 0, "FILE", false, "file of the tokens; default the configuration's"},
    END_OF_FLAGS,
};
static const struct flag token_add_flags[] = {
    HERE_FLAGS,
    {"file", 0, "FILE", false, "file of the tokens; default the configuration's"},
    {"team", 0, "TEAM", false, "jobs are counted to this team"},
    {"role", 0, "ROLE", false, "read, submit (default), operate or admin"},
    END_OF_FLAGS,
};

const struct command command_table[] = {
    {.name = "run",
     .run = command_run,
     .words = "[--] COMMAND...",
     .summary = "run a job: its output, its exit status",
     .help =
         "Waits for the job, writes its output to standard output and what happens to standard "
         "error, and returns its exit status. Ctrl-C cancels it, a second one leaves at once; when "
         "the terminal goes away (SIGHUP) the job runs on. What the job writes to standard output "
         "and standard error is merged in order; it gets no standard input, and begins in a "
         "fresh working directory.",
     .flags = run_flags,
     .client = true,
     .job_flags = true,
     .is_run = true,
     .words_max = -1},
    {.name = "submit",
     .run = command_submit,
     .words = "FILE...|- [-- COMMAND...]",
     .summary = "submit jobs, print their ids",
     .help =
         "A file holds one job or a list of them, as YAML or JSON, or one in each line (NDJSON); "
         "- is standard input. Flags "
         "change what the files say.",
     .flags = submit_flags,
     .client = true,
     .job_flags = true,
     .words_min = 1,
     .words_max = -1},
    {.name = "list",
     .run = command_list,
     .words = "",
     .summary = "list jobs, newest first, and why each is where it is",
     .flags = list_flags,
     .client = true},
    {.name = "show",
     .run = command_show,
     .words = "ID...",
     .summary = "all about a job and its attempts",
     .client = true,
     .words_min = 1,
     .words_max = -1},
    {.name = "wait",
     .run = command_wait,
     .words = "ID...",
     .summary = "wait until jobs have ended; exit status as `run`",
     .client = true,
     .words_min = 1,
     .words_max = -1},
    {.name = "logs",
     .run = command_logs,
     .words = "ID",
     .summary = "the output of a job",
     .flags = logs_flags,
     .client = true,
     .words_min = 1,
     .words_max = 1},
    {.name = "cancel",
     .run = command_cancel,
     .words = "ID...",
     .summary = "cancel jobs",
     .client = true,
     .words_min = 1,
     .words_max = -1},
    {.name = "explain",
     .run = command_explain,
     .words = "ID... | --job FILE | -- COMMAND...",
     .summary = "why a job is where it is, why it waits, or where it would go",
     .flags = explain_flags,
     .client = true,
     .job_flags = true,
     .words_max = -1},
    {.name = "places",
     .run = command_places,
     .words = "",
     .summary = "all places: state, queue, what is free",
     .client = true},
    {.name = "bursts",
     .run = command_bursts,
     .words = "",
     .summary = "bursts and budgets",
     .client = true},
    {.name = "drain",
     .run = command_drain,
     .words = "PLACE",
     .summary = "nothing new goes to a place or a cluster; what runs there ends",
     .flags = drain_flags,
     .client = true,
     .words_min = 1,
     .words_max = 1},
    {.name = "undrain",
     .run = command_undrain,
     .words = "PLACE",
     .summary = "a place takes jobs again",
     .client = true,
     .words_min = 1,
     .words_max = 1},
    {.name = "policy check",
     .run = command_policy_check,
     .words = "[FILE]",
     .summary = "all mistakes of a policy, and its own tests",
     .help = "Needs no broker. Without FILE: the policy that the configuration names.",
     .client = true,
     .words_max = 1},
    {.name = "policy show",
     .run = command_policy_show,
     .words = "",
     .summary = "the policy that decides now",
     .client = true},
    {.name = "policy set",
     .run = command_policy_set,
     .words = "FILE|-",
     .summary = "check a policy and make it live; a bad one changes nothing",
     .help = "It is live until the next start or SIGHUP, which read the configured file again.",
     .flags = policy_set_flags,
     .client = true,
     .words_min = 1,
     .words_max = 1},
    {.name = "serve",
     .run = command_serve,
     .words = "",
     .summary = "run the broker, in the foreground",
     .help = "SIGHUP reads the policy again; SIGTERM stops in order, jobs go on. Without a "
             "configuration: three members on this machine, to look around.",
     .flags = serve_flags},
    {.name = "token add",
     .run = command_token_add,
     .words = "OWNER",
     .summary = "make a token for somebody; it is shown once",
     .flags = token_add_flags,
     .words_min = 1,
     .words_max = 1},
    {.name = "token list",
     .run = command_token_list,
     .words = "",
     .summary = "the tokens there are, without their secrets",
     .flags = token_flags},
    {.name = "token revoke",
     .run = command_token_revoke,
     .words = "ID",
     .summary = "a token no longer counts",
     .flags = token_flags,
     .words_min = 1,
     .words_max = 1},
    {.name = "docs",
     .run = command_docs,
     .words = "[PAGE]",
     .summary = "pages that are printed from the tables of this program",
     .words_max = 1},
    {.name = "help",
     .run = command_help,
     .words = "[COMMAND]",
     .summary = "this list, or what a command does",
     .words_max = 2},
    {.name = "version", .run = command_version, .words = "", .summary = "the version"},
    {.name = NULL},
};

size_t command_flags(const struct command *command, const struct flag *out[ARGS_TABLES_MAX])
{
    size_t count = 0;
    if (command->flags) {
        out[count++] = command->flags;
    }
    if (command->client) {
        out[count++] = client_flags;
    }
    if (command->job_flags) {
        out[count++] = job_flags();
    }
    out[count++] = common_flags;
    for (size_t i = count; i < ARGS_TABLES_MAX; i++) {
        out[i] = NULL;
    }
    return count;
}

const struct command *command_find(int argc, char **argv, int *used)
{
    for (const struct command *command = command_table; argc > 0 && command->name; command++) {
        const char *blank = strchr(command->name, ' ');
        size_t length = blank ? (size_t)(blank - command->name) : strlen(command->name);
        if (strlen(argv[0]) != length || strncmp(argv[0], command->name, length) != 0) {
            continue;
        }
        if (!blank || (argc > 1 && strcmp(argv[1], blank + 1) == 0)) {
            *used = blank ? 2 : 1;
            return command;
        }
    }
    return NULL;
}

/* ------------------------------------------------------------------------------------------- dispatch */

/* No command has this name: what was meant? "policy" alone lists its second words. */
static int unknown(int argc, char **argv)
{
    const char *names[COMMANDS_MAX];
    char word[LINE_MAX_BYTES], seconds[LINE_MAX_BYTES] = "";
    size_t count = 0, length = strlen(argv[0]);
    (void)snprintf(word, sizeof word, "%s", argv[0]);
    for (const struct command *command = command_table; command->name; command++) {
        names[count++] = command->name;
        if (strncmp(command->name, argv[0], length) == 0 && command->name[length] == ' ') {
            size_t used = strlen(seconds);
            (void)snprintf(seconds + used, sizeof seconds - used, "%s%s", used ? ", " : "",
                           command->name + length + 1);
        }
    }
    if (seconds[0] && argc > 1) {
        (void)snprintf(word, sizeof word, "%s %s", argv[0], argv[1]);
    }
    const char *near = nearest_word(word, names, count);
    if (!near && argc > 1 && argv[1][0] != '-') {
        (void)snprintf(word, sizeof word, "%s %s", argv[0], argv[1]);
        near = nearest_word(word, names, count);
    }
    if (seconds[0] && !near) {
        cli_say("'%s' is half a command; it goes on with: %s", argv[0], seconds);
        (void)cli_print_group(argv[0], stderr);
    } else if (near) {
        cli_say("no command '%s'; did you mean '%s'?", word, near);
    } else {
        cli_say("no command '%s'; tieline help lists them", word);
    }
    return EXIT_USAGE;
}

static int check_words(const struct command *command, const struct args *args, struct error *err)
{
    int words = (int)args->word_count;
    if (words >= command->words_min && (command->words_max < 0 || words <= command->words_max)) {
        return 0;
    }
    error_set(err, ERROR_INVALID,
              words < command->words_min ? "%s: too few words" : "%s: too many words",
              command->name);
    return error_expect(err, "tieline %s %s", command->name, command->words);
}

static int run_command(struct cli *cli, const struct command *command, int argc, char **argv)
{
    struct args args = {.given = NULL};
    struct error err;
    int status = command->is_run ? STATUS_REFUSED : EXIT_USAGE;
    args.table_count = command_flags(command, args.tables);
    if (args_parse(&args, argc, argv, command->is_run, &err) < 0) {
        (void)cli_fail(&err);
        return status;
    }
    cli->json = args_has(&args, "json");
    if (args_has(&args, "help")) {
        cli_print_command_help(command, stdout);
        status = 0;
    } else if (check_words(command, &args, &err) < 0) {
        (void)cli_fail(&err);
    } else {
        status = command->run(cli, &args);
    }
    args_fini(&args);
    return status;
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    int used = 0;
    if (argc < 1) {
        cli_print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        cli_print_help(stdout);
        return 0;
    }
    if (strcmp(argv[0], "--version") == 0) {
        argv[0] += 2;
    }
    const struct command *command = command_find(argc, argv, &used);
    bool asks = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    if (!command && asks && cli_print_group(argv[0], stdout)) {
        return 0;
    }
    return command ? run_command(cli, command, argc - used, argv + used) : unknown(argc, argv);
}

/* Output that did not arrive is no success. A reader that has left wants to hear nothing of it. */
static int check_output(int status)
{
    struct pollfd reader = {.fd = STDOUT_FILENO};
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return status;
    }
    if (poll(&reader, 1, 0) == 1 && reader.revents & POLLERR) {
        return status ? status : STATUS_SIGNAL + SIGPIPE;
    }
    cli_say("standard output could not be written");
    return status ? status : 1;
}

int cli_main(const struct cli_parts *parts, int argc, char **argv)
{
    struct cli cli = {.parts = parts};
    if (argc > 1 && strcmp(argv[1], "supervise") == 0) {
        return parts->supervise(argc - 1, argv + 1);
    }
    if (uv_loop_init(&cli.loop) != 0) {
        cli_say("no event loop could be made");
        return 1;
    }
    cli.clock = clock_uv_create(&cli.loop);
    int status = check_output(dispatch(&cli, argc - 1, argv + 1));
    clock_uv_destroy(cli.clock);
    for (int i = 0; i < LOOP_TURNS && uv_loop_close(&cli.loop) != 0; i++) {
        /* Work of the thread pool may be under way: it still writes to this loop when it is done. */
        (void)uv_run(&cli.loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    return status;
}
