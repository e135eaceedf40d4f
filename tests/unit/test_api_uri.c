#include "api/uri.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *refusal(const char *target, enum error_code code)
{
    struct uri uri;
    static struct error err;
    cr_assert_eq(uri_parse(target, &uri, &err), -1, "%s was taken", target);
    cr_assert_eq(err.code, code, "%s: %s", target, err.text);
    return err.text;
}

Test(api_uri, segments_are_cut_before_they_are_decoded)
{
    struct uri uri;
    struct error err;
    cr_assert_eq(uri_parse("/v1/places/hpc%2Fgpu/drain?a=b%26c&d&e=1+2%20x", &uri, &err), 0);
    cr_assert_eq(uri.segment_count, 4);
    cr_assert_str_eq(uri.segments[2], "hpc/gpu");
    cr_assert_str_eq(uri_query(&uri, "a"), "b&c");
    cr_assert_str_eq(uri_query(&uri, "d"), "");
    cr_assert_str_eq(uri_query(&uri, "e"), "1+2 x");
    cr_assert_null(uri_query(&uri, "f"));
    uri_fini(&uri);
}

Test(api_uri, root_and_empty_parts)
{
    struct uri uri;
    struct error err;
    cr_assert_eq(uri_parse("/", &uri, &err), 0);
    cr_assert_eq(uri.segment_count, 0);
    uri_fini(&uri);
    cr_assert_eq(uri_parse("/v1//", &uri, &err), 0);
    cr_assert_eq(uri.segment_count, 3);
    cr_assert_str_eq(uri.segments[1], "");
    uri_fini(&uri);
    cr_assert_eq(uri_parse("/x?", &uri, &err), 0);
    cr_assert_eq(uri.query_count, 0);
    uri_fini(&uri);
}

Test(api_uri, what_can_be_read_in_two_ways_is_refused)
{
    refusal("", ERROR_MALFORMED);
    refusal("v1", ERROR_MALFORMED);
    refusal("*", ERROR_MALFORMED);
    refusal("http://localhost/", ERROR_MALFORMED);
    refusal("/%", ERROR_MALFORMED);
    refusal("/%4", ERROR_MALFORMED);
    refusal("/%4g", ERROR_MALFORMED);
    refusal("/%00", ERROR_MALFORMED);
    refusal("/%0d%0a", ERROR_MALFORMED);
    refusal("/%ff", ERROR_MALFORMED);
    refusal("/%c0%af", ERROR_MALFORMED);
    refusal("/%ed%a0%80", ERROR_MALFORMED);
    refusal("/?a=1&a=1", ERROR_MALFORMED);
    refusal("/?%61=1&a=1", ERROR_MALFORMED);
    refusal("/1/2/3/4/5/6/7/8/9", ERROR_NOT_FOUND);
}

Test(api_uri, the_number_of_parameters_is_limited)
{
    char target[512] = "/?";
    for (int i = 0; i <= URI_QUERY_MAX; i++) {
        size_t used = strlen(target);
        (void)snprintf(target + used, sizeof target - used, "p%d=1&", i);
    }
    refusal(target, ERROR_MALFORMED);
}
