# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by scripts that compile, after which `ccache COMMAND` runs the command in any case: ccache that cannot write its folder would
# fail each compilation. Returns 1 where ccache is not installed.
command -v ccache >/dev/null || return 1
cached=$(ccache --get-config cache_dir)
if [ -z "${CCACHE_DISABLE:-}" ] && { ! mkdir -p "$cached" 2>/dev/null || [ ! -w "$cached" ]; }; then
    echo "$cached cannot be written: what is compiled is not kept for the next time" >&2
    export CCACHE_DISABLE=1
fi
