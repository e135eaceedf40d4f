/* gpus.c - which GPU models a place has, as configured and as last stated, and whether they will do. */
#include "policy/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SEEN_SIZE = 96 };

struct seen { /* of one place */
    const struct needs *needs;
    bool known;   /* whether it has GPUs at all can be told */
    bool has;     /* it has some */
    bool named;   /* some of a known model */
    bool wanted;  /* and one that will do */
    int64_t most; /* of one wanted model, when that is stated; -1: not stated */
    char names[SEEN_SIZE];
};

bool gpu_is_wanted(const struct needs *needs, const char *model)
{
    return needs->gpu.count == 0 || texts_contain(&needs->gpu, model);
}

static void see(struct seen *seen, const char *model)
{
    size_t length = strlen(seen->names);
    seen->known = seen->has = seen->named = true;
    if (gpu_is_wanted(seen->needs, model)) {
        seen->wanted = true;
    }
    if (!strstr(seen->names, model)) {
        (void)snprintf(seen->names + length, sizeof seen->names - length, "%s%s",
                       length ? ", " : "", model);
    }
}

static void see_configured(struct seen *seen, const struct place *place)
{
    for (size_t i = 0; i < place->gpus.count; i++) {
        see(seen, RULES_AT(place->gpus, struct gpu_name, i)->name);
    }
    for (size_t i = 0; i < place->nodes.count; i++) {
        const struct node_shape *shape = RULES_AT(place->nodes, struct node_shape, i);
        seen->known = true;
        if (shape->gpus > 0 && shape->gpu) {
            see(seen, shape->gpu);
        }
        seen->has = seen->has || shape->gpus > 0;
    }
}

static void see_stated(struct seen *seen, const struct place_view *view,
                       const struct federation *federation)
{
    const struct condition *now = &view->condition;
    if (!view->known || !now->up || now->total.gpus < 0) {
        return;
    }
    seen->known = true;
    seen->has = seen->has || now->total.gpus > 0;
    for (int i = 0; i < now->gpu_count; i++) {
        const char *model = federation->gpus[now->gpus[i].model].name;
        see(seen, model);
        if (gpu_is_wanted(seen->needs, model) && now->gpus[i].total > seen->most) {
            seen->most = now->gpus[i].total;
        }
    }
}

bool filter_gpus(struct option *option, const struct federation *federation,
                 struct shortage *shortage)
{
    const struct needs *needs = &option->spec->needs;
    struct seen seen = {.needs = needs, .most = -1};
    char wanted[SEEN_SIZE], text[AMOUNT_TEXT_SIZE], need[AMOUNT_TEXT_SIZE];
    if (needs->gpus <= 0) {
        return true;
    }
    see_configured(&seen, option->view->place);
    see_stated(&seen, option->view, federation);
    *shortage = (struct shortage){true, AMOUNT_GPUS, 0, needs->gpus};
    if (seen.known && !seen.has) {
        say(option->row, VERDICT_NEVER, "no GPU");
        return false;
    }
    if (seen.has && needs->gpu.count && !seen.wanted) {
        shortage->is_amount = false;
        join_texts(&needs->gpu, ", ", wanted, sizeof wanted);
        say(option->row, VERDICT_NEVER, "%s is not among %s",
            seen.named ? seen.names : "its GPU has no name that a job can use; it", wanted);
        return false;
    }
    if (seen.most >= 0 && seen.most < needs->gpus) {
        shortage->have = seen.most;
        say(option->row, VERDICT_NEVER, "%s there in all, %s needed",
            amount_text(AMOUNT_GPUS, seen.most, text),
            amount_figure(AMOUNT_GPUS, needs->gpus, need));
        return false;
    }
    shortage->is_amount = false;
    return true;
}
