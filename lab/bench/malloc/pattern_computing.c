/* SPDX-License-Identifier: MIT */
/*
 * Computations that allocate as they go, in one thread, written anew from the described
 * computations of a public set of allocator benchmarks. Each checks its result, so that the
 * compiler cannot drop it.
 *
 *   like-cfrac     the continued fraction of a square root in numbers of any length, each result a
 *                  new small block, each operand freed soon
 *   like-espresso  covers of a Boolean function: products are intersected, and those that another
 *                  one contains are dropped; small bit sets in arrays that grow
 *   like-barnes    bodies in an octree that is rebuilt for each step and freed after it
 */
#include "load.h"

#include <stdbool.h>
#include <string.h>

/* ---------------------------------------------------------------------------------- like-cfrac */

#define MOST_LIMBS 24

/* Its digits, 32-bit limbs with the least first, come after the mark of its block. */
struct number {
    struct block block;
    unsigned limbs;
};

static uint32_t *limbs_of(const struct number *number)
{
    return (uint32_t *)((char *)number->block.at + BLOCK_LEAST);
}

/* The block is a byte longer than the limbs, for the end of the mark. */
static struct number number_new(struct member *member, unsigned limbs)
{
    struct number number = {block_new(member, BLOCK_LEAST + 4 * limbs + 1), limbs};

    return number;
}

static struct number number_of(struct member *member, uint32_t value)
{
    struct number number = number_new(member, 1);

    limbs_of(&number)[0] = value;
    return number;
}

/* Returns a x factor + b, and frees `b`; `a` stays. */
static struct number multiply_add(struct member *member, const struct number *a, uint32_t factor,
                                  struct number *b)
{
    uint32_t result[MOST_LIMBS + 1];
    unsigned limbs = a->limbs > b->limbs ? a->limbs : b->limbs, used = 0;
    struct number sum;
    uint64_t carry = 0;

    for (unsigned i = 0; i < limbs || carry; i++) {
        if (i < a->limbs)
            carry += (uint64_t)limbs_of(a)[i] * factor;
        if (i < b->limbs)
            carry += limbs_of(b)[i];
        result[used++] = (uint32_t)carry;
        carry >>= 32;
    }
    sum = number_new(member, used);
    memcpy(limbs_of(&sum), result, 4 * used);
    block_end(&b->block);
    return sum;
}

/* Returns the remainder of a division by a small number, to compare two ways of computing a
 * number. */
static uint32_t remainder_by(const struct number *number, uint32_t divisor)
{
    uint64_t rest = 0;

    for (unsigned i = number->limbs; i-- > 0;)
        rest = (rest << 32 | limbs_of(number)[i]) % divisor;
    return (uint32_t)rest;
}

static uint32_t root_of(uint32_t n)
{
    uint32_t root = 0;

    while ((uint64_t)(root + 1) * (root + 1) <= n)
        root++;
    return root;
}

/* Computes numerators of the convergents of sqrt(n), until they are MOST_LIMBS long. */
static void convergents(struct member *member, uint32_t n)
{
    const uint32_t prime = 1000003;
    uint32_t root = root_of(n), m = 0, d = 1, a = root;
    struct number before = number_of(member, 1), last = number_of(member, root);
    uint64_t before_rest = 1, last_rest = root % prime;

    while (root * root != n && last.limbs < MOST_LIMBS) {
        struct number next;
        uint64_t rest;

        m = d * a - m;
        d = (n - m * m) / d;
        a = (root + m) / d;
        next = multiply_add(member, &last, a, &before);
        rest = (last_rest * a + before_rest) % prime;
        if (remainder_by(&next, prime) != rest)
            load_fail("a convergent of the root of %u is wrong", n);
        before = last, last = next;
        before_rest = last_rest, last_rest = rest;
    }
    block_end(&before.block);
    block_end(&last.block);
}

static void cfrac_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 3000000);

    while (member->blocks < goal)
        convergents(member, 2 + (uint32_t)random_below(&member->random, 1000000));
}

/* ------------------------------------------------------------------------------- like-espresso */

#define VARIABLES   48 /* two bits each: may be 0, may be 1 */
#define CUBE_WORDS  2
#define CUBE_BYTES  (BLOCK_LEAST + 8 * CUBE_WORDS + 1)
#define MOST_CUBES  600
#define FIRST_CUBES 24

struct cover {
    struct block array; /* array of struct block, after the mark */
    unsigned count, room;
};

