# cmake --install puts headers, libraries, the two programs and a package for find_package(Lockstep) in place.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(modules GLOBAL PROPERTY LOCKSTEP_MODULES)
install(TARGETS ${modules} EXPORT LockstepTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
install(EXPORT LockstepTargets NAMESPACE lockstep:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in ${PROJECT_BINARY_DIR}/LockstepConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/Libtorch.cmake ${CMAKE_CURRENT_LIST_DIR}/Dependencies.cmake
              ${CMAKE_CURRENT_LIST_DIR}/Precompile.cmake
        DESTINATION ${package})
