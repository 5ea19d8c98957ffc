// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_demo.ko provides an RCU hash table as /dev/prudence_demo, written as a subsystem would
 * write it. The macros below switch it from kfree_rcu to deferred frees. Each write is one command:
 *
 *   set KEY VALUE    adds or replaces an entry; the old one is freed when readers have ended
 *   del KEY
 *   get KEY          -ENOENT if there is no such entry
 *   work COUNT       runs COUNT random commands as load (three gets for each set)
 *
 * A read returns the number of entries, of replacements and of torn reads. The file is built a
 * second time with DEMO_KFREE_RCU, as prudence_demo_rcu.ko.
 */
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/prudence.h>
#include <linux/random.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#ifdef DEMO_KFREE_RCU
#define DEVICE                 "prudence_demo_rcu"
#define entry_alloc(size, gfp) kmalloc(size, gfp)
#define entry_free(entry)      kfree_rcu(entry, rcu)
#else
#define DEVICE                 "prudence_demo"
#define entry_alloc(size, gfp) prudence_kmalloc(size, gfp)
#define entry_free(entry)      kfree_deferred(entry)
#endif

#define BITS   10
#define CHAINS (1u << BITS)
#define KEYS   4096

struct entry {
    struct hlist_node link;
    struct rcu_head rcu; /* kfree_rcu wants it */
    u32 key;
    u64 value, inverse; /* inverse = ~value, or a reader saw freed memory */
};

static struct chain {
    spinlock_t lock;
    struct hlist_head head;
} chains[CHAINS];
static atomic64_t entries, replaced, torn;

static struct chain *chain_of(u32 key)
{
    return &chains[hash_32(key, BITS)];
}

static struct entry *find(struct chain *chain, u32 key)
{
    struct entry *entry;

    hlist_for_each_entry_rcu(entry, &chain->head, link, lockdep_is_held(&chain->lock))
        if (entry->key == key)
            return entry;
    return NULL;
}

static int table_get(u32 key, u64 *value)
{
    const struct entry *entry;
    int error = -ENOENT;

    rcu_read_lock();
    entry = find(chain_of(key), key);
    if (entry) {
        *value = READ_ONCE(entry->value);
        if (READ_ONCE(entry->inverse) != ~*value)
            atomic64_inc(&torn);
        error = 0;
    }
    rcu_read_unlock();
    return error;
}

static int table_set(u32 key, u64 value)
{
    struct entry *new = entry_alloc(sizeof(*new), GFP_KERNEL), *old;
    struct chain *chain = chain_of(key);

    if (!new)
        return -ENOMEM;
    new->key = key;
    new->value = value;
    new->inverse = ~value;
    spin_lock(&chain->lock);
    old = find(chain, key);
    if (old)
        hlist_replace_rcu(&old->link, &new->link);
    else
        hlist_add_head_rcu(&new->link, &chain->head);
    spin_unlock(&chain->lock);
    if (old) {
        entry_free(old);
        atomic64_inc(&replaced);
    } else {
        atomic64_inc(&entries);
    }
    return 0;
}

static int table_del(u32 key)
{
    struct chain *chain = chain_of(key);
    struct entry *old;

    spin_lock(&chain->lock);
    old = find(chain, key);
    if (old)
        hlist_del_rcu(&old->link);
    spin_unlock(&chain->lock);
    if (!old)
        return -ENOENT;
    entry_free(old);
    atomic64_dec(&entries);
    return 0;
}

static int work(u64 count)
{
    u64 value;

    while (count--) {
        u32 random = get_random_u32(), key = random % KEYS;
        int error = random >> 30 ? table_get(key, &value) : table_set(key, random);

        if (error == -ENOMEM)
            return error;
        if (signal_pending(current))
            return -EINTR;
        cond_resched();
    }
    return 0;
}

static ssize_t demo_write(struct file *file, const char __user *text, size_t length, loff_t *at)
{
    char command[64];
    u64 value;
    u32 key;
    int error;

    if (length >= sizeof(command))
        return -E2BIG;
    if (copy_from_user(command, text, length))
        return -EFAULT;
    command[length] = 0;
    if (sscanf(command, "set %u %llu", &key, &value) == 2)
        error = table_set(key, value);
    else if (sscanf(command, "get %u", &key) == 1)
        error = table_get(key, &value);
    else if (sscanf(command, "del %u", &key) == 1)
        error = table_del(key);
    else if (sscanf(command, "work %llu", &value) == 1)
        error = work(value);
    else
        error = -EINVAL;
    return error ? error : (ssize_t)length;
}

static ssize_t demo_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
    char text[96];
    int bytes = scnprintf(text, sizeof(text), "entries %lld replaced %lld torn %lld\n",
                          atomic64_read(&entries), atomic64_read(&replaced), atomic64_read(&torn));

    return simple_read_from_buffer(to, length, at, text, bytes);
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .read = demo_read,
    .write = demo_write,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = DEVICE,
    .fops = &operations,
};

static int __init demo_start(void)
{
    unsigned int i;

    for (i = 0; i < CHAINS; i++)
        spin_lock_init(&chains[i].lock);
    return misc_register(&device);
}

static void __exit demo_stop(void)
{
    u32 key;

    misc_deregister(&device);
    for (key = 0; key < KEYS; key++)
        table_del(key);
}

module_init(demo_start);
module_exit(demo_stop);
MODULE_DESCRIPTION("An RCU hash table that defers frees to prudence.ko");
MODULE_LICENSE("Dual MIT/GPL");
