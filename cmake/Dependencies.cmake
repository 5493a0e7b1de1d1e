# Debian's libraries (DESIGN: outside of what the project exists for, a well-kept library beats our own code).
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libdeflate REQUIRED IMPORTED_TARGET libdeflate)
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
pkg_check_modules(libcurl REQUIRED libcurl) # its headers: launch/etcd opens the library
if(LOCKSTEP_TESTS)
  find_package(GTest REQUIRED)
endif()
