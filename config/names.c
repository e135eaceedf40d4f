/* names.c - words that name something else: is there such a thing, and if not, what was meant. */
#include "config/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 12 };

/* "a, b, c" up to what a sentence can bear. */
static void add_names(struct strbuf *buf, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && i < LISTED_MAX; i++) {
        strbuf_printf(buf, "%s%s", i ? ", " : "", names[i]);
    }
    strbuf_puts(buf, count > LISTED_MAX ? ", ..." : "");
}

static size_t local_names(const struct cluster *cluster, const char **names)
{
    for (size_t i = 0; i < cluster->place_count; i++) {
        names[i] = cluster->places[i].local_name;
    }
    return cluster->place_count;
}

static size_t cluster_names(const struct federation *federation, const char **names)
{
    for (size_t i = 0; i < federation->cluster_count; i++) {
        names[i] = federation->clusters[i].name;
    }
    return federation->cluster_count;
}

/* What was meant by a pattern that names no place: of its cluster if there is such, else of all. */
static void expect_place(const char *word, const struct federation *federation, struct error *err)
{
    const char **names =
        xcalloc(federation->place_count + federation->cluster_count, sizeof *names);
    const char *nearest = federation_nearest(federation, word, false);
    char *head = xstrndup(word, strcspn(word, "/"));
    const struct cluster *cluster = federation_cluster(federation, head);
    struct strbuf buf;
    strbuf_init(&buf, ERROR_PATH_MAX);
    if (nearest) {
        strbuf_printf(&buf, "did you mean '%s'? ", nearest);
    }
    if (cluster) {
        strbuf_printf(&buf, "%s has: ", cluster->name);
        add_names(&buf, names, local_names(cluster, names));
    } else {
        strbuf_puts(&buf, "there are: ");
        add_names(&buf, names, cluster_names(federation, names));
    }
    error_expect(err, "%s", buf.text ? buf.text : "");
    strbuf_fini(&buf);
    free(head);
    free(names);
}

static bool names_place(const struct federation *federation, const char *pattern)
{
    for (size_t i = 0; i < federation->place_count; i++) {
        if (place_is_named(federation->places[i], pattern)) {
            return true;
        }
    }
    return false;
}

void findings_add(struct findings *findings, enum severity severity, const struct error *err)
{
    if (severity == SEVERITY_ERROR) {
        findings->errors++;
    } else {
        findings->warnings++;
    }
    findings->found(findings->arg, severity, err);
}

size_t value_item_count(const struct value *value)
{
    return !value ? 0 : value->kind == VALUE_LIST ? value->count : 1;
}

const struct value *value_item(const struct value *value, size_t i)
{
    return value->kind == VALUE_LIST ? value->items[i] : value;
}

void expect_names(struct error *err, const char *word, const char *const *names, size_t count,
                  const char *what)
{
    const char *nearest = nearest_word(word, names, count);
    struct strbuf buf;
    strbuf_init(&buf, ERROR_PATH_MAX);
    if (nearest) {
        strbuf_printf(&buf, "did you mean '%s'? ", nearest);
    }
    strbuf_printf(&buf, count ? "%s: " : "there are no %s", what);
    add_names(&buf, names, count);
    error_expect(err, "%s", buf.text ? buf.text : "");
    strbuf_fini(&buf);
}

void check_places(const struct value *texts, const struct federation *federation,
                  struct findings *findings)
{
    for (size_t i = 0; i < value_item_count(texts); i++) {
        const struct value *item = value_item(texts, i);
        struct error err;
        if (item->kind != VALUE_SCALAR || names_place(federation, item->text)) {
            continue; /* what is no text was found by the table */
        }
        value_error(item, &err, ERROR_INVALID, "no place '%.128s'", item->text);
        expect_place(item->text, federation, &err);
        findings_add(findings, SEVERITY_ERROR, &err);
    }
}
