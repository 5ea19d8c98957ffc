/* SPDX-License-Identifier: MIT */
/*
 * Modules that kept traces lead through, so that a trace names the module that had the code when it
 * was captured, and not another one that was loaded at that place since.
 *
 * Each module is noted once, when a trace that is kept meets it first, and never forgotten. A
 * module has a rank: 0 if it is the first one at its addresses, else a number larger than all ranks
 * before. A trace keeps the largest rank of its modules. So a frame's module is the one at that
 * address that has the largest rank not above the trace's: a module that came later has a larger
 * rank than all that the trace could meet, and a module that was there earlier has a smaller one
 * than the frame's. Most programs unload nothing, and all ranks are 0.
 *
 * The dynamic loader finds modules without a lock (_dl_find_object, glibc 2.35), because traces are
 * captured where its lock must not be waited for. Where it cannot, no module is noted, and traces
 * name what is loaded when they are printed. A thread's own frames are in modules that stay while
 * it runs there, so their names may be read.
 *
 * Modules are added by one thread at a time, and found without a lock. A thread that finds another
 * adding leaves a frame's module for a later trace.
 */
#define _GNU_SOURCE /* _dl_find_object */
#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/atomic.h"
#include "loaded.h"
#include "os/os.h"

static struct loaded *newest; /* all modules; atomic */

#if LOADED_KNOWN

extern int _dl_find_object(void *address, struct dl_find_object *found) __attribute__((weak));

static uint32_t adding;  /* by one thread; atomic */
static uint32_t highest; /* rank; atomic */

static bool module_at(uintptr_t pc, struct dl_find_object *found)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return _dl_find_object && !_dl_find_object((void *)pc, found);
}

/* Notes the part of the module that has code at `pc`, from the headers at the module's start. */
static void note_code(struct loaded *made, const struct link_map *map, uintptr_t pc)
{
    const char *start = (const char *)made->start; /* NOLINT(performance-no-int-to-ptr) */
    ElfW(Ehdr) head;

    memcpy(&head, start, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)))
        return;
    for (unsigned i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;

        if (head.e_phoff + (i + 1) * sizeof part > made->end - made->start)
            return;
        memcpy(&part, start + head.e_phoff + i * sizeof part, sizeof part);
        if (part.p_type != PT_LOAD || pc - (map->l_addr + part.p_vaddr) >= part.p_memsz)
            continue;
        made->code_offset = part.p_offset & ~(os_page_size - 1);
        made->code_start = map->l_addr + part.p_vaddr - (part.p_offset - made->code_offset);
        made->code_end = round_up(map->l_addr + part.p_vaddr + part.p_memsz, os_page_size);
    }
}

static bool overlaps(const struct loaded *one, const struct dl_find_object *found)
{
    return (uintptr_t)found->dlfo_map_start < one->end &&
           one->start < (uintptr_t)found->dlfo_map_end;
}

static bool overlaps_any(const struct dl_find_object *found)
{
    const struct loaded *one = load_relaxed(&newest);

    while (one && !overlaps(one, found))
        one = one->older;
    return one != NULL;
}

/* Adds a module. Called by the one thread that adds. */
static struct loaded *loaded_add(const struct dl_find_object *found, uintptr_t pc)
{
    const struct link_map *map = found->dlfo_link_map;
    size_t length = strlen(map->l_name) + 1;
    struct loaded *made = os_meta_alloc(sizeof *made + length);

    if (!made)
        return NULL;
    made->older = load_relaxed(&newest);
    made->number = made->older ? made->older->number + 1 : 1;
    made->start = (uintptr_t)found->dlfo_map_start;
    made->end = (uintptr_t)found->dlfo_map_end;
    memcpy(made->name, map->l_name, length);
    note_code(made, map, pc);
    if (overlaps_any(found)) {
        made->rank = load_relaxed(&highest) + 1;
        store_relaxed(&highest, made->rank);
    }
    store_release(&newest, made);
    return made;
}

static bool is_module(const struct loaded *one, const struct dl_find_object *found)
{
    return one->start == (uintptr_t)found->dlfo_map_start &&
           !strcmp(one->name, found->dlfo_link_map->l_name);
}

/* Returns the newest entry that overlaps the module if it is the module's, else NULL. */
static const struct loaded *loaded_find(const struct dl_find_object *found)
{
    const struct loaded *one = load_acquire(&newest);

    while (one && !overlaps(one, found))
        one = one->older;
    return one && is_module(one, found) ? one : NULL;
}

static const struct loaded *find_or_add(const struct dl_find_object *found, uintptr_t pc)
{
    const struct loaded *one = loaded_find(found);
    uint32_t no = 0;

    if (one || os_busy || !compare_exchange(&adding, &no, 1u))
        return one;
    one = loaded_find(found); /* another thread may have added it just before */
    if (!one)
        one = loaded_add(found, pc);
    store_release(&adding, 0u);
    return one;
}

unsigned os_trace_rank(void *const *frames, unsigned count)
{
    struct dl_find_object found = {.dlfo_map_start = NULL};
    unsigned rank = 0;

    for (unsigned i = 0; i < count; i++) {
        uintptr_t pc = (uintptr_t)frames[i] - 1;
        const struct loaded *one;

        if (pc - (uintptr_t)found.dlfo_map_start <
            (uintptr_t)found.dlfo_map_end - (uintptr_t)found.dlfo_map_start)
            continue; /* the same as the frame before */
        if (!module_at(pc, &found)) {
            found = (struct dl_find_object){.dlfo_map_start = NULL};
            continue;
        }
        one = *found.dlfo_link_map->l_name ? find_or_add(&found, pc) : NULL;
        if (one && one->rank > rank)
            rank = one->rank;
    }
    return rank;
}

bool loaded_is_gone(const struct loaded *one)
{
    struct dl_find_object found;

    return !module_at(one->start, &found) || !is_module(one, &found);
}

void loaded_fork_child(void)
{
    store_relaxed(&adding, 0u);
}

#else

unsigned os_trace_rank(void *const *frames, unsigned count)
{
    (void)frames;
    (void)count;
    return 0;
}

bool loaded_is_gone(const struct loaded *one)
{
    (void)one;
    return false;
}

void loaded_fork_child(void)
{
}

#endif

const struct loaded *loaded_next(const struct loaded *one)
{
    return one ? one->older : load_acquire(&newest);
}

/* Newer modules with the address come first, and have larger ranks. */
const struct loaded *loaded_of(const void *frame, unsigned rank)
{
    uintptr_t pc = (uintptr_t)frame - 1;
    const struct loaded *one = load_acquire(&newest);

    while (one && (one->rank > rank || pc - one->start >= one->end - one->start))
        one = one->older;
    return one;
}
