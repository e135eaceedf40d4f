/* test_keys.c - key tables: every type read, refused, freed and printed. */
#include <criterion/criterion.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/core/alloc.h"
#include "broker/core/keys.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

struct place {
    char *name;
    int64_t waiting;
    bool given, hooked;
};
struct tier {
    struct texts places;
    int64_t fill;
    int line;
};
struct server {
    char *listen;
    char *key;
};
struct all {
    char *text, *name, *made;
    bool flag, has_memory;
    int64_t integer, level, cpus, memory, wait, share, power, at;
    struct money money, hour, kwh;
    struct rate rate;
    struct range range;
    int mode;
    struct texts words;
    struct labels labels;
    struct secret secret;
    struct server server;
    struct list places, tiers;
};

static const char *const mode_words[] = {"use", "observe", NULL};

static int read_made(const struct value *value, void *field, const struct keys_context *context,
                     struct error *err)
{
    if (!value->text || strcmp(value->text, "bad") == 0) {
        return value_error(value, err, ERROR_INVALID, "not made");
    }
    *(char **)field = xasprintf("%s %s", value->text, context->zone ? context->zone : "-");
    return 0;
}

static void free_made(void *field)
{
    free(*(char **)field);
    *(char **)field = NULL;
}

static int finish_place(const struct value *value, void *field, const struct keys_context *context,
                        struct error *err)
{
    struct place *place = field;
    (void)context;
    place->hooked = true;
    if (place->waiting == 13) {
        return value_error(value, err, ERROR_INVALID, "'%s' waits for 13", place->name);
    }
    return 0;
}

static int finish_tier(const struct value *value, void *field, const struct keys_context *context,
                       struct error *err)
{
    (void)context;
    (void)err;
    ((struct tier *)field)->line = value->line;
    return 0;
}

static const struct key place_keys[] = {
    {.name = "max_waiting",
     .type = KEY_INTEGER,
     .offset = offsetof(struct place, waiting),
     .standard = "20",
     .high = 1000,
     .given = offsetof(struct place, given) + 1,
     .help = "Our jobs that may wait.",
     .flags = KEY_PLACE},
    {0},
};
static const struct key tier_keys[] = {
    {.name = "places",
     .type = KEY_TEXTS,
     .offset = offsetof(struct tier, places),
     .flags = KEY_REQUIRED},
    {.name = "fill", .type = KEY_SHARE, .offset = offsetof(struct tier, fill), .standard = "85%"},
    {0},
};
static const struct key server_keys[] = {
    {.name = "listen",
     .type = KEY_TEXT,
     .offset = offsetof(struct server, listen),
     .standard = "127.0.0.1:7410"},
    {.name = "key",
     .type = KEY_TEXT,
     .offset = offsetof(struct server, key),
     .flags = KEY_REQUIRED},
    {0},
};
#define AT(field) .offset = offsetof(struct all, field)
static const struct key all_keys[] = {
    {.name = "text", .type = KEY_TEXT, AT(text), .flags = KEY_TEMPLATE, .help = "One | two."},
    {.name = "name", .type = KEY_NAME, AT(name), .flags = KEY_NULL, .standard = "job"},
    {.name = "made",
     .type = KEY_CUSTOM,
     AT(made),
     .read = read_made,
     .free = free_made,
     .type_words = "made"},
    {.name = "flag", .type = KEY_BOOL, AT(flag)},
    {.name = "integer", .type = KEY_INTEGER, AT(integer), .standard = "7"},
    {.name = "level", .type = KEY_INTEGER, AT(level), .low = -5, .high = 9},
    {.name = "cpus", .type = KEY_CPUS, AT(cpus), .low = 1, .high = 64000},
    {.name = "memory",
     .type = KEY_SIZE,
     AT(memory),
     .low = 1 << 20,
     .given = offsetof(struct all, has_memory) + 1,
     .flags = KEY_NULL},
    {.name = "wait", .type = KEY_DURATION, AT(wait), .low = 1000, .high = 86400000},
    {.name = "share", .type = KEY_SHARE, AT(share)},
    {.name = "power", .type = KEY_POWER, AT(power)},
    {.name = "at", .type = KEY_INSTANT, AT(at)},
    {.name = "money", .type = KEY_MONEY, AT(money)},
    {.name = "hour", .type = KEY_PRICE_HOUR, AT(hour)},
    {.name = "kwh", .type = KEY_PRICE_KWH, AT(kwh)},
    {.name = "rate", .type = KEY_RATE, AT(rate), .standard = "10/s"},
    {.name = "range", .type = KEY_RANGE, AT(range)},
    {.name = "mode", .type = KEY_ENUM, AT(mode), .words = mode_words},
    {.name = "words", .type = KEY_TEXTS, AT(words), .max_items = 3},
    {.name = "labels", .type = KEY_LABELS, AT(labels), .max_items = 3},
    {.name = "secret", .type = KEY_SECRET, AT(secret)},
    {.name = "server", .type = KEY_SECTION, AT(server), .rows = server_keys},
    {.name = "places",
     .type = KEY_NAMED,
     AT(places),
     .rows = place_keys,
     .item_size = sizeof(struct place),
     .max_items = 3,
     .read = finish_place},
    {.name = "tiers",
     .type = KEY_ITEMS,
     AT(tiers),
     .rows = tier_keys,
     .item_size = sizeof(struct tier),
     .max_items = 3,
     .read = finish_tier},
    {.name = "old", .type = KEY_BOOL, AT(flag), .flags = KEY_HIDDEN},
    {0},
};

