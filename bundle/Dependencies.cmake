# What Lockstep's libraries need besides libtorch, from the bundle itself. It takes the place of the file of this name that
# looks for Debian's packages.
find_package(Threads REQUIRED)
get_filename_component(_lib ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)

# lockstep_beside(TARGET NAME): an imported target for the bundle's libNAME.so.N, unless the user's project has one.
function(lockstep_beside target name)
  if(TARGET ${target})
    return()
  endif()
  file(GLOB library ${_lib}/lib${name}.so.*)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${library})
  # These libraries need others of the bundle: -rpath-link is for the linker, and an RPATH, unlike the usual RUNPATH, holds
  # for them too.
  target_link_options(${target} INTERFACE -Wl,-rpath-link,${_lib} -Wl,--disable-new-dtags)
endfunction()
lockstep_beside(PkgConfig::hwloc hwloc)
lockstep_beside(PkgConfig::libxxhash xxhash)
lockstep_beside(PkgConfig::libdeflate deflate)
lockstep_beside(PkgConfig::libisal isal)
lockstep_beside(PkgConfig::libzip zip)
lockstep_beside(PkgConfig::zlib z)
lockstep_beside(PkgConfig::libhwy hwy)
lockstep_beside(PkgConfig::libjpeg jpeg)
lockstep_beside(PkgConfig::spng spng)
lockstep_beside(PkgConfig::libgif gif)

# Headers: nlohmann's lie beside ours, CLI11's are compiled in. Libraries: these are within ours.
foreach(target nlohmann_json::nlohmann_json CLI11::CLI11 Libcrypto::crypto Libevent::extra)
  if(NOT TARGET ${target})
    add_library(${target} INTERFACE IMPORTED GLOBAL)
  endif()
endforeach()
