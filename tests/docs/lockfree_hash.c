/* SPDX-License-Identifier: MIT */
/*
 * A handler that removes an object from a table, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/lockfree_hash.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <signal.h>

struct request {
    struct prudence_hash_node node;
    int number;
};

static struct prudence_lockfree_hash *requests;
static struct request *left;

static bool is_request(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct request, node)->number == *(const int *)key;
}

static void leave_for_thread(struct request *request)
{
    left = request;
}

static void handler(int number)
{
    struct prudence_hash_node *node;

    prudence_read_lock();
    node = prudence_lockfree_hash_lookup(requests, prudence_hash_mix(number), is_request, &number);
    if (node && prudence_lockfree_hash_remove(requests, node) == 0)
        leave_for_thread(prudence_hash_entry(node, struct request, node));
    prudence_read_unlock();
}

int main(void)
{
    struct request *request = prudence_malloc(sizeof *request);

    requests = prudence_lockfree_hash_create("requests", NULL);
    request->number = SIGUSR1;
    prudence_read_lock();
    prudence_lockfree_hash_add_duplicate(requests, prudence_hash_mix(SIGUSR1), &request->node);
    prudence_read_unlock();
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    prudence_free_deferred(left);
    return left != request;
}
