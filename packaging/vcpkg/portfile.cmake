# SPDX-License-Identifier: MIT
# An overlay port: vcpkg install prudence --overlay-ports=packaging. It builds the tree that it stands in. The libraries of one kind
# are installed, as the triplet says.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}")
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME prudence CONFIG_PATH lib/cmake/prudence)
vcpkg_fixup_pkgconfig()

# Debug libraries have the same headers, tools and pages.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/bin"
    "${CURRENT_PACKAGES_DIR}/bin" "${CURRENT_PACKAGES_DIR}/share/doc" "${CURRENT_PACKAGES_DIR}/share/man")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/prudence")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
