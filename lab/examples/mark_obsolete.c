/* SPDX-License-Identifier: MIT */
/*
 * Mark obsolete objects: accounts are found without a lock, and each has its own lock. An account
 * closed while a thread was on its way to the account must not be used any more.
 * docs/how-to/pattern-mark-obsolete.md
 */
#include "example.h"

#define ACCOUNTS 64

struct account {
    pthread_mutex_t lock;
    bool closed;  /* under the lock */
    long balance; /* under the lock */
};

static struct account *accounts[ACCOUNTS];
static struct prudence_cache *cache;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the table */

static struct account *make(void)
{
    struct account *account = prudence_cache_alloc(cache);

    MUST(account);
    *account = (struct account){.lock = PTHREAD_MUTEX_INITIALIZER};
    return account;
}

/* A deposit into a closed account is lost. */
static long deposit(struct account *account)
{
    return account->closed ? WRONG : ++account->balance;
}

/* --------------------------------------------------------------------------------------- before */

static long read_before(unsigned random)
{
    long balance;

    pthread_mutex_lock(&lock);
    balance = deposit(accounts[random % ACCOUNTS]);
    pthread_mutex_unlock(&lock);
    return balance;
}

static void update_before(unsigned random)
{
    struct account *fresh = make(), *old;

    pthread_mutex_lock(&lock);
    old = accounts[random % ACCOUNTS];
    accounts[random % ACCOUNTS] = fresh;
    pthread_mutex_unlock(&lock);
    prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

/* Returns the locked account, or NULL if there is none. Call inside a section. */
static struct account *lock_account(unsigned number)
{
    struct account *account = prudence_dereference(accounts[number]);

    if (mistake) { /* asks first, and locks then */
        if (account->closed)
            return NULL;
        meanwhile();
        pthread_mutex_lock(&account->lock);
        return account;
    }
    meanwhile();
    pthread_mutex_lock(&account->lock);
    if (!account->closed)
        return account;
    pthread_mutex_unlock(&account->lock);
    return NULL;
}

static long read_after(unsigned random)
{
    struct account *account;
    long balance = 0; /* no such account */

    prudence_read_lock();
    account = lock_account(random % ACCOUNTS);
    if (account) {
        balance = deposit(account);
        pthread_mutex_unlock(&account->lock);
    }
    prudence_read_unlock();
    return balance;
}

/* Closes the account with this number, and opens another. */
static void update_after(unsigned random)
{
    struct account *fresh = make(), *old;

    pthread_mutex_lock(&lock);
    old = accounts[random % ACCOUNTS];
    prudence_assign_pointer(accounts[random % ACCOUNTS], fresh);
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&old->lock);
    old->closed = true;
    pthread_mutex_unlock(&old->lock);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static void reopen(void)
{
    update_after(1);
}

static const char *check(void)
{
    example_meanwhile = reopen;
    return read_after(1) != 0 ? "money was paid into a closed account" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("accounts", sizeof(struct account), NULL));
    for (unsigned i = 0; i < ACCOUNTS; i++)
        accounts[i] = make();
}