static uint64_t *words_of(const struct block *cube)
{
    return (uint64_t *)((char *)cube->at + BLOCK_LEAST);
}

static struct block *cubes_of(const struct cover *cover)
{
    return (struct block *)((char *)cover->array.at + BLOCK_LEAST);
}

static void cover_add(struct member *member, struct cover *cover, struct block cube)
{
    if (cover->count == cover->room) {
        cover->room = cover->room ? 2 * cover->room : 8;
        if (!cover->array.at)
            cover->array = block_new(member, BLOCK_LEAST + cover->room * sizeof cube + 1);
        else
            block_resize(&cover->array, BLOCK_LEAST + cover->room * sizeof cube + 1);
    }
    cubes_of(cover)[cover->count++] = cube;
}

static void cover_end(struct cover *cover)
{
    for (unsigned i = 0; i < cover->count; i++)
        block_end(&cubes_of(cover)[i]);
    block_end(&cover->array);
}

static bool contains(const uint64_t *large, const uint64_t *small)
{
    return !(small[0] & ~large[0]) && !(small[1] & ~large[1]);
}

/* A product is empty if some variable may be neither 0 nor 1. */
static bool is_empty(const uint64_t *words)
{
    const uint64_t pairs = UINT64_C(0x5555555555555555), half = (UINT64_C(1) << 2 * 24) - 1;

    return ~(words[0] | words[0] >> 1) & pairs & half || ~(words[1] | words[1] >> 1) & pairs & half;
}

/* Adds the cube unless the cover has one that contains it; drops the cubes that it contains. */
static void cover_add_minimal(struct member *member, struct cover *cover, struct block cube)
{
    struct block *cubes = cover->count ? cubes_of(cover) : NULL;

    for (unsigned i = 0; i < cover->count; i++) {
        if (contains(words_of(&cubes[i]), words_of(&cube))) {
            block_end(&cube);
            return;
        }
    }
    for (unsigned i = 0; i < cover->count;) {
        if (!contains(words_of(&cube), words_of(&cubes[i]))) {
            i++;
            continue;
        }
        block_end(&cubes[i]);
        cubes[i] = cubes[--cover->count];
    }
    cover_add(member, cover, cube);
}

static struct cover random_cover(struct member *member)
{
    struct cover cover = {.count = 0};

    for (unsigned i = 0; i < FIRST_CUBES; i++) {
        struct block cube = block_new(member, CUBE_BYTES);
        uint64_t *words = words_of(&cube);

        words[0] = words[1] = ~UINT64_C(0);
        for (unsigned literal = 0; literal < 6; literal++) {
            unsigned variable = (unsigned)random_below(&member->random, VARIABLES);

            words[variable / 24] &=
                ~(UINT64_C(1) << (2 * (variable % 24) + random_next(&member->random) % 2));
        }
        cover_add_minimal(member, &cover, cube);
    }
    return cover;
}

/* Intersects all pairs, as far as there is room. */
static struct cover intersect(struct member *member, const struct cover *a, const struct cover *b)
{
    struct cover result = {.count = 0};

    for (unsigned i = 0; i < a->count; i++) {
        for (unsigned j = 0; j < b->count && result.count < MOST_CUBES; j++) {
            const uint64_t *x = words_of(&cubes_of(a)[i]), *y = words_of(&cubes_of(b)[j]);
            struct block cube = block_new(member, CUBE_BYTES);

            words_of(&cube)[0] = x[0] & y[0];
            words_of(&cube)[1] = x[1] & y[1];
            if (is_empty(words_of(&cube)))
                block_end(&cube);
            else
                cover_add_minimal(member, &result, cube);
        }
    }
    return result;
}

/* Checks that each product of the intersection lies in one of the first cover. */
static void check_inside(const struct cover *inner, const struct cover *outer)
{
    for (unsigned i = 0; i < inner->count; i++) {
        bool found = false;

        for (unsigned j = 0; j < outer->count && !found; j++)
            found = contains(words_of(&cubes_of(outer)[j]), words_of(&cubes_of(inner)[i]));
        if (!found)
            load_fail("a product of an intersection lies outside");
    }
}

static void espresso_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 2400000);

    while (member->blocks < goal) {
        struct cover a = random_cover(member), b = random_cover(member);
        struct cover both = intersect(member, &a, &b);

        check_inside(&both, &a);
        cover_end(&a);
        cover_end(&b);
        cover_end(&both);
    }
}

