# SPDX-License-Identifier: MIT
# The patterns of prudence-bench malloc on prudence_malloc(), in every build: under a sanitizer nothing
# can be preloaded. The blocks of the patterns are all that goes through these names.
file(GLOB patterns CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lab/bench/malloc/*.c)
list(FILTER patterns EXCLUDE REGEX "/(watch|block)\\.c$")
add_library(torture_malloc_block OBJECT ${PROJECT_SOURCE_DIR}/lab/bench/malloc/block.c)
target_compile_definitions(torture_malloc_block PRIVATE malloc=prudence_malloc
    realloc=prudence_realloc free=prudence_free)
add_executable(torture_malloc ${patterns} $<TARGET_OBJECTS:torture_malloc_block>)
target_compile_options(torture_malloc_block PRIVATE ${PRUDENCE_WARNINGS})
target_compile_options(torture_malloc PRIVATE ${PRUDENCE_WARNINGS})
target_link_libraries(torture_malloc PRIVATE prudence_internal bench_common)
# Here AddressSanitizer shall see every block.
set(pattern_environment ${test_environment})
list(FILTER pattern_environment EXCLUDE REGEX "^PRUDENCE_OPTIONS=annotate=0")
set(pattern_names phases larson free-only asymmetric sizes realloc threads fork)
if(PRUDENCE_SANITIZE STREQUAL "thread")
    list(REMOVE_ITEM pattern_names fork) # the child of a threaded process
endif()
foreach(pattern ${pattern_names})
    set(threads --threads 4)
    if(pattern STREQUAL "fork")
        set(threads --threads 1)
    endif()
    add_test(NAME torture_malloc_${pattern}
        COMMAND ${launcher} $<TARGET_FILE:torture_malloc> ${pattern} ${threads} --scale 0.02)
    set_tests_properties(torture_malloc_${pattern} PROPERTIES ENVIRONMENT "${pattern_environment}"
        LABELS "torture;pages" TIMEOUT 900 PROCESSORS 2)
endforeach()
