/* config_lab.h - fixtures of the configuration, read for its tests. */
#ifndef TESTS_UNIT_CONFIG_LAB_H
#define TESTS_UNIT_CONFIG_LAB_H

#include "config/config.h"

/* The text of a file below tests/fixtures; ends the test when it is not there. The caller frees. */
char *lab_text(const char *path);

/* tests/fixtures/config/site.yaml with the real adapters; ends the test when it does not load. */
struct federation *lab_site(void);

/* Calls good or bad for nothing else than to free what was made; -1 and err as the loaders do. */
int lab_federation(const char *text, struct error *err);
int lab_policy(const char *text, const struct federation *federation, struct error *err);

#endif
