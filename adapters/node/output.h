/* output.h - the output of one attempt in capped files: the head and the end are kept.
 *
 * Offsets count the bytes that the job wrote, so a follower's offset only grows. The first half of the
 * cap goes to out.head; what follows goes to segments of a quarter of the cap (out.0, out.1, ...), of
 * which the last two are kept. Where bytes were dropped a reader gets a line that says how many. */
#ifndef ADAPTERS_NODE_OUTPUT_H
#define ADAPTERS_NODE_OUTPUT_H

#include "broker/core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output { /* the writer's; one per attempt */
    int dir_fd, fd;
    int64_t cap, written; /* written: bytes of the job, kept or not */
    int64_t segment;      /* being written; -1: the head */
    bool failed;          /* the disk refused some bytes */
};

int output_open(struct output *output, const char *dir, int64_t cap, struct error *err);
/* Never fails: a job does not stop because its log cannot be kept. */
void output_write(struct output *output, const char *bytes, size_t length);
void output_close(struct output *output);

struct output_chunk {
    int64_t offset; /* of the first byte given */
    size_t length;
    int64_t end; /* bytes that the job has written so far */
};

/* Reads at most size bytes from offset; none at the end. NOT_FOUND when nothing is kept there. */
int output_read(const char *dir, int64_t cap, int64_t offset, char *bytes, size_t size,
                struct output_chunk *out, struct error *err);

#endif
