/* SPDX-License-Identifier: MIT */
/*
 * RCU existence locks: sessions that end while other threads use them. A lock or a reference count
 * keeps a session from being freed under its users; a grace period does the same at no cost to
 * them. docs/how-to/pattern-existence-locks.md
 */
#include "example.h"

#define SESSIONS 64

struct session {
    long user; /* index of the session in the table */
    unsigned references;
};

static struct session *sessions[SESSIONS];
static struct prudence_cache *cache;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the table */

static struct session *make(long user)
{
    struct session *session = prudence_cache_alloc(cache);

    MUST(session);
    *session = (struct session){.user = user, .references = 1};
    return session;
}

/* --------------------------------------------------------------------------------------- before */

static void put(struct session *session)
{
    if (__atomic_sub_fetch(&session->references, 1, __ATOMIC_ACQ_REL) == 0)
        prudence_cache_free(cache, session);
}

static long read_before(unsigned random)
{
    const unsigned user = random % SESSIONS;
    struct session *session;
    long found;

    pthread_mutex_lock(&lock);
    session = sessions[user];
    __atomic_add_fetch(&session->references, 1, __ATOMIC_RELAXED); /* the table holds one */
    pthread_mutex_unlock(&lock);
    found = session->user;
    put(session);
    return found == (long)user ? found : WRONG;
}

static void update_before(unsigned random)
{
    const unsigned user = random % SESSIONS;
    struct session *fresh = make(user), *old;

    pthread_mutex_lock(&lock);
    old = sessions[user];
    sessions[user] = fresh;
    pthread_mutex_unlock(&lock);
    put(old);
}

/* ---------------------------------------------------------------------------------------- after */

static long read_after(unsigned random)
{
    const unsigned user = random % SESSIONS;
    struct session *session;
    long found;

    prudence_read_lock();
    session = prudence_dereference(sessions[user]);
    meanwhile();
    found = session->user;
    prudence_read_unlock();
    return found == (long)user ? found : WRONG;
}

static void update_after(unsigned random)
{
    const unsigned user = random % SESSIONS;
    struct session *fresh = make(user), *old;

    pthread_mutex_lock(&lock);
    old = sessions[user];
    prudence_assign_pointer(sessions[user], fresh);
    pthread_mutex_unlock(&lock);
    if (mistake)
        prudence_cache_free(cache, old); /* unlinked, so no thread has it? */
    else
        prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

/* Ends the session of user 1, and reuses free memory for sessions of other users. */
static void end_session(void)
{
    update_after(1);
    for (unsigned i = 0; i < 100; i++)
        make(1000);
}

static const char *check(void)
{
    example_meanwhile = end_session;
    return read_after(1) == WRONG ? "a user was given another user's session" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("sessions", sizeof(struct session), NULL));
    for (unsigned i = 0; i < SESSIONS; i++)
        sessions[i] = make(i);
}
