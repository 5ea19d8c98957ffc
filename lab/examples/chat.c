/* SPDX-License-Identifier: MIT */
/*
 * Rooms of a chat server. A message goes to all members of a room. Under a lock, a member changes
 * rooms by a move; with readers it is replaced, and deferred. docs/how-to/example-chat.md
 */
#include "example.h"

#include <prudence/rculist.h>

#define ROOMS  20
#define GUESTS 7                      /* of a room, without its host, who never leaves */
#define USERS  (ROOMS * (1 + GUESTS)) /* the first are the hosts of the rooms with their numbers */

struct member {
    struct prudence_list link;
    unsigned room, user;
};

static struct prudence_list rooms[ROOMS]; /* from the newest member to the host */
static unsigned received[USERS][16];      /* messages, in a cache line per user; atomic */
static struct prudence_cache *cache;

static void join(struct member *member, unsigned user, unsigned room)
{
    member->user = user;
    member->room = room;
    prudence_list_add_rcu(&member->link, &rooms[room]);
}

static struct member *make(void)
{
    struct member *member = prudence_cache_alloc(cache);

    MUST(member);
    return member;
}

static struct member *oldest_guest(unsigned room) /* the host joined before all guests */
{
    return prudence_list_entry(rooms[room].prev->prev, struct member, link);
}

/* Returns how many members the message reached; WRONG: it missed the host or went too far. */
static long broadcast(unsigned room)
{
    const struct member *member;
    long reached = 0, host = 0;

    prudence_list_for_each_entry_rcu(member, &rooms[room], link)
    {
        if (member->room != room)
            return WRONG;
        __atomic_add_fetch(received[member->user], 1, __ATOMIC_RELAXED);
        host |= member->user == room;
        reached++;
        meanwhile();
    }
    return host ? reached : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void lock_by(int (*how)(pthread_rwlock_t *))
{
    if (example_threads > 1) /* a single thread needs no lock */
        how(&lock);
}

static long read_before(unsigned random)
{
    long reached;

    lock_by(pthread_rwlock_rdlock);
    reached = broadcast(random % ROOMS);
    lock_by(pthread_rwlock_unlock);
    return reached;
}

static void move(struct member *member, unsigned room)
{
    prudence_list_del_rcu(&member->link);
    join(member, member->user, room);
}

static void update_before(unsigned random)
{
    const unsigned from = random % ROOMS, to = (from + 1) % ROOMS;

    lock_by(pthread_rwlock_wrlock);
    move(oldest_guest(from), to);
    move(oldest_guest(to), from);
    lock_by(pthread_rwlock_unlock);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    long reached;

    prudence_read_lock();
    reached = broadcast(random % ROOMS);
    prudence_read_unlock();
    return reached;
}

/* A broadcast at the old member goes on in the room where the broadcast began. */
static void replace(struct member *old, struct member *fresh, unsigned room)
{
    prudence_list_del_rcu(&old->link);
    join(mistake ? old : fresh, old->user, room); /* the mistake: moved, as under the lock */
    prudence_cache_free_deferred(cache, mistake ? fresh : old);
}

static void update_after(unsigned random)
{
    const unsigned from = random % ROOMS, to = (from + 1) % ROOMS;
    struct member *first = make(), *second = make(); /* may take long: before the lock */

    pthread_mutex_lock(&writers);
    replace(oldest_guest(from), first, to);
    replace(oldest_guest(to), second, from);
    pthread_mutex_unlock(&writers);
}

/* ---------------------------------------------------------------------------------------- check */

/* Exchanges all guests of rooms 3 and 4. Then freed members are reused in rooms 5 and 6. */
static void change_rooms(void)
{
    for (unsigned i = 0; i < 1000; i++)
        update_after(i < GUESTS ? 3 : 5);
}

static const char *check(void)
{
    example_meanwhile = change_rooms; /* when the newest guest has got the message */
    if (read_after(3) == WRONG)
        return "a message went to another room";
    return read_after(3) == 1 + GUESTS ? NULL : "a room has lost a member";
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("members", sizeof(struct member), NULL));
    for (unsigned i = 0; i < USERS; i++) {
        if (i < ROOMS)
            prudence_list_init(&rooms[i]);
        join(make(), i, i % ROOMS);
    }
}
