/* SPDX-License-Identifier: MIT */
/*
 * Event loops of docs/how-to/event-loops.md, with epoll: one that goes offline to sleep, and one
 * that stays online and is kicked. A writer waits for both while they sleep without a limit.
 */
#include <prudence/epoch.h>
#include <prudence/prudence.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct prudence_domain *domain;
static int stop_fd;
static sem_t sleeps_next;

static void check(int is_right)
{
    if (!is_right)
        abort();
}

static void watch(int epoll, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
}

/* Handles events; they may hold pointers of the domain until it returns. Returns false to stop. */
static bool handle(const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++)
        if (events[i].data.fd == stop_fd)
            return false;
    return true;
}

static void *offline_loop(void *unused)
{
    struct epoll_event events[16];
    int count, epoll = epoll_create1(0);

    (void)unused;
    watch(epoll, stop_fd);
    prudence_qsbr_online(domain);
    sem_post(&sleeps_next);
    do {
        bool online = prudence_qsbr_blocking_begin(domain);
        count = epoll_wait(epoll, events, 16, -1);
        prudence_qsbr_blocking_end(domain, online);
    } while (handle(events, count));
    prudence_qsbr_offline(domain);
    close(epoll);
    return NULL;
}

static void wake(void *fd)
{
    eventfd_write(*(int *)fd, 1);
}

static void *kicked_loop(void *unused)
{
    int kick_fd = eventfd(0, EFD_NONBLOCK), epoll = epoll_create1(0);
    struct prudence_kick kick = {.size = sizeof kick, .function = wake, .argument = &kick_fd};
    struct epoll_event events[16];
    eventfd_t times;
    int count;

    (void)unused;
    watch(epoll, stop_fd);
    watch(epoll, kick_fd);
    prudence_qsbr_online(domain);
    check(prudence_kick_set(domain, &kick) == 0);
    sem_post(&sleeps_next);
    do {
        count = epoll_wait(epoll, events, 16, -1);
        eventfd_read(kick_fd, &times);   /* first, so that a later kick is not lost */
        prudence_qsbr_quiescent(domain); /* no pointer is held here */
    } while (handle(events, count));
    check(prudence_kick_set(domain, NULL) == 0); /* before kick_fd ends */
    prudence_qsbr_offline(domain);
    close(kick_fd);
    close(epoll);
    return NULL;
}

int main(void)
{
    pthread_t loops[2];

    domain = prudence_domain_create("events", PRUDENCE_DOMAIN_QSBR, NULL);
    stop_fd = eventfd(0, 0);
    check(domain && stop_fd >= 0 && sem_init(&sleeps_next, 0, 0) == 0);
    check(pthread_create(&loops[0], NULL, offline_loop, NULL) == 0);
    check(pthread_create(&loops[1], NULL, kicked_loop, NULL) == 0);
    for (int i = 0; i < 2; i++)
        while (sem_wait(&sleeps_next))
            ;
    for (int i = 0; i < 100; i++)
        check(prudence_domain_synchronize(domain) == 0);
    eventfd_write(stop_fd, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(loops[i], NULL);
    return prudence_domain_destroy(domain);
}
