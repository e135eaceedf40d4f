/* explain_json.c - the record of a decision: integers and text, fixed key order. What `explain` prints
 * and what the store keeps are the same document. */
#include "policy/internal.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Beyond so many the facts of the first places must do: the record is stored with every placement. */
enum { FACTS_MAX = 64, FACT_SIZE = 160 };

static void put_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, text ? json_string(text) : json_null());
}

static void put_int(json_t *object, const char *key, int64_t value)
{
    json_object_set_new(object, key, json_integer(value));
}

static json_t *terms_json(const struct verdict_row *row)
{
    json_t *terms = json_object();
    for (int i = 0; i < TERM_COUNT; i++) {
        put_int(terms, term_name((enum term_kind)i), row->terms[i]);
    }
    return terms;
}

static json_t *row_json(const struct verdict_row *row)
{
    json_t *object = json_object();
    put_text(object, "place", row->place->name);
    put_int(object, "tier", row->tier);
    put_text(object, "verdict", verdict_name(row->verdict));
    put_text(object, "why", row->why);
    if (row->priced) {
        json_object_set_new(object, "terms", terms_json(row));
        put_int(object, "sum", row->sum);
        put_int(object, "rent_expected", row->rent_expected);
        put_int(object, "booked", row->booked);
        put_int(object, "price_hour", row->price_hour);
        put_int(object, "wait_ms", row->wait_ms);
    }
    return object;
}

static void add_fact(json_t *facts, const struct place_view *view, const char *what,
                     const char *value, const char *from, int64_t age_ms)
{
    char name[FACT_SIZE];
    if (json_array_size(facts) >= FACTS_MAX) {
        return;
    }
    json_t *fact = json_object();
    (void)snprintf(name, sizeof name, "%s %s", view->place->name, what);
    put_text(fact, "what", name);
    put_text(fact, "value", value);
    put_text(fact, "from", from);
    if (age_ms >= 0) {
        put_int(fact, "age_ms", age_ms);
    } else {
        json_object_set_new(fact, "age_ms", json_null());
    }
    json_array_append_new(facts, fact);
}

static void add_price(json_t *facts, const struct place_view *view, const struct money *money,
                      const char *what, const char *per, const char *from)
{
    char amount[UNITS_TEXT_SIZE], value[FACT_SIZE];
    (void)snprintf(value, sizeof value, "%s%s", money_text(money->nano, money->currency, amount),
                   per);
    add_fact(facts, view, what, value, from, -1);
}

/* The machines whose price could be meant: all that are configured there. */
static void add_prices(json_t *facts, const struct place_view *view)
{
    const struct place *place = view->place;
    char from[FACT_SIZE];
    for (size_t i = 0; place_kind_is_rented(place->kind) && i < place->nodes.count; i++) {
        const struct node_shape *shape = RULES_AT(place->nodes, struct node_shape, i);
        if (shape->price.currency[0]) {
            (void)snprintf(from, sizeof from, "%s, configured", shape->name ? shape->name : "node");
            add_price(facts, view, &shape->price, "price", "/h", from);
        }
    }
    if (place->electricity.currency[0]) {
        (void)snprintf(from, sizeof from, "tariff %s",
                       place->power.tariff ? place->power.tariff : "configured");
        add_price(facts, view, &place->electricity, "power", "/kWh", from);
    }
}

static void add_queue(json_t *facts, const struct place_view *view, const char *from)
{
    const struct condition *now = &view->condition;
    char value[FACT_SIZE], ours[FACT_SIZE] = "";
    if (now->waiting < 0) {
        add_fact(facts, view, "queue", "not stated", from, view->age_ms);
        return;
    }
    if (view->waiting_ours > 0) {
        (void)snprintf(ours, sizeof ours, ", ours %" PRId64, view->waiting_ours);
    }
    (void)snprintf(value, sizeof value, "%" PRId64 " waiting%s, %" PRId64 " running", now->waiting,
                   ours, now->running);
    add_fact(facts, view, "queue", value, from, view->age_ms);
}

static void add_free(json_t *facts, const struct place_view *view, const char *from)
{
    const struct condition *now = &view->condition;
    char free[UNITS_TEXT_SIZE], total[UNITS_TEXT_SIZE], unseen[UNITS_TEXT_SIZE];
    char value[FACT_SIZE];
    if (now->free.cpus < 0 || now->total.cpus <= 0) {
        return;
    }
    (void)snprintf(value, sizeof value, "%s of %s", thousandths_text(now->free.cpus, free),
                   thousandths_text(now->total.cpus, total));
    if (view->unseen.cpus > 0) {
        size_t length = strlen(value);
        (void)snprintf(value + length, sizeof value - length, ", %s placed since",
                       thousandths_text(view->unseen.cpus, unseen));
    }
    add_fact(facts, view, "free CPUs", value, from, view->age_ms);
}

static void add_facts(json_t *facts, const struct place_view *view)
{
    char from[FACT_SIZE], value[UNITS_TEXT_SIZE];
    (void)snprintf(from, sizeof from, "%s", view->place->cluster->name);
    add_prices(facts, view);
    add_queue(facts, view, from);
    add_free(facts, view, from);
    if (view->health < SHARE_ONE) {
        add_fact(facts, view, "health", share_text(view->health, value), "calls of the broker", 0);
    }
}

json_t *decision_to_json(const struct decision *decision, const struct view *view)
{
    json_t *out = json_object(), *places = json_array(), *facts = json_array();
    char hash[RULES_HASH_SHORT + 1];
    copy_text(hash, sizeof hash, view->rules->hash);
    put_text(out, "policy", hash);
    put_text(out, "route", decision->route ? decision->route->name : NULL);
    put_int(out, "tier", decision->tier);
    put_text(out, "chosen",
             decision->chosen < 0 ? NULL : decision->rows[decision->chosen].place->name);
    put_text(out, "summary", decision->summary);
    put_text(out, "burst", decision->burst);
    put_text(out, "currency", view->rules->currency);
    put_int(out, "can_now", (int64_t)decision->can_now);
    put_int(out, "can_later", (int64_t)decision->can_later);
    json_object_set_new(out, "budgets", texts_to_json(&decision->budgets));
    for (size_t i = 0; i < decision->row_count; i++) {
        json_array_append_new(places, row_json(&decision->rows[i]));
        if (decision->rows[i].priced) {
            add_facts(facts, &view->places[i]);
        }
    }
    json_object_set_new(out, "places", places);
    json_object_set_new(out, "facts", facts);
    return out;
}
