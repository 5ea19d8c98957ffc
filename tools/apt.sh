# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by scripts that fetch Debian packages next to the system's own.
#
#   debian_mirror                             prints the mirror that this machine's own sources name
#   apt_apart FOLDER ARCHITECTURE [SUITE...]  makes an apt of its own in FOLDER, and sets APT_CONFIG so that apt-get and
#                                             apt-cache use it; its suites are this machine's own unless named

# Of the plain suite, not of security or updates.
debian_mirror() {
    env -u APT_CONFIG apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1 || true
}

debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

apt_apart() {
    local folder=$1 architecture=$2 mirror suite sources=
    shift 2
    mkdir -p "$folder"/lists/partial "$folder"/cache/archives/partial
    if [ $# -gt 0 ]; then
        mirror=$(debian_mirror)
        [ -n "$mirror" ] || return 1
        for suite in "$@"; do
            echo "deb [signed-by=$debian_keyring] $mirror $suite main"
        done >"$folder/sources.list"
        sources="Dir::Etc::sourcelist \"$folder/sources.list\"; Dir::Etc::sourceparts \"/dev/null\";"
    fi
    : >"$folder/status"
    cat >"$folder/conf" <<EOF
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::State "$folder";
Dir::State::Lists "$folder/lists";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
$sources
EOF
    export APT_CONFIG=$folder/conf
}
