/* SPDX-License-Identifier: MIT */
/*
 * Writes the profile to a file: prudence_profile_dump(), and the options profile_file (at exit) and
 * profile_signal.
 *
 * The file consists of lines of text, which prudence-profile(1) converts for pprof. Addresses are
 * written raw; the process's mappings, which follow, show which files they belong to. A module that
 * was unloaded has none any more, and another may be in its place. Addresses in it are written as
 * if it were mapped where no process can have a mapping, and a line shows that place. The last line
 * is "end", so a truncated file is noticed. Writing uses system calls alone and takes no lock, so
 * any thread may do it at any time, also in a signal handler. Sums that change during the call have
 * a value of some instant of the call.
 */
#define _GNU_SOURCE /* program_invocation_short_name, syscall */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "guard/stack_depot.h"
#include "loaded.h"
#include "observe/option_file.h"
#include "observe/options.h"
#include "observe/output.h"
#include "observe/profile.h"
#include "observe/profile_sites.h"
#include "observe/signals.h"
#include "process.h"

#define FORMAT 1 /* version; changes with the meaning of the lines */

typedef unsigned long long number;

static void profile_dump_print_head(struct output *output)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    output_print(output, "prudence profile %d\n", FORMAT);
    output_text(output, "version " PRUDENCE_VERSION "\n");
    output_print(output, "program %d ", os_process_id());
    output_json_string(output, program_invocation_short_name);
    output_text(output, "\n");
    output_print(output, "time %lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    output_print(output, "rate %llu\n", (number)load_relaxed(&sampling_rate));
    output_print(output, "unit %llu\n", (number)SAMPLING_UNIT);
    output_print(output, "dropped %llu\n", (number)profile_dropped());
}

/* Returns the sum, or 0 if it is negative: another thread's free may be counted before the
 * allocation. */
static number not_below_zero(const uint64_t *sum)
{
    uint64_t now = load_relaxed(sum);

    return (int64_t)now < 0 ? 0 : now;
}

/* Converts a sum of nanoseconds (a double) to whole microseconds. A sum above the maximum becomes
 * the maximum, because such a sum is only good for an average. */
static number microseconds(const uint64_t *sum)
{
    uint64_t bits = load_relaxed(sum);
    double ns;

    memcpy(&ns, &bits, sizeof ns);
    return ns / 1000 < 1e19 ? (number)(ns / 1000) : (number)1e19;
}

/* Returns the place where the file says that an unloaded module's code is mapped. */
static uintptr_t unloaded_place(const struct loaded *module)
{
    return ((uintptr_t)1 << 62) + ((uintptr_t)module->number << 36);
}

static void print_calls(struct output *output, const struct trace *trace)
{
    for (unsigned i = 0; i < trace->count; i++) {
        uintptr_t call = (uintptr_t)trace->frames[i];
        const struct loaded *module = loaded_of(trace->frames[i], trace->rank);

        if (module && call > module->code_start && call <= module->code_end &&
            loaded_is_gone(module))
            call += unloaded_place(module) - module->code_start;
        output_print(output, " %llx", (number)call);
    }
}

/* Prints a line of ROLE, objects and bytes now, objects and bytes ever, microseconds and "CACHE",
 * then a line of ages and a line of calls. */
static void print_site(const struct profile_site *site, void *data)
{
    struct output *output = data;
    const struct trace *trace = stack_depot_trace(site->trace);

    output_text(output, site->role == SITE_ALLOCATES ? "allocates " : "defers ");
    output_print(output, "%llu %llu %llu %llu %llu ", not_below_zero(&site->now.objects),
                 not_below_zero(&site->now.bytes), (number)load_relaxed(&site->ever.objects),
                 (number)load_relaxed(&site->ever.bytes), microseconds(&site->age));
    output_json_string(output, site->cache);
    output_text(output, "\nages");
    for (unsigned i = 0; i < SITE_AGES; i++)
        if (load_relaxed(&site->ages[i]))
            output_print(output, " %u:%llu", i, (number)load_relaxed(&site->ages[i]));
    output_text(output, "\ncalls");
    if (trace)
        print_calls(output, trace);
    output_text(output, "\n");
}

