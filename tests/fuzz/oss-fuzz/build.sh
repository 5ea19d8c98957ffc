#!/bin/bash -eu
# SPDX-License-Identifier: MIT
# Build the fuzz targets as OSS-Fuzz wants it: compilers and flags come from CC, CXX, CFLAGS, CXXFLAGS and LIB_FUZZING_ENGINE;
# the sources are in $SRC/prudence, and programs, corpora and dictionaries go to $OUT. `try` runs this without OSS-Fuzz.
root=$SRC/prudence/tests/fuzz
objects=$WORK/prudence/CMakeFiles/prudence_objects.dir

cmake -S "$SRC/prudence" -B "$WORK/prudence" -G "Unix Makefiles" -DCMAKE_BUILD_TYPE=Debug -DPRUDENCE_CHECKS=ON
cmake --build "$WORK/prudence" --parallel "$(nproc)" --target prudence_objects

for source in "$root"/fuzz_*.c; do
    target=$(basename "$source" .c)
    name=${target#fuzz_}
    # shellcheck disable=SC2086 # flags are several words
    $CC $CFLAGS -std=gnu11 -DPRUDENCE_DEBUG=1 -I"$SRC/prudence/include" -I"$SRC/prudence/src" \
        -I"$SRC/prudence/src/core" -I"$SRC/prudence/src/core/os/posix" -I"$SRC/prudence/src/core/gp/user" -I"$SRC/prudence/tests" -c "$source" -o "$WORK/$target.o"
    # shellcheck disable=SC2046,SC2086
    $CXX $CXXFLAGS "$WORK/$target.o" $(find "$objects" -name '*.o' | LC_ALL=C sort) $LIB_FUZZING_ENGINE -pthread -o "$OUT/$target"
    # zip need not be there
    (cd "$root/corpus/$name" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*)
    [ ! -e "$root/$name.dict" ] || cp "$root/$name.dict" "$OUT/$target.dict"
done
