/* SPDX-License-Identifier: MIT */
/*
 * A program whose functions are called from outside (test_call.py). Each thread waits in its own
 * way, and says how its wait ended; one keeps values in registers of vectors instead. A line on
 * standard input names the thread whose wait shall end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#define WAYS 8

static const char *const ways[WAYS] = {"pause",      "nanosleep",  "futex",   "read",
                                       "epoll_wait", "sigsuspend", "vectors", "section"};
static pthread_t threads[WAYS];
static int pipes[WAYS][2];
static uint32_t word;
uint32_t enough;
static int handled, value_of_signal;

/* ---- functions that are called */

long mark(long a, long b, long c, long d, long e, long f);
long mark(long a, long b, long c, long d, long e, long f)
{
    if (a != 1 || b != 2 || c != 3 || d != 4 || e != 5 || f != -6)
        return -1;
    return gettid();
}

/* Writes over everything that a function may write over. */
#define EACH16(of)                                                                                 \
    of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14) \
        of(15)
#define EACH32(of)                                                                                 \
    EACH16(of)                                                                                     \
    of(16) of(17) of(18) of(19) of(20) of(21) of(22) of(23) of(24) of(25) of(26) of(27) of(28)     \
        of(29) of(30) of(31)
#define ONES_X(n) "pcmpeqd %xmm" #n ", %xmm" #n "\n\t"
#define ONES_Y(n) "vpcmpeqd %ymm" #n ", %ymm" #n ", %ymm" #n "\n\t"
#define ONES_Z(n) "vpternlogd $255, %zmm" #n ", %zmm" #n ", %zmm" #n "\n\t"
__attribute__((naked)) void clobber(void);
void clobber(void)
{
    __asm__("fldpi\n\tfldpi\n\t" EACH16(ONES_X) "ret");
}
__attribute__((naked)) void clobber_ymm(void);
void clobber_ymm(void)
{
    __asm__(EACH16(ONES_Y) "ret");
}
__attribute__((naked)) void clobber_zmm(void);
void clobber_zmm(void)
{
    __asm__("kxnorw %k1, %k1, %k1\n\t" EACH32(ONES_Z) "ret");
}

/* Returns the sum of what a called function finds in the x87 unit and in MXCSR. */
long first_state(void);
long first_state(void)
{
    uint16_t control;
    uint32_t mxcsr;

    __asm__ __volatile__("fnstcw %0\n\tstmxcsr %1" : "=m"(control), "=m"(mxcsr));
    return control == 0x37f && mxcsr == 0x1f80 ? 8 : -1;
}

/* A signal arrives during the call. */
int signalled(void);
int signalled(void)
{
    pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = 42});
    return handled ? -1 : 7;
}

void fault(void);
void fault(void)
{
    clobber();
    *(volatile int *)8 = 1;
}

/* ---- threads */

static void handle(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    handled++;
    value_of_signal = info->si_value.sival_int;
}

/* The thread stays in the middle of one statement, with a value of its own in each register. */
#define LOAD_X(n)                                                                                  \
    "movd %[value], %%xmm" #n "\n\tpaddd %%xmm" #n ", %%xmm" #n "\n\tincl %[value]\n\t"
#define LOAD_Y(n)                                                                                  \
    "vmovd %[value], %%xmm" #n "\n\tvpbroadcastd %%xmm" #n ", %%ymm" #n "\n\tincl %[value]\n\t"
#define LOAD_Z(n) "vpbroadcastd %[value], %%zmm" #n "\n\tincl %[value]\n\t"
#define SAVE_X(n) "movups %%xmm" #n ", " #n "*64(%[found])\n\t"
#define SAVE_Y(n) "vmovups %%ymm" #n ", " #n "*64(%[found])\n\t"
#define SAVE_Z(n) "vmovups %%zmm" #n ", " #n "*64(%[found])\n\t"
#define SPIN(n)   #n ":\tcmpl $0, enough(%%rip)\n\tjz " #n "b\n\t"

#define KEEP(load, save, each)                                                                     \
    __asm__ __volatile__(                                                                          \
        "fldpi\n\t" each(load) each(save) "leaq 2048(%[found]), %[found]\n\t" SPIN(1)              \
            each(save) "leaq -2048(%[found]), %[found]\n\tfstpl 4096(%[found])"                    \
        : [value] "+r"(value), [found] "+r"(place)::"memory", "cc")

static _Alignas(64) unsigned char found[4096 + 64];

static int keep_vectors(void)
{
    int value = 1000;
    unsigned char *place = found;
    double pi;

    if (__builtin_cpu_supports("avx512f"))
        KEEP(LOAD_Z, SAVE_Z, EACH32);
    else if (__builtin_cpu_supports("avx2"))
        KEEP(LOAD_Y, SAVE_Y, EACH16);
    else
        KEEP(LOAD_X, SAVE_X, EACH16);
    memcpy(&pi, found + 4096, sizeof pi);
    return memcmp(found, found + 2048, 2048) ? -1 : pi > 3.14159 && pi < 3.1416 ? 5 : -2;
}

static int wait_as(long way)
{
    struct timespec duration = {3600, 0};
    struct epoll_event event = {.events = EPOLLIN};
    char letter;
    sigset_t none;
    int events, n;

    switch (way) {
    case 0:
        return pause();
    case 1:
        return nanosleep(&duration, NULL);
    case 2:
        return (int)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL);
    case 3:
        return (int)read(pipes[way][0], &letter, 1);
    case 4:
        events = epoll_create1(0);
        epoll_ctl(events, EPOLL_CTL_ADD, pipes[way][0], &event);
        while ((n = epoll_wait(events, &event, 1, -1)) < 0 && errno == EINTR)
            continue; /* a debugger that attaches does this already */
        return n;
    case 5:
        sigemptyset(&none);
        return sigsuspend(&none);
    case 6:
        return keep_vectors();
    default:
        prudence_read_lock();
        n = (int)read(pipes[way][0], &letter, 1);
        prudence_read_unlock();
        return n;
    }
}

static void *thread(void *way)
{
    const char *name = ways[(long)way];
    int result;

    pthread_setname_np(pthread_self(), name);
    errno = 0;
    result = wait_as((long)way);
    if (result >= 0)
        errno = 0;
    printf("%s returned %d, errno %d, handled %d, value %d\n", name, result, errno, handled,
           value_of_signal);
    fflush(stdout);
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    char line[64];

    sigaction(SIGUSR1, &action, NULL);
    prudence_free(prudence_malloc(100));
    for (long way = 0; way < WAYS; way++) {
        if (pipe(pipes[way]) || pthread_create(&threads[way], NULL, thread, (void *)way))
            abort();
    }
    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long way = 0;

        while (way < WAYS && strncmp(ways[way], line, strlen(ways[way])))
            way++;
        if (way == 0 || way == 1 || way == 5)
            pthread_kill(threads[way], SIGUSR1);
        else if (way == 2)
            syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1);
        else if (way == 6)
            enough = 1;
        else if (way < WAYS && write(pipes[way][1], "x", 1) != 1)
            abort();
    }
    return 0;
}
