/* SPDX-License-Identifier: MIT */
/* Inner nodes of ordered maps (map_node.h). */
#include "tables/map_node.h"

static unsigned next_in_list(struct map_node *node, unsigned from, unsigned flip, uintptr_t *link)
{
    const unsigned used = load_acquire(&node->used);
    const uintptr_t *slots = map_slots(node);
    unsigned best = MAP_NO_BYTE;

    for (unsigned i = 0; i < used; i++) {
        unsigned byte = map_byte_in_list(node, i) ^ flip;
        uintptr_t there;

        if (byte < from || byte >= best)
            continue;
        there = load_acquire(&slots[i]);
        if (there) {
            best = byte;
            *link = there;
        }
    }
    return best;
}

unsigned map_node_next_byte(struct map_node *node, unsigned from, unsigned flip, uintptr_t *link)
{
    if (node->kind < MAP_NINETY)
        return next_in_list(node, from, flip, link);
    for (unsigned byte = from; byte < MAP_NO_BYTE; byte++) {
        const uintptr_t *slot = map_slot(node, (uint8_t)(byte ^ flip));
        uintptr_t there = slot ? load_acquire(slot) : 0;

        if (there) {
            *link = there;
            return byte;
        }
    }
    return MAP_NO_BYTE;
}

void map_node_append(struct map_node *node, uint8_t byte, uintptr_t link)
{
    const unsigned slot = node->kind == MAP_ALL ? byte : load_relaxed(&node->used);

    store_relaxed(&map_slots(node)[slot], link);
    map_count_link(node);
    if (node->kind == MAP_ALL)
        return;
    if (node->kind == MAP_NINETY)
        store_release(&map_table(node)[byte],
                      narrow(uint8_t, slot + 1)); /* like `used` for lists */
    else
        store_relaxed(&map_words(node)[slot / 8],
                      load_relaxed(&map_words(node)[slot / 8]) | (uint64_t)byte << 8 * (slot % 8));
    /* Release: a reader that counts on the slot sees the byte, the link, and the content of the
     * object. */
    store_release(&node->used, narrow(uint8_t, slot + 1));
}

void map_node_init(struct map_node *node, unsigned kind, uint64_t prefix)
{
    __builtin_memset(node, 0, map_node_bytes(kind));
    node->kind = narrow(uint8_t, kind);
    node->prefix = prefix;
}

static void copy_list(struct map_node *to, struct map_node *from)
{
    for (unsigned i = 0; i < from->used; i++)
        if (map_slots(from)[i])
            map_node_append(to, map_byte_in_list(from, i), map_slots(from)[i]);
}

void map_node_copy_links(struct map_node *to, struct map_node *from)
{
    uintptr_t link;

    if (from->end) {
        to->end = from->end;
        to->live++;
    }
    if (from->kind < MAP_NINETY) {
        copy_list(to, from);
        return;
    }
    for (unsigned byte = map_node_next_byte(from, 0, 0, &link); byte < MAP_NO_BYTE;
         byte = map_node_next_byte(from, byte + 1, 0, &link))
        map_node_append(to, (uint8_t)byte, link);
}

uintptr_t map_node_only_link(struct map_node *node, unsigned *byte)
{
    uintptr_t link = load_acquire(&node->end);

    *byte = MAP_NO_BYTE;
    if (!link)
        *byte = map_node_next_byte(node, 0, 0, &link);
    return link;
}
