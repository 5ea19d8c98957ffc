# SPDX-License-Identifier: MIT
# What the findings share. Each sources this file first, and then is in a temporary folder, which goes when it ends.
set -euo pipefail

finding=$(basename "$0" .sh)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

leave_out() { # leave_out REASON: it cannot be shown here
    echo "$finding: $1" >&2
    exit 77
}

only_x86_64() {
    [ "$(uname -m)" = x86_64 ] || leave_out "this is about x86-64"
}

unpack() { # unpack PACKAGE[=VERSION]...: Debian's packages, below root/
    apt-get -qq download "$@" 2>download.log || { cat download.log >&2; exit 1; }
    for package in *.deb; do
        dpkg -x "$package" root
    done
}

library_of() { # library_of ALLOCATOR: what to preload of an unpacked one; nothing for the C library's
    local libraries=$folder/root/usr/lib clang=lib/linux/libclang_rt.scudo_standalone-x86_64.so
    case $1 in
    jemalloc) echo "$libraries/x86_64-linux-gnu/libjemalloc.so.2" ;;
    mimalloc) echo "$libraries/x86_64-linux-gnu/libmimalloc.so.2" ;;
    tcmalloc) echo "$libraries/x86_64-linux-gnu/libtcmalloc_minimal.so.4" ;;
    tbbmalloc) echo "$libraries/x86_64-linux-gnu/libtbbmalloc_proxy.so.2" ;;
    scudo-14) echo "$libraries/llvm-14/lib/clang/14.0.6/$clang" ;;
    scudo | scudo-19) echo "$libraries/llvm-19/lib/clang/19/$clang" ;;
    esac
}

unpack_gdb() { # makes the command `debugger`, which has no settings of the user
    unpack gdb=13.1-3 libbabeltrace1 libdebuginfod1 libipt2 libmpfr6 libpython3.11 libsource-highlight4v5 libxxhash0 libbpf1 \
        libboost-regex1.74.0
    debugger() {
        LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu" root/usr/bin/gdb -nx -batch -data-directory "$folder/root/usr/share/gdb" "$@" 2>&1
    }
}

build_rust() { # build_rust LINE...: main.rs as ./program, with a line of Cargo.toml for each crate
    command -v cargo >/dev/null || leave_out "there is no cargo"
    mkdir -p package/src
    mv main.rs package/src/
    printf '%s\n' '[package]' 'name = "program"' 'version = "0.0.0"' 'edition = "2021"' '[dependencies]' "$@" >package/Cargo.toml
    CARGO_TARGET_DIR="$folder/target" cargo build -q --manifest-path package/Cargo.toml
    mv target/debug/program .
}

expect() { # expect FOUND RIGHT
    [ "$1" = "$2" ] && return
    echo "$finding: this is no longer so" >&2
    exit 1
}
