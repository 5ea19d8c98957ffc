/* SPDX-License-Identifier: MIT */
/*
 * Pure RCU: a rare change of mode. Requests use a table; maintenance rewrites all of it, and must
 * be alone. A request that finds maintenance under way has to come back.
 * docs/how-to/pattern-pure-rcu.md
 */
#include "example.h"

#define ROWS 16

static long rows[ROWS];  /* all equal, except during maintenance */
static bool maintaining; /* for the check */

static long request(unsigned random)
{
    return maintaining || rows[random % ROWS] != rows[0] ? WRONG : rows[0];
}

static void maintain(unsigned random)
{
    for (unsigned i = 0; i < ROWS; i++)
        rows[i] = random;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long found;

    pthread_rwlock_rdlock(&lock);
    found = request(random);
    pthread_rwlock_unlock(&lock);
    return found;
}

static void update_before(unsigned random)
{
    pthread_rwlock_wrlock(&lock);
    maintain(random);
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

static bool closed;
static pthread_mutex_t maintenance = PTHREAD_MUTEX_INITIALIZER; /* taken by no reader */

static long read_after(unsigned random)
{
    long found = 0; /* come back later */

    prudence_read_lock();
    if (!__atomic_load_n(&closed, __ATOMIC_ACQUIRE)) { /* acquire: sees what maintenance wrote */
        meanwhile();
        found = request(random);
    }
    prudence_read_unlock();
    return found;
}

/* Makes new requests come back later. The cookie shows when the old ones are done. */
static prudence_gp_t close_table(void)
{
    __atomic_store_n(&closed, true, __ATOMIC_RELAXED);
    return prudence_gp_start_poll();
}

static bool requests_are_done(prudence_gp_t cookie)
{
    return mistake || prudence_gp_poll_state(cookie);
}

static void update_after(unsigned random)
{
    prudence_gp_t cookie;

    pthread_mutex_lock(&maintenance);
    cookie = close_table();
    if (!requests_are_done(cookie))
        prudence_gp_cond_synchronize(cookie);
    maintain(random);
    __atomic_store_n(&closed, false, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&maintenance);
}

/* ---------------------------------------------------------------------------------------- check */

static void close_and_go_on(void)
{
    if (requests_are_done(close_table()))
        maintaining = true;
}

static const char *check(void)
{
    example_meanwhile = close_and_go_on;
    if (read_after(1) == WRONG)
        return "maintenance began while a request used the table";
    if (read_after(1) != 0)
        return "a request was let in during maintenance";
    __atomic_store_n(&closed, false, __ATOMIC_RELEASE);
    return NULL;
}

static void set_up(void)
{
    maintain(1);
}
