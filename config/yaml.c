/* yaml.c - libfyaml's events into a tree of values.
 *
 * Only events are used, never libfyaml's documents: so depth, size, duplicate keys and what aliases
 * expand to are decided here, before any memory is spent on them. A frame is an open list or map. An
 * anchor names a node of the tree under construction; an alias is a copy of it that keeps its places. */
#include "config/yaml.h"

#include "broker/core/alloc.h"
#include "broker/core/map.h"
#include "broker/core/units.h"

#include <libfyaml.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ANCHORS_MAX = 1000, KEY_MAX = 1024, SHOWN_MAX = 40 };

struct frame {
    struct value *value;
    struct map seen; /* keys of a map */
    bool has_key;    /* the next node is the value of key */
    char *key;
    int key_line, key_column, key_width;
    bool is_flow;
};

struct anchor {
    char *name;
    struct value *value;
};

struct reader {
    struct error *err;
    struct value *root;
    size_t documents;
    struct frame frames[VALUE_DEPTH_MAX];
    size_t depth;
    size_t nodes, bytes; /* after aliases are expanded */
    struct anchor anchors[ANCHORS_MAX];
    size_t anchor_count;
    struct map by_name; /* of anchors: the last of that name */
};

struct place_of { /* counted from 1 */
    int line, column, width;
};

/* Text of YAML's own tokens up to a width that fits into a sentence. */
static int shown(size_t length)
{
    return (int)(length < SHOWN_MAX ? length : SHOWN_MAX);
}

static struct place_of place_of_token(struct fy_token *token)
{
    struct place_of at = {1, 1, 1};
    const struct fy_mark *start = fy_token_start_mark(token), *end = fy_token_end_mark(token);
    if (!start) {
        return at;
    }
    at.line = start->line + 1;
    at.column = start->column + 1;
    if (end && end->line == start->line && end->column > start->column) {
        at.width = end->column - start->column;
    }
    enum fy_scalar_style style = fy_token_scalar_style(token);
    if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) {
        at.column -= at.column > 1; /* the marks stand within the quotes */
        at.width += end && end->line == start->line ? 2 : 0;
    }
    return at;
}

static int refuse_at(struct reader *reader, struct place_of at)
{
    reader->err->line = at.line;
    reader->err->column = at.column;
    reader->err->width = at.width;
    return -1;
}

static int refuse_token(struct reader *reader, struct fy_token *token, const char *text,
                        const char *expected)
{
    error_set(reader->err, ERROR_INVALID, "%s", text);
    error_expect(reader->err, "%s", expected);
    return refuse_at(reader, place_of_token(token));
}

static int count(struct reader *reader, size_t nodes, size_t bytes, struct place_of at)
{
    reader->nodes += nodes;
    reader->bytes += bytes;
    if (reader->nodes > VALUE_NODES_MAX) {
        error_set(reader->err, ERROR_TOO_LARGE, "more than %d values", (int)VALUE_NODES_MAX);
        return refuse_at(reader, at);
    }
    if (reader->bytes > VALUE_BYTES_MAX) {
        error_set(reader->err, ERROR_TOO_LARGE, "more than %d bytes of text with its aliases",
                  (int)VALUE_BYTES_MAX);
        return refuse_at(reader, at);
    }
    return 0;
}

/* What a copy of the node would add. */
static void measure(const struct value *value, size_t depth, size_t *nodes, size_t *bytes,
                    size_t *deepest)
{
    *nodes += 1;
    *bytes += (value->text ? strlen(value->text) : 0) + (value->key ? strlen(value->key) : 0);
    bool nests = value->kind == VALUE_LIST || value->kind == VALUE_MAP;
    if (depth + nests > *deepest) {
        *deepest = depth + nests;
    }
    for (size_t i = 0; i < value->count; i++) {
        measure(value->items[i], depth + 1, nodes, bytes, deepest);
    }
}

static int refuse_depth(struct reader *reader, struct place_of at)
{
    error_set(reader->err, ERROR_INVALID, "nested deeper than %d levels", (int)VALUE_DEPTH_MAX);
    error_expect(reader->err, "at most %d levels of lists and maps", (int)VALUE_DEPTH_MAX);
    return refuse_at(reader, at);
}

/* Hangs a finished or just opened node where it belongs. */
static void attach(struct reader *reader, struct value *value)
{
    struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    if (!frame) {
        reader->root = value;
        return;
    }
    value_add_take(frame->value, frame->has_key ? frame->key : NULL, value);
    if (frame->has_key) {
        value->key_line = frame->key_line;
        value->key_column = frame->key_column;
        map_put(&frame->seen, value->key, value);
        free(frame->key);
        frame->key = NULL;
        frame->has_key = false;
    }
}

