/* terms.c - the cost of a place as a sum of money, term by term, in nano-units of the policy's currency.
 * docs/deciding.md has every formula; names there and here are the same. */
#include "policy/internal.h"

#include <math.h>
#include <string.h>

#define MW_MS_PER_KWH INT64_C(3600000000000) /* milliwatts x milliseconds in a kilowatt hour */
#define CPU_HOUR_NANO INT64_C(40000000)      /* 0.04: when no rented place states a price */
#define GPU_HOUR_NANO INT64_C(2000000000)    /* 2 */
#define RISK_SHARE INT64_C(200000) /* 0.2 of the reference cost for a place of no health */

enum { HOUR_MS = 3600 * 1000, THOUSANDTHS = 1000 };

static const double crowd_weight = 0.05;
static const double bin_width = 0.019802627296179713; /* ln 1.02 */
/* Below a thousandth of the reference cost bins are of even width: there 2 % no longer matter. */
static const double bin_scale = 0.001;
static const double bin_guard = 1.0 / (1 << 20);

static int64_t smaller_price(int64_t best, int64_t price)
{
    return best < 0 || price < best ? price : best;
}

/* The cheapest machine of rented places per unit (CPU, or GPU of a wanted model); -1: none. */
static int64_t rented_price(const struct view *view, const struct needs *needs, bool gpu)
{
    int64_t best = -1, hour;
    for (size_t p = 0; p < view->federation->place_count; p++) {
        const struct place *place = view->federation->places[p];
        for (size_t i = 0; place_kind_is_rented(place->kind) && i < place->nodes.count; i++) {
            const struct node_shape *shape = RULES_AT(place->nodes, struct node_shape, i);
            int64_t size = gpu ? shape->gpus : shape->cpus;
            bool counts =
                gpu ? !needs->gpu.count || (shape->gpu && gpu_is_wanted(needs, shape->gpu))
                    : shape->gpus <= 0;
            if (size > 0 && counts && shape->price.currency[0] &&
                rules_exchange(view->rules, &shape->price, &hour) == 0) {
                best = smaller_price(best, scale_near(hour, THOUSANDTHS, size));
            }
        }
    }
    return best;
}

/* Defaults are in EUR; in a policy of another currency without a rate for it, the bare figure. */
static int64_t default_price(const struct rules *rules, int64_t nano)
{
    struct money money = {.nano = nano, .currency = "EUR"};
    int64_t out;
    return rules_exchange(rules, &money, &out) == 0 ? out : nano;
}

static int64_t cpu_price(const struct view *view, const struct needs *needs)
{
    const struct money *stated = &view->rules->reference.cpu;
    int64_t price;
    if (stated->nano > 0 && rules_exchange(view->rules, stated, &price) == 0) {
        return price;
    }
    price = rented_price(view, needs, false);
    return price >= 0 ? price : default_price(view->rules, CPU_HOUR_NANO);
}

static int64_t gpu_price(const struct view *view, const struct needs *needs)
{
    const struct list *stated = &view->rules->reference.gpus;
    int64_t best = -1, price;
    for (size_t i = 0; i < stated->count; i++) {
        const struct gpu_price *row = RULES_AT(*stated, struct gpu_price, i);
        if (gpu_is_wanted(needs, row->name) &&
            rules_exchange(view->rules, &row->price, &price) == 0) {
            best = smaller_price(best, price);
        }
    }
    if (best < 0) {
        best = rented_price(view, needs, true);
    }
    return best >= 0 ? best : default_price(view->rules, GPU_HOUR_NANO);
}

static int64_t waiting_worth(const struct rules *rules, const struct spec *spec, int64_t hour)
{
    const struct class_rule *class = rules_class(rules, spec->class_name ? spec->class_name : "");
    int64_t money;
    if (!class && rules->default_class) {
        class = rules_class(rules, rules->default_class);
    }
    if (!class) {
        return 0;
    }
    if (class->waiting.is_share) {
        return scale_near(hour, class->waiting.share, SHARE_ONE);
    }
    return rules_exchange(rules, &class->waiting.money, &money) == 0 ? money : 0;
}

