/* SPDX-License-Identifier: MIT */
/*
 * Changes the memory map of a running machine, first steadily and then in a storm.
 *
 *     moves QEMU GUEST SECONDS
 *
 * QEMU emulates a PC whose processor runs GUEST (guest.S), which needs the big lock all the time.
 * By QEMU's qtest protocol, as its own tests do, this moves the memory of a PCI device to and fro:
 * each move makes new views of the address spaces and hands the old ones to call_rcu. For SECONDS a
 * move is made each millisecond, then MOVES moves follow one another, IN_FLIGHT of them unanswered.
 * Prints one line of JSON.
 */
#define _GNU_SOURCE
#include "../driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MOVES     5000
#define IN_FLIGHT 32
#define TIMES     (1 << 20)
#define BUCKETS   124 /* of guest.S */
#define DEVICE    "4" /* its place on the bus */
#define CONFIG    (0x80000000u + (4u << 11))

static pid_t qemu;
static FILE *to, *from;
static uint32_t times[TIMES]; /* ns, of moves */
static unsigned time_count;

static void fail(const char *what)
{
    fprintf(stderr, "moves: %s\n", what);
    if (qemu > 0)
        kill(qemu, SIGKILL);
    exit(1);
}

/* -------------------------------------------------------------------------------------- qtest */

static void ask(const char *format, ...)
{
    va_list words;

    va_start(words, format);
    vfprintf(to, format, words);
    va_end(words);
    fputc('\n', to);
}

/* The answer without "OK ". */
static char *answer(void)
{
    static char line[1 << 12];

    fflush(to);
    do {
        if (!fgets(line, sizeof line, from))
            fail("QEMU has ended");
    } while (!strncmp(line, "IRQ ", 4));
    if (strncmp(line, "OK", 2))
        fail(line);
    return line + 2;
}

static void set_config(unsigned offset, unsigned value)
{
    ask("outl 0xcf8 0x%x", CONFIG + offset);
    answer();
    ask("outl 0xcfc 0x%x", value);
    answer();
}

static unsigned place(unsigned move)
{
    return 0xe0000000u + (move & 1) * 0x100000u;
}

static unsigned read_byte(unsigned address)
{
    ask("readb 0x%x", address);
    return (unsigned)strtoul(answer(), NULL, 0);
}

/* The device's first byte is the number that was written there; elsewhere there is nothing. */
static void check_place(unsigned move)
{
    ask("writeb 0x%x 0x1", place(move));
    answer();
    if (read_byte(place(move)) != 1 || read_byte(place(move + 1)) == 1)
        fail("the device's memory is not where it was moved to");
}

/* --------------------------------------------------------------------------------- the machine */

static void start(const char *program, const char *guest)
{
    int down[2], up[2];

    if (pipe(down) || pipe(up)) {
        perror("pipe");
        exit(1);
    }
    qemu = fork();
    if (!qemu) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execl(program, program, "-name", "moves,debug-threads=on", "-machine", "pc", "-accel",
              "tcg", "-m", "64", "-nodefaults", "-display", "none", "-device",
              "VGA,romfile=", "-device", "pci-testdev,addr=" DEVICE, "-bios", guest, "-qtest",
              "stdio", "-qtest-log", "none", NULL);
        perror(program);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    to = fdopen(down[1], "w");
    from = fdopen(up[0], "r");
    set_config(0x10, place(0));
    set_config(4, 2); /* it answers at its place */
    ask("outl 0xcf8 0x%x", CONFIG + 0x10);
    answer();
    check_place(0);
}

static FILE *open_of_qemu(const char *name, const char *mode)
{
    char path[600];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)qemu, name);
    file = fopen(path, mode);
    if (!file)
        fail(path);
    return file;
}

static double memory_mb(const char *field)
{
    char line[256];
    double found = -1;
    FILE *file = open_of_qemu("status", "r");

    while (fgets(line, sizeof line, file))
        if (!strncmp(line, field, strlen(field)))
            found = strtod(line + strlen(field) + 1, NULL) * 1024 / 1e6;
    fclose(file);
    return found;
}

static void forget_peak(void)
{
    FILE *file = open_of_qemu("clear_refs", "w");

    fputs("5", file);
    fclose(file);
}

static bool is_processor(const char *thread)
{
    char path[300], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "task/%s/comm", thread);
    file = open_of_qemu(path, "r");
    if (!fgets(name, sizeof name, file))
        fail("a thread without a name");
    fclose(file);
    return !strncmp(name, "CPU ", 4);
}

