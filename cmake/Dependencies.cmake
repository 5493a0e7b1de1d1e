# Debian's libraries (DESIGN: outside of what the project exists for, a well-kept library beats our own code).
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)
pkg_check_modules(libisal REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(libhwy REQUIRED IMPORTED_TARGET libhwy)
# Kernels are compiled once for each instruction set: AVX-512, AVX2, and SSE2 for machines that have neither.
target_compile_definitions(PkgConfig::libhwy INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(tomlplusplus REQUIRED tomlplusplus) # its headers
pkg_check_modules(libjpeg REQUIRED IMPORTED_TARGET libjpeg>=2.1) # libjpeg-turbo: crops of scanlines
find_file(LOCKSTEP_JPEGINT jpegint.h HINTS ${libjpeg_INCLUDE_DIRS} REQUIRED) # of libjpeg62-turbo-dev: image/jpeg_scan.h
pkg_check_modules(spng REQUIRED IMPORTED_TARGET spng)
pkg_check_modules(libgif REQUIRED IMPORTED_TARGET libgif)
pkg_check_modules(libxxhash REQUIRED IMPORTED_TARGET libxxhash)
# lockstep_linked_in(TARGET HEADER NAME…): libraries that become part of what uses them, where they are there as archives: of a large
# library only what is used, and nothing more to load at a start.
function(lockstep_linked_in target header)
  if(TARGET ${target})
    return()
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  string(MAKE_C_IDENTIFIER ${header} of)
  find_path(LOCKSTEP_INCLUDE_${of} ${header} REQUIRED)
  set_property(TARGET ${target} PROPERTY INTERFACE_INCLUDE_DIRECTORIES ${LOCKSTEP_INCLUDE_${of}})
  foreach(name ${ARGN})
    find_library(LOCKSTEP_LIB_${name} NAMES lib${name}.a ${name} REQUIRED)
    set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${LOCKSTEP_LIB_${name}})
  endforeach()
endfunction()
lockstep_linked_in(Libcrypto::crypto openssl/sha.h crypto) # SHA-256
lockstep_linked_in(Libevent::extra event2/http.h event_extra event_core) # its HTTP server
pkg_check_modules(libcurl REQUIRED libcurl) # its headers: launch/etcd opens the library
if(LOCKSTEP_TESTS)
  find_package(GTest REQUIRED)
endif()
