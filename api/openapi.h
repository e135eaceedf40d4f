/* openapi.h - the OpenAPI 3.1 document of the route table. */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include <jansson.h>

/* url: of the server, or NULL. New reference. */
json_t *openapi_document(const char *url);

/* The schema with this name from the table in schemas.c, as JSON text; NULL: none. */
struct schema_row {
    const char *name;
    const char *text;
};
extern const struct schema_row schema_table[]; /* ends with a row whose name is NULL */

/* The schema of a job as it may be submitted, from its key table. New reference. */
json_t *schema_of_job(void);

#endif