void terms_reference(struct deciding *deciding)
{
    const struct spec *spec = deciding->subject->spec;
    const struct needs *needs = &spec->needs;
    int64_t hour = needs->gpus > 0
                       ? scale_near(gpu_price(deciding->view, needs), needs->gpus, THOUSANDTHS)
                       : scale_near(cpu_price(deciding->view, needs), needs->cpus, THOUSANDTHS);
    deciding->reference = scale_near(hour, spec->time.estimate, HOUR_MS);
    deciding->waiting_hour = waiting_worth(deciding->view->rules, spec, hour);
}

/* Milliwatts per GPU: of the first model there that will do and whose power is stated. */
static int64_t gpu_milliwatt(const struct place *place, const struct needs *needs)
{
    for (size_t i = 0; i < place->power.gpus.count; i++) {
        const struct gpu_power *row = RULES_AT(place->power.gpus, struct gpu_power, i);
        if (gpu_is_wanted(needs, row->name)) {
            return row->milliwatt;
        }
    }
    return 0;
}

static int64_t term_power(const struct option *option, const struct rules *rules)
{
    const struct place *place = option->view->place;
    const struct needs *needs = &option->spec->needs;
    int64_t pue = place->power.pue > 0 ? place->power.pue : THOUSANDTHS, price, milliwatt;
    if (!place->electricity.currency[0] || rules_exchange(rules, &place->electricity, &price) < 0) {
        return 0;
    }
    milliwatt = add_capped(scale_near(place->power.cpu, needs->cpus, THOUSANDTHS),
                           scale_near(gpu_milliwatt(place, needs), needs->gpus, THOUSANDTHS));
    milliwatt = scale_near(milliwatt, pue, THOUSANDTHS);
    return scale_near(scale_down(milliwatt, option->spec->time.estimate, 1), price, MW_MS_PER_KWH);
}

/* The exponential price of load: the fuller, the dearer the same share. Of several resources the dearest
 * counts, not the fullest: so the price never falls when one of them fills up. Above full the price of a
 * share stays what it is at full: what is promised beyond is the waiting term's matter. */
static int64_t term_crowd(const struct option *option, int64_t reference)
{
    double most = 0.0;
    for (int i = 0; i < option->load_count; i++) {
        double used = (double)option->loads[i].used / (double)SHARE_ONE;
        used = used > 1.0 ? 1.0 : used;
        double then = used + (double)option->loads[i].takes / (double)SHARE_ONE;
        double more = pow(10.0, then) - pow(10.0, used);
        most = more > most ? more : most;
    }
    return nano_round(crowd_weight * (double)reference * most);
}

void terms_price(struct option *option, const struct deciding *deciding)
{
    struct verdict_row *row = option->row;
    int64_t health = option->view->health;
    int64_t ill = health >= SHARE_ONE ? 0 : SHARE_ONE - (health < 0 ? 0 : health);
    row->wait_ms = wait_expected(option);
    row->terms[TERM_RENT] = row->rent_expected;
    row->terms[TERM_POWER] = term_power(option, deciding->view->rules);
    row->terms[TERM_WAITING] = scale_near(deciding->waiting_hour, row->wait_ms, HOUR_MS);
    row->terms[TERM_RISK] =
        scale_near(scale_near(deciding->reference, RISK_SHARE, SHARE_ONE), ill, SHARE_ONE);
    row->terms[TERM_CROWD] = term_crowd(option, deciding->reference);
    row->sum = 0;
    for (int i = 0; i < TERM_COUNT; i++) {
        row->sum = add_capped(row->sum, row->terms[i]);
    }
    row->priced = true;
}

int64_t cost_bin(int64_t sum, int64_t reference)
{
    double scale = (double)reference * bin_scale;
    double level = asinh((double)sum / (scale < 1.0 ? 1.0 : scale)) / bin_width;
    /* The guard band keeps compilers that round the last bit differently in the same bin. */
    return (int64_t)floor(level + bin_guard * (fabs(level) > 1.0 ? fabs(level) : 1.0));
}
