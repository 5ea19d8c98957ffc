# SPDX-License-Identifier: MIT
# Arrays of strings, split, substitution and concatenation; scale is how much.
function random(bound) { state = (state * 16807) % 2147483647; return state % bound }
BEGIN {
    state = 1
    for (i = 1; i <= 200000 * scale; i++) {
        key = "key" random(30000)
        text = "value " random(1000) ", of " key
        kept[key] = text
        count[length(text)]++
        if (i % 3 == 0) delete kept["key" random(30000)]
        if (i % 4 == 0) { gsub(/[0-9]/, "<&>", text); n = split(text, parts, "<"); total += n length(parts[n]) }
    }
    for (key in kept) total += length(kept[key])
    for (i = 1; i <= 100; i++) print i, count[i]
    print total
}