static const struct keys_context context = {.zone = "UTC"};

static struct value *parse(const char *json)
{
    struct value *value = NULL;
    struct error err = {0};
    cr_assert_eq(value_from_json(json, strlen(json), &value, &err), 0, "%s: %s", json, err.text);
    return value;
}

/* As a YAML file would give it: one key with a text that was not quoted. */
static struct value *plain(const char *key, const char *text)
{
    struct value *map = value_create(VALUE_MAP);
    struct value *item = value_create(VALUE_SCALAR);
    item->text = xstrdup(text);
    item->line = item->key_line = 3;
    item->column = 10;
    item->key_column = 2;
    item->width = (int)strlen(text);
    value_add_take(map, key, item);
    return map;
}

static void read_value(struct value *value, struct all *all)
{
    struct error err = {0};
    memset(all, 0, sizeof *all);
    cr_assert_eq(keys_read(all_keys, value, all, &context, &err), 0, "%s: %s (%s)", err.pointer,
                 err.text, err.expected);
    value_destroy(value);
}

static struct error refuse_value(struct value *value, const char *what)
{
    struct all all = {0};
    struct error err = {0};
    cr_assert_eq(keys_read(all_keys, value, &all, &context, &err), -1, "accepted: %s", what);
    cr_assert_eq(err.code, ERROR_INVALID, "%s: %s", what, err.text);
    keys_free(all_keys, &all);
    value_destroy(value);
    return err;
}

static void check_refused(const char *json, const char *pointer, const char *text,
                          const char *expected)
{
    struct error err = refuse_value(parse(json), json);
    cr_assert_str_eq(err.pointer, pointer, "%s: %s", json, err.pointer);
    cr_assert(strstr(err.text, text), "%s: text is '%s'", json, err.text);
    cr_assert(strstr(err.expected, expected), "%s: expected is '%s'", json, err.expected);
}

static void check_plain_refused(const char *key, const char *text, const char *sentence,
                                const char *expected)
{
    struct error err = refuse_value(plain(key, text), text);
    cr_assert_eq(err.line, 3);
    cr_assert_eq(err.column, 10);
    cr_assert_eq(err.width, (int)strlen(text));
    cr_assert(strstr(err.text, sentence), "%s: %s: text is '%s'", key, text, err.text);
    cr_assert(strstr(err.expected, expected), "%s: %s: expected is '%s'", key, text, err.expected);
}

