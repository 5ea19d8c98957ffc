# SPDX-License-Identifier: MIT
# Lists and strings of CMake's own language; ROUNDS is how much.
set(total 0)
foreach(i RANGE 1 ${ROUNDS})
    math(EXPR key "${i} * 7919 % 500")
    list(APPEND entries_${key} "entry ${i} of ${key}")
    string(REGEX REPLACE "([0-9]+)" "<\\1>" changed "${entries_${key}}")
    string(LENGTH "${changed}" length)
    math(EXPR total "${total} + ${length}")
    if(length GREATER 1000)
        unset(entries_${key})
    endif()
endforeach()
message(NOTICE "${total}")
