/* help.c - `help`, `docs` and `version`: everything that is printed from the table of commands. */
#include "api/cli/client.h"
#include "api/cli/command.h"
#include "api/cli/commands.h"
#include "api/cli/exit_status.h"
#include "api/cli/job_flags.h"
#include "api/cli/table.h"
#include "broker/core/units.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 28, NAME_SIZE_MAX = 64, PAGES_MAX = 32 };

static const char environment[] =
    "TIELINE_URL    the broker, as --url\n"
    "TIELINE_TOKEN  token for it; only sent over https or to this machine\n"
    "TIELINE_STATE  state directory of a broker on this machine, as --state-dir\n"
    "TIELINE_CA     file with the certificates to trust\n";

static void flag_words(const struct flag *flag, char *out, size_t size)
{
    char letter[8] = "";
    if (flag->letter) {
        (void)snprintf(letter, sizeof letter, "-%c, ", flag->letter);
    }
    (void)snprintf(out, size, "%s--%s%s%s", letter, flag->name, flag->takes ? " " : "",
                   flag->takes ? flag->takes : "");
}

static void print_line(const char *left, const char *right, FILE *out)
{
    (void)fprintf(out, "  %-*s", HELP_COLUMN - 2, left);
    if (strlen(left) > HELP_COLUMN - 4) {
        (void)fprintf(out, "\n%*s", HELP_COLUMN, "");
    }
    print_wrapped(right, HELP_COLUMN, TEXT_WIDTH, out);
}

static void print_flags(const struct flag *flags, const char *head, FILE *out)
{
    char words[NAME_SIZE_MAX];
    (void)fprintf(out, "\n%s:\n", head);
    for (; flags->name; flags++) {
        flag_words(flags, words, sizeof words);
        print_line(words, flags->help, out);
    }
}

static const char *head_of(const struct flag *flags)
{
    return flags == client_flags   ? "where the broker is"
           : flags == common_flags ? "of every command"
           : flags == job_flags()  ? "the job, by its keys"
                                   : "options";
}

void cli_print_command_help(const struct command *command, FILE *out)
{
    const struct flag *tables[ARGS_TABLES_MAX];
    size_t count = command_flags(command, tables);
    (void)fprintf(out, "tieline %s%s%s%s\n", command->name, command->flags ? " [OPTIONS]" : "",
                  *command->words ? " " : "", command->words);
    (void)fprintf(out, "  %s\n", command->summary);
    if (command->help) {
        (void)fputs("  ", out);
        print_wrapped(command->help, 2, TEXT_WIDTH, out);
    }
    for (size_t i = 0; i < count; i++) {
        print_flags(tables[i], head_of(tables[i]), out);
    }
}

int cli_print_group(const char *word, FILE *out)
{
    size_t length = strlen(word);
    int count = 0;
    for (const struct command *command = command_table; command->name; command++) {
        if (strncmp(command->name, word, length) == 0 && command->name[length] == ' ') {
            print_line(command->name, command->summary, out);
            count++;
        }
    }
    return count;
}

void cli_print_help(FILE *out)
{
    (void)fputs("tieline COMMAND [OPTIONS]: one queue for all clusters\n\n", out);
    for (const struct command *command = command_table; command->name; command++) {
        print_line(command->name, command->summary, out);
    }
    (void)fprintf(out, "\ntieline help COMMAND says more. Environment:\n");
    const char *line = environment;
    while (*line) {
        size_t length = strcspn(line, "\n");
        (void)fputs("  ", out);
        (void)fwrite(line, 1, length + 1, out);
        line += length + 1;
    }
}

/* ------------------------------------------------------------------------------------------ Markdown */

/* A bar would end the cell. */
static void print_cell(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '|') {
            (void)fputc('\\', out);
        }
        (void)fputc(*text, out);
    }
}

static void markdown_flags(const struct flag *flags, FILE *out)
{
    char words[NAME_SIZE_MAX];
    (void)fputs("\n| option | does |\n|---|---|\n", out);
    for (; flags->name; flags++) {
        flag_words(flags, words, sizeof words);
        (void)fprintf(out, "| `%s` | ", words);
        print_cell(flags->help, out);
        (void)fputs(" |\n", out);
    }
}

void cli_print_markdown(FILE *out)
{
    (void)fputs("# Command line\n\nPrinted by `tieline docs cli`.\n", out);
    for (const struct command *command = command_table; command->name; command++) {
        (void)fprintf(out, "\n## tieline %s\n\n    tieline %s%s%s\n\n%c%s.", command->name,
                      command->name, *command->words ? " " : "", command->words,
                      command->summary[0] - 'a' + 'A', command->summary + 1);
        (void)fprintf(out, "%s%s%s\n", command->help ? " " : "", command->help ? command->help : "",
                      command->job_flags ? " It also takes the options of a job, see below." : "");
        if (command->flags) {
            markdown_flags(command->flags, out);
        }
    }
    (void)fputs(
        "\n## A job by options\n\nEach key of a job has an option with the last part of its "
        "name.\n",
        out);
    markdown_flags(job_flags(), out);
    (void)fputs("\n## Where the broker is\n\nWithout `--url` and `TIELINE_URL`: the socket "
                "`tieline.sock` in the state directory, else the configured address with the "
                "token file there. An option counts for more than the environment: with `--url`, "
                "`--config` or `--state-dir` neither `TIELINE_URL` nor `TIELINE_STATE` is looked "
                "at.\n",
                out);
    markdown_flags(client_flags, out);
    (void)fputs("\n## Every command\n", out);
    markdown_flags(common_flags, out);
    (void)fprintf(out, "\n## Environment\n\n```text\n%s```\n\n## Exit status\n\n", environment);
    exit_status_print(out);
    (void)fputs(
        "\nOther commands: 0; 1 when it failed; 2 for a command line that is not understood. "
        "`submit` says 125 and 126 as above, and 1 when some of several jobs were taken and others not "
        "(standard error says how many and why); `explain` says 126 for a job that would be "
        "refused.\n",
        out);
}