Test(keys, every_type_from_json)
{
    struct all all;
    read_value(
        parse(
            "{\"text\": \"a {owner} b\", \"name\": \"ci-1.x\", \"made\": \"m\", \"flag\": true,"
            " \"integer\": 4, \"level\": -5, \"cpus\": 1.5, \"memory\": \"8GiB\", \"wait\": \"90s\","
            " \"share\": \"80%\", \"power\": \"350 W\", \"at\": \"2026-03-10 06:00\","
            " \"money\": \"25 EUR\", \"hour\": \"1.52 USD/h\", \"kwh\": \"0.31 EUR/kWh\","
            " \"rate\": \"20/5m\", \"range\": \"4..\", \"mode\": \"observe\", \"words\": [\"a\", \"b\"],"
            " \"labels\": {\"x-y\": \"1\", \"list\": [\"p\", \"q\"]}, \"secret\": {\"file\": \"/s\"},"
            " \"server\": {\"key\": \"k\"}, \"places\": {\"cpu\": {\"max_waiting\": 3}, \"gpu\": {}},"
            " \"tiers\": [{\"places\": \"a\"}, {\"places\": [\"b\", \"c\"], \"fill\": \"5%\"}],"
            " \"x-mine\": [1, {\"two\": 3}]}"),
        &all);
    cr_expect_str_eq(all.text, "a {owner} b");
    cr_expect_str_eq(all.name, "ci-1.x");
    cr_expect_str_eq(all.made, "m UTC");
    cr_expect(all.flag);
    cr_expect_eq(all.integer, 4);
    cr_expect_eq(all.level, -5);
    cr_expect_eq(all.cpus, 1500);
    cr_expect_eq(all.memory, INT64_C(8) << 30);
    cr_expect(all.has_memory);
    cr_expect_eq(all.wait, 90000);
    cr_expect_eq(all.share, 800000);
    cr_expect_eq(all.power, 350000);
    cr_expect_eq(all.at, INT64_C(1773122400000));
    cr_expect_eq(all.money.nano, 25 * MONEY_UNIT);
    cr_expect_str_eq(all.hour.currency, "USD");
    cr_expect_eq(all.kwh.nano, 310000000);
    cr_expect_eq(all.rate.count, 20);
    cr_expect_eq(all.range.low, 4);
    cr_expect_eq(all.range.high, UNLIMITED);
    cr_expect_eq(all.mode, 1);
    cr_expect_eq(all.words.count, 2);
    cr_expect_str_eq(labels_get(&all.labels, "x-y"), "1");
    cr_expect_str_eq(labels_get(&all.labels, "list"), "p");
    cr_expect_eq(all.labels.items[1].values.count, 2);
    cr_expect_null(labels_get(&all.labels, "none"));
    cr_expect_str_eq(all.secret.file, "/s");
    cr_expect_str_eq(all.server.listen, "127.0.0.1:7410");
    cr_expect_str_eq(all.server.key, "k");
    struct place *places = all.places.items;
    cr_assert_eq(all.places.count, 2);
    cr_expect_str_eq(places[0].name, "cpu");
    cr_expect_eq(places[0].waiting, 3);
    cr_expect(places[0].given && places[0].hooked);
    cr_expect_str_eq(places[1].name, "gpu");
    cr_expect_eq(places[1].waiting, 20);
    cr_expect_not(places[1].given);
    struct tier *tiers = all.tiers.items;
    cr_assert_eq(all.tiers.count, 2);
    cr_expect_eq(tiers[0].fill, 850000);
    cr_expect_eq(tiers[1].places.count, 2);
    keys_free(all_keys, &all);
    struct all zero;
    memset(&zero, 0, sizeof zero);
    cr_expect_null(all.text);
    cr_expect_null(all.made);
    cr_expect_eq(all.integer, 0);
    cr_expect_eq(all.rate.count, 0);
    cr_expect_not(all.has_memory);
    cr_expect_eq(all.places.count, 0);
    keys_free(all_keys, &all); /* twice does no harm */
}

Test(keys, defaults_alone)
{
    struct all all = {0};
    struct error err = {0};
    cr_assert_eq(keys_read(all_keys, NULL, &all, NULL, &err), 0, "%s", err.text);
    cr_expect_str_eq(all.name, "job");
    cr_expect_eq(all.integer, 7);
    cr_expect_eq(all.rate.per_ms, 1000);
    cr_expect_str_eq(all.server.listen, "127.0.0.1:7410"); /* of a section that is absent */
    cr_expect_null(all.server.key);
    cr_expect_eq(all.places.count, 0);
    keys_free(all_keys, &all);
}

