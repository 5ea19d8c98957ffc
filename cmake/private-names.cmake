# SPDX-License-Identifier: MIT
# Names that the members of the static library share (ADR 26): the hidden names of the main member that another member uses.
#
#   cmake -D READELF=readelf -D LIBRARY=library.o -D "OTHERS=a.o;b.o" -D TO=FILE -P private-names.cmake
#
# Writes FILE.keep, with a name a line that stays global, and FILE.rename, with each name and the one that it gets, for objcopy. Fails, naming
# them, if the main member uses a hidden name of another member, or these of each other: it reaches the others by entries alone
# (src/core/os/posix/entered.h).
cmake_minimum_required(VERSION 3.22)

# Sets ${prefix}_hidden to the hidden names that an object defines, and ${prefix}_wanted to those that it does not define.
function(names_of object prefix)
    execute_process(COMMAND ${READELF} -sW ${object} OUTPUT_VARIABLE table RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR "${READELF} ${object}: ${failed}")
    endif()
    string(REGEX MATCHALL " (GLOBAL|WEAK) +HIDDEN +[0-9]+ [^ \n]+" hidden "${table}")
    string(REGEX MATCHALL " (GLOBAL|WEAK) +[A-Z]+ +UND [^ \n]+" wanted "${table}")
    list(TRANSFORM hidden REPLACE ".* " "")
    list(TRANSFORM wanted REPLACE ".* " "")
    list(REMOVE_ITEM hidden _.stapsdt.base)
    set(${prefix}_hidden "${hidden}" PARENT_SCOPE)
    set(${prefix}_wanted "${wanted}" PARENT_SCOPE)
endfunction()

function(refuse_common user names of)
    foreach(name ${names})
        if(name IN_LIST of)
            message(FATAL_ERROR "${user} uses the private name ${name} of another member, which a program may lack")
        endif()
    endforeach()
endfunction()

names_of(${LIBRARY} library)
set(shared "")
set(of_others "")
foreach(object ${OTHERS})
    names_of(${object} other)
    list(APPEND of_others ${other_hidden})
    list(APPEND wanted_by_others ${other_wanted})
    foreach(name ${other_wanted})
        if(name IN_LIST library_hidden)
            list(APPEND shared ${name})
        endif()
    endforeach()
endforeach()
refuse_common(${LIBRARY} "${library_wanted}" "${of_others}")
refuse_common("a member" "${wanted_by_others}" "${of_others}")

list(REMOVE_DUPLICATES shared)
list(SORT shared)
set(keep "_.stapsdt.base\n") # what notes of probes refer to
set(rename "")
foreach(name ${shared})
    string(APPEND keep "${name}\n")
    string(APPEND rename "${name} prudence_private_${name}\n")
endforeach()
file(WRITE ${TO}.keep "${keep}")
file(WRITE ${TO}.rename "${rename}")