/* Covers all threads except the guest's processor, which never sleeps. */
static double cpu_us(void)
{
    char path[300];
    double sum = 0, ns;
    struct dirent *thread;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/task", (int)qemu);
    folder = opendir(path);
    while (folder && (thread = readdir(folder))) {
        if (*thread->d_name == '.' || is_processor(thread->d_name))
            continue;
        snprintf(path, sizeof path, "task/%s/schedstat", thread->d_name);
        FILE *file = open_of_qemu(path, "r");
        if (fscanf(file, "%lf", &ns) == 1)
            sum += ns / 1e3;
        fclose(file);
    }
    closedir(folder);
    return sum;
}

/* ----------------------------------------------------------------------------------- the guest */

struct readings {
    uint32_t counts[BUCKETS];
    uint64_t ticks, when; /* when: ns */
};

static void read_guest(void *into, unsigned address, size_t size)
{
    char *digits, byte[3] = "";

    ask("read 0x%x 0x%zx", address, size);
    digits = answer() + 3; /* " 0x" */
    for (size_t i = 0; i < size; i++) {
        memcpy(byte, digits + 2 * i, 2);
        ((uint8_t *)into)[i] = (uint8_t)strtoul(byte, NULL, 16);
    }
}

static struct readings readings(void)
{
    struct readings now;

    read_guest(now.counts, 0x1000, sizeof now.counts);
    read_guest(&now.ticks, 0x2000, sizeof now.ticks);
    now.when = now_ns(CLOCK_MONOTONIC);
    return now;
}

/* The end of the bucket that has the guest's p99.9 between the two. */
static double guest_p999_us(const struct readings *first, const struct readings *last)
{
    double each = (double)(last->when - first->when) / (double)(last->ticks - first->ticks);
    uint64_t all = 0, passed = 0;

    for (int i = 0; i < BUCKETS; i++)
        all += last->counts[i] - first->counts[i];
    if (all < 1000)
        fail("the guest hardly runs");
    for (unsigned i = 0; i < BUCKETS; i++) {
        passed += last->counts[i] - first->counts[i];
        if (passed >= all - all / 1000)
            return (double)((uint64_t)(4 + (i + 1) % 4) << (i + 1) / 4) * each / 1e3;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------- measuring */

static unsigned move(unsigned number)
{
    ask("outl 0xcfc 0x%x", place(++number));
    return number;
}

static unsigned steady(double seconds, unsigned number)
{
    uint64_t begun, end = now_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);

    while ((begun = now_ns(CLOCK_MONOTONIC)) < end) {
        number = move(number);
        answer();
        times[time_count++ % TIMES] = (uint32_t)(now_ns(CLOCK_MONOTONIC) - begun);
        usleep(1000);
    }
    return number;
}

static unsigned storm(unsigned number)
{
    for (int i = 0; i < MOVES + IN_FLIGHT; i++) {
        if (i < MOVES)
            number = move(number);
        if (i >= IN_FLIGHT)
            answer();
    }
    return number;
}

static double p999_us(void)
{
    unsigned count = time_count < TIMES ? time_count : TIMES;

    qsort(times, count, sizeof *times, by_value);
    return times[(unsigned)(count * 0.999)] / 1e3;
}

int main(int argc, char **argv)
{
    double seconds = argc == 4 ? atof(argv[3]) : 0, cpu;
    struct readings first, last;
    unsigned number;
    uint64_t begun;

    if (seconds <= 0) {
        fprintf(stderr,
                "moves: three arguments are needed: a program, a file, a number of seconds\n");
        return 2;
    }
    start(argv[1], argv[2]);
    first = readings();
    number = steady(seconds, 0);
    last = readings();
    printf("{\"move_p999_us\": %.1f, \"guest_p999_us\": %.1f", p999_us(),
           guest_p999_us(&first, &last));

    forget_peak();
    cpu = cpu_us();
    begun = now_ns(CLOCK_MONOTONIC);
    number = storm(number);
    printf(", \"moves\": %.0f", MOVES * 1e9 / (double)(now_ns(CLOCK_MONOTONIC) - begun));
    usleep(2000000);
    printf(
        ", \"move_cpu_us\": %.2f, "
        "\"machine_peak_mb\": %.1f, \"machine_after_mb\": %.1f}\n",
        (cpu_us() - cpu) / MOVES, memory_mb("VmHWM"), memory_mb("VmRSS"));
    check_place(number);
    kill(qemu, SIGTERM);
    if (waitpid(qemu, NULL, 0) != qemu)
        fail("QEMU cannot be waited for");
    return 0;
}