Test(keys, plain_text_of_yaml)
{
    static const struct {
        const char *key, *text;
        size_t offset;
        int64_t value;
    } cases[] = {
        {"integer", "4", offsetof(struct all, integer), 4},
        {"level", "-5", offsetof(struct all, level), -5},
        {"cpus", "4", offsetof(struct all, cpus), 4000},
        {"cpus", "1.5", offsetof(struct all, cpus), 1500},
        {"wait", "1h30m", offsetof(struct all, wait), 5400000},
        {"memory", "1.5TiB", offsetof(struct all, memory), INT64_C(3) << 39},
        {"share", "80%", offsetof(struct all, share), 800000},
        {"range", "4", offsetof(struct all, range), 4},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct all all;
        int64_t number = 0;
        read_value(plain(cases[i].key, cases[i].text), &all);
        memcpy(&number, (char *)&all + cases[i].offset, sizeof number);
        cr_expect_eq(number, cases[i].value, "%s: %s", cases[i].key, cases[i].text);
        keys_free(all_keys, &all);
    }
    struct all all;
    read_value(plain("text", "make test"), &all);
    cr_expect_str_eq(all.text, "make test");
    keys_free(all_keys, &all);
    read_value(plain("flag", "true"), &all);
    cr_expect(all.flag);
    keys_free(all_keys, &all);
    read_value(plain("words", "alone"), &all);
    cr_expect_eq(all.words.count, 1);
    cr_expect(texts_contain(&all.words, "alone"));
    keys_free(all_keys, &all);
    read_value(plain("mode", "observe"), &all);
    cr_expect_eq(all.mode, 1);
    keys_free(all_keys, &all);
}

/* The refused column of docs/configuration.md "Values", and what else is easily mistyped. */
Test(keys, plain_text_refused)
{
    check_plain_refused("wait", "90", "duration without a unit", "write 90s, 90m or 90h");
    check_plain_refused("wait", "1:30", "'1:30' is not a duration", "1h30m");
    check_plain_refused("memory", "8G", "says neither GiB nor GB", "write 8GiB");
    check_plain_refused("memory", "8192", "size without a unit", "8192MiB");
    check_plain_refused("money", "25", "money without a currency", "write 25 EUR");
    check_plain_refused("money", "€25", "not a sum of money", "write 25 EUR");
    check_plain_refused("kwh", "0.31", "price without a currency", "write 0.31 EUR/kWh");
    check_plain_refused("hour", "1.52 USD", "not a price /h", "write 1.52 USD/h");
    check_plain_refused("share", "0.8", "share without %", "write 80%");
    check_plain_refused("rate", "5", "rate without a time", "write 5/s");
    check_plain_refused("power", "350", "power without a unit", "write 350 W");
    check_plain_refused("range", ">= 4", "not a range", "4.. (at least)");
    check_plain_refused("at", "22:00", "not a date and time", "2026-03-10 06:00");
    check_plain_refused("flag", "yes", "must be true or false, not 'yes'", "write true");
    check_plain_refused("flag", "on", "must be true or false", "write true");
    check_plain_refused("flag", "off", "must be true or false", "write false");
    check_plain_refused("flag", "No", "must be true or false", "write false");
    check_plain_refused("flag", "True", "must be true or false", "write true");
    check_plain_refused("flag", "1", "must be true or false", "write true or false");
    check_plain_refused("text", "true", "'text' is a truth value (true), but must be text",
                        "in quotes: \"true\"");
    check_plain_refused("text", "4", "is a number, but must be text", "in quotes: \"4\"");
    check_plain_refused("text", "1e3", "is a number, but must be text", "in quotes: \"1e3\"");
    check_plain_refused("text", "null", "is null, but must be text", "text");
    check_plain_refused("text", "~", "is null, but must be text", "text");
    check_plain_refused("name", "4", "is a number", "in quotes");
    check_plain_refused("words", "true", "is a truth value", "in quotes");
    check_plain_refused("integer", "4.0", "not a whole number", "at least 0");
    check_plain_refused("integer", "-1", "-1 is out of range", "at least 0");
    check_plain_refused("level", "10", "10 is out of range", "from -5 to 9");
    check_plain_refused("cpus", "65", "'cpus' is out of range: 65", "from 0.001 to 64");
    check_plain_refused("cpus", "0", "out of range", "from 0.001 to 64");
    check_plain_refused("memory", "1KiB", "out of range: 1KiB", "at least 1MiB");
    check_plain_refused("wait", "2d", "out of range: 2d", "from 1s to 1d");
    check_plain_refused("mode", "obsrve", "'mode' cannot be 'obsrve'",
                        "did you mean 'observe'? there are: use, observe");
    check_plain_refused("mode", "other", "cannot be 'other'", "one of: use, observe");
}

