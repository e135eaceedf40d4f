#include "tests/unit/slurm_bench.h"

#include "adapters/adapters.h"
#include "broker/net/clock_uv.h"
#include "broker/net/http.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct bench bench;

static void log_line(const char *level, const char *cluster, const char *text)
{
    size_t length = strlen(bench.logged);
    (void)snprintf(bench.logged + length, sizeof bench.logged - length, "%s %s: %s\n", level,
                   cluster, text);
}

static void open_adapter(const char *url)
{
    struct error err;
    (void)snprintf(bench.url, sizeof bench.url, "%s", url);
    cr_assert_eq(adapter_slurm.open(&bench.env, &bench.lab.cluster, &bench.adapter, &err), 0);
}

void bench_setup(const char *url, const char *user, const char *token_file)
{
    (void)signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(uv_loop_init(&bench.loop), 0);
    (void)snprintf(bench.token_file, sizeof bench.token_file, "%s", token_file);
    slurm_lab_init(&bench.lab, bench.url, user, bench.token_file);
    bench.env = (struct adapter_env){
        .loop = &bench.loop, .federation = &bench.lab.federation, .log = log_line};
    bench.env.clock = clock_uv_create(&bench.loop);
    bench.env.http = http_create(&bench.loop, bench.env.clock);
    bench.call_ms = 5000;
    open_adapter(url);
}

void bench_reopen(const char *url)
{
    adapter_slurm.close(bench.adapter);
    open_adapter(url);
}

void bench_teardown(void)
{
    adapter_slurm.close(bench.adapter);
    http_destroy(bench.env.http);
    clock_uv_destroy(bench.env.clock);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    cr_assert_eq(uv_loop_close(&bench.loop), 0, "something is left on the loop");
}

static void done(struct adapter_call *call)
{
    struct bench_result *result = call->arg;
    result->runs++;
    uv_stop(&bench.loop); /* else the turn waits for the next event */
    cr_assert_leq(call->report_count, BENCH_REPORTS_MAX);
    for (size_t i = 0; i < call->report_count; i++) {
        result->reports[i] = call->reports[i];
    }
    for (size_t i = 0; call->conditions && i < 2; i++) {
        result->conditions[i] = call->conditions[i];
    }
    (void)snprintf(result->version, sizeof result->version, "%s",
                   call->version ? call->version : "");
}

struct adapter_call *bench_prepare(struct bench_result *result)
{
    *result = (struct bench_result){0};
    result->call.done = done;
    result->call.arg = result;
    result->call.deadline_ms = clock_mono_ms(bench.env.clock) + bench.call_ms;
    return &result->call;
}

static void mark(void *arg)
{
    *(bool *)arg = true;
}

void bench_await(struct bench_result *result)
{
    bool late = false;
    struct timer *timer = clock_timer(bench.env.clock, mark, &late);
    timer_start(timer, bench.call_ms * 2);
    while (!result->runs && !late) {
        (void)uv_run(&bench.loop, UV_RUN_ONCE);
    }
    timer_destroy(timer);
    cr_assert_eq(result->runs, 1, "not completed once");
}

enum adapter_result bench_submit(struct bench_result *result)
{
    adapter_slurm.submit(bench.adapter, &bench.job, bench_prepare(result));
    cr_assert_eq(result->runs, 0, "completed within the call");
    bench_await(result);
    return result->call.result;
}

enum adapter_result bench_find(struct bench_result *result)
{
    adapter_slurm.find(bench.adapter, &bench.job.ref, bench_prepare(result));
    bench_await(result);
    return result->call.result;
}

enum adapter_result bench_cancel(struct bench_result *result)
{
    adapter_slurm.cancel(bench.adapter, &bench.job.ref, bench_prepare(result));
    bench_await(result);
    return result->call.result;
}

enum adapter_result bench_poll(struct bench_result *result)
{
    adapter_slurm.poll(bench.adapter, bench_prepare(result));
    bench_await(result);
    return result->call.result;
}

enum adapter_result bench_probe(struct bench_result *result)
{
    adapter_slurm.probe(bench.adapter, bench_prepare(result));
    bench_await(result);
    return result->call.result;
}
