#include "broker/admit.h"

#include "broker/picture.h"
#include "policy/decide.h"

#include <string.h>

static int check_team(const struct caller *caller, struct spec *spec, struct error *err)
{
    const char *team = caller->team ? caller->team : "";
    if (!spec->team || !spec->team[0]) {
        spec_set_team(spec, team);
        return 0;
    }
    if (team[0] && strcmp(team, spec->team) != 0 && caller->role < ROLE_OPERATE) {
        error_set(err, ERROR_FORBIDDEN, "the token is of team '%s', the job says team '%s'", team,
                  spec->team);
        return error_expect(err, "leave `team` out, or ask for a token of that team");
    }
    return 0;
}

int admit(struct context *context, const struct caller *caller, const struct value *value,
          struct spec **out, struct error *err)
{
    struct spec *spec;
    if (spec_parse(value, context->rules, context->federation, &spec, err) < 0) {
        return -1;
    }
    struct subject subject = {.spec = spec, .owner = caller->owner};
    if (check_team(caller, spec, err) < 0 ||
        decide_possible(picture_view(context->picture), &subject, err) < 0) {
        spec_unref(spec);
        return -1;
    }
    *out = spec;
    return 0;
}
