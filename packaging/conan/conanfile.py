# SPDX-License-Identifier: MIT
"""Conan 2: conan create packaging/conan. The option `shared` chooses which form of the libraries the package has."""

import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir


class Prudence(ConanFile):
    name = "prudence"
    version = "0.3.0-dev"
    license = "MIT"
    description = "A memory allocator for programs that defer their frees"
    topics = ("allocator", "rcu", "concurrency")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    languages = "C"

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("Prudence runs on Linux, on x86-64 and AArch64")

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "../..")
        for pattern in ("CMakeLists.txt", "LICENSE", "MAINTAINERS", "SECURITY.md", "README.md", "CHANGELOG.md", "cmake/*", "docs/*", "tools/site/*",
                        "lab/examples/*", "include/*",
                        "preload/*", "programs/completion/*", "programs/gdb/*", "programs/watch/*", "src/*", "tests/docs/*"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeToolchain(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        for folder in ("lib/cmake", "lib/pkgconfig", "share/doc", "share/man"):
            rmdir(self, os.path.join(self.package_folder, folder))
        rm(self, "*.a" if self.options.shared else "*.so*", os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "prudence")
        self.cpp_info.set_property("cmake_target_name", "prudence::prudence" if self.options.shared else "prudence::prudence_static")
        self.cpp_info.set_property("pkg_config_name", "prudence")
        self.cpp_info.libs = ["prudence"]
        self.cpp_info.system_libs = ["pthread"]
