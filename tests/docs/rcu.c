/* SPDX-License-Identifier: MIT */
/*
 * Sections that sleep, threads that block, and sets, in docs/how-to/rcu.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <stdlib.h>
#include <unistd.h>

static void check(int is_right)
{
    if (!is_right)
        abort();
}

static void read_in_srcu(struct prudence_domain *domain)
{
    int index = prudence_srcu_read_lock(domain);

    usleep(1);
    prudence_srcu_read_unlock(domain, index);
}

static void block_in_qsbr(struct prudence_domain *domain, int fd)
{
    char buffer[8];
    size_t size = sizeof buffer;
    ssize_t n;

    prudence_qsbr_online(domain);
    bool online = prudence_qsbr_blocking_begin(domain);
    n = read(fd, buffer, size);
    prudence_qsbr_blocking_end(domain, online);
    check(n == 0);
    prudence_qsbr_offline(domain);
}

static void defer_for_both(struct prudence_domain *sleepy)
{
    struct prudence_domain *both[] = {prudence_default_domain(), sleepy};
    struct prudence_domain *set = prudence_domain_create_set("both", both, 2);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = set};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);

    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    check(prudence_cache_destroy(cache) == 0);
    check(prudence_domain_destroy(set) == 0);
}

int main(void)
{
    struct prudence_domain *sleepy = prudence_domain_create("sleepy", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_domain *qsbr = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);
    int ends[2];

    check(pipe(ends) == 0);
    close(ends[1]);
    read_in_srcu(sleepy);
    block_in_qsbr(qsbr, ends[0]);
    defer_for_both(sleepy);
    close(ends[0]);
    check(prudence_domain_destroy(sleepy) == 0);
    check(prudence_domain_destroy(qsbr) == 0);
    return 0;
}