Test(keys, json_refused)
{
    check_refused("{\"wait\": 90}", "/wait", "duration without a unit", "write 90s, 90m or 90h");
    check_refused("{\"memory\": 8192}", "/memory", "size without a unit", "write 8192MiB");
    check_refused("{\"integer\": \"4\"}", "/integer", "is a text, but must be a whole number",
                  "without quotes");
    check_refused("{\"integer\": 4.0}", "/integer", "not a whole number", "at least 0");
    check_refused("{\"integer\": true}", "/integer", "not a whole number", "at least 0");
    check_refused("{\"integer\": null}", "/integer", "is null, but must be whole number",
                  "whole number");
    check_refused("{\"integer\": [4]}", "/integer", "is a list, but must be whole number",
                  "whole number");
    check_refused("{\"text\": 4}", "/text", "is a number, but must be text", "in quotes: \"4\"");
    check_refused("{\"text\": true}", "/text", "is a truth value (true)", "in quotes: \"true\"");
    check_refused("{\"text\": [\"a\"]}", "/text", "is a list, but must be text", "text");
    check_refused("{\"text\": \"{ownr}\"}", "/text", "unknown template word '{ownr}'",
                  "did you mean 'owner'?");
    check_refused("{\"text\": \"{}\"}", "/text", "unknown template word", "one of: owner");
    check_refused("{\"text\": \"a{owner\"}", "/text", "not closed", "{owner}");
    check_refused("{\"name\": \"-a\"}", "/name", "'-a' is not a name", "letters");
    check_refused("{\"name\": \"a b\"}", "/name", "not a name", "letters");
    check_refused("{\"name\": \"\"}", "/name", "not a name", "letters");
    check_refused("{\"name\": \"\xC3\xA9\"}", "/name", "not a name", "letters");
    check_refused("{\"flag\": \"true\"}", "/flag", "not 'true' in quotes", "write true");
    check_refused("{\"flag\": 1}", "/flag", "must be true or false", "true or false");
    check_refused("{\"flag\": {}}", "/flag", "is a map, but must be true or false", "write true");
    check_refused("{\"cpus\": 1.0005}", "/cpus", "not a number", "3 decimals");
    check_refused("{\"cpus\": -1}", "/cpus", "not a number", "like 4 or 1.5");
    check_refused("{\"words\": [\"a\", 2]}", "/words/1", "is a number", "in quotes");
    check_refused("{\"words\": [\"a\", [\"b\"]]}", "/words/1", "is a list", "text");
    check_refused("{\"words\": [\"a\", null]}", "/words/1", "is null", "text");
    check_refused("{\"words\": [\"a\",\"b\",\"c\",\"d\"]}", "/words", "has 4 entries", "at most 3");
    check_refused("{\"labels\": \"a\"}", "/labels", "is a text, but must be map of texts",
                  "{site: lyon}");
    check_refused("{\"labels\": {\"a\": 4}}", "/labels/a", "'a' is a number", "in quotes");
    check_refused("{\"labels\": {\"\": \"a\"}}", "/labels/", "not a name", "without blanks");
    check_refused("{\"labels\": {\"a\":\"\",\"b\":\"\",\"c\":\"\",\"d\":\"\"}}", "/labels",
                  "has 4 entries", "at most 3");
    check_refused("{\"made\": \"bad\"}", "/made", "not made", "");
    check_refused("{\"server\": {}}", "/server", "key 'key' is missing", "key: text");
    check_refused("{\"server\": []}", "/server", "is a list, but must be map", "a map of keys");
    check_refused("{\"tiers\": [{\"places\": \"a\"}, {}]}", "/tiers/1", "key 'places' is missing",
                  "places: text or list");
    check_refused("{\"tiers\": {\"fill\": \"5%\"}}", "/tiers", "key 'places' is missing", "places");
    check_refused("{\"tiers\": \"a\"}", "/tiers", "is a text, but must be list", "a list of maps");
    check_refused("{\"tiers\": [\"a\"]}", "/tiers/0", "is a text", "list of maps");
    check_refused("{\"tiers\": [{},{},{},{}]}", "/tiers", "has 4 entries", "at most 3");
    check_refused("{\"places\": [\"cpu\"]}", "/places", "is a list, but must be map by name",
                  "each name");
    check_refused("{\"places\": {\"a b\": {}}}", "/places/a b", "'a b' is not a name", "letters");
    check_refused("{\"places\": {\"a\": null}}", "/places/a", "is null", "each name");
    check_refused("{\"places\": {\"a\": {\"max_waiting\": 13}}}", "/places/a", "'a' waits for 13",
                  "");
    check_refused("{\"places\": {\"a\": {\"max_waiting\": 1001}}}", "/places/a/max_waiting",
                  "out of range", "from 0 to 1000");
    check_refused("[]", "", "a map of keys must stand here", "one of: text, name");
    check_refused("4", "", "a map of keys must stand here", "one of: text, name");
}

