/* SPDX-License-Identifier: MIT */
/*
 * Opens libraries with RTLD_DEEPBIND, by names that only RUNPATHs resolve: first that of the
 * program, and then that of the opened library. Frees its own blocks there, and theirs here. Writes
 * "ok".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

union function {
    void *address;
    void (*free)(void *object);
    void *(*alloc)(void);
    void *(*open)(const char *name, int flags);
};

static union function find(void *handle, const char *name)
{
    union function function = {.address = handle ? dlsym(handle, name) : NULL};

    if (!function.address) {
        puts(dlerror());
        exit(1);
    }
    return function;
}

static void use(void *handle)
{
    for (unsigned i = 0; i < 100; i++) {
        find(handle, "deep_free").free(malloc(100 * i));
        free(find(handle, "deep_alloc").alloc());
    }
}

/* Uses a library in its own namespace, which has its own malloc(). */
static void use_alone(void *handle)
{
    for (unsigned i = 0; i < 100; i++)
        find(handle, "deep_free").free(find(handle, "deep_alloc").alloc());
}

int main(void)
{
    const int flags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
    void *handle = dlopen("libpreload_program_deep_library.so", flags), *inner;

    use(handle);
    inner = find(handle, "deep_open").open("libpreload_program_deep_inner.so", flags);
    use(inner);
    use(dlmopen(LM_ID_BASE, "libpreload_program_deep_other.so", flags));
    use_alone(dlmopen(LM_ID_NEWLM, "libpreload_program_deep_library.so", flags));
    if (dlopen("libpreload_program_deep_inner.so", RTLD_NOW | RTLD_NOLOAD) != inner)
        puts("RTLD_NOLOAD did not find what is loaded");
    if (dlopen("no such library", flags) || !dlerror())
        puts("what is not there was opened");
    if (!dlopen(NULL, RTLD_NOW))
        puts("the program was not opened");
    puts("ok");
    return 0;
}
