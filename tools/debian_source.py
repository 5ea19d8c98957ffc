# SPDX-License-Identifier: MIT
"""A source package of Debian, fetched by apt from where this system's binary packages come; no line of sources.list is needed."""

import re
import subprocess


def lines_of(policy, suite):
    """The lines of sources.list for the suites of `apt-cache policy`, or for `suite` of the same mirrors."""
    found = set()
    for uri, name, section in re.findall(r"^ *\d+ (http\S+) (\S+)/(main) \S+ Packages", policy, re.M):
        if not suite:
            found.add(f"deb-src {uri} {name} {section}")
        elif "-" not in name:  # the mirror of the plain suite, not of security or updates
            found.add(f"deb-src {uri} {suite} {section}")
    return sorted(found)


def fetch(folder, package, suite=None, upstream=False, mark="configure.ac"):
    """The folder of the unpacked source, or None, with a message. `suite`: another than this system's; `upstream`: without Debian's changes;
    `mark`: a file in the source's folder."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*/{mark}"):
        return old.parent
    policy = subprocess.run(["apt-cache", "policy"], capture_output=True, text=True, check=False).stdout
    (folder / "sources.list").write_text("\n".join(lines_of(policy, suite)) + "\n")
    (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::Etc::SourceList={folder}/sources.list",
           "-o", "Dir::Etc::SourceParts=/dev/null", "-o", f"Dir::State::Lists={folder}/lists",
           "-o", "Acquire::Retries=2", "-o", "APT::Sandbox::User="]
    source = ["source", "--only-source", *(["--tar-only"] if upstream else []), package]
    for command in (["update"], source):
        try:
            subprocess.run(apt + command, cwd=folder, timeout=300, stdout=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"apt: {error}")
            return None
    for archive in folder.glob("*.orig.tar.*") if upstream else ():
        if not archive.name.endswith(".asc"):
            subprocess.run(["tar", "xf", archive], cwd=folder, check=False)
    for new in folder.glob(f"*/{mark}"):
        return new.parent
    return None
