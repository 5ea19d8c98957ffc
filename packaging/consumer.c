/* SPDX-License-Identifier: MIT */
/* What each kind of package is tried with: a program that allocates, defers, and waits. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    void *object = prudence_malloc(64);

    if (!object)
        return 1;
    prudence_free_deferred(object);
    prudence_synchronize();
    printf("prudence %s\n", prudence_version());
    return strcmp(prudence_version(), PRUDENCE_VERSION) != 0; /* headers and library of one package */
}
