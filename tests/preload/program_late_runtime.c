/* SPDX-License-Identifier: MIT */
/* A C program that loads a C++ library late, with local symbols, and makes the library run out of
 * memory. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*caught)(void) = NULL;

    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&caught = dlsym(library, "bad_alloc_is_caught");
    puts(caught && caught() ? "ok" : "not caught");
    return 0;
}
