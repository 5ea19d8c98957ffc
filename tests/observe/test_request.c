/* SPDX-License-Identifier: MIT */
/*
 * A request that another process has written into memory is obeyed once, at the next slow path with
 * nothing held. Whatever was written, nothing else happens.
 */
#define _GNU_SOURCE
#include "support/slab_test.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gp/user/stall.h"
#include "observe/request.h"

#define TICKET 77u

/* Writes what a tool would. */
static struct request *ask(const char *name, const char *value)
{
    struct request *request = &requests[REQUESTS - 1];

    request->ticket = TICKET;
    request->process = getpid();
    memset(request->name, 0, sizeof request->name + sizeof request->value);
    memcpy(request->name, name, strlen(name));
    memcpy(request->value, value, strlen(value));
    request->sum = request_sum(request);
    request->answer = 0;
    request->asked = (uint64_t)TICKET << 32 | 1;
    os_asked = 1;
    return request;
}

static uint64_t answer_of(int error)
{
    return (uint64_t)TICKET << 32 | (uint32_t)error;
}

/* Comes to a slow path. */
static void allocate_some(void)
{
    static struct prudence_cache *cache;
    void *objects[1000];

    if (!cache)
        cache = prudence_cache_create("some", 64, NULL);
    for (unsigned i = 0; i < 1000; i++)
        objects[i] = prudence_cache_alloc(cache);
    for (unsigned i = 0; i < 1000; i++)
        prudence_cache_free(cache, objects[i]);
    prudence_trim();
}

TEST(it_is_obeyed_once)
{
    struct request *request;

    allocate_some();
    prudence_option_set("stall_trace", "0");
    request = ask("stall_trace", "1");
    allocate_some();
    assert_true(load_relaxed(&gp_stall_trace));
    assert_int_equal(request->answer, answer_of(0));
    assert_int_equal(request->asked | os_asked, 0);
    prudence_option_set("stall_trace", "0");
    allocate_some();
    assert_false(load_relaxed(&gp_stall_trace));
}

TEST(errors_are_answered)
{
    assert_int_equal((ask("stall_trace", "maybe"), request_obey(), requests[REQUESTS - 1].answer),
                     answer_of(EINVAL));
    assert_int_equal((ask("nothing", "1"), request_obey(), requests[REQUESTS - 1].answer),
                     answer_of(ENOENT));
    assert_int_equal((ask("page_size", "4K"), request_obey(), requests[REQUESTS - 1].answer),
                     answer_of(EBUSY));
}

TEST(texts_without_end)
{
    struct request *request = ask("stall_trace", "1");

    memset(request->name, 'a', sizeof request->name);
    request->sum = request_sum(request);
    request_obey();
    assert_int_equal(request->answer, answer_of(EINVAL));
    request = ask("stall_trace", "1");
    memset(request->value, '1', sizeof request->value);
    request->sum = request_sum(request);
    request_obey();
    assert_int_equal(request->answer, answer_of(EINVAL));
}

TEST(two_that_were_written_at_once)
{
    struct request *request;

    prudence_option_set("stall_trace", "0");
    request = ask("stall_trace", "1");
    request->ticket++; /* the words are another process's */
    request->sum = request_sum(request);
    request_obey();
    assert_int_equal(request->answer, answer_of(EAGAIN));
    request = ask("stall_trace", "1");
    request->value[0] = '0'; /* half of each */
    request_obey();
    assert_int_equal(request->answer, answer_of(EAGAIN));
    assert_int_equal(request->asked | os_asked, 0);
    assert_false(load_relaxed(&gp_stall_trace));
}

TEST(a_child_does_not_act)
{
    struct request *request = ask("stall_trace", "1");
    int status;
    pid_t child = fork();

    if (child == 0) {
        allocate_some();
        _exit(load_relaxed(&gp_stall_trace) || request->answer || request->asked || os_asked);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_false(load_relaxed(&gp_stall_trace));
    request_obey();
    assert_true(load_relaxed(&gp_stall_trace));
    prudence_option_set("stall_trace", "0");
}

TEST(a_thread_that_holds_something_leaves_it)
{
    struct request *request = ask("stall_trace", "0");

    os_busy_enter();
    request_obey();
    os_busy_leave();
    assert_int_equal(request->answer, 0);
    assert_int_not_equal(os_asked, 0);
    request_obey();
    assert_int_equal(request->answer, answer_of(0));
}

TEST(any_bytes)
{
    unsigned char *bytes = (unsigned char *)requests;

    srand(1); /* the same each time */
    for (unsigned round = 0; round < 3000; round++) {
        for (size_t i = 0; i < sizeof requests; i++)
            bytes[i] = (unsigned char)rand(); /* NOLINT(concurrency-mt-unsafe) */
        os_asked = round + 1;
        request_obey();
        for (unsigned i = 0; i < REQUESTS; i++)
            assert_int_equal(requests[i].asked, 0);
    }
}

SUITE()