/* --------------------------------------------------------------------------------- like-barnes */

#define BODIES      4096
#define MOST_LEVELS 20

struct body {
    double at[3], mass, pull;
};

/* After the mark of its block; a leaf has one body, an inner cell eight places for cells. */
struct cell {
    struct block part[8];
    const struct body *body;
    double mass, centre[3], side;
};

#define CELL_BYTES (2 * BLOCK_LEAST + sizeof(struct cell))

static struct cell *cell_of(const struct block *block)
{
    return (struct cell *)((char *)block->at + BLOCK_LEAST);
}

static struct block cell_new(struct member *member, const double *centre, double side)
{
    struct block block = block_new(member, CELL_BYTES);

    *cell_of(&block) = (struct cell){.side = side, .centre = {centre[0], centre[1], centre[2]}};
    return block;
}

static void insert(struct member *member, struct cell *cell, const struct body *body,
                   unsigned level);

static void insert_below(struct member *member, struct cell *cell, const struct body *body,
                         unsigned level)
{
    double centre[3];
    unsigned part = 0;

    for (unsigned i = 0; i < 3; i++) {
        part |= (unsigned)(body->at[i] >= cell->centre[i]) << i;
        centre[i] = cell->centre[i] + (part >> i & 1 ? cell->side : -cell->side) / 4;
    }
    if (!cell->part[part].at)
        cell->part[part] = cell_new(member, centre, cell->side / 2);
    insert(member, cell_of(&cell->part[part]), body, level + 1);
}

static void insert(struct member *member, struct cell *cell, const struct body *body,
                   unsigned level)
{
    const struct body *here = cell->body;
    bool empty = cell->mass == 0;

    cell->mass += body->mass;
    if (empty || level == MOST_LEVELS) {
        cell->body = body;
        return;
    }
    cell->body = NULL;
    if (here)
        insert_below(member, cell, here, level);
    insert_below(member, cell, body, level);
}

/* Sums the pull of near masses body by body, and of far ones cell by cell. */
static double pull_of(const struct cell *cell, const struct body *body)
{
    double square = 1e-4, sum = 0;

    for (unsigned i = 0; i < 3; i++)
        square += (cell->centre[i] - body->at[i]) * (cell->centre[i] - body->at[i]);
    if (cell->body || cell->side * cell->side < square)
        return cell->mass / square;
    for (unsigned i = 0; i < 8; i++) {
        if (cell->part[i].at)
            sum += pull_of(cell_of(&cell->part[i]), body);
    }
    return sum;
}

static void tree_end(struct block *block)
{
    for (unsigned i = 0; i < 8; i++) {
        if (cell_of(block)->part[i].at)
            tree_end(&cell_of(block)->part[i]);
    }
    block_end(block);
}

static double unit(struct member *member)
{
    return (double)random_below(&member->random, 1u << 30) / (1u << 30);
}

static void barnes_work(struct member *member)
{
    static const double middle[3] = {0.5, 0.5, 0.5};
    uint64_t steps = load_scaled(member->load, 200);
    struct body *bodies = own_memory(BODIES * sizeof *bodies);

    for (unsigned i = 0; i < BODIES; i++)
        bodies[i] = (struct body){.at = {unit(member), unit(member), unit(member)}, .mass = 1};
    while (steps--) {
        struct block root = cell_new(member, middle, 1);

        for (unsigned i = 0; i < BODIES; i++)
            insert(member, cell_of(&root), &bodies[i], 0);
        if (cell_of(&root)->mass != BODIES)
            load_fail("the tree weighs %f, not %d", cell_of(&root)->mass, BODIES);
        for (unsigned i = 0; i < BODIES; i += 16)
            bodies[i].pull = pull_of(cell_of(&root), &bodies[i]);
        for (unsigned i = 0; i < BODIES; i++)
            bodies[i].at[i % 3] = unit(member);
        tree_end(&root);
    }
    own_memory_end(bodies, BODIES * sizeof *bodies);
}

const struct pattern pattern_like_cfrac = {
    "like-cfrac", "continued fractions in numbers of any length; one thread", 1, 1,
    .work = cfrac_work};
const struct pattern pattern_like_espresso = {
    "like-espresso", "covers of Boolean functions: small bit sets in growing arrays; one thread", 1,
    1, .work = espresso_work};
const struct pattern pattern_like_barnes = {
    "like-barnes", "4,096 bodies in an octree that is built anew for each step; one thread", 1, 1,
    .work = barnes_work};
