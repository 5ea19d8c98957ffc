/* SPDX-License-Identifier: MIT */
/*
 * Caches that wait for liburcu's readers, in docs/how-to/liburcu.md.
 *
 * ctest: needs liburcu
 */
#include <urcu.h>
#include <prudence/urcu-domain.h>

int main(void)
{
    struct prudence_domain *urcu = prudence_urcu_domain_create("urcu", &rcu_flavor);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = urcu};
    struct prudence_cache *cache = prudence_cache_create("objects", 64, &attr);

    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    return prudence_cache_destroy(cache) || prudence_domain_destroy(urcu);
}
