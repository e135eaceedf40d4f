/* embedded.c - what is used when there is no file: a federation to look around in, and policies. */
#include "config/internal.h"

#include <string.h>

const char embedded_federation[] =
    "# Three members on this machine, to look around. The rent is made up, nothing is ever paid.\n"
    "version: 1\n"
    "policy: builtin:tour\n"
    "electricity:\n"
    "  house: {source: table, price: 0.30 EUR/kWh}\n"
    "clusters:\n"
    "  onprem:\n"
    "    adapter: local\n"
    "    capacity: {cpus: 4, memory: 8GiB}\n"
    "    max_waiting: 4\n"
    "    power: {tariff: house, pue: 1.3, cpu: 6 W}\n"
    "  edge:\n"
    "    adapter: local\n"
    "    capacity: {cpus: 2, memory: 4GiB}\n"
    "    max_waiting: 4\n"
    "    power: {tariff: house, cpu: 3 W}\n"
    "  cloud:\n"
    "    adapter: local\n"
    "    kind: on-demand\n"
    "    capacity: {cpus: 8, memory: 16GiB}\n"
    "    nodes:\n"
    "      vm: {cpus: 2, memory: 4GiB, price: 3.60 EUR/h, at_most: 4}\n";

static const char own_policy[] =
    "# The built-in policy: own places first; rented ones only with a budget, and none is set.\n"
    "version: 1\n";

static const char tour_policy[] = "# Own machines first, the cloud when they overflow, and back.\n"
                                  "version: 1\n"
                                  "budgets:\n"
                                  "  cloud: {limit: 250 EUR, per: month}\n"
                                  "bursts:\n"
                                  "  overflow:\n"
                                  "    open: [{pending: 20}, {pending: 5, for: 15s}]\n"
                                  "    close: {pending: 3, for: 5s}\n"
                                  "    at_most: {nodes: 4}\n"
                                  "    budget: cloud\n"
                                  "routes:\n"
                                  "  - name: own-first\n"
                                  "    tiers:\n"
                                  "      - {places: [onprem, edge]}\n"
                                  "      - {places: cloud, burst: overflow}\n";

const char *embedded_policy(const char *name)
{
    if (!name || strcmp(name, "own") == 0) {
        return own_policy;
    }
    return strcmp(name, "tour") == 0 ? tour_policy : NULL;
}