static int add_anchor(struct reader *reader, struct fy_token *token, struct value *value)
{
    size_t length = 0;
    const char *text = token ? fy_token_get_text(token, &length) : NULL;
    if (!text) {
        return 0;
    }
    if (reader->anchor_count == ANCHORS_MAX) {
        error_set(reader->err, ERROR_TOO_LARGE, "more than %d anchors", (int)ANCHORS_MAX);
        return refuse_at(reader, place_of_token(token));
    }
    struct anchor *anchor = &reader->anchors[reader->anchor_count++];
    anchor->name = xstrndup(text, length);
    anchor->value = value;
    map_put(&reader->by_name, anchor->name, anchor);
    return 0;
}

static bool wants_key(const struct reader *reader)
{
    const struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    return frame && frame->value->kind == VALUE_MAP && !frame->has_key;
}

/* A value that was left out stands where its key does. */
static struct place_of place_of_value(const struct reader *reader, struct fy_token *token)
{
    const struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    if ((token && fy_token_start_mark(token)) || !frame) {
        return place_of_token(token);
    }
    if (!frame->has_key) {
        return (struct place_of){frame->value->line, frame->value->column, 0};
    }
    return (struct place_of){frame->key_line, frame->key_column, frame->key_width};
}

static int check_tag(struct reader *reader, struct fy_token *tag)
{
    return tag ? refuse_token(reader, tag, "a tag", "tags (!name) are not used: leave it out") : 0;
}

static int read_key(struct reader *reader, struct fy_event *event)
{
    struct frame *frame = &reader->frames[reader->depth - 1];
    struct fy_token *token = event->scalar.value;
    size_t length = 0;
    const char *text = fy_token_get_text(token, &length);
    struct place_of at = place_of_token(token);
    if (!text || length == 0) {
        return refuse_token(reader, token, "a key is missing before ':'", "write `key: value`");
    }
    if (length == 2 && memcmp(text, "<<", 2) == 0 && fy_token_scalar_style(token) == FYSS_PLAIN) {
        return refuse_token(
            reader, token, "a merge key",
            "`<<` is not used: write the keys out, or give an alias as a whole value");
    }
    if (event->scalar.anchor) {
        return refuse_token(reader, event->scalar.anchor, "an anchor at a key",
                            "anchors name values: write it behind the ':'");
    }
    if (length > KEY_MAX || !utf8_is_valid(text, length)) {
        return refuse_token(reader, token, "a key that is no text",
                            "UTF-8 without NUL, at most 1024 bytes");
    }
    if (count(reader, 0, length, at) != 0) {
        return -1;
    }
    char *key = xstrndup(text, length);
    const struct value *first = map_get(&frame->seen, key);
    if (first) {
        error_set(reader->err, ERROR_INVALID, "'%.*s' stands here a second time", shown(length),
                  text);
        error_expect(reader->err, "each key once: the first is in line %d", first->key_line);
        free(key);
        return refuse_at(reader, at);
    }
    frame->key = key;
    frame->key_line = at.line;
    frame->key_column = at.column;
    frame->key_width = at.width;
    frame->has_key = true;
    return 0;
}

static int read_scalar(struct reader *reader, struct fy_event *event)
{
    struct fy_token *token = event->scalar.value;
    if (check_tag(reader, event->scalar.tag) != 0) {
        return -1;
    }
    if (wants_key(reader)) {
        return read_key(reader, event);
    }
    size_t length = 0;
    const char *text = token ? fy_token_get_text(token, &length) : "";
    text = text ? text : "";
    struct place_of at = place_of_value(reader, token);
    if (!utf8_is_valid(text, length)) {
        return refuse_token(reader, token, "a text that holds NUL or half a character",
                            "UTF-8 without NUL");
    }
    if (count(reader, 1, length, at) != 0) {
        return -1;
    }
    struct value *value = value_create(VALUE_SCALAR);
    value->style = fy_token_scalar_style(token) == FYSS_PLAIN ? VALUE_PLAIN : VALUE_QUOTED;
    value->text = xstrndup(text, length);
    value->line = at.line;
    value->column = at.column;
    value->width = at.width;
    attach(reader, value);
    return add_anchor(reader, event->scalar.anchor, value);
}

