/* requests.h - what a supervisor can be asked.
 *
 * Requests are {"v","id","op",...}, answers {"v","id","ok":true,...} or {..."ok":false,"code","text"}.
 *   hello   {places:[{name,cpus,memory}], keep_logs_ms}     first on every connection
 *   submit  {job,attempt,name,intent_ms,place,cpus,memory,limit_ms,grace_ms,argv,env} -> {native}
 *   poll    -> {reports:[{job,attempt,native,state,started_ms | exit}]}
 *   find    {job,attempt} -> {report}; without it: proven not to be here
 *   cancel  {job,attempt}
 *   log     {job,attempt,offset} -> {offset,complete} and bytes
 *   probe   -> {version,places:[{name,cpus,memory,free_cpus,free_memory,running,waiting,waiting_cpus}]}
 *   forget  {job,attempt}
 *   bye     the broker leaves: end as soon as there is nothing to do */
#ifndef ADAPTERS_NODE_REQUESTS_H
#define ADAPTERS_NODE_REQUESTS_H

#include "adapters/node/server.h"

void requests_serve(struct server *server, struct conn *conn, const json_t *json);

#endif
