/* SPDX-License-Identifier: MIT */
/*
 * Linked into each test program: notes which fast paths the library has in it, so that a build in
 * which it silently falls back cannot pass for the one that users get. One line is added to the
 * file that PRUDENCE_TEST_MODES names, when the program ends:
 *
 *     NAME percpu=REASON percpu_later=REASON membarrier=WORD inlined=NUMBER
 *
 * REASON is "rseq", or why per-CPU caches have locks, with '_' for blanks. tools/test/modes adds
 * the lines up. If the library has no sequences or no membarriers and nothing asked for that, this
 * program asks the program "machine" whether the machine has them, and fails at once if so. The
 * other program inherits what a test has forbidden this one, a filter of system calls for instance.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <prudence/stats.h>

/* The library's own words, in programs that have its internal names. There the statistics are not
 * asked, because a test may want to be the first that asks, and may leave the library in any state
 * at exit. */
extern const char *os_percpu_why_not __attribute__((weak, visibility("hidden")));
extern bool os_membarrier_available(void) __attribute__((weak, visibility("hidden")));
/* Whether <prudence/inline.h> inlines (support/inlined.c), in programs that ask for that. */
extern const int test_inlined __attribute__((weak, visibility("hidden")));

static char at_start[64] = "rseq"; /* or the reason */
static bool has_membarrier;
static char file_name[256], program[64];
static pid_t recorded;

/* Reasons that a thread has given the library. Any other is its own finding. */
static const char *const intents[] = {"option rseq=0 or sandbox=1", "injected topology",
                                      "ThreadSanitizer does not see them", "not on this processor",
                                      "a tunable of glibc"};

static bool is_intended(const char *reason)
{
    for (size_t i = 0; i < sizeof intents / sizeof intents[0]; i++)
        if (strcmp(reason, intents[i]) == 0)
            return true;
    return false;
}

static bool is_asked(const char *option)
{
    const char *options = getenv("PRUDENCE_OPTIONS");

    return options && (strstr(options, option) || strstr(options, "sandbox=1"));
}

/* Returns whether the machine has that. If it cannot be asked, no: under an emulator, and with a
 * preloaded library, which would be in the other program, too. valgrind preloads one. */
static bool machine_has(const char *what)
{
    char line[200] = "";
    FILE *answer = getenv("LD_PRELOAD") ? NULL : popen(MACHINE, "r");

    if (!answer)
        return false;
    if (!fgets(line, sizeof line, answer))
        line[0] = '\0';
    pclose(answer);
    return strstr(line, what);
}

static void refuse(const char *what, const char *why)
{
    fprintf(stderr,
            "%s: the library has no %s (%s), although the machine has: this is not what users "
            "run\n",
            program, what, why);
    _exit(1);
}

static void check(void)
{
    if (strcmp(at_start, "rseq") != 0 && !is_intended(at_start) && machine_has("sequences=1"))
        refuse("sequences", at_start);
    if (!has_membarrier && !is_asked("membarrier=0") && machine_has("membarrier=1"))
        refuse("membarriers", "missing");
}

static void name_program(void)
{
    char path[512] = "";
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    const char *name = length > 0 ? strrchr(path, '/') : NULL;

    snprintf(program, sizeof program, "%.60s", name ? name + 1 : "program");
}

static void keep_reason(char *to, size_t room, const char *reason)
{
    const char *tunables = getenv("GLIBC_TUNABLES");

    if (reason && tunables && strstr(tunables, "pthread.rseq=0"))
        reason = "a tunable of glibc";
    snprintf(to, room, "%s", reason && *reason ? reason : "rseq");
}

static bool look_at_library(void)
{
    struct prudence_stats stats;

    if (os_membarrier_available) {
        keep_reason(at_start, sizeof at_start, os_percpu_why_not);
        has_membarrier = os_membarrier_available();
        return true;
    }
    if (prudence_stats(&stats))
        return false;
    keep_reason(at_start, sizeof at_start, stats.percpu_reason);
    has_membarrier = strcmp(stats.membarrier, "available") == 0;
    return true;
}

/* Children do not record, so that each program counts once. */
__attribute__((constructor)) static void look(void)
{
    const char *name = getenv("PRUDENCE_TEST_MODES");

    name_program();
    if (!look_at_library())
        return;
    check();
    if (!name || strlen(name) >= sizeof file_name)
        return;
    memcpy(file_name, name, strlen(name) + 1);
    unsetenv("PRUDENCE_TEST_MODES");
    recorded = getpid();
}

static void join_words(char *text)
{
    for (; *text; text++)
        if (*text == ' ')
            *text = '_';
}

__attribute__((destructor)) static void record(void)
{
    char later[sizeof at_start], line[300];
    int fd, length;

    if (recorded != getpid() || !*file_name)
        return;
    memcpy(later, at_start, sizeof later);
    if (os_membarrier_available)
        keep_reason(later, sizeof later, os_percpu_why_not);
    join_words(at_start);
    join_words(later);
    length = snprintf(line, sizeof line, "%s percpu=%s percpu_later=%s membarrier=%s inlined=%d\n",
                      program, at_start, later,
                      has_membarrier             ? "available"
                      : is_asked("membarrier=0") ? "unwanted"
                                                 : "missing",
                      &test_inlined ? test_inlined : -1);
    fd = open(file_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)length) != length)
        fprintf(stderr, "%s: no room for %s\n", program, file_name);
    close(fd);
}
