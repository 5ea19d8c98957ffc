/* SPDX-License-Identifier: MIT */
/*
 * The event loop of libuv in docs/how-to/event-loops.md. A writer waits for it while it sleeps.
 *
 * ctest: needs uv
 */
#include <prudence/epoch.h>
#include <prudence/prudence.h>
#include <semaphore.h>
#include <stdlib.h>
#include <uv.h>

static struct prudence_domain *domain;
static uv_async_t stop;
static sem_t runs;

static void check(int is_right)
{
    if (!is_right)
        abort();
}

static void wake(void *async)
{
    uv_async_send(async); /* from any thread */
}

static void woken(uv_async_t *async)
{
    (void)async; /* the next prepare does the work */
}

/* Before each sleep: no pointer is held here. */
static void before_sleep(uv_prepare_t *prepare)
{
    (void)prepare;
    prudence_qsbr_quiescent(domain);
}

static void on_stop(uv_async_t *async)
{
    uv_stop(async->loop);
}

static void end_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    uv_close(handle, NULL);
}

static void run(void *unused)
{
    uv_loop_t loop;
    uv_async_t kicked;
    uv_prepare_t prepare;
    struct prudence_kick kick = {.size = sizeof kick, .function = wake, .argument = &kicked};

    (void)unused;
    uv_loop_init(&loop);
    uv_async_init(&loop, &kicked, woken);
    uv_async_init(&loop, &stop, on_stop);
    uv_prepare_init(&loop, &prepare);
    uv_prepare_start(&prepare, before_sleep);
    prudence_qsbr_online(domain);
    check(prudence_kick_set(domain, &kick) == 0);
    sem_post(&runs);
    uv_run(&loop, UV_RUN_DEFAULT);
    check(prudence_kick_set(domain, NULL) == 0); /* before `kicked` ends */
    prudence_qsbr_offline(domain);
    uv_walk(&loop, end_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    check(uv_loop_close(&loop) == 0);
}

int main(void)
{
    uv_thread_t thread;

    domain = prudence_domain_create("events", PRUDENCE_DOMAIN_QSBR, NULL);
    check(domain && sem_init(&runs, 0, 0) == 0 && uv_thread_create(&thread, run, NULL) == 0);
    while (sem_wait(&runs))
        ;
    for (int i = 0; i < 100; i++)
        check(prudence_domain_synchronize(domain) == 0);
    uv_async_send(&stop);
    uv_thread_join(&thread);
    return prudence_domain_destroy(domain);
}
