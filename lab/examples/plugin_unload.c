/* SPDX-License-Identifier: MIT */
/*
 * Unloading a plug-in: many threads call its code, and dlclose() takes the code away. Calls are
 * sections, so after a grace period no thread is inside. The plug-in is plugin/plugin.c, built as
 * plugin.so in the folder of this program. docs/how-to/example-plugin-unload.md
 */
#include "example.h"

#include <dlfcn.h>

struct plugin {
    void *handle;
    long (*answer)(unsigned question);
    bool loaded; /* for the check */
};

static struct plugin *plugin;
static struct prudence_cache *cache;

static struct plugin *load(void)
{
    struct plugin *fresh = prudence_cache_alloc(cache);

    MUST(fresh);
    MUST(fresh->handle = dlopen("$ORIGIN/plugin.so", RTLD_NOW | RTLD_LOCAL));
    *(void **)&fresh->answer = dlsym(fresh->handle, "plugin_answer");
    MUST(fresh->answer);
    fresh->loaded = true;
    return fresh;
}

static void unload(struct plugin *old)
{
    old->loaded = false;
    dlclose(old->handle);
}

static long call(const struct plugin *seen, unsigned question)
{
    return seen->loaded && seen->answer(question) == 2 * (long)question ? 1 : WRONG;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    long found;

    pthread_rwlock_rdlock(&lock);
    found = call(plugin, random);
    pthread_rwlock_unlock(&lock);
    return found;
}

static void update_before(unsigned random)
{
    pthread_rwlock_wrlock(&lock);
    unload(plugin);
    prudence_cache_free(cache, plugin);
    plugin = load();
    pthread_rwlock_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------- after */

static pthread_mutex_t loader = PTHREAD_MUTEX_INITIALIZER; /* taken by no caller of the plug-in */

static long read_after(unsigned random)
{
    struct plugin *seen;
    long found = 0; /* no plug-in */

    prudence_read_lock();
    seen = prudence_dereference(plugin);
    if (seen) {
        meanwhile();
        found = call(seen, random);
    }
    prudence_read_unlock();
    return found;
}

/* Hides the plug-in from new calls. The cookie shows when the others have returned. */
static prudence_gp_t withdraw(void)
{
    prudence_assign_pointer(plugin, NULL);
    return prudence_gp_start_poll();
}

static bool calls_have_returned(prudence_gp_t cookie)
{
    return mistake || prudence_gp_poll_state(cookie);
}

static void update_after(unsigned random)
{
    struct plugin *old;
    prudence_gp_t cookie;

    pthread_mutex_lock(&loader);
    old = plugin;
    cookie = withdraw();
    if (!calls_have_returned(cookie))
        prudence_gp_cond_synchronize(cookie);
    unload(
        old); /* if its code could still be called later, by callbacks: prudence_barrier() first */
    prudence_cache_free(cache, old);
    prudence_assign_pointer(plugin, load());
    pthread_mutex_unlock(&loader);
}

/* ---------------------------------------------------------------------------------------- check */

static struct plugin *withdrawn;

static void unload_it(void)
{
    withdrawn = plugin;
    if (calls_have_returned(withdraw()))
        unload(withdrawn);
}

static const char *check(void)
{
    example_meanwhile = unload_it;
    if (read_after(1) == WRONG)
        return "code was to be called that is no longer there";
    prudence_synchronize();
    unload(withdrawn);
    if (read_after(1) != 0)
        return "a plug-in was called that was withdrawn";
    prudence_assign_pointer(plugin, load());
    return NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("plugins", sizeof(struct plugin), NULL));
    plugin = load();
}
