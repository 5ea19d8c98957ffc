/* SPDX-License-Identifier: MIT */
/*
 * Says what the machine offers, and uses nothing of the library: whether glibc has registered
 * struct rseq and the kernel lets sequences of other CPUs be interrupted, and whether there are
 * membarriers. The references to glibc's names are strong, and GNU ld links this program. Tests
 * compare with it what the library says of itself (tools/test/modes), so it must not find out by
 * the same means.
 */
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35) &&                              \
    (defined(__x86_64__) || defined(__aarch64__))
extern const ptrdiff_t __rseq_offset;
extern const unsigned int __rseq_size;

/* The kernel writes the number of the CPU; glibc writes -1 or -2 if the kernel does not. */
static int is_registered(void)
{
    const char *area = (const char *)__builtin_thread_pointer() + __rseq_offset;
    int cpu;

    memcpy(&cpu, area + 4, sizeof cpu);
    return __rseq_size != 0 && cpu >= 0;
}
#else
static int is_registered(void)
{
    return 0;
}
#endif

static int membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

int main(void)
{
    int barriers = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                   membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    int interrupts = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ) &&
                     membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);

    printf("sequences=%d membarrier=%d\n", is_registered() && interrupts, barriers);
    return 0;
}