Test(keys, secrets)
{
    struct all all;
    check_refused("{\"secret\": \"hunter2\"}", "/secret", "must not hold the secret itself",
                  "write {file: PATH}");
    struct error err = refuse_value(parse("{\"secret\": \"hunter2\"}"), "secret");
    cr_expect_null(strstr(err.text, "hunter2"));
    cr_expect_null(strstr(err.expected, "hunter2"));
    check_refused("{\"secret\": 4711}", "/secret", "must not hold the secret itself",
                  "write {file: PATH}");
    check_refused("{\"secret\": {}}", "/secret", "has 0 sources", "write {file: PATH}");
    check_refused("{\"secret\": {\"file\": \"a\", \"env\": \"b\"}}", "/secret", "has 2 sources",
                  "write {file: PATH}");
    check_refused("{\"secret\": {\"fil\": \"a\"}}", "/secret/fil", "unknown key 'fil'",
                  "did you mean 'file'?");
    check_refused("{\"secret\": [\"a\"]}", "/secret", "is a list, but must be a reference",
                  "write {file: PATH}");
    read_value(parse("{\"secret\": {\"command\": [\"pass\", \"show\"]}}"), &all);
    cr_expect_eq(all.secret.command.count, 2);
    keys_free(all_keys, &all);
    read_value(parse("{\"secret\": {\"env\": \"TOKEN\"}}"), &all);
    cr_expect_str_eq(all.secret.env, "TOKEN");
    keys_free(all_keys, &all);
}

Test(keys, unknown_keys_at_every_depth)
{
    check_refused("{\"memroy\": \"8GiB\"}", "/memroy", "unknown key 'memroy'",
                  "did you mean 'memory'?");
    check_refused("{\"tiers\": {\"places\": \"a\", \"fil\": \"5%\"}}", "/tiers/fil",
                  "unknown key 'fil'", "did you mean 'fill'?");
    check_refused("{\"places\": {\"a\": {\"waiting\": 4}}}", "/places/a/waiting", "unknown key",
                  "one of: max_waiting");
    check_refused("{\"server\": {\"key\": \"k\", \"<<\": {}}}", "/server/<<", "unknown key '<<'",
                  "one of: listen, key");
    struct error err = refuse_value(plain("memroy", "8GiB"), "memroy");
    cr_expect_eq(err.line, 3);
    cr_expect_eq(err.column, 2, "the place is that of the key");
    cr_expect_eq(err.width, 6);
}

