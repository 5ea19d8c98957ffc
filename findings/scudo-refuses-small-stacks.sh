#!/bin/bash
# SPDX-License-Identifier: MIT
# With scudo preloaded, pthread_create fails for a stack of PTHREAD_STACK_MIN.
#
# Guess, written before the run: a thread with a stack of PTHREAD_STACK_MIN that does one malloc(100): pthread_create succeeds with every allocator
# preloaded.
#
# Seen (scudo of LLVM 14 and 19, jemalloc 5.3.0, mimalloc 2.0.9, tcmalloc 2.10 and tbbmalloc 2021.8 of Debian 12, glibc 2.36, x86-64): with scudo it
# returns EINVAL, and a page more is enough. scudo keeps the caches of a thread in thread-local storage, which glibc takes from the stack of the
# thread. What is left is too little, and glibc says that the attribute is wrong. pthread_attr_setstacksize has taken the same size before. A program
# with many threads of the smallest stack runs with other allocators and starts no thread with this one.
#
# For us: a library that is preloaded keeps its thread-local storage small. Caches per CPU need next to none.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack libclang-rt-14-dev=1:14.0.6-12 libclang-rt-19-dev=1:19.1.7-3~deb12u1 libjemalloc2=5.3.0-1 libmimalloc2.0=2.0.9+ds-2 \
    libtcmalloc-minimal4=2.10-1 libtbbmalloc2=2021.8.0-2+deb12u1

cat >small.c <<'END'
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *unused)
{
    free(malloc(100));
    return unused;
}

static const char *start(size_t stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, stack))
        return "refused";
    error = pthread_create(&thread, &attributes, run, NULL);
    if (!error)
        pthread_join(thread, NULL);
    return !error ? "starts" : error == EINVAL ? "EINVAL" : "another error";
}

int main(void)
{
    const char *smallest = start(16384); /* PTHREAD_STACK_MIN, which newer C libraries make larger for some processors */

    printf("%s, %s a page more; ", smallest, start(16384 + 4096));
    return 0;
}
END
gcc -O1 -fno-builtin small.c -o small
libraries=$folder/root/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
found=""
for name in glibc jemalloc mimalloc tcmalloc tbbmalloc scudo-14 scudo-19; do
    found+="$name: $(LD_PRELOAD=$(library_of $name) ./small)"
done
echo "$found"
right=""
for name in glibc jemalloc mimalloc tcmalloc tbbmalloc; do right+="$name: starts, starts a page more; "; done
for name in scudo-14 scudo-19; do right+="$name: EINVAL, starts a page more; "; done
expect "$found" "$right"
