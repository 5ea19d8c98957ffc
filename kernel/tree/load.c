/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What tools/kernel-evaluate runs in the guest: loads of our own where Debian has no program for one, and what measures any load.
 *
 *     load open_close THREADS OPERATIONS     3.4's attack: each thread opens a file and closes it, without a pause
 *     load tcp_crr THREADS OPERATIONS        as netperf's TCP_CRR: connect to 127.0.0.1, a byte there, a byte back, close
 *     load epoll THREADS OPERATIONS          make an eventfd, add it to a set, close it
 *     load measure SAMPLE_MS SETTLE_MS COMMAND...
 *
 * The first three share their operations among threads, and exit with 1 when one fails. `measure` runs the command and then waits for what was
 * put off (SETTLE_MS). It prints the figures of all caches before and after ("SLUB before NAME FIGURE VALUE...", "CACHE", "TOTALS"), and
 * "LOAD wall_ns N busy_ns N status N": busy is all CPUs' time less what they idled, in ticks of 10 ms each, with the settling. With SAMPLE_MS
 * more than 0 it looks that often at slabs and memory, and prints "PEAK NAME objects N" of SLUB's caches and "PEAK memory kb N", which is all
 * that either allocator has from the page allocator.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define SLUB        "/sys/kernel/slab"
#define PRUDENCE    "/sys/kernel/debug/prudence"
#define NS          1000000000ull