Test(keys, keys_that_stand_twice)
{
    struct value *map = plain("text", "one");
    struct value *again = value_create(VALUE_SCALAR);
    again->text = xstrdup("two");
    value_add_take(map, "text", again);
    struct error err = refuse_value(map, "text twice");
    cr_expect_str_eq(err.text, "key 'text' stands twice");
}

Test(keys, null_means_absent_where_allowed)
{
    struct all all;
    read_value(parse("{\"name\": null, \"memory\": null}"), &all);
    cr_expect_str_eq(all.name, "job");
    cr_expect_not(all.has_memory);
    keys_free(all_keys, &all);
    read_value(plain("memory", "~"), &all);
    cr_expect_not(all.has_memory);
    keys_free(all_keys, &all);
}

Test(keys, one_value_stands_for_a_list)
{
    struct all all;
    read_value(parse("{\"words\": \"a*\", \"tiers\": {\"places\": \"x\"}}"), &all);
    cr_expect_eq(all.words.count, 1);
    cr_expect(texts_match(&all.words, "abc"));
    cr_expect_not(texts_match(&all.words, "bc"));
    cr_expect_not(texts_contain(&all.words, "abc"));
    cr_assert_eq(all.tiers.count, 1);
    cr_expect_str_eq(((struct tier *)all.tiers.items)->places.items[0], "x");
    keys_free(all_keys, &all);
    cr_expect_not(texts_match(&all.words, "abc"), "an empty list matches nothing");
    read_value(parse("{\"words\": [], \"tiers\": [], \"places\": {}, \"labels\": {}}"), &all);
    cr_expect_eq(all.words.count + all.tiers.count + all.places.count + all.labels.count, 0);
    keys_free(all_keys, &all);
}

Test(keys, instants_without_a_zone_need_an_offset)
{
    struct all all = {0};
    struct error err = {0};
    struct value *value = parse("{\"at\": \"2026-03-10 06:00\"}");
    cr_assert_eq(keys_read(all_keys, value, &all, NULL, &err), -1);
    cr_expect(strstr(err.text, "in which time zone"), "%s", err.text);
    keys_free(all_keys, &all);
    value_destroy(value);
}

struct found {
    int count;
    char texts[120][80];
};

static void found_cb(void *arg, const struct error *err)
{
    struct found *found = arg;
    if (found->count < 120) {
        (void)snprintf(found->texts[found->count], 80, "%.79s", err->text);
    }
    found->count++;
}

Test(keys, all_errors_are_collected_in_order)
{
    static const char *const wanted[] = {
        "duration without a unit", "unknown key 'nonsense'",  "-1 is out of range",
        "'b b' is not a name",     "key 'places' is missing", "'5' is not a share",
        "'c' waits for 13",
    };
    struct value *value = parse(
        "{\"wait\": 90, \"nonsense\": 1, \"places\": {\"a\": {\"max_waiting\": -1}, \"b b\": {}},"
        " \"integer\": 4, \"tiers\": [{}, {\"places\": \"a\", \"fill\": \"5\"}]}");
    struct all all = {0};
    struct found found = {0};
    int count = keys_read_all(all_keys, value, &all, &context, found_cb, &found);
    cr_assert_eq(count, 6);
    cr_assert_eq(found.count, 6);
    for (int i = 0; i < 5; i++) {
        cr_expect_str_eq(found.texts[i], wanted[i]);
    }
    cr_expect_str_eq(found.texts[5], "share without %");
    cr_expect_eq(all.integer, 4, "what is right was read");
    cr_expect_not(((struct place *)all.places.items)[0].hooked, "no hook behind an error");
    keys_free(all_keys, &all);
    value_destroy(value);
    value = parse("{\"places\": {\"c\": {\"max_waiting\": 13}}, \"integer\": -1}");
    memset(&found, 0, sizeof found);
    cr_assert_eq(keys_read_all(all_keys, value, &all, &context, found_cb, &found), 2);
    cr_expect_str_eq(found.texts[0], wanted[6]);
    keys_free(all_keys, &all);
    value_destroy(value);
}

