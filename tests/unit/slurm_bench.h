/* slurm_bench.h - a loop, an adapter on it, and its calls made to wait for their completion. */
#ifndef TESTS_UNIT_SLURM_BENCH_H
#define TESTS_UNIT_SLURM_BENCH_H

#include "tests/unit/slurm_lab.h"

#include <uv.h>

enum { BENCH_REPORTS_MAX = 64 };

struct bench_result { /* what a call gave; reports and conditions are copies */
    int runs;
    struct adapter_call call;
    struct report reports[BENCH_REPORTS_MAX];
    struct condition conditions[2];
    char version[64];
};

struct bench {
    uv_loop_t loop;
    struct adapter_env env;
    struct slurm_lab lab;
    struct adapter *adapter;
    struct spec spec;  /* of job */
    struct submit job; /* what the calls below are about */
    char url[256], token_file[256];
    char logged[4096];
    int64_t call_ms; /* for each call */
};
extern struct bench bench;

void bench_setup(const char *url, const char *user, const char *token_file);
void bench_teardown(void);
void bench_reopen(const char *url); /* closes the adapter and opens another */

struct adapter_call *bench_prepare(struct bench_result *result);
void bench_await(struct bench_result *result);

enum adapter_result bench_submit(struct bench_result *result);
enum adapter_result bench_find(struct bench_result *result);
enum adapter_result bench_cancel(struct bench_result *result);
enum adapter_result bench_poll(struct bench_result *result);
enum adapter_result bench_probe(struct bench_result *result);

#endif
