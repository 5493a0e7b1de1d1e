# lockstep_plugin(NAME FOLDER SOURCE… LINKS TARGET…): a library liblockstep_NAME.so from the sources of lockstep/FOLDER
# that a program of the same build opens while it runs (lockstep/comm/plugins/plugin.h); only its entries can be seen
# from outside.
function(lockstep_plugin name folder)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} SHARED ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${target} PRIVATE lockstep_options ${ARG_LINKS})
  lockstep_headers(${folder} view)
  target_include_directories(${target} PRIVATE ${view} ${PROJECT_BINARY_DIR}/include/comm_plugins
                             ${PROJECT_BINARY_DIR}/include/comm_network ${PROJECT_BINARY_DIR}/include/comm)
  lockstep_plugin_build(${ARG_UNPARSED_ARGUMENTS})
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  target_link_options(${target} PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map -Wl,--as-needed)
  if(NOT LOCKSTEP_SANITIZED) # whose runtime is in the program
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  lockstep_bundled(${target} lib)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# Tells these sources which release, and which interfaces between programs and plug-ins, they are built with.
function(lockstep_plugin_build)
  set(bits "")
  foreach(header base/board base/clock base/error comm/network/mesh comm/communicator comm/call comm/reduce comm/rank_table
                 comm/plugins/plugin comm/plugins/gpu_facts comm/plugins/mpi_plugin comm/plugins/nccl_plugin image/geometry
                 image/pixels image/device/jpeg_decoder image/device/picture_row)
    set(path ${PROJECT_SOURCE_DIR}/lockstep/${header}.h)
    file(SHA256 ${path} hash)
    string(APPEND bits ${hash})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
  string(SHA256 hash "${bits}")
  string(SUBSTRING ${hash} 0 12 hash)
  set_property(SOURCE ${ARGN} APPEND PROPERTY
               COMPILE_DEFINITIONS LOCKSTEP_PLUGIN_BUILD="${PROJECT_VERSION}-${CMAKE_BUILD_TYPE}-${hash}")
endfunction()
