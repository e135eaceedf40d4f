#include "tests/unit/config_lab.h"

#include "adapters/adapters.h"
#include "broker/core/alloc.h"

#include <criterion/criterion.h>
#include <stdlib.h>

char *lab_text(const char *path)
{
    char *whole = xasprintf("%s/%s", FIXTURES, path), *text = NULL;
    size_t length = 0;
    struct error err;
    cr_assert_eq(config_file_read(whole, &text, &length, &err), 0, "%s: %s", whole, err.text);
    free(whole);
    return text;
}

struct federation *lab_site(void)
{
    char *text = lab_text("config/site.yaml");
    struct federation *federation = NULL;
    struct error err;
    cr_assert_eq(config_federation_parse(text, "site.yaml", adapter_types, &federation, &err), 0,
                 "%d:%d %s (%s)", err.line, err.column, err.text, err.expected);
    free(text);
    return federation;
}

int lab_federation(const char *text, struct error *err)
{
    struct federation *federation = NULL;
    int status = config_federation_parse(text, "tieline.yaml", adapter_types, &federation, err);
    if (status == 0) {
        federation_destroy(federation);
    }
    return status;
}

int lab_policy(const char *text, const struct federation *federation, struct error *err)
{
    struct rules *rules = NULL;
    int status = config_rules_parse(text, "policy.yaml", federation, &rules, err);
    if (status == 0) {
        rules_destroy(rules);
    }
    return status;
}
