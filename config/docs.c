/* docs.c - docs/configuration.md, printed from the key tables and the limits. */
#include "config/internal.h"

#include "broker/core/limits.h"
#include "broker/core/spec.h"

#include <inttypes.h>

static const char language[] =
    "# Configuration\n"
    "\n"
    "This page is printed from the tables in the code; it is not edited by hand.\n"
    "\n"
    "Three documents. `tieline.yaml` says what exists: addresses, credentials by reference, facts.\n"
    "`policy.yaml` says what is wanted; it holds no address and no secret, and is reloaded live. A\n"
    "*job* says what a user asks for. A *place* is where a job can be put, the unit of every\n"
    "decision; it is written `cluster/place` (`hpc/gpu`), and `hpc` alone means all its places.\n"
    "\n"
    "## Values\n"
    "\n"
    "| kind | write | refused |\n"
    "|---|---|---|\n"
    "| duration | `45s` `15m` `2h` `7d` `1h30m` | `90` (unit missing), `1:30` |\n"
    "| size | `512MiB` `8GiB` `1.5TiB`, decimal `150GB` | `8G`, `8192` |\n"
    "| money, price | `25 EUR` · `0.31 EUR/kWh` `1.52 USD/h` | `25`, `€25` |\n"
    "| share | `80%` | `0.8` |\n"
    "| rate | `5/s` `20/5m` | `5` |\n"
    "| power | `350 W` | `350` |\n"
    "| number | `4` `0.5` | `four` |\n"
    "| range | `4` (exactly) · `4..` (at least) · `..8` (at most) · `4..8` | `>= 4` |\n"
    "| instant | `\"2026-03-10 06:00\"` in the file's `timezone`, or RFC 3339 with offset | local "
    "time in a job |\n"
    "| yes and no | `true` `false` | `yes` `on` |\n"
    "| name | letters, digits, `.` `_` `-`, up to 63, a letter or digit first | |\n"
    "\n"
    "- A relative path in `tieline.yaml` (`policy:`, `store:`, `state:`, the files of tokens and TLS)\n"
    "  counts from the folder of that file.\n"
    "- A policy carries its own tests, `expect`. A reload (SIGHUP, `tieline policy set`, PUT /v1/policy,\n"
    "  also as a dry run) refuses a policy that fails one of them, as it refuses one that cannot be read:\n"
    "  the running policy goes on. A start warns and goes on.\n"
    "- `env` of a job is no place for secrets: everybody who may see the job sees it.\n"
    "- Where a list is allowed, one value alone may stand. `*` is a wildcard in names and label\n"
    "  values.\n"
    "- Things with a name are maps; things whose order counts are lists.\n"
    "- A secret is never literal: `{file: PATH}`, `{env: NAME}` or `{command: [prog, arg]}`. A file\n"
    "  that others can read is refused.\n"
    "- Templates take `{owner} {user} {team} {class} {name} {id} {attempt}`, and only where a table\n"
    "  says \"template\".\n"
    "- An unknown key is an error with the nearest right spelling, at every depth. Keys that start\n"
    "  with `x-` are ignored.\n"
    "- YAML 1.2 in UTF-8, one document. Anchors and aliases work; merge keys (`<<`) and tags are\n"
    "  refused. JSON is read as well.\n"
    "- In the tables `.NAME.` stands for a name of the user's, `[].` for an item of a list, P for a\n"
    "  key that a place may set again: the place's value wins.\n"
    "\n";

static bool has_rows(const struct key *rows)
{
    return rows && rows[0].name;
}

static void print_adapter(const struct adapter_type *type, FILE *out)
{
    (void)fprintf(out, "### `adapter: %s`\n\n%s\n\n", type->name, type->summary);
    if (has_rows(type->cluster_rows)) {
        (void)fputs("Keys of the cluster:\n\n", out);
        keys_print(type->cluster_rows, "", out);
        (void)fputc('\n', out);
    }
    if (has_rows(type->place_rows)) {
        (void)fputs("Keys of a place:\n\n", out);
        keys_print(type->place_rows, "", out);
        (void)fputc('\n', out);
    }
    if (!has_rows(type->cluster_rows) && !has_rows(type->place_rows)) {
        (void)fputs("It has no keys of its own.\n\n", out);
    }
}

static void print_limits(FILE *out)
{
    (void)fputs("## Limits\n\nEvery queue, body, buffer, retry and fan-out has a maximum.\n\n"
                "| limit | maximum | of | beyond it |\n|---|---|---|---|\n",
                out);
    for (int i = 0; i < limit_count; i++) {
        const struct limit_row *row = &limit_table[i];
        (void)fprintf(out, "| %s | %" PRId64 " | %s | %s |\n", row->name, row->value, row->unit,
                      row->beyond);
    }
    (void)fprintf(out,
                  "| document | %d | bytes of one YAML or JSON document | refused |\n"
                  "| document depth | %d | levels | refused |\n"
                  "| document values | %d | values, aliases expanded | refused |\n"
                  "| clusters | %d | clusters | refused at start |\n",
                  (int)VALUE_BYTES_MAX, (int)VALUE_DEPTH_MAX, (int)VALUE_NODES_MAX,
                  (int)CLUSTERS_MAX);
}

void config_docs_print(const struct adapter_type *const *adapters, FILE *out)
{
    (void)fputs(language, out);
    (void)fputs("## tieline.yaml\n\n", out);
    keys_print(federation_keys, "", out);
    (void)fputs("\nModels of GPU that are built in: ", out);
    gpus_print(out);
    (void)fputs(
        "\n\n## A cluster\n\n`clusters.NAME` takes these keys, and those of its adapter.\n\n", out);
    keys_print(cluster_keys, "", out);
    (void)fputs(
        "\nThese describe a place; what stands at the cluster holds for all its places.\n\n", out);
    keys_print(place_keys, "", out);
    (void)fputc('\n', out);
    for (; *adapters; adapters++) {
        print_adapter(*adapters, out);
    }
    (void)fputs("## A job\n\n", out);
    keys_print(spec_keys, "", out);
    (void)fputs("\n## policy.yaml\n\n", out);
    keys_print(policy_keys, "", out);
    (void)fputc('\n', out);
    print_limits(out);
}
