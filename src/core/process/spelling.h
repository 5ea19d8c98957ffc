/* SPDX-License-Identifier: MIT */
/* How far a misspelt word is from a known one, for "did you mean". */
#ifndef PROCESS_SPELLING_H
#define PROCESS_SPELLING_H

#define SPELLING_FAR 3U /* words at this distance or beyond are not alike */

/*
 * Returns the number of letters to add, leave out, replace or exchange with their neighbours to
 * make one word of the other, at most SPELLING_FAR. Upper and lower case, '-' and '_' are equal.
 * A short word has fewer typing mistakes: changing half of its letters is SPELLING_FAR. `known` has
 * at most 31 letters.
 */
unsigned spelling_distance(const char *word, const char *known);

#endif /* PROCESS_SPELLING_H */
