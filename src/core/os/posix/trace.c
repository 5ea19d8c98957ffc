/* SPDX-License-Identifier: MIT */
/*
 * Traces of calls. Remembered rules capture them (unwind.c). If those do not lead to the end,
 * the compiler's unwinder does, which reads tables, because frame pointers are not guaranteed. With
 * glibc that is backtrace(); musl has none. The first use of backtrace() loads libgcc_s, for which
 * it waits for the loader's lock, and allocates. So os_trace_prime() makes that use where it does
 * no harm, or by a thread of its own (os_obeying); until then there are no traces. A thread that is
 * already capturing captures nothing, so an allocation inside a capture returns.
 *
 * In a static program the compiler's constructor informs the unwinder where the program's tables
 * are, and the compiler's destructor makes it forget them and frees memory under the unwinder's own
 * lock. A trace of that free would deadlock. So there are traces only between the two
 * (process/process.c).
 *
 * Calls are described without a lock (_dl_find_object, glibc 2.35), as they are captured, because
 * the thread that reports may hold what a constructor waits for, which runs under the loader's
 * lock. Where the C library has no such function, dladdr() waits for that lock.
 *
 * In a shared library, traces leave out the library's own leading frames. A program linked with the
 * static library has no such border, so traces begin inside the library.
 */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr, program_invocation_name */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <execinfo.h>
#endif

#include "loaded.h"
#include "os/os.h"
#include "posix.h"
#include "symbol.h"
#include "unwind.h"

#define FRAMES_OURS 8                   /* most leading frames of a trace that are ours */
#define PRIME_STACK ((size_t)256 << 10) /* bytes; of the thread that primes */

static uint32_t primed, ended;
static uint32_t priming; /* a thread of its own was started for that */
static bool is_static;   /* the program has no dynamic section; written before `primed` */
static struct code_range our_code;
static char program_path[OS_TRACE_LINE]; /* empty if unknown or longer; written before `primed` */
static __thread bool capturing;
__thread const char *posix_trace_failure;

#if defined(__GLIBC__)

static unsigned frames_by_tables(void **frames, unsigned count)
{
    return (unsigned)backtrace(frames, (int)count);
}

#else

/* As the compiler's <unwind.h> has them, in whose place a header of ours would be found. Weak,
 * because not every compiler for musl has the unwinder. Without it there are no traces. */
#define NO_REASON    0
#define END_OF_STACK 5
struct _Unwind_Context;
extern int _Unwind_Backtrace(int (*visit)(struct _Unwind_Context *context, void *to), void *to)
    __attribute__((weak));
extern uintptr_t _Unwind_GetIP(struct _Unwind_Context *context) __attribute__((weak));

struct collected {
    void **frames;
    unsigned count, room;
    bool begun; /* the first frame, which asked, was skipped */
};

static int collect(struct _Unwind_Context *context, void *to)
{
    struct collected *collected = to;

    if (!collected->begun) {
        collected->begun = true;
        return NO_REASON;
    }
    if (collected->count == collected->room)
        return END_OF_STACK;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    collected->frames[collected->count++] = (void *)_Unwind_GetIP(context);
    return NO_REASON;
}

static __attribute__((noinline)) unsigned frames_by_tables(void **frames, unsigned count)
{
    struct collected collected = {.frames = frames, .room = count};

    if (_Unwind_Backtrace && _Unwind_GetIP)
        _Unwind_Backtrace(collect, &collected);
    return collected.count;
}

#endif

/* The loader knows the program by argv[0] alone, which names no file if it was found through PATH.
 * If the loader was started as a program, with ours as an argument, the link is to the loader, and
 * there is no other loader, which AT_BASE would have. */
static void find_program(void)
{
    ssize_t length = 0;

    if (getauxval(AT_BASE))
        length = readlink("/proc/self/exe", program_path, sizeof program_path);
    if (length < 0 || length == sizeof program_path)
        length = 0;
    program_path[length] = '\0';
}

static int find_our_code(struct dl_phdr_info *module, size_t size, void *ignored)
{
    uintptr_t here = (uintptr_t)find_our_code;
    bool dynamic = false;

    (void)size;
    (void)ignored;
    if (load_acquire(&primed)) /* by another thread; the loader's lock orders these calls */
        return 1;
    for (unsigned i = 0; i < module->dlpi_phnum; i++)
        dynamic |= module->dlpi_phdr[i].p_type == PT_DYNAMIC;
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        uintptr_t start = module->dlpi_addr + module->dlpi_phdr[i].p_vaddr;
        uintptr_t end = start + module->dlpi_phdr[i].p_memsz;

        if (module->dlpi_phdr[i].p_type != PT_LOAD || here < start || here >= end)
            continue;
        is_static = !dynamic;
        if (*module->dlpi_name) { /* the program has no name */
            our_code.start = start;
            our_code.end = end;
        }
        find_program();
        store_release(&primed, 1u);
        return 1;
    }
    return 0;
}

static void prime(void *unused)
{
    void *frame;

    (void)unused;
    capturing = true;
    frames_by_tables(&frame, 1);
    dl_iterate_phdr(find_our_code, NULL);
    capturing = false;
    store_release(&primed, 1u);
}

void os_trace_prime(void)
{
    uint32_t no = 0;

    if (load_acquire(&primed) || load_relaxed(&ended) || capturing)
        return;
    if (!os_obeying)
        prime(NULL);
    else if (compare_exchange(&priming, &no, 1u) &&
             !os_thread_start("prudence-trace", -1, PRIME_STACK, prime, NULL))
        store_relaxed(&priming, 0u);
}