/* --------------------------------------------------------------------------------------------- roff */

static void print_roff(const char *text, FILE *out)
{
    for (const char *c = text; *c; c++) {
        if (*c == '-' || *c == '\\') {
            (void)fputc('\\', out);
            (void)fputc(*c == '\\' ? 'e' : *c, out);
        } else if (*c == '\'' && c == text) {
            (void)fputs("\\(aq", out);
        } else {
            (void)fputc(*c, out);
        }
    }
}

static void roff_item(const char *head, const char *text, FILE *out)
{
    (void)fputs(".TP\n.B ", out);
    print_roff(head, out);
    (void)fputc('\n', out);
    print_roff(text, out);
    (void)fputc('\n', out);
}

static void roff_flags(const struct flag *flags, FILE *out)
{
    char words[NAME_SIZE_MAX];
    for (; flags->name; flags++) {
        flag_words(flags, words, sizeof words);
        roff_item(words, flags->help, out);
    }
}

static void roff_command(const struct command *command, FILE *out)
{
    (void)fputs(".SS \"tieline ", out);
    print_roff(command->name, out);
    (void)fputc(' ', out);
    print_roff(command->words, out);
    (void)fputs("\"\n", out);
    print_roff(command->summary, out);
    (void)fputs(".\n", out);
    if (command->help) {
        print_roff(command->help, out);
        (void)fputc('\n', out);
    }
    if (command->flags) {
        roff_flags(command->flags, out);
    }
}

void cli_print_man(FILE *out)
{
    (void)fputs(".\\\" printed by: tieline docs man\n"
                ".TH TIELINE 1 \"\" \"tieline " TIELINE_VERSION "\" \"Tieline\"\n"
                ".SH NAME\ntieline \\- one queue and one policy for many clusters\n"
                ".SH SYNOPSIS\n.B tieline\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIWORDS\\fR]\n"
                ".SH COMMANDS\n",
                out);
    for (const struct command *command = command_table; command->name; command++) {
        roff_command(command, out);
    }
    (void)fputs(".SH OPTIONS OF A JOB\nOf run, submit and explain: one for each key of a job.\n",
                out);
    roff_flags(job_flags(), out);
    (void)fputs(".SH WHERE THE BROKER IS\n", out);
    roff_flags(client_flags, out);
    (void)fputs(".SH OPTIONS OF EVERY COMMAND\n", out);
    roff_flags(common_flags, out);
    (void)fputs(".SH ENVIRONMENT\n.nf\n", out);
    print_roff(environment, out);
    (void)fputs(
        ".fi\n.SH EXIT STATUS\nOf run and wait: that of the program; 124 time limit; 125 Tieline "
        "could not; 126 refused; 128+n signal n; 130 and 143 interrupted, and the job "
        "cancelled.\nOf the others: 0; 1 failed; 2 wrong command line.\n",
        out);
}

/* -------------------------------------------------------------------------------------------- commands */

int command_help(struct cli *cli, const struct args *args)
{
    int used;
    (void)cli;
    if (args->word_count == 0) {
        cli_print_help(stdout);
        return 0;
    }
    const struct command *command =
        command_find((int)args->word_count, (char **)args->words, &used);
    if (!command && args->word_count == 1 && cli_print_group(args->words[0], stdout)) {
        return 0;
    }
    if (!command) {
        cli_say("no command '%s'; tieline help lists them", args->words[0]);
        return EXIT_USAGE;
    }
    cli_print_command_help(command, stdout);
    return 0;
}

int command_version(struct cli *cli, const struct args *args)
{
    (void)args;
    (void)printf(cli->json ? "{\"version\":\"%s\"}\n" : "tieline %s\n", TIELINE_VERSION);
    return 0;
}

static const struct cli_page own_pages[] = {
    {"cli", "the command line", cli_print_markdown},
    {"man", "the manual page, as roff", cli_print_man},
    {NULL, NULL, NULL},
};

int command_docs(struct cli *cli, const struct args *args)
{
    const struct cli_page *const tables[] = {cli->parts->pages, own_pages};
    const char *names[PAGES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct cli_page *page = tables[i]; page->name; page++) {
            if (count < PAGES_MAX) {
                names[count++] = page->name;
            }
            if (args->word_count == 0) {
                (void)printf("%-15s %s\n", page->name, page->summary);
            } else if (strcmp(page->name, args->words[0]) == 0) {
                page->print(stdout);
                return 0;
            }
        }
    }
    if (args->word_count == 0) {
        return 0;
    }
    const char *near = nearest_word(args->words[0], names, count);
    if (near) {
        cli_say("no page '%s'; did you mean '%s'?", args->words[0], near);
    } else {
        cli_say("no page '%s'; tieline docs lists them", args->words[0]);
    }
    return EXIT_USAGE;
}
