/* interrupt.h - Ctrl-C and TERM while a command waits: the first is noted, the second ends at once. */
#ifndef API_CLI_INTERRUPT_H
#define API_CLI_INTERRUPT_H

/* From now on a first SIGINT or SIGTERM is noted only. Without it they end the process as usual. */
void interrupt_arm(void);
/* The signal that came, or 0. */
int interrupt_signal(void);
/* A descriptor that becomes readable when one came; -1: not armed. */
int interrupt_fd(void);

#endif