/* The thread does not exist in the child. */
void posix_trace_fork_child(void)
{
    store_relaxed(&priming, 0u);
}

COLD void posix_trace_end(void)
{
    if (!load_acquire(&primed) || !is_static)
        return;
    store_relaxed(&ended, 1u);
    store_release(&primed, 0u);
}

static bool is_ours(const void *frame)
{
    return (uintptr_t)frame - our_code.start < our_code.end - our_code.start;
}

unsigned os_trace_capture_from(const void *frame_address, void **frames, unsigned count)
{
    unsigned captured;

    if (!load_acquire(&primed) || capturing || !count)
        return 0;
    capturing = true;
    captured = unwind_from(frame_address, our_code, frames, count);
    capturing = false;
    return captured;
}

unsigned os_trace_capture(void **frames, unsigned count)
{
    void *all[OS_TRACE_MAX + FRAMES_OURS];
    unsigned wanted = (unsigned)min_size(count, OS_TRACE_MAX) + FRAMES_OURS;
    unsigned captured, first = 0;

    if (!load_acquire(&primed) || capturing || !count)
        return 0;
    capturing = true;
    captured = unwind_here(all, wanted);
    if (!captured)
        captured = frames_by_tables(all, wanted);
    capturing = false;
    while (first < captured && (first == 0 || is_ours(all[first])))
        first++; /* the first is this function */
    count = (unsigned)min_size(count, captured - first);
    memcpy(frames, all + first, count * sizeof *frames);
    return count;
}

/* What a frame's code is. */
struct described {
    const char *file;  /* NULL if unknown */
    const char *start; /* of the file's addresses */
    const char *name;  /* of the function, or NULL */
    const char *name_start;
};

#if LOADED_KNOWN

extern int _dl_find_object(void *address, struct dl_find_object *found) __attribute__((weak));

/* The loader has an empty name for the program. */
static bool trace_find_call(const char *call, struct symbol *symbol, struct described *what)
{
    struct dl_find_object found;

    if (!_dl_find_object)
        return false;
    if (_dl_find_object((void *)(uintptr_t)call, &found)) /* NOLINT(performance-no-int-to-ptr) */
        return true;
    what->file = found.dlfo_link_map->l_name;
    if (!*what->file)
        what->file = *program_path ? program_path : program_invocation_name;
    what->start = found.dlfo_map_start;
    if (symbol_at(found.dlfo_link_map, (uintptr_t)call, symbol)) {
        what->name = symbol->name;
        what->name_start = call - ((uintptr_t)call - symbol->start);
    }
    return true;
}

#else

static bool trace_find_call(const char *call, struct symbol *symbol, struct described *what)
{
    (void)call;
    (void)symbol;
    (void)what;
    return false;
}

#endif

/* Waits for the loader's lock. */
static void trace_ask_loader(const char *call, struct described *what)
{
    Dl_info found, program;
    const void *headers = (const void *)getauxval(AT_PHDR); /* NOLINT(performance-no-int-to-ptr) */

    if (!dladdr(call, &found))
        return;
    what->file = found.dli_fname;
    if (*program_path && dladdr(headers, &program) && program.dli_fbase == found.dli_fbase)
        what->file = program_path;
    what->start = found.dli_fbase;
    what->name = found.dli_sname;
    what->name_start = found.dli_saddr;
}

/* Uses the style of the sanitizers, whose tools understand it. A frame is a return address, and
 * the call is before that. */
void os_trace_describe(unsigned place, const void *frame, char line[OS_TRACE_LINE])
{
    const char *call = (const char *)frame - 1;
    struct described what = {.file = NULL};
    struct symbol symbol;
    int length;

    if (!trace_find_call(call, &symbol, &what))
        trace_ask_loader(call, &what);
    length = snprintf(line, OS_TRACE_LINE, "  #%u %p", place, (const void *)call);
    if (what.file && what.name)
        length += snprintf(line + length, OS_TRACE_LINE - (size_t)length, " in %s+%#tx", what.name,
                           call - what.name_start);
    if (what.file && length < (int)OS_TRACE_LINE)
        snprintf(line + length, OS_TRACE_LINE - (size_t)length, " (%s+%#tx)", what.file,
                 call - what.start);
}

/* A module that was unloaded has no symbols any more, but the file may still have them
 * (prudence-symbolize). */
static void describe_kept(unsigned place, const void *frame, unsigned rank,
                          char line[OS_TRACE_LINE])
{
    const struct loaded *module = loaded_of(frame, rank);
    const char *call = (const char *)frame - 1;

    if (module && loaded_is_gone(module))
        snprintf(line, OS_TRACE_LINE, "  #%u %p (%s+%#tx) [unloaded]", place, (const void *)call,
                 module->name, (ptrdiff_t)((uintptr_t)call - module->start));
    else
        os_trace_describe(place, frame, line);
}

static void report_lines(void *const *frames, unsigned count, const unsigned *rank)
{
    for (unsigned i = 0; i < count; i++) {
        char line[OS_TRACE_LINE];

        if (rank)
            describe_kept(i, frames[i], *rank, line);
        else
            os_trace_describe(i, frames[i], line);
        os_report("  %s", line);
    }
    if (!count && posix_trace_failure)
        os_report("    (unknown: %s)", posix_trace_failure);
    else if (!count)
        os_report("    (unknown)");
    posix_trace_failure = NULL; /* said once */
}

void os_trace_print(void *const *frames, unsigned count)
{
    report_lines(frames, count, NULL);
}

void os_trace_print_kept(void *const *frames, unsigned count, unsigned rank)
{
    report_lines(frames, count, &rank);
}
