# SPDX-License-Identifier: MIT
# Groups, maps and rewrites a list of accounts.
group_by(.city) | map({city: .[0].city, sum: (map(.amount) | add), names: (map(.name | ascii_upcase) | unique | length),
    tags: (map(.tags[]) | group_by(.) | map({tag: .[0], count: length}))})