/* Prints a line for each module that was unloaded, in the form of the mappings. */
static void print_unloaded(struct output *output)
{
    for (const struct loaded *module = loaded_next(NULL); module; module = loaded_next(module)) {
        uintptr_t place = unloaded_place(module);

        if (!module->code_end || !loaded_is_gone(module))
            continue;
        output_print(output, "%llx-%llx r-xp %08llx 00:00 0 ", (number)place,
                     (number)(place + module->code_end - module->code_start),
                     (number)module->code_offset);
        output_name(output, module->name);
        output_text(output, " (unloaded)\n");
    }
}

static void print_mappings(struct output *output)
{
    int maps = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char text[513];
    long length = 0;

    output_text(output, "mappings\n");
    while (maps >= 0 && (length = syscall(SYS_read, maps, text, sizeof text - 1)) > 0) {
        text[length] = '\0';
        output_text(output, text);
    }
    if (maps >= 0)
        option_file_close(maps);
    print_unloaded(output);
    output_text(output, "end\n");
}

static int print_to(int fd)
{
    struct output output = {.fd = fd};

    profile_dump_print_head(&output);
    profile_sites_visit(print_site, &output);
    print_mappings(&output);
    return output_end(&output);
}

/* Prints to `fd` and closes it. If `fd` is -1, returns errno, which shows why the open failed. */
static int print_and_close(int fd)
{
    int error = fd < 0 ? errno : print_to(fd);

    if (fd >= 0)
        option_file_close(fd);
    return error;
}

int prudence_profile_dump(const char *path)
{
    int saved_errno = errno, error;

    if (!path) {
        os_report("prudence_profile_dump: the path is NULL");
        return EINVAL;
    }
    if (!os_busy)
        process_start();
    error = !load_relaxed(&sampling_rate)
                ? ENODATA
                : print_and_close(option_file_open_path(path, OPTION_FILE_OVERWRITE));
    errno = saved_errno;
    return error;
}

/* ------------------------------------------------------------------------ at a signal, at exit */

static struct option_file file;
static struct timespec named_at; /* when the option was set, by the clock of files */
static int written_by;           /* the process that wrote the file last; atomic */

bool profile_dump_set_file(const char *path)
{
    clock_gettime(CLOCK_REALTIME_COARSE, &named_at);
    return option_file_set(&file, path);
}

/* Returns whether another process has written the file since this one was given its name: a program
 * that this one started, or its parent. */
static bool is_of_another(const char *path)
{
    struct stat of;

    if (load_relaxed(&os_calls) == OS_CALLS_FEW || load_relaxed(&written_by) == os_process_id() ||
        stat(path, &of) || !S_ISREG(of.st_mode))
        return false;
    return of.st_size > 0 &&
           (of.st_mtim.tv_sec > named_at.tv_sec ||
            (of.st_mtim.tv_sec == named_at.tv_sec && of.st_mtim.tv_nsec > named_at.tv_nsec));
}

static int write_profile(const char *path)
{
    int error = print_and_close(option_file_open(path, OPTION_FILE_OVERWRITE));

    if (!error)
        store_relaxed(&written_by, os_process_id());
    return error;
}

/* Writes to a file of this process's own if the name has no process's id, and another process has
 * written there. Otherwise the profile of a shell would replace that of its program. */
static int write_beside(const char *path)
{
    char own[OPTION_FILE_SIZE + sizeof ".%p"];

    if (strstr(path, "%p") || !is_of_another(path))
        return write_profile(path);
    snprintf(own, sizeof own, "%s.%%p", path);
    os_report(
        "option 'profile_file': '%s' has the profile of another process, so that of this one "
        "goes to '%s.%d' (%%p in the name stands for the id of each)",
        path, path, os_process_id());
    return write_profile(own);
}

static void write_and_report(const char *path)
{
    int saved_errno = errno;
    int error = load_relaxed(&sampling_rate) ? write_beside(path) : 0;

    if (error)
        os_report("option 'profile_file': the profile cannot be written to '%s' (error %d%s)", path,
                  error, option_file_hint(error));
    errno = saved_errno;
}

void profile_dump_at_signal(uint64_t choice)
{
    const char *path = load_acquire(&file.path);

    (void)choice;
    write_and_report(path ? path : "prudence-%p.profile");
}

/* Runs late, as in exit_stats.c: no code remains to free the objects in use. */
COLD __attribute__((destructor(101))) static void profile_dump_at_exit(void)
{
    const char *path = load_acquire(&file.path);

    if (path)
        write_and_report(path);
}