static int open_container(struct reader *reader, enum value_kind kind, struct fy_event *event,
                          struct fy_token *token)
{
    struct place_of at = place_of_token(token);
    if (check_tag(reader, fy_event_get_tag_token(event)) != 0) {
        return -1;
    }
    if (wants_key(reader)) {
        return refuse_token(reader, token, "a list or map as a key", "keys are words");
    }
    if (reader->depth == VALUE_DEPTH_MAX) {
        return refuse_depth(reader, at);
    }
    if (count(reader, 1, 0, at) != 0) {
        return -1;
    }
    struct value *value = value_create(kind);
    value->line = at.line;
    value->column = at.column;
    attach(reader, value);
    struct frame *frame = &reader->frames[reader->depth++];
    memset(frame, 0, sizeof *frame);
    frame->value = value;
    frame->is_flow = fy_event_get_node_style(event) == FYNS_FLOW;
    map_init(&frame->seen);
    return add_anchor(reader, fy_event_get_anchor_token(event), value);
}

static int close_container(struct reader *reader, struct fy_token *end)
{
    struct frame *frame = &reader->frames[--reader->depth];
    const struct fy_mark *mark = end ? fy_token_end_mark(end) : NULL;
    if (frame->is_flow && mark && mark->line + 1 == frame->value->line) {
        frame->value->width = mark->column + 1 - frame->value->column;
    }
    map_fini(&frame->seen);
    free(frame->key);
    frame->key = NULL;
    return 0;
}

static int refuse_alias(struct reader *reader, struct place_of at, const char *name,
                        const char *text, const char *expected)
{
    error_set(reader->err, ERROR_INVALID, "the alias '*%.*s' %s", SHOWN_MAX, name, text);
    error_expect(reader->err, "%s", expected);
    return refuse_at(reader, at);
}

static int copy_anchored(struct reader *reader, const char *name, struct place_of at)
{
    const struct anchor *anchor = map_get(&reader->by_name, name);
    size_t nodes = 0, bytes = 0, deepest = reader->depth;
    if (wants_key(reader)) {
        return refuse_alias(reader, at, name, "is used as a key", "keys are written out");
    }
    if (!anchor) {
        return refuse_alias(reader, at, name, "names nothing", "an anchor (&name) before it");
    }
    for (size_t i = 0; i < reader->depth; i++) {
        if (reader->frames[i].value == anchor->value) {
            return refuse_alias(reader, at, name, "stands within what it names",
                                "a value cannot hold itself");
        }
    }
    measure(anchor->value, reader->depth, &nodes, &bytes, &deepest);
    if (deepest > VALUE_DEPTH_MAX) {
        return refuse_depth(reader, at);
    }
    if (count(reader, nodes, bytes, at) != 0) {
        return -1;
    }
    attach(reader, value_clone(anchor->value));
    return 0;
}

static int read_alias(struct reader *reader, struct fy_event *event)
{
    size_t length = 0;
    const char *text = fy_token_get_text(event->alias.anchor, &length);
    struct place_of at = place_of_token(event->alias.anchor);
    at.column -= at.column > 1; /* the mark stands behind the '*' */
    at.width++;
    char *name = xstrndup(text ? text : "", length);
    int status = copy_anchored(reader, name, at);
    free(name);
    return status;
}

static int start_document(struct reader *reader, struct fy_event *event)
{
    if (++reader->documents == 1) {
        return 0;
    }
    return refuse_token(reader, event->document_start.document_start, "a second document",
                        "one file holds one document: remove what follows this `---`");
}

static int read_event(struct reader *reader, struct fy_event *event)
{
    switch (event->type) {
    case FYET_DOCUMENT_START: return start_document(reader, event);
    case FYET_SCALAR: return read_scalar(reader, event);
    case FYET_ALIAS: return read_alias(reader, event);
    case FYET_SEQUENCE_START:
        return open_container(reader, VALUE_LIST, event, event->sequence_start.sequence_start);
    case FYET_MAPPING_START:
        return open_container(reader, VALUE_MAP, event, event->mapping_start.mapping_start);
    case FYET_SEQUENCE_END: return close_container(reader, event->sequence_end.sequence_end);
    case FYET_MAPPING_END: return close_container(reader, event->mapping_end.mapping_end);
    default: return 0;
    }
}

