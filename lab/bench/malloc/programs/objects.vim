" SPDX-License-Identifier: MIT
" Dictionaries, lists and strings of Vim's own language; g:scale is how much.
let s:entries = {}
let s:state = 1
let s:total = 0
for s:i in range(1, float2nr(60000 * g:scale))
    let s:state = s:state * 48271 % 2147483647
    let s:key = 'key' . s:state % 5000
    if !has_key(s:entries, s:key) | let s:entries[s:key] = [] | endif
    call add(s:entries[s:key], [s:i, 'entry ' . s:i . ' of ' . s:key])
    if s:i % 4 == 0 && has_key(s:entries, 'key' . s:i % 5000) | call remove(s:entries, 'key' . s:i % 5000) | endif
    if s:i % 8 == 0 | let s:total += len(join(split(substitute(s:key, 'k', ',', ''), '\zs'), '-')) | endif
endfor
for s:list in values(s:entries) | let s:total += len(s:list) | endfor
call writefile([s:total], g:out)
qall!
