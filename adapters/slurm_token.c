/* slurm_token.c - the token is a JWT; its signature is the cluster's affair, but its expiry is read here:
 * old releases answer an expired token as they answer anything else that went wrong. */
#include "adapters/slurm_token.h"

#include "adapters/slurm_json.h"
#include "broker/core/alloc.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { RENEW_MS = 10000, PAYLOAD_MAX = 4096 };

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Returns the number of bytes, or 0 when it is no base64url or does not fit. */
static size_t base64url(const char *text, size_t length, char *out, size_t size)
{
    uint32_t bits = 0;
    int have = 0;
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0) {
            return 0;
        }
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            if (used == size) {
                return 0;
            }
            out[used++] = (char)(bits >> have & 0xff);
        }
    }
    return used;
}

static int64_t expiry_of(const char *token)
{
    char payload[PAYLOAD_MAX];
    const char *begin = strchr(token, '.');
    const char *end = begin ? strchr(begin + 1, '.') : NULL;
    size_t length =
        end ? base64url(begin + 1, (size_t)(end - begin - 1), payload, sizeof payload) : 0;
    json_t *root = length ? json_loadb(payload, length, 0, NULL) : NULL;
    int64_t seconds = slurm_number(json_object_get(root, "exp"), 0);
    json_decref(root);
    return seconds > 0 && seconds < INT64_MAX / 1000 ? seconds * 1000 : 0;
}

static bool is_header_text(const char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 127) {
            return false;
        }
    }
    return true;
}

static int read_again(struct slurm_token *token, struct error *err)
{
    char *text = NULL;
    if (secret_read(token->secret, &text, err)) {
        err->code = ERROR_UNAUTHORIZED;
        return error_prefix(err, "connect.token");
    }
    if (!is_header_text(text)) {
        secret_wipe(text);
        return error_set(err, ERROR_UNAUTHORIZED,
                         "connect.token has a blank or a control character in it");
    }
    secret_wipe(token->text);
    token->text = text;
    token->expires_ms = expiry_of(text);
    return 0;
}

/* A command may hang for long each time, and many calls wait in line: its failure counts for a while. */
static int read_first(struct slurm_token *token, struct error *err)
{
    bool is_command = token->secret->command.count > 0;
    if (token->failed_ms && clock_mono_ms(token->clock) - token->failed_ms < RENEW_MS) {
        *err = token->failure;
        return -1;
    }
    token->failed_ms = 0;
    if (!read_again(token, err)) {
        return 0;
    }
    if (is_command) {
        token->failure = *err;
        token->failed_ms = clock_mono_ms(token->clock);
    }
    return -1;
}

/* Whether the file is another one than that which was read. */
static bool file_changed(struct slurm_token *token)
{
    struct stat now;
    if (!token->secret->file || stat(token->secret->file, &now)) {
        return false;
    }
    bool same = now.st_ino == token->inode && now.st_mtim.tv_sec == token->changed.tv_sec &&
                now.st_mtim.tv_nsec == token->changed.tv_nsec;
    token->inode = now.st_ino;
    token->changed = now.st_mtim;
    return !same;
}

static bool is_expired(const struct slurm_token *token)
{
    return token->text && token->expires_ms && token->expires_ms <= clock_wall_ms(token->clock);
}

bool slurm_token_renew(struct slurm_token *token, const char *used)
{
    struct error ignored;
    bool is_due = !token->renewed_ms || clock_mono_ms(token->clock) - token->renewed_ms >= RENEW_MS;
    if (token->text && is_due) {
        (void)read_again(token, &ignored); /* if it fails, the old one is kept and refused again */
        token->renewed_ms = clock_mono_ms(token->clock);
    }
    return token->text && used && strcmp(token->text, used) != 0;
}

int slurm_token_get(struct slurm_token *token, const char **out, struct error *err)
{
    const struct secret *secret = token->secret;
    *out = NULL;
    if (!secret->file && !secret->env && !secret->command.count) {
        return 0;
    }
    bool changed = file_changed(token);
    if ((!token->text || changed) && read_first(token, err)) {
        return -1;
    }
    if (is_expired(token)) {
        (void)slurm_token_renew(token, NULL);
    }
    if (is_expired(token)) {
        error_set(err, ERROR_UNAUTHORIZED, "connect.token has expired");
        return error_expect(err,
                            "a new token where tieline.yaml says, or the right time of day here");
    }
    *out = token->text;
    return 0;
}

void slurm_token_init(struct slurm_token *token, const struct secret *secret, struct clock *clock)
{
    *token = (struct slurm_token){.secret = secret, .clock = clock};
}

void slurm_token_fini(struct slurm_token *token)
{
    secret_wipe(token->text);
    token->text = NULL;
}
