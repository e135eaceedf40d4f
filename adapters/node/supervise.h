/* supervise.h - `tieline supervise`: runs the jobs of one local member, and outlives the broker. */
#ifndef ADAPTERS_NODE_SUPERVISE_H
#define ADAPTERS_NODE_SUPERVISE_H

/* Serves at DIR/sock until there is nothing to do; argv[0] is "supervise" or the program. Returns the exit
 * status: 0, also when it was told to end or its directory was removed; 1: it could not begin; 2: wrong
 * usage; 3: another one serves DIR.
 *   --dir DIR        where everything is kept; made when it is not there
 *   --member NAME    shown in the list of processes, nothing else
 *   --idle TIME      without jobs and connections, ends after that (default 60s)
 *   --output SIZE    bytes kept of the output of one attempt (default: the limit "log")
 *   --detach         goes to the background and returns once it can be reached */
int supervise_main(int argc, char **argv);

#endif
