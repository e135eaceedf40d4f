#include "adapters/slurm_json.h"

#include "broker/core/units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int64_t number_of_text(const char *text, int64_t absent)
{
    if (!strcasecmp(text, "infinity") || !strcasecmp(text, "unlimited") ||
        !strcasecmp(text, "infinite")) {
        return UNLIMITED;
    }
    char *end;
    long long value = strtoll(text, &end, 10);
    return end != text && !*end ? value : absent;
}

static int64_t number_of_real(double value, int64_t absent)
{
    const double most = 9e18;
    if (value > most) {
        return UNLIMITED;
    }
    return value >= -most ? (int64_t)value : absent; /* a NaN too is absent */
}

int64_t slurm_number(const json_t *json, int64_t absent)
{
    switch (json ? json_typeof(json) : JSON_NULL) {
    case JSON_INTEGER: return json_integer_value(json);
    case JSON_REAL: return number_of_real(json_real_value(json), absent);
    case JSON_STRING: return number_of_text(json_string_value(json), absent);
    case JSON_OBJECT: break;
    default: return absent;
    }
    if (json_is_true(json_object_get(json, "infinite"))) {
        return UNLIMITED;
    }
    const json_t *number = json_object_get(json, "number");
    bool is_set = !json_is_false(json_object_get(json, "set"));
    return is_set && json_is_number(number) ? slurm_number(number, absent) : absent;
}

const char *slurm_text(const json_t *json)
{
    const json_t *first = json_is_array(json) ? json_array_get(json, 0) : json;
    const char *text = json_string_value(first);
    return text ? text : "";
}

const json_t *slurm_at(const json_t *json, ...)
{
    va_list keys;
    va_start(keys, json);
    const char *key;
    while (json && (key = va_arg(keys, const char *))) {
        json = json_object_get(json, key);
    }
    va_end(keys);
    return json;
}
