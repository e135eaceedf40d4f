#include "api/tokens.h"

#include "broker/sim/clock_sim.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[96];
static struct clock *manual;
static char said[1024];

static void hear(const char *level, const char *text)
{
    (void)snprintf(said, sizeof said, "%s: %s", level, text);
}

static void setup(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/tieline-tokens-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/tokens", folder);
    manual = clock_sim_create(1773064920000, 7);
    said[0] = '\0';
}

static void teardown(void)
{
    char lock[128];
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    (void)unlink(lock);
    (void)unlink(path);
    cr_assert_eq(rmdir(folder), 0, "something was left behind");
    clock_sim_destroy(manual);
}

TestSuite(api_tokens, .init = setup, .fini = teardown);

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

Test(api_tokens, added_listed_checked_revoked)
{
    char one[TOKEN_SIZE], two[TOKEN_SIZE];
    struct error err;
    struct tokens *tokens = NULL;
    struct token *list = NULL;
    size_t count = 0;
    cr_assert_eq(tokens_open(path, hear, &tokens, &err), 0, "a file that is not there is empty");
    cr_assert_eq(token_add(path, manual, "alice@example.org", "media", "submit", one, &err), 0);
    cr_assert_eq(token_add(path, manual, "bob", NULL, "admin", two, &err), 0);
    cr_assert_str_neq(one, two);
    cr_assert_eq(token_list(path, &list, &count, &err), 0);
    cr_assert_eq(count, 2);
    cr_assert_str_eq(list[0].team, "media");
    cr_assert_str_eq(list[1].team, "");
    const struct token *found = token_check(tokens, one);
    cr_assert_not_null(found);
    cr_assert_str_eq(found->owner, "alice@example.org");
    cr_assert_eq(found->role, ROLE_SUBMIT);
    cr_assert_eq(token_revoke(path, list[0].id, &err), 0);
    cr_assert_null(token_check(tokens, one));
    cr_assert_not_null(token_check(tokens, two));
    cr_assert_eq(token_revoke(path, list[0].id, &err), -1);
    cr_assert_eq(err.code, ERROR_NOT_FOUND);
    free(list);
    tokens_close(tokens);
}

Test(api_tokens, the_file_holds_no_token_and_is_private)
{
    char token[TOKEN_SIZE], text[1024] = "";
    struct error err;
    struct stat stat_buf;
    cr_assert_eq(token_add(path, manual, "alice", "", "read", token, &err), 0);
    FILE *file = fopen(path, "r");
    cr_assert_gt(fread(text, 1, sizeof text - 1, file), 0);
    (void)fclose(file);
    cr_assert_null(strstr(text, token));
    cr_assert_null(strstr(text, token + strlen("tl_0123456789abcdef_")));
    cr_assert_not_null(strstr(text, " alice - read "));
    cr_assert_eq(stat(path, &stat_buf), 0);
    cr_assert_eq(stat_buf.st_mode & 0777, 0600);
}

Test(api_tokens, only_the_very_token_fits)
{
    char token[TOKEN_SIZE], wrong[TOKEN_SIZE + 8];
    struct error err;
    struct tokens *tokens = NULL;
    cr_assert_eq(token_add(path, manual, "alice", "", "read", token, &err), 0);
    cr_assert_eq(tokens_open(path, hear, &tokens, &err), 0);
    cr_assert_not_null(token_check(tokens, token));
    for (size_t i = 0; i < strlen(token); i++) {
        (void)snprintf(wrong, sizeof wrong, "%s", token);
        wrong[i] = wrong[i] == '0' ? '1' : '0';
        cr_assert_null(token_check(tokens, wrong), "%s", wrong);
        wrong[i] = '\0';
        cr_assert_null(token_check(tokens, wrong), "%s", wrong);
    }
    (void)snprintf(wrong, sizeof wrong, "%s0", token);
    cr_assert_null(token_check(tokens, wrong));
    cr_assert_null(token_check(NULL, token));
    tokens_close(tokens);
}

