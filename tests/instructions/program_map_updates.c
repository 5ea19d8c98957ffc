/* SPDX-License-Identifier: MIT */
/* Adds strings to an ordered map, removes most, and adds those again, for
 * test_map_updates.py. The strings are cut off one name at any length, and end with a number. */
#include <prudence/map.h>
#include <prudence/rcu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRINGS 4000

static struct object {
    struct prudence_map_bytes bytes;
    char text[64];
} objects[STRINGS];

static void expect(int error)
{
    if (error)
        abort();
}

int main(void)
{
    static const char folder[] = "/static/images/products/gallery/2026/11/large/photo-";
    const struct prudence_map_attr attr = {.size = sizeof attr, .flags = PRUDENCE_MAP_BYTES};
    struct prudence_map *map = prudence_map_create("strings", &attr);

    for (unsigned i = 0; i < STRINGS; i++) {
        snprintf(objects[i].text, sizeof objects[i].text, "%.*s%08x", (int)(8 + i * 7919u % 45),
                 folder, i * 2654435761u % 16384);
        prudence_map_set_bytes(&objects[i].bytes, objects[i].text, strlen(objects[i].text));
        expect(prudence_map_add(map, &objects[i].bytes.node, NULL));
    }
    for (unsigned i = 0; i < STRINGS; i++)
        if (i % 8)
            expect(prudence_map_erase_bytes(map, objects[i].text, strlen(objects[i].text), NULL));
    prudence_synchronize();
    for (unsigned i = 0; i < STRINGS; i++)
        if (i % 8)
            expect(prudence_map_add(map, &objects[i].bytes.node, NULL));
    return 0;
}
