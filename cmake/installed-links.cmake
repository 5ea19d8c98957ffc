# SPDX-License-Identifier: MIT
# Run by an installation: in installed pages, a link to a file that is not installed (a source, a header) becomes its text.
# installed_docs is the folder, below DESTDIR if that is set.
file(GLOB_RECURSE pages "${installed_docs}/*.md")
foreach(page IN LISTS pages)
    file(READ "${page}" text)
    set(before "${text}")
    string(REPLACE "lab/examples/" "examples/" text "${text}") # where they are installed
    cmake_path(GET page PARENT_PATH folder)
    # Not with the bracket in front, which a list of CMake would take for one of its own.
    string(REGEX MATCHALL "\\([^][();# \n]*[./][^][(); \n]*\\)" targets "${text}")
    list(REMOVE_DUPLICATES targets)
    foreach(target IN LISTS targets)
        string(REGEX REPLACE "^\\(([^#]*).*\\)$" "\\1" path "${target}")
        if(path MATCHES "^[a-z]+:" OR EXISTS "${folder}/${path}")
            continue()
        endif()
        string(REGEX REPLACE "([.+*?^$()])" "\\\\\\1" target "${target}")
        string(REGEX REPLACE "\\[([^][]*)\\]${target}" "\\1" text "${text}")
    endforeach()
    if(NOT text STREQUAL before)
        file(WRITE "${page}" "${text}")
    endif()
endforeach()
