/* SPDX-License-Identifier: MIT */
/*
 * Loads plugins (program.c with -DPLUGIN) one after another, runs each in a thread, and closes the
 * plugin before the thread ends. Data that libprudence keeps for the thread, and functions that
 * libprudence calls at the thread's end, must still exist then. A name that begins with + is a
 * library that is loaded with RTLD_GLOBAL and not run. With -DREADS this program is also a reader,
 * so the program contains the library or links to the library. With -DSTAYS the program reports
 * whether a closed plugin is still loaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef READS
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#endif

static pthread_barrier_t has_run, is_closed;

static void *load(const char *path, int flags)
{
    void *library = dlopen(path, flags);

    if (!library) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return library;
}

static void *run(void *library)
{
    void *address = dlsym(library, "linking_run");
    int (*function)(void);

    if (!address)
        abort();
    memcpy(&function, &address, sizeof address);
    if (function())
        abort();
    pthread_barrier_wait(&has_run);
    pthread_barrier_wait(&is_closed);
    return NULL;
}

int main(int count, char **names)
{
    pthread_barrier_init(&has_run, NULL, 2);
    pthread_barrier_init(&is_closed, NULL, 2);
#ifdef READS
    prudence_read_lock();
    prudence_free_deferred(prudence_malloc(1));
    prudence_read_unlock();
#endif
    for (int i = 1; i < count; i++) {
        pthread_t thread;
        void *library;

        if (*names[i] == '+') {
            load(names[i] + 1, RTLD_NOW | RTLD_GLOBAL);
            continue;
        }
        library = load(names[i], RTLD_NOW | RTLD_LOCAL);
        pthread_create(&thread, NULL, run, library);
        pthread_barrier_wait(&has_run);
        dlclose(library);
#ifdef STAYS
        printf("%s\n", dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD) ? "stays" : "goes");
        fflush(stdout);
#endif
        pthread_barrier_wait(&is_closed);
        pthread_join(thread, NULL);
    }
#ifdef READS
    prudence_read_lock();
    prudence_read_unlock();
    prudence_synchronize();
#endif
    return 0;
}
