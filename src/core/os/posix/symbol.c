/* SPDX-License-Identifier: MIT */
/*
 * Finds names of functions. dladdr() waits for the loader's lock, which a thread may keep while it
 * waits for the thread that reports. So the tables are read without it, and another thread may
 * unload the module while they are. They are therefore read from /proc/self/mem, because a read of
 * memory that is gone fails there. (Reports look up threads' names in /proc, too.) If the file
 * cannot be opened there are no names; prudence-symbolize finds them later. A process that makes
 * few calls reads its memory itself. It has only reports of misuse, which end it as a rule, and
 * modules that were unloaded before are not read.
 *
 * The dynamic section leads to the symbols that the module exports, and DT_GNU_HASH says how many
 * there are: the largest index that is the begin of a chain, and the rest of that chain.
 */
#include <fcntl.h>
#include <string.h>

#include "loaded.h"
#include "os/os.h"
#include "symbol.h"
#include "system_call.h"

#if LOADED_KNOWN

#define WORDS   64 /* of the hash table, read at once */
#define SYMBOLS 16 /* read at once, because a handler's stack may be small */

struct tables {
    int memory; /* descriptor; -1: the process makes few calls */
    uintptr_t symbols, strings, hash;
    uint32_t first, end; /* exported symbols */
};

/* Copies bytes. Returns false if some are not there. */
static bool symbol_memory(const struct tables *in, uintptr_t from, void *to, size_t bytes)
{
    if (in->memory >= 0)
        return bare_system_call(SYS_pread64, in->memory, (long)to, (long)bytes, (long)from, 0, 0) ==
               (long)bytes;
    memcpy(to, (const void *)from, bytes); /* NOLINT(performance-no-int-to-ptr) */
    return true;
}

/* Some systems leave addresses in the section relative to the module. */
static uintptr_t placed(const struct link_map *module, uintptr_t address)
{
    return address < module->l_addr ? module->l_addr + address : address;
}

static bool symbol_tables(const struct link_map *module, struct tables *tables)
{
    uintptr_t at = (uintptr_t)module->l_ld;
    ElfW(Dyn) entry;

    for (; symbol_memory(tables, at, &entry, sizeof entry) && entry.d_tag != DT_NULL;
         at += sizeof entry) {
        if (entry.d_tag == DT_SYMTAB)
            tables->symbols = placed(module, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_STRTAB)
            tables->strings = placed(module, entry.d_un.d_ptr);
        else if (entry.d_tag == DT_GNU_HASH)
            tables->hash = placed(module, entry.d_un.d_ptr);
    }
    return tables->symbols && tables->strings && tables->hash;
}

/* Finds the largest begin of a chain. */
static bool symbol_buckets(const struct tables *in, uintptr_t buckets, uint32_t count,
                           uint32_t *last)
{
    uint32_t words[WORDS];

    *last = 0;
    for (uint32_t done = 0; done < count; done += WORDS) {
        size_t some = min_size(WORDS, count - done);

        if (!symbol_memory(in, buckets + done * sizeof *words, words, some * sizeof *words))
            return false;
        for (size_t i = 0; i < some; i++)
            if (words[i] > *last)
                *last = words[i];
    }
    return true;
}

/* The lowest bit marks the end of a chain. */
static bool symbol_count(struct tables *tables)
{
    struct {
        uint32_t buckets, first, filters, shift;
    } head;
    uintptr_t buckets, chains;
    uint32_t last, word;

    if (!symbol_memory(tables, tables->hash, &head, sizeof head))
        return false;
    buckets = tables->hash + sizeof head + head.filters * sizeof(uintptr_t);
    chains = buckets + head.buckets * sizeof word;
    if (!symbol_buckets(tables, buckets, head.buckets, &last) || last < head.first)
        return false;
    do {
        if (!symbol_memory(tables, chains + (last - head.first) * sizeof word, &word, sizeof word))
            return false;
        last++;
    } while (!(word & 1));
    tables->first = head.first;
    tables->end = last;
    return true;
}

static bool has_code(const ElfW(Sym) * symbol, uintptr_t offset)
{
    return symbol->st_shndx != SHN_UNDEF && (symbol->st_info & 0xf) != STT_TLS &&
           offset - symbol->st_value < symbol->st_size;
}

/* Finds the last symbol that has the code. Returns false if there is none. */
static bool symbol_find(const struct tables *in, uintptr_t offset, ElfW(Sym) * found)
{
    ElfW(Sym) symbols[SYMBOLS];

    found->st_size = 0;
    for (uint32_t done = in->first; done < in->end; done += SYMBOLS) {
        size_t some = min_size(SYMBOLS, in->end - done);

        if (!symbol_memory(in, in->symbols + done * sizeof *symbols, symbols,
                           some * sizeof *symbols))
            return false;
        for (size_t i = 0; i < some; i++)
            if (has_code(&symbols[i], offset) &&
                (!found->st_size || symbols[i].st_value > found->st_value))
                *found = symbols[i];
    }
    return found->st_size != 0;
}

/* Reads byte by byte, because nothing may follow the text. */
static bool symbol_name(const struct tables *in, uintptr_t from, char *name, size_t size)
{
    size_t length = 0;

    while (length < size - 1 && symbol_memory(in, from + length, name + length, 1) && name[length])
        length++;
    name[length] = '\0';
    return length > 0;
}

static bool symbol_read(struct tables *tables, const struct link_map *module, uintptr_t pc,
                        struct symbol *found)
{
    ElfW(Sym) symbol;

    if (!symbol_tables(module, tables) || !symbol_count(tables) ||
        !symbol_find(tables, pc - module->l_addr, &symbol))
        return false;
    found->start = module->l_addr + symbol.st_value;
    return symbol_name(tables, tables->strings + symbol.st_name, found->name, sizeof found->name);
}

bool symbol_at(const struct link_map *module, uintptr_t pc, struct symbol *found)
{
    struct tables tables = {.memory = -1};
    bool done;

    if (os_calls_are_few())
        return module->l_ld && symbol_read(&tables, module, pc, found);
    tables.memory = (int)bare_system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/mem",
                                          O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (tables.memory < 0)
        return false;
    done = symbol_read(&tables, module, pc, found);
    bare_system_call(SYS_close, tables.memory, 0, 0, 0, 0, 0);
    return done;
}

#endif /* LOADED_KNOWN */
