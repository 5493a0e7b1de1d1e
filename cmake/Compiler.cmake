# Warnings, determinism of floating point, ccache and the linker: what every target of ours is compiled with.
add_library(lockstep_options INTERFACE)
target_compile_options(lockstep_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
                       -ffp-contract=off) # a fused multiply-add here but not there would change bits
add_compile_options(-fPIC) # for libraries and programs alike, or they could not share the precompiled header
# Messages and __FILE__ name files within the project and within libtorch: no program holds a path of the machine that
# built it. Of several prefixes that fit, clang takes the longest and g++ the last.
foreach(prefix ${PROJECT_SOURCE_DIR}/= ${PROJECT_BINARY_DIR}/include= ${LOCKSTEP_TORCH_DIR}/include/=)
  add_compile_options(-fmacro-prefix-map=${prefix})
endforeach()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Without this the time of the header's compilation is in it, and ccache never hits.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()

# The compiler's memory comes in large pages, by glibc's own allocator: it takes a tenth less time.
set(launcher ${CMAKE_COMMAND} -E env
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:glibc.malloc.mmap_threshold=1073741824)
find_program(CCACHE ccache)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  list(APPEND launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
elseif(CCACHE)
  list(APPEND launcher CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
find_program(LLD ld.lld)
if(LLD)
  add_link_options(-fuse-ld=lld)
endif()
