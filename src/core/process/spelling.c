/* SPDX-License-Identifier: MIT */
/*
 * The distance of two words (optimal string alignment): three rows of the table of distances of
 * all beginnings. On the stack, because options are read before anything can be allocated.
 */
#include <string.h>

#include "base/base.h"
#include "process/spelling.h"

enum { MOST = 31 };

static char folded(char letter)
{
    if (letter >= 'A' && letter <= 'Z')
        return (char)(letter - 'A' + 'a');
    if (letter == '-')
        return '_';
    return letter;
}

static bool same(char a, char b)
{
    return folded(a) == folded(b);
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Fills the row of the first i letters of `word` from the rows of one and two letters less. */
static void fill_row(unsigned *row, const unsigned *above, const unsigned *two_above,
                     const char *word, unsigned i, const char *known, size_t length)
{
    row[0] = i;
    for (unsigned j = 1; j <= length; j++) {
        row[j] =
            least(least(row[j - 1], above[j]) + 1, above[j - 1] + !same(word[i - 1], known[j - 1]));
        if (i > 1 && j > 1 && same(word[i - 1], known[j - 2]) && same(word[i - 2], known[j - 1]))
            row[j] = least(row[j], two_above[j - 2] + 1);
    }
}

unsigned spelling_distance(const char *word, const char *known)
{
    const size_t letters = strlen(word), length = strlen(known);
    unsigned rows[3][MOST + 1], distance;

    if (letters >= length + SPELLING_FAR || length >= letters + SPELLING_FAR || length > MOST)
        return SPELLING_FAR;
    for (unsigned j = 0; j <= length; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= letters; i++)
        fill_row(rows[i % 3], rows[(i + 2) % 3], rows[(i + 1) % 3], word, i, known, length);
    distance = rows[letters % 3][length];
    return distance < SPELLING_FAR && 2 * (size_t)distance < length ? distance : SPELLING_FAR;
}
