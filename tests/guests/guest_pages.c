/* SPDX-License-Identifier: MIT */
/*
 * Live blocks keep their contents while other blocks come, grow and go, and while the library
 * purges unused memory. One thread; sizes from a byte to many pages, so that blocks share pages of
 * any size.
 *
 *     guest_pages [STEPS]      (60000)
 *
 * Exit status 0: no byte of a live block has changed; 1: one has, or calloc's memory was not zero,
 * or an allocation failed.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <unistd.h>

#define BLOCKS 600

struct block {
    unsigned char *bytes;
    size_t size;
    unsigned char fill;
};

static struct block blocks[BLOCKS];
static uint64_t random_state = 1, looked_at, changed, dirty;

static size_t any_size(void)
{
    uint64_t draw = guest_random(&random_state);

    switch (draw % 8) {
    case 0: /* some pages of 4 KB, up to a size that no slab holds */
        return 4096 * (1 + (draw >> 8) % 40);
    case 1: /* a little less or more than some pages */
        return 4096 * (1 + (draw >> 8) % 40) - 64 + (draw >> 20) % 128;
    default:
        return 1 + (draw >> 8) % 9000;
    }
}

static void look_at(const struct block *block)
{
    looked_at++;
    for (size_t i = 0; i < block->size; i++)
        if (block->bytes[i] != block->fill) {
            changed++;
            return;
        }
}

static void fill(struct block *block, unsigned char *bytes, size_t size)
{
    block->bytes = bytes;
    block->size = size;
    block->fill = (unsigned char)(1 + guest_random(&random_state) % 255);
    memset(bytes, block->fill, size);
}

static unsigned char *zeroed(size_t size)
{
    unsigned char *bytes = prudence_calloc(1, size);

    for (size_t i = 0; bytes && i < size; i++)
        if (bytes[i]) {
            dirty++;
            break;
        }
    return bytes;
}

/* Returns false if the allocation fails. */
static bool allocate(struct block *block)
{
    size_t size = any_size();
    unsigned char *bytes = guest_random(&random_state) % 4 ? prudence_malloc(size) : zeroed(size);

    if (bytes)
        fill(block, bytes, size);
    return bytes;
}

/* Checks the bytes that both sizes have. */
static bool resize(struct block *block)
{
    size_t size = any_size();
    unsigned char *bytes = prudence_realloc(block->bytes, size);

    if (!bytes)
        return false;
    block->bytes = bytes;
    if (size < block->size)
        block->size = size;
    look_at(block);
    fill(block, bytes, size);
    return true;
}

static bool step(void)
{
    struct block *block = &blocks[guest_random(&random_state) % BLOCKS];

    if (!block->bytes)
        return allocate(block);
    look_at(block);
    if (guest_random(&random_state) % 8 == 0)
        return resize(block);
    if (guest_random(&random_state) % 4 == 0)
        prudence_free_deferred(block->bytes);
    else
        prudence_free(block->bytes);
    block->bytes = NULL;
    return true;
}

int main(int count, char **arguments)
{
    unsigned steps = count > 1 ? (unsigned)atoi(arguments[1]) : 60000;

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("pages of %ld bytes\n", sysconf(_SC_PAGESIZE));
    for (unsigned i = 0; i < steps; i++) {
        if (!step()) {
            perror("pages: no memory");
            return GUEST_WRONG;
        }
        if (i % 2000 == 0)
            prudence_trim();
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        if (blocks[i].bytes)
            look_at(&blocks[i]);
    printf("pages: %llu live blocks looked at, %llu changed, %llu of calloc not zero%s\n",
           (unsigned long long)looked_at, (unsigned long long)changed, (unsigned long long)dirty,
           changed || dirty ? "  CORRUPT" : "");
    return changed || dirty ? GUEST_WRONG : GUEST_RIGHT;
}
