/* SPDX-License-Identifier: MIT */
/*
 * Options that another process sets (ADR 89). That process writes a request into the memory of
 * this one, then its ticket into the request's first word, then 1 into `os_asked`. The next thread
 * that comes to a slow path with nothing held sets the option, and answers. A process that may
 * write this memory could do anything with this process, so it gains no right.
 *
 * The thread that clears the word by compare-and-swap acts, so a request is obeyed once. The thread
 * copies the request first. If another process has written its own request there, the ticket or the
 * sum does not fit: the answer is EAGAIN, and the first process asks again. A child of fork, which
 * has a copy of a request that was not obeyed yet, is not the process that is meant, and only
 * forgets the request.
 */
#include "observe/request.h"

#include <errno.h>
#include <string.h>

#include <prudence/prudence.h>

#include "os/os.h"

struct request requests[REQUESTS];

uint32_t request_sum(const struct request *of)
{
    const unsigned char *bytes = (const unsigned char *)of;
    uint32_t sum = 2166136261u;

    for (size_t i = offsetof(struct request, ticket); i < sizeof *of; i++)
        sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

/* Sets the option of a copy, which is this thread's own. Returns 0 or an error number. */
static int request_carry_out(const struct request *copy)
{
    if (!memchr(copy->name, '\0', sizeof copy->name) ||
        !memchr(copy->value, '\0', sizeof copy->value))
        return EINVAL;
    return prudence_option_set(copy->name, copy->value);
}

static void request_take(struct request *request, uint64_t asked)
{
    struct request copy;
    int error;

    if (!compare_exchange(&request->asked, &asked, UINT64_C(0)))
        return;
    memcpy(&copy, request, sizeof copy);
    if (copy.ticket != (uint32_t)(asked >> 32) || copy.sum != request_sum(&copy))
        error = EAGAIN;
    else if (copy.process != os_process_id())
        return;
    else
        error = request_carry_out(&copy);
    store_release(&request->answer, asked >> 32 << 32 | (uint32_t)error);
}

/* A thread that holds something leaves all to a later slow path. */
void request_obey(void)
{
    int saved_errno = errno;

    if (os_busy || os_lock_forking || !exchange_relaxed(&os_asked, UINT64_C(0)))
        return;
    os_full_fence(); /* a request that is seen too late has set os_asked again */
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint64_t asked = load_acquire(&requests[i].asked);

        if (asked)
            request_take(&requests[i], asked);
    }
    errno = saved_errno;
}
