/* SPDX-License-Identifier: MIT */
/*
 * Keeps the library in the process, because ending threads call us, and the kernel reads our rseq
 * descriptors when interrupting a thread. libprudence.so is therefore linked with nodelete. The
 * static library may be part of a plugin, which dlclose would unmap, so the plugin is marked in the
 * same way after loading. A plugin with inlined sequences (<prudence/inline.h>) is marked, too.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <dlfcn.h>
#include <link.h>

#include "os/os.h"
#include "posix.h"

struct module {
    uintptr_t address; /* in the module */
    const char *name;  /* "" for the program itself */
    bool stays;
};

static bool stays(const ElfW(Dyn) * entry)
{
    while (entry->d_tag != DT_NULL && entry->d_tag != DT_FLAGS_1)
        entry++;
    return entry->d_tag == DT_FLAGS_1 && entry->d_un.d_val & DF_1_NODELETE;
}

static bool is_at(const struct dl_phdr_info *module, const ElfW(Phdr) * part, uintptr_t address)
{
    return part->p_type == PT_LOAD && address - (module->dlpi_addr + part->p_vaddr) < part->p_memsz;
}

COLD static int find_module(struct dl_phdr_info *module, size_t size, void *found)
{
    struct module *wanted = found;
    const ElfW(Dyn) *dynamic = NULL;
    bool is_it = false;

    (void)size;
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];

        is_it |= is_at(module, part, wanted->address);
        if (part->p_type == PT_DYNAMIC) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
            dynamic = (const ElfW(Dyn) *)(module->dlpi_addr + part->p_vaddr);
    }
    if (is_it) {
        wanted->name = module->dlpi_name;
        wanted->stays = dynamic && stays(dynamic);
    }
    return is_it;
}

COLD void os_stay_loaded(const void *address)
{
    struct module module = {.address = (uintptr_t)address, .name = ""};
    union {
        void *address;
        __typeof(dlopen) *call;
    } loader;

    dl_iterate_phdr(find_module, &module);
    if (!*module.name || module.stays)
        return;
    /* Looked up by name, because a reference would make the linker warn when it links a static
     * program. */
    loader.address = dlsym(RTLD_DEFAULT, "dlopen");
    if (loader.address)
        loader.call(module.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

COLD void posix_stay_loaded(void)
{
    os_stay_loaded((const void *)(uintptr_t)find_module);
}
