#!/bin/bash
# SPDX-License-Identifier: MIT
# lldb 14 prints no thread-local variable. It says that the thread has no such data yet, while the thread runs.
#
# Guess, written before the run: lldb 14 prints thread-local variables of the program and of its library.
#
# Seen (lldb 14.0.6 and gdb 13.1 of Debian 12, glibc 2.36, x86-64): the program is stopped in a function that has used both before. `expression`
# fails for the variable of the program and for that of its library, with "No TLS data currently exists for this thread". That is true of a library
# whose variables a thread has not used yet, and sends the user to look for such a reason. gdb prints both. lldb 19.1.7 prints both as well (it is too
# large to run here).
#
# For us: what a user asks a debugger for is reached by a function of ours, or is in memory that no thread owns.
. "$(dirname "$0")/common.sh"
only_x86_64

unpack lldb-14=1:14.0.6-12 liblldb-14=1:14.0.6-12 libllvm14=1:14.0.6-12 libclang-cpp14=1:14.0.6-12 python3-lldb-14=1:14.0.6-12
unpack_gdb

echo '__thread int of_library = 22;' >library.c
cat >program.c <<'END'
extern __thread int of_library;
__thread int of_program = 11;

__attribute__((noinline)) int sum(void)
{
    return of_program + of_library;
}

int main(void)
{
    return sum() != 33 || sum() != 33;
}
END
gcc -g -shared -fPIC library.c -o liblibrary.so
gcc -g program.c -L. -llibrary -Wl,-rpath,"$folder" -o program
unpacked=$folder/root/usr/lib/llvm-14
found="lldb:"
for variable in of_program of_library; do
    LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu:$unpacked/lib" LLDB_DEBUGSERVER_PATH=$unpacked/bin/lldb-server "$unpacked/bin/lldb" \
        --no-lldbinit --batch -o 'breakpoint set --name sum' -o run -o continue -o "expression $variable" ./program >lldb.log 2>&1 || true
    [ "$(grep -c 'stop reason = breakpoint' lldb.log)" = 2 ] || leave_out "lldb cannot run or trace here"
    found+=" $(grep -oE '^.int. .*|No TLS data.*' lldb.log)"
done
debugger -ex 'break sum' -ex run -ex continue -ex 'print of_program' -ex 'print of_library' ./program >gdb.log || leave_out "gdb cannot run or trace here"
found+=" gdb: $(grep -E '^\$' gdb.log | tr '\n' ' ')"
echo "$found"
none="No TLS data currently exists for this thread."
expect "$found" "lldb: $none $none gdb: \$1 = 11 \$2 = 22 "