static void check(long result, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ------------------------------------------------------------------------------------------ loads */

static atomic_long left; /* operations that nobody has begun */

static bool another(void)
{
    return atomic_fetch_sub(&left, 1) > 0;
}

static void *open_close(void *unused)
{
    while (another()) {
        int file = open("file", O_RDONLY);

        check(file, "open");
        close(file);
    }
    return unused;
}

static void *epoll(void *unused)
{
    int set = epoll_create1(0);

    check(set, "epoll_create1");
    while (another()) {
        struct epoll_event event = {.events = EPOLLIN};
        int file = eventfd(0, 0);

        check(file, "eventfd");
        check(epoll_ctl(set, EPOLL_CTL_ADD, file, &event), "EPOLL_CTL_ADD");
        close(file);
    }
    close(set);
    return unused;
}

static struct sockaddr_in address = {.sin_family = AF_INET};
static int listener;

/* The server: answers each byte on a connection of its own. Ends with the program. */
static void *serve(void *unused)
{
    for (;;) {
        int file = accept(listener, NULL, NULL);
        char byte;

        check(file, "accept");
        check(read(file, &byte, 1), "read");
        check(write(file, &byte, 1), "write");
        close(file);
    }
    return unused;
}

static void listen_there(void)
{
    socklen_t length = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    check(listener, "socket");
    check(bind(listener, (struct sockaddr *)&address, sizeof address), "bind");
    check(getsockname(listener, (struct sockaddr *)&address, &length), "getsockname");
    check(listen(listener, 128), "listen");
}

/* Closed by a reset: a port that waits after each connection would be gone after 28,000 of them. */
static void *tcp_crr(void *unused)
{
    struct linger reset = {.l_onoff = 1};

    while (another()) {
        int file = socket(AF_INET, SOCK_STREAM, 0);
        char byte = 'x';

        check(file, "socket");
        check(setsockopt(file, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), "SO_LINGER");
        check(connect(file, (struct sockaddr *)&address, sizeof address), "connect");
        check(write(file, &byte, 1), "write");
        check(read(file, &byte, 1), "read");
        close(file);
    }
    return unused;
}

static void run_threads(void *(*run)(void *), unsigned threads)
{
    pthread_t ids[THREADS_MAX];

    for (unsigned i = 0; i < threads; i++)
        check(-pthread_create(&ids[i], NULL, run, NULL), "pthread_create");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}

static int load(const char *name, unsigned threads, long operations)
{
    pthread_t server;

    atomic_store(&left, operations);
    if (!strcmp(name, "open_close")) {
        close(open("file", O_RDWR | O_CREAT, 0600));
        run_threads(open_close, threads);
    } else if (!strcmp(name, "epoll")) {
        run_threads(epoll, threads);
    } else if (!strcmp(name, "tcp_crr")) {
        listen_there();
        for (unsigned i = 0; i < threads; i++)
            check(-pthread_create(&server, NULL, serve, NULL), "pthread_create");
        run_threads(tcp_crr, threads);
    } else {
        fprintf(stderr, "load: there is no '%s'\n", name);
        return 2;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------------- figures */

/* What a file holds; empty if there is none, or if it cannot be read. */
static char *text_of(const char *path)
{
    static char text[8192];
    int file = open(path, O_RDONLY);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);

    text[length > 0 ? length : 0] = '\0';
    if (file >= 0)
        close(file);
    return text;
}

/* The number that follows a word. */
static unsigned long long number_after(const char *text, const char *word)
{
    const char *at = strstr(text, word);

    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

static const char *const slub_figures[] = {
    "object_size",       "slab_size",        "objs_per_slab",      "order",
    "objects",           "total_objects",    "alloc_fastpath",     "alloc_slowpath",
    "free_fastpath",     "free_slowpath",    "alloc_from_partial", "alloc_slab",
    "alloc_refill",      "free_slab",        "free_add_partial",   "free_remove_partial",
    "cpu_partial_alloc", "cpu_partial_free", "cpu_partial_node",   "cpu_partial_drain",
    "deactivate_full",   "deactivate_empty", "cpuslab_flush",
};

static void print_slub(const char *when, const char *name)
{
    char path[512];

    printf("SLUB %s %s", when, name);
    for (size_t i = 0; i < sizeof slub_figures / sizeof *slub_figures; i++) {
        const char *text;

        snprintf(path, sizeof path, SLUB "/%s/%s", name, slub_figures[i]);
        text = text_of(path); /* the first number is the sum of all CPUs and nodes */
        if (*text)
            printf(" %s %llu", slub_figures[i], strtoull(text, NULL, 10));
    }
    printf("\n");
}

/* A file of lines "figure value". */
static void print_prudence(const char *when, const char *name)
{
    char path[512];
    char *text;

    snprintf(path, sizeof path, PRUDENCE "/%s", name);
    text = text_of(path);
    if (!strcmp(name, "totals"))
        printf("TOTALS %s", when);
    else
        printf("CACHE %s %s", when, name);
    for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
        printf(" %s", word);
    printf("\n");
}

static void print_folder(const char *folder, const char *when,
                         void (*print)(const char *, const char *))
{
    DIR *found = opendir(folder);
    struct dirent *entry;

    if (!found)
        return;
    while ((entry = readdir(found)))
        if (entry->d_name[0] != '.' && entry->d_name[0] != ':' && strcmp(entry->d_name, "slabinfo"))
            print(when, entry->d_name);
    closedir(found);
}

static void print_figures(const char *when)
{
    print_folder(SLUB, when, print_slub);
    print_folder(PRUDENCE, when, print_prudence);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------ peaks */

/* Files stay open: to open one is what is measured. */
static struct {
    const char *name;
    int file;
    unsigned long long objects;
} peaks[] = {{.name = "filp"},
             {.name = "dentry"},
             {.name = "inode_cache"},
             {.name = "shmem_inode_cache"},
             {.name = "ext4_inode_cache"},
             {.name = "eventpoll_epi"},
             {.name = "sock_inode_cache"},
             {.name = "lsm_inode_cache"},
             {.name = "avc_node"},
             {.name = "maple_node"},
             {.name = "radix_tree_node"},
             {.name = "kmalloc-64"}};
static int meminfo, totals;
static unsigned long long peak_kb;

#define PEAKS (sizeof peaks / sizeof *peaks)

static void open_samples(void)
{
    char path[512];

    meminfo = open("/proc/meminfo", O_RDONLY);
    check(meminfo, "/proc/meminfo");
    totals = open(PRUDENCE "/totals", O_RDONLY);
    for (size_t i = 0; i < PEAKS; i++) {
        snprintf(path, sizeof path, SLUB "/%s/total_objects", peaks[i].name);
        peaks[i].file = open(path, O_RDONLY);
        check(peaks[i].file, path);
    }
}

static char *text_again(int file)
{
    static char text[8192];
    ssize_t length = pread(file, text, sizeof text - 1, 0);

    text[length > 0 ? length : 0] = '\0';
    return text;
}

static void sample(void)
{
    unsigned long long kb = number_after(text_again(meminfo), "\nSlab:");

    kb += number_after(text_again(totals), "page_bytes") / 1024;
    if (kb > peak_kb)
        peak_kb = kb;
    for (size_t i = 0; i < PEAKS; i++) {
        unsigned long long objects = strtoull(text_again(peaks[i].file), NULL, 10);

        if (objects > peaks[i].objects)
            peaks[i].objects = objects;
    }
}

static void print_peaks(void)
{
    for (size_t i = 0; i < PEAKS; i++)
        printf("PEAK %s objects %llu\n", peaks[i].name, peaks[i].objects);
    printf("PEAK memory kb %llu\n", peak_kb);
}

/* ---------------------------------------------------------------------------------------- measure */

static unsigned long long now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (unsigned long long)time.tv_sec * NS + (unsigned long long)time.tv_nsec;
}

static unsigned long long idle(void)
{
    unsigned long long idled = 0, waited = 0;

    sscanf(text_of("/proc/stat"), "cpu %*u %*u %*u %llu %llu", &idled, &waited);
    return (idled + waited) * (NS / 100);
}

static void nap(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l}, NULL);
}

static int wait_and_sample(pid_t child, unsigned sample_ms)
{
    int status;

    while (waitpid(child, &status, sample_ms ? WNOHANG : 0) == 0) {
        sample();
        nap(sample_ms);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int measure(unsigned sample_ms, unsigned settle_ms, char **command)
{
    unsigned long long begin, idled, wall, total;
    unsigned long long cpus = (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN);
    int status;
    pid_t child;

    print_figures("before");
    if (sample_ms) {
        open_samples();
        sample();
    }
    begin = now();
    idled = idle();
    child = fork();
    check(child, "fork");
    if (!child) {
        execvp(*command, command);
        check(-1, *command);
    }
    status = wait_and_sample(child, sample_ms);
    wall = now() - begin;
    nap(settle_ms);
    total = (now() - begin) * cpus;
    printf("LOAD wall_ns %llu busy_ns %llu status %d\n", wall, total - (idle() - idled), status);
    if (sample_ms)
        print_peaks();
    print_figures("after");
    return status;
}

int main(int count, char **arguments)
{
    if (count > 4 && !strcmp(arguments[1], "measure"))
        return measure((unsigned)strtoul(arguments[2], NULL, 0),
                       (unsigned)strtoul(arguments[3], NULL, 0), arguments + 4);
    if (count == 4) {
        unsigned long threads = strtoul(arguments[2], NULL, 0);
        long operations = strtol(arguments[3], NULL, 0);

        if (threads >= 1 && threads <= THREADS_MAX && operations >= 1)
            return load(arguments[1], (unsigned)threads, operations);
    }
    fprintf(
        stderr,
        "usage: load NAME THREADS OPERATIONS, or load measure SAMPLE_MS SETTLE_MS COMMAND...\n");
    return 2;
}
