/* SPDX-License-Identifier: MIT */
/*
 * A program as it was compiled before symbols of the library had versions: it declares what the
 * headers declared then. test_old_programs.py links it with a library that has no versions either.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *prudence_malloc(size_t size);
void prudence_free(void *object);
void prudence_free_deferred(void *object);
void prudence_synchronize(void);
void scm_get_mem_info(unsigned long *info); /* ten figures */
void scm_get_region_info(unsigned long *info);
void *prudence_hash_create(const char *name, const void *attr);
void *prudence_id_insert(void *table, void *object, unsigned *id);
void *prudence_routes_create(const char *name, const void *attr);

static void use_memory(void)
{
    prudence_free_deferred(prudence_malloc(100));
    prudence_synchronize();
    prudence_free(prudence_malloc(100));
}

static void read_figures(void)
{
    unsigned long memory[11], regions[3];

    memset(memory, 0xaa, sizeof memory);
    memset(regions, 0xaa, sizeof regions);
    scm_get_mem_info(memory);
    scm_get_region_info(regions);
    if (!memory[3] || memory[10] >> 56 != 0xaa || regions[2] >> 56 != 0xaa)
        abort();
}

int main(int count, char **arguments)
{
    unsigned id;

    if (count > 1 && !strcmp(arguments[1], "hash"))
        return !prudence_hash_create("hash", NULL);
    if (count > 1 && !strcmp(arguments[1], "ids"))
        return !prudence_id_insert(NULL, NULL, &id);
    if (count > 1 && !strcmp(arguments[1], "routes"))
        return !prudence_routes_create("routes", NULL);
    use_memory();
    read_figures();
    puts("runs");
    return 0;
}
