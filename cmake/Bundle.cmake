# The programs and plug-ins of a bundle (./run bundle): those of this build linked once more, to find their libraries in
# the bundle's lib/, wherever that lies, and libtorch where lockstep/apps/start says. build/…/bundled has a bundle's layout.
# The target bundle_programs links them all.
add_custom_target(bundle_programs)

# lockstep_bundled(TARGET FOLDER [NAME NAME] [ONLY REGEX]): links the target's objects (of sources that match REGEX),
# with what it links by now, into the bundle's FOLDER, stripped, under its own name or NAME. An RPATH, unlike the
# usual RUNPATH, holds also for what Debian's libraries need in turn, and goes before LD_LIBRARY_PATH.
function(lockstep_bundled target folder)
  cmake_parse_arguments(ARG "" "NAME;ONLY" "" ${ARGN})
  set(name ${target})
  set(objects $<TARGET_OBJECTS:${target}>)
  if(ARG_NAME)
    set(name ${ARG_NAME})
  endif()
  if(ARG_ONLY)
    set(objects $<FILTER:${objects},INCLUDE,${ARG_ONLY}>)
  endif()
  set(bundled bundled_${name})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    add_executable(${bundled} EXCLUDE_FROM_ALL ${objects})
    set(rpath $ORIGIN/../lib)
  else()
    add_library(${bundled} SHARED EXCLUDE_FROM_ALL ${objects})
    set(rpath $ORIGIN)
  endif()
  foreach(kind LIBRARIES OPTIONS)
    get_target_property(links ${target} LINK_${kind})
    if(links)
      cmake_language(CALL target_link_${kind} ${bundled} PRIVATE ${links})
    endif()
  endforeach()
  # Tests compare no addresses of functions: of theirs all that are equal are kept once.
  set(folded safe)
  if(name MATCHES "_test$")
    set(folded all)
  endif()
  target_link_options(${bundled} PRIVATE -Wl,--disable-new-dtags -Wl,--gc-sections -Wl,--icf=${folded} -Wl,-O2 -s)
  set_target_properties(${bundled} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} BUILD_WITH_INSTALL_RPATH ON
                        INSTALL_RPATH ${rpath} RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundled/${folder}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bundled/${folder})
  add_dependencies(bundle_programs ${bundled})
endfunction()