/* Whether the line is indented by a tab: the commonest of mistakes, and not libfyaml's to name. */
static bool has_tab_indent(const char *text, size_t length, int line)
{
    const char *at = text, *end = text + length;
    for (int i = 1; i < line && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    while (at && at < end && (*at == ' ' || *at == '\t')) {
        if (*at++ == '\t') {
            return true;
        }
    }
    return false;
}

static void explain_malformed(struct reader *reader, const char *text, size_t length)
{
    struct error *err = reader->err;
    const struct frame *frame = reader->depth ? &reader->frames[reader->depth - 1] : NULL;
    if (has_tab_indent(text, length, err->line)) {
        copy_text(err->text, sizeof err->text, "this line is indented with a tab");
        error_expect(err, "indent with spaces");
    } else if (strstr(err->text, "expected node content")) {
        error_expect(err, "a value is missing before this place");
    } else if (frame && frame->is_flow && strstr(err->text, "closing")) {
        error_expect(err, "it begins in line %d, column %d", frame->value->line,
                     frame->value->column);
    } else if (strstr(err->text, "nested block mapping")) {
        error_expect(err, "put a text that holds ': ' into quotes");
    }
}

static int refuse_syntax(struct reader *reader, struct fy_diag *diag, const char *text,
                         size_t length)
{
    void *position = NULL;
    const struct fy_diag_error *found = fy_diag_errors_iterate(diag, &position);
    error_set(reader->err, ERROR_MALFORMED, "%s",
              found && found->msg ? found->msg : "this is not YAML");
    if (found) {
        struct place_of at = {found->line > 0 ? found->line : 1,
                              found->column > 0 ? found->column : 1, 1};
        refuse_at(reader, at);
    }
    explain_malformed(reader, text, length);
    return -1;
}

static int read_events(struct reader *reader, struct fy_parser *parser, struct fy_diag *diag,
                       const char *text, size_t length)
{
    struct fy_event *event;
    int status = 0;
    while (status == 0 && (event = fy_parser_parse(parser))) {
        status = read_event(reader, event);
        fy_parser_event_free(parser, event);
    }
    if (status == 0 && fy_parser_get_stream_error(parser)) {
        status = refuse_syntax(reader, diag, text, length);
    }
    return status;
}

static struct fy_diag *create_diag(void)
{
    struct fy_diag_cfg config;
    fy_diag_cfg_default(&config);
    config.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&config);
    if (diag) {
        fy_diag_set_collect_errors(diag, true);
    }
    return diag;
}

static int parse_text(struct reader *reader, const char *text, size_t length)
{
    struct fy_parse_cfg config = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE |
                                           FYPCF_DEFAULT_VERSION_1_2};
    struct fy_diag *diag = create_diag();
    config.diag = diag;
    struct fy_parser *parser = diag ? fy_parser_create(&config) : NULL;
    int status = -1;
    if (!parser || fy_parser_set_string(parser, text, length) != 0) {
        error_set(reader->err, ERROR_INTERNAL, "the YAML parser could not be started");
    } else {
        status = read_events(reader, parser, diag, text, length);
    }
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    return status;
}

/* Bytes of the valid character at text; 0: there is none. */
static size_t character_length(const char *text, size_t length)
{
    for (size_t n = 1; n <= 4 && n <= length; n++) {
        if (utf8_is_valid(text, n)) {
            return n;
        }
    }
    return 0;
}

/* The first byte that is not UTF-8, as a place. */
static int refuse_bytes(struct reader *reader, const char *text, size_t length)
{
    struct place_of at = {1, 1, 1};
    size_t n;
    for (size_t i = 0; (n = character_length(text + i, length - i)) > 0; i += n) {
        at.line += text[i] == '\n';
        at.column = text[i] == '\n' ? 1 : at.column + 1;
    }
    error_set(reader->err, ERROR_MALFORMED, "bytes that are not UTF-8, or a NUL");
    error_expect(reader->err, "save the file as UTF-8");
    return refuse_at(reader, at);
}

static struct value *create_empty(void)
{
    struct value *value = value_create(VALUE_NULL);
    value->line = value->column = 1;
    return value;
}

static void free_reader(struct reader *reader)
{
    for (size_t i = 0; i < reader->depth; i++) {
        map_fini(&reader->frames[i].seen);
        free(reader->frames[i].key);
    }
    for (size_t i = 0; i < reader->anchor_count; i++) {
        free(reader->anchors[i].name);
    }
    map_fini(&reader->by_name);
    value_destroy(reader->root);
    free(reader);
}

int yaml_parse(const char *text, size_t length, struct value **out, struct error *err)
{
    if (length > VALUE_BYTES_MAX) {
        error_set(err, ERROR_TOO_LARGE, "%zu bytes", length);
        return error_expect(err, "at most %d bytes", (int)VALUE_BYTES_MAX);
    }
    struct reader *reader = xcalloc(1, sizeof *reader);
    reader->err = err;
    map_init(&reader->by_name);
    int status = utf8_is_valid(text, length) ? parse_text(reader, text, length)
                                             : refuse_bytes(reader, text, length);
    if (status == 0) {
        *out = reader->root ? reader->root : create_empty();
        reader->root = NULL;
    }
    free_reader(reader);
    return status;
}
