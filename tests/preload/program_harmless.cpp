// SPDX-License-Identifier: MIT
// Misuse that other allocators let pass, three times each, as argument 1 says. test_harmless.py runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <malloc.h>

static void *volatile kept; // so that the compiler knows nothing of the pointers
static char of_the_program[64];

static void *keep(void *object)
{
    kept = object;
    return kept;
}

static void free_sized_as(void *object, std::size_t size)
{
    reinterpret_cast<void (*)(void *, std::size_t)>(dlsym(RTLD_DEFAULT, "free_sized"))(object,
                                                                                       size);
}

static void free_aligned_sized_as(void *object, std::size_t alignment, std::size_t size)
{
    reinterpret_cast<void (*)(void *, std::size_t, std::size_t)>(
        dlsym(RTLD_DEFAULT, "free_aligned_sized"))(object, alignment, size);
}

static void commit(const char *what)
{
    char *freed;

    if (!strcmp(what, "delete")) {
        ::operator delete (keep(::operator new(104)), std::size_t{4});
    } else if (!strcmp(what, "delete[]")) {
        ::operator delete[](keep(::operator new[](1000000)), std::size_t{5000});
    } else if (!strcmp(what, "free_sized")) {
        free_sized_as(keep(malloc(1000)), 2000);
    } else if (!strcmp(what, "free_aligned_sized")) {
        free_aligned_sized_as(static_cast<char *>(keep(malloc(112))), 3, 112);
    } else if (!strcmp(what, "usable freed")) {
        freed = static_cast<char *>(malloc(200));
        keep(freed);
        free(freed);
        if (malloc_usable_size(kept))
            std::exit(3);
    } else if (!strcmp(what, "usable static")) {
        if (malloc_usable_size(keep(of_the_program + 16)))
            std::exit(3);
    } else if (!strcmp(what, "twice")) { // the copies meet at the end only
        freed = static_cast<char *>(keep(malloc(300)));
        void *other = malloc(300);
        free(freed);
        free(other);
        free(kept = freed);
    } else if (!strcmp(what, "delete of the dead") || !strcmp(what, "free_sized of the dead")) {
        void *objects[600];
        for (void *&object : objects)
            object = ::operator new(104);
        for (int i = 0; i < 600; i++) // the slab has live neighbours
            if (i % 3)
                ::operator delete(objects[i]);
        malloc_trim(0);
        if (what[0] == 'd')
            ::operator delete (objects[5], std::size_t{4});
        else
            free_sized_as(objects[5], 4000);
    } else {
        std::exit(2);
    }
}

int main(int count, char **arguments)
{
    for (int i = 0; i < (count > 2 ? std::atoi(arguments[2]) : 3); i++)
        commit(arguments[1]);
    for (int i = 0; i < 1000; i++) // the heap is whole
        free(keep(memset(malloc(i), 1, i)));
    std::puts("still running");
}
