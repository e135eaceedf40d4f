/* policy_readers.c - the values of policy.yaml that have a shape of their own. */
#include "config/policy_readers.h"

#include "broker/core/alloc.h"
#include "config/internal.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int wants_text(const struct value *value, const char *expected, struct error *err)
{
    if (value->kind == VALUE_SCALAR && value_meaning(value) != VALUE_MEANS_NULL) {
        return 0;
    }
    value_error(value, err, ERROR_INVALID, "a single value must stand here");
    return error_expect(err, "%s", expected);
}

static bool is_currency(const char *text)
{
    return strlen(text) == CURRENCY_SIZE - 1 &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == CURRENCY_SIZE - 1;
}

int policy_read_currency(const struct value *value, void *field, const struct keys_context *context,
                         struct error *err)
{
    (void)context;
    if (wants_text(value, "a code like EUR", err) != 0) {
        return -1;
    }
    if (!is_currency(value->text)) {
        value_error(value, err, ERROR_INVALID, "'%.40s' is not a currency", value->text);
        return error_expect(err, "three capital letters, like EUR");
    }
    copy_text(field, CURRENCY_SIZE, value->text);
    return 0;
}

static const struct key rate_row = {
    .name = "rates", .type = KEY_MONEY, .offset = offsetof(struct rate_of_exchange, price)};

int policy_read_rates(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct list *list = field;
    if (pairs_read(value, list, sizeof(struct rate_of_exchange), &rate_row, context, err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!is_currency(RULES_AT(*list, struct rate_of_exchange, i)->name)) {
            value_key_error(value->items[i], err, ERROR_INVALID, "'%.40s' is not a currency",
                            value->items[i]->key);
            return error_expect(err, "three capital letters: {USD: 0.92 EUR}");
        }
    }
    return 0;
}

void policy_free_rates(void *field)
{
    pairs_free(field, sizeof(struct rate_of_exchange), &rate_row);
}

/* "20%" of the reference, or "4 EUR/h". */
int policy_read_worth(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    struct worth worth = {.is_share = false};
    (void)context;
    if (wants_text(value, "a share like 20%, or money like 4 EUR/h", err) != 0) {
        return -1;
    }
    const char *text = value->text;
    worth.is_share = *text && text[strlen(text) - 1] == '%';
    int status = worth.is_share ? share_parse(text, &worth.share, err)
                                : price_parse(text, PRICE_PER_HOUR, &worth.money, err);
    if (status != 0) {
        return value_locate(value, err);
    }
    *(struct worth *)field = worth;
    return 0;
}

int policy_read_tristate(const struct value *value, void *field, const struct keys_context *context,
                         struct error *err)
{
    const struct key row = {.name = "protected", .type = KEY_BOOL};
    bool read = false;
    if (keys_read_one(&row, value, &read, context, err) != 0) {
        return -1;
    }
    *(enum tristate *)field = read ? YES : NO;
    return 0;
}

static int read_range(const struct value *value, void *field, range_bound_fn bound,
                      const char *expected, struct error *err)
{
    if (wants_text(value, expected, err) != 0) {
        return -1;
    }
    return range_parse_by(value->text, bound, field, err) == 0 ? 0 : value_locate(value, err);
}

int policy_read_counts(const struct value *value, void *field, const struct keys_context *context,
                       struct error *err)
{
    (void)context;
    return read_range(value, field, thousandths_parse, "a range like 4, 4.., ..8 or 4..8", err);
}

int policy_read_sizes(const struct value *value, void *field, const struct keys_context *context,
                      struct error *err)
{
    (void)context;
    return read_range(value, field, size_parse, "a range of sizes like 8GiB.. or 8GiB..16GiB", err);
}

static const struct key price_row = {
    .name = "reference", .type = KEY_PRICE_HOUR, .offset = offsetof(struct gpu_price, price)};

/* {cpu: 0.04 EUR/h, h100: 2 EUR/h}: `cpu` is no GPU. */
int policy_read_reference(const struct value *value, void *field,
                          const struct keys_context *context, struct error *err)
{
    struct reference *reference = field;
    struct list *gpus = &reference->gpus;
    if (pairs_read(value, gpus, sizeof(struct gpu_price), &price_row, context, err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_price *price = RULES_AT(*gpus, struct gpu_price, i);
        if (strcmp(price->name, "cpu") != 0) {
            continue;
        }
        reference->cpu = price->price;
        free(price->name);
        memmove(price, price + 1, (gpus->count - i - 1) * sizeof *price);
        gpus->count--;
        break;
    }
    return 0;
}

void policy_free_reference(void *field)
{
    struct reference *reference = field;
    pairs_free(&reference->gpus, sizeof(struct gpu_price), &price_row);
}

int policy_read_job(const struct value *value, void *field, const struct keys_context *context,
                    struct error *err)
{
    (void)context;
    if (value->kind != VALUE_MAP) {
        value_error(value, err, ERROR_INVALID, "'job' must be a map");
        return error_expect(err, "a job without what it runs: {class: batch, team: web}");
    }
    *(struct value **)field = value_clone(value);
    return 0;
}

void policy_free_job(void *field)
{
    value_destroy(*(struct value **)field);
    *(struct value **)field = NULL;
}
