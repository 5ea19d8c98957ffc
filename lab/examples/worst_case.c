/* SPDX-License-Identifier: MIT */
/*
 * Worst case as lifetime: objects of an operation live as long as the operation may take. A device
 * answers requests within WORST_CASE_MS or not at all. docs/how-to/example-worst-case.md
 */
#include "example.h"

#include <prudence/scm.h>

#define WORST_CASE_MS 20
#define USUAL_MS      1 /* most answers take no longer; the mistake relies on that */
#define WORST_CASE    (WORST_CASE_MS * 1e6)
#define SLOTS         64
#define LATE          0

struct request {
    long number;
    double deadline;                 /* only "before", like the fields below */
    struct request *next, *previous; /* in order of deadlines */
    unsigned slot;
};

static __thread long numbers; /* used by requests so far */

/* Answers a request. A different number means that another request has reused the memory. */
static long answer(const struct request *request, long number)
{
    return request->number == number ? number : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static __thread struct request *asked[SLOTS], *first, *last;

static void end(struct request *request)
{
    *(request->previous ? &request->previous->next : &first) = request->next;
    *(request->next ? &request->next->previous : &last) = request->previous;
    asked[request->slot] = NULL;
    prudence_free(request);
}

static long read_before(unsigned random)
{
    const struct request *request = asked[random % SLOTS];

    if (!request || example_now() >= request->deadline)
        return LATE;
    return answer(request, request->number);
}

/* Frees a request when its slot is needed or its time is over, whichever comes first. */
static void update_before(unsigned random)
{
    struct request *request = prudence_malloc(sizeof *request);
    double now = example_now();

    MUST(request);
    while (first && first->deadline < now)
        end(first);
    if (asked[random % SLOTS])
        end(asked[random % SLOTS]);
    *request = (struct request){.previous = last, .deadline = now + WORST_CASE};
    request->slot = random % SLOTS;
    request->number = ++numbers;
    *(last ? &last->next : &first) = request;
    last = asked[request->slot] = request;
}

/* ---------------------------------------------------------------------------------------- after */

static __thread struct slot {
    struct request *request; /* alive at least until the deadline */
    double deadline;
    long number;
} slots[SLOTS];
static __thread struct scm_clock *timer; /* unit is 1 ms */

/* Finds the request of an operation in time, and does not search after the deadline. */
static long read_after(unsigned random)
{
    struct slot *slot = &slots[random % SLOTS];

    if (!slot->request || example_now() >= slot->deadline)
        return LATE;
    return answer(slot->request, slot->number);
}

/* No code frees the request. The deadline is taken first. */
static void update_after(unsigned random)
{
    struct slot *slot = &slots[random % SLOTS];

    if (!timer)
        MUST((timer = scm_clock_create_realtime(1)));
    slot->deadline = example_now() + WORST_CASE;
    slot->request = scm_malloc(sizeof *slot->request);
    MUST(slot->request);
    MUST(scm_clock_refresh(timer, slot->request, mistake ? USUAL_MS : WORST_CASE_MS) == 0);
    slot->number = slot->request->number = ++numbers;
}

/* ---------------------------------------------------------------------------------------- check */

/* Lets time pass, and makes other requests reuse the memory of expired ones. */
static void let_pass(unsigned milliseconds)
{
    double until = example_now() + milliseconds * 1e6;

    while (example_now() < until)
        usleep(500);
    MUST(scm_collect() == 0);
    for (unsigned slot = 8; slot < SLOTS; slot++)
        update_after(slot);
}

/* Lets an answer take half the worst case. Retries if the machine takes longer than that. */
static long answer_in_time(unsigned slot)
{
    long result = LATE;

    while (result == LATE) {
        update_after(slot);
        let_pass(WORST_CASE_MS / 2);
        result = read_after(slot);
    }
    return result;
}

static unsigned long objects(void)
{
    struct scm_mem_info info;

    scm_get_mem_info(&info);
    return info.num_alloc - info.num_freed;
}

static const char *check(void)
{
    unsigned long before = objects();

    if (answer_in_time(1) == WRONG)
        return "an answer in time has not found its request";
    update_after(2);
    let_pass(2 * WORST_CASE_MS);
    if (read_after(2) != LATE)
        return "an answer came too late, and was taken";
    usleep(2 * WORST_CASE_MS * 1000);
    MUST(scm_collect() == 0);
    return objects() > before ? "a request that is over takes memory" : NULL;
}

static void set_up(void)
{
}
