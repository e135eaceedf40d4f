/* interrupt.c - see interrupt.h. A pipe to itself wakes a process that is about to sleep. */
#include "api/cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_OF_SIGNAL = 128 };

static volatile sig_atomic_t came;
static int wake[2] = {-1, -1};

static void signal_cb(int number)
{
    int saved = errno;
    if (came) {
        _exit(STATUS_OF_SIGNAL + number);
    }
    came = number;
    ssize_t n = write(wake[1], "", 1);
    (void)n; /* full: it is readable already */
    errno = saved;
}

void interrupt_arm(void)
{
    struct sigaction action;
    if (wake[0] >= 0 || pipe2(wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        return;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = signal_cb;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

int interrupt_signal(void)
{
    return came;
}

int interrupt_fd(void)
{
    return wake[0];
}