Test(keys, collecting_ends_somewhere)
{
    struct value *map = value_create(VALUE_MAP);
    for (int i = 0; i < 50000; i++) {
        char key[20];
        (void)snprintf(key, sizeof key, "unknown%d", i);
        value_add_take(map, key, value_create(VALUE_NULL));
    }
    struct all all = {0};
    struct found found = {0};
    cr_assert_eq(keys_read_all(all_keys, map, &all, &context, found_cb, &found), 100);
    cr_assert_eq(found.count, 100);
    keys_free(all_keys, &all);
    value_destroy(map);
}

Test(keys, a_wrong_default_is_seen)
{
    static const struct key rows[] = {{.name = "wait", .type = KEY_DURATION, .standard = "90"},
                                      {0}};
    int64_t wait = 0;
    struct error err = {0};
    cr_assert_eq(keys_read(rows, NULL, &wait, NULL, &err), -1);
    cr_assert_str_eq(err.text, "default of 'wait': duration without a unit");
}

Test(keys, one_row_alone)
{
    struct value *map = parse("{\"a\": \"90s\", \"b\": null, \"c\": {\"x\": {}}}");
    struct error err = {0};
    int64_t wait = 0;
    struct key row = {.name = "wait", .type = KEY_DURATION};
    cr_assert_eq(keys_read_one(&row, value_get(map, "a"), &wait, NULL, &err), 0);
    cr_expect_eq(wait, 90000);
    cr_assert_eq(keys_read_one(&row, value_get(map, "b"), &wait, NULL, &err), -1);
    cr_expect(strstr(err.text, "is null"), "%s", err.text);
    row.flags = KEY_NULL;
    cr_assert_eq(keys_read_one(&row, value_get(map, "b"), &wait, NULL, &err), 0);
    struct key named[] = {{.name = "places",
                           .type = KEY_NAMED,
                           .rows = place_keys,
                           .item_size = sizeof(struct place)},
                          {0}};
    struct list list = {0};
    cr_assert_eq(keys_read_one(named, value_get(map, "c"), &list, NULL, &err), 0, "%s", err.text);
    cr_expect_eq(list.count, 1);
    keys_free(named, &list);
    value_destroy(map);
}

Test(keys, names)
{
    char name[65];
    memset(name, 'a', sizeof name - 1);
    name[64] = '\0';
    cr_expect_not(name_is_valid(name));
    name[63] = '\0';
    cr_expect(name_is_valid(name));
    cr_expect(name_is_valid("7"));
    cr_expect(name_is_valid("a100-80_x.y"));
    cr_expect_not(name_is_valid("_a"));
    cr_expect_not(name_is_valid("a/b"));
    cr_expect_not(name_is_valid("a\n"));
}

Test(keys, printed_as_markdown)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    cr_assert_not_null(out);
    keys_print(all_keys, "", out);
    (void)fclose(out);
    static const char *const lines[] = {
        "| key | type | default | meaning |\n|---|---|---|---|\n",
        "| `text` | text, template | — | One \\| two. |\n",
        "| `name` | name, or null | `job` |  |\n",
        "| `made` | made | — |  |\n",
        "| `flag` | true or false | `false` |  |\n",
        "| `level` | whole number, -5 to 9 | — |  |\n",
        "| `cpus` | number, 0.001 to 64 | — |  |\n",
        "| `memory` | size, at least 1MiB, or null | — |  |\n",
        "| `wait` | duration, 1s to 1d | — |  |\n",
        "| `mode` | `use` `observe` | `use` |  |\n",
        "| `server.key` | text | required |  |\n",
        "| `places.NAME.max_waiting` P | whole number, 0 to 1000 | `20` | Our jobs that may wait. |\n",
        "| `tiers[].fill` | share | `85%` |  |\n",
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        cr_expect(strstr(text, lines[i]), "not there: %s", lines[i]);
    }
    cr_expect_null(strstr(text, "old"), "hidden keys are not printed");
    free(text);
}
