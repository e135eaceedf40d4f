/* spec.c - the life of a spec in memory. How it comes to be: spec_parse.c, spec_at.c, spec_json.c. */
#include "broker/core/spec.h"

#include "broker/core/alloc.h"
#include "broker/core/texts.h"

#include <stdlib.h>

static void defaults_fini(struct spec_defaults *defaults)
{
    free(defaults->name);
    free(defaults->class_name);
    free(defaults->team);
    texts_fini(&defaults->needs.gpu);
}

void spec_set_team(struct spec *spec, const char *team)
{
    if (!spec->team && team && *team) {
        spec->team = xstrdup(team);
        spec->defaults.team = xstrdup(team);
    }
}

struct spec *spec_ref(struct spec *spec)
{
    spec->refs++;
    return spec;
}

void spec_unref(struct spec *spec)
{
    if (!spec || --spec->refs > 0) {
        return;
    }
    keys_free(spec_keys, spec);
    value_destroy(spec->source);
    defaults_fini(&spec->defaults);
    free(spec);
}