Test(api_tokens, bad_grants_are_refused)
{
    char token[TOKEN_SIZE] = "untouched";
    struct error err;
    const char *const owners[] = {"", "a b", "a\nb", "#a", "a\tb", "\xff"};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        cr_assert_eq(token_add(path, manual, owners[i], "", "read", token, &err), -1);
        cr_assert_eq(err.code, ERROR_INVALID);
    }
    cr_assert_eq(token_add(path, manual, "a", "no team", "read", token, &err), -1);
    cr_assert_eq(token_add(path, manual, "a", "", "none", token, &err), -1);
    cr_assert_eq(token_add(path, manual, "a", "", "root", token, &err), -1);
    cr_assert_not_null(strstr(err.expected, "operate"));
    cr_assert_str_eq(token, "untouched");
    cr_assert_eq(access(path, F_OK), -1);
}

Test(api_tokens, a_bad_line_is_named_and_stops_every_change)
{
    char token[TOKEN_SIZE];
    struct error err;
    struct tokens *tokens = NULL;
    put("# first\nsha256:0123456789abcdef:00 alice - read x\n");
    cr_assert_eq(tokens_open(path, hear, &tokens, &err), -1);
    cr_assert_eq(err.line, 2);
    cr_assert_not_null(strstr(err.text, "tokens:2"));
    cr_assert_eq(token_add(path, manual, "a", "", "read", token, &err), -1);
}

Test(api_tokens, a_running_server_drops_bad_lines_and_keeps_the_others)
{
    char token[TOKEN_SIZE], line[512] = "", text[1024];
    struct error err;
    struct tokens *tokens = NULL;
    cr_assert_eq(token_add(path, manual, "alice", "", "read", token, &err), 0);
    cr_assert_eq(tokens_open(path, hear, &tokens, &err), 0);
    FILE *file = fopen(path, "r");
    cr_assert_gt(fread(line, 1, sizeof line - 1, file), 0);
    (void)fclose(file);
    (void)snprintf(text, sizeof text, "rubbish\n%s", line);
    put(text);
    cr_assert_not_null(token_check(tokens, token));
    cr_assert_not_null(strstr(said, "tokens:1"));
    cr_assert_eq(chmod(path, 0666), 0);
    put(text + 1); /* others can write it: what was known stays */
    cr_assert_not_null(token_check(tokens, token));
    cr_assert_not_null(strstr(said, "others can write"));
    (void)unlink(path);
    cr_assert_null(token_check(tokens, token));
    tokens_close(tokens);
}

static void expect_owner(const char *name, uid_t user, gid_t group)
{
    struct stat stat_of;
    cr_assert_eq(stat(name, &stat_of), 0);
    cr_assert_eq(stat_of.st_uid, user, "%s belongs to %u", name, (unsigned)stat_of.st_uid);
    cr_assert_eq(stat_of.st_gid, group);
    cr_assert_eq(stat_of.st_mode & 0777U, 0600);
}

Test(api_tokens, what_root_writes_belongs_to_the_broker)
{
    char token[TOKEN_SIZE], lock[128];
    struct error err;
    struct token *list = NULL;
    size_t count = 0;
    if (geteuid() != 0) {
        cr_skip_test("only root can give files away");
    }
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    cr_assert_eq(chown(folder, 4711, 4712), 0);
    cr_assert_eq(token_add(path, manual, "alice", NULL, "read", token, &err), 0);
    expect_owner(path, 4711, 4712); /* no file yet: as the folder */
    expect_owner(lock, 4711, 4712);
    cr_assert_eq(chown(path, 4713, 4714), 0);
    cr_assert_eq(token_list(path, &list, &count, &err), 0);
    cr_assert_eq(count, 1);
    cr_assert_eq(token_revoke(path, list[0].id, &err), 0);
    expect_owner(path, 4713, 4714);
    free(list);
}
