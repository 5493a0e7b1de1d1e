# lockstep_module(NAME [TORCH|SMALL] [PRIVATE] [THREADS] [USES MODULE…] [LINKS TARGET…] [PRIVATE_LINKS TARGET…]
#                 [TEST_USES MODULE…] [TEST_LINKS TARGET…])
#
# One folder = one static library lockstep::NAME from its *.cc, and one test program lockstep_NAME_test from its
# *_test.cc. NAME is the folder's path under lockstep/; a slash becomes an underscore in the names of targets
# (comm/shm: lockstep::comm_shm). USES names all modules whose headers the folder includes, but for base; TEST_USES
# those that only its tests do. The test `includes` compares both with the real includes (tests/tools/check-includes).
# Headers are found as lockstep/NAME/x.h through a tree of links to each module's own headers: build/…/include/NAME.
# A SMALL module runs once or waits for others: it is compiled for its size, which in a bundle is less than half as much.
# A PRIVATE module is for this project's programs alone and is not installed. Tests of a module with THREADS
# run under the thread sanitizer, too.
function(lockstep_module name)
  cmake_parse_arguments(ARG "TORCH;SMALL;PRIVATE;THREADS" "" "USES;LINKS;PRIVATE_LINKS;TEST_USES;TEST_LINKS" ${ARGN})
  lockstep_target_names(${name} own)
  set(target lockstep_${own})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB headers CONFIGURE_DEPENDS *.h)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:lockstep_options>)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_compile_features(${target} ${scope} cxx_std_20)
  add_library(lockstep::${own} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${own})

  lockstep_headers(${name} view)
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${view}> $<INSTALL_INTERFACE:include>)

  if(NOT name STREQUAL base)
    target_link_libraries(${target} ${scope} lockstep::base)
  endif()
  lockstep_target_names("${ARG_USES}" used)
  list(TRANSFORM used PREPEND lockstep::)
  target_link_libraries(${target} ${scope} ${used} ${ARG_LINKS})
  if(ARG_PRIVATE_LINKS AND sources)
    target_link_libraries(${target} PRIVATE ${ARG_PRIVATE_LINKS})
  endif()
  if(ARG_TORCH)
    target_link_libraries(${target} ${scope} torch::cpu)
    set(kind torch)
  else()
    set(kind plain)
  endif()
  if(sources)
    if(ARG_SMALL)
      lockstep_precompiled(${target} small)
    else()
      lockstep_precompiled(${target} ${kind})
    endif()
  endif()
  if(NOT ARG_PRIVATE)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_MODULES ${target})
    install(FILES ${headers} DESTINATION include/lockstep/${name})
  endif()

  if(LOCKSTEP_TESTS AND tests)
    lockstep_target_names("${ARG_TEST_USES}" used)
    list(TRANSFORM used PREPEND lockstep::)
    lockstep_test(${target}_test ${tests} LINKS lockstep::${own} ${used} ${ARG_TEST_LINKS} $<$<BOOL:${ARG_TORCH}>:torch::cpu>)
    lockstep_precompiled(${target}_test ${kind}_test)
    if(ARG_THREADS)
      set_property(TEST ${target}_test APPEND PROPERTY LABELS tsan)
    endif()
  endif()
endfunction()

# lockstep_headers(NAME VARIABLE): a folder through which the headers of lockstep/NAME, and no others, are found (and its
# sources, for Highway compiles a source once for each instruction set by including it).
function(lockstep_headers name variable)
  lockstep_target_names(${name} own)
  set(view ${PROJECT_BINARY_DIR}/include/${own})
  file(REMOVE_RECURSE ${view})
  file(MAKE_DIRECTORY ${view}/lockstep/${name})
  file(GLOB headers CONFIGURE_DEPENDS *.h *.cc)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/testing)
    list(APPEND headers ${CMAKE_CURRENT_SOURCE_DIR}/testing)
  endif()
  foreach(header ${headers})
    get_filename_component(file ${header} NAME)
    file(CREATE_LINK ${header} ${view}/lockstep/${name}/${file} SYMBOLIC)
  endforeach()
  set(${variable} ${view} PARENT_SCOPE)
endfunction()

# lockstep_target_names("MODULE…" VARIABLE): comm/shm -> comm_shm.
function(lockstep_target_names modules variable)
  string(REPLACE "/" "_" names "${modules}")
  set(${variable} ${names} PARENT_SCOPE)
endfunction()

# lockstep_test(TARGET SOURCE… LINKS TARGET…): a GoogleTest program and its entry in CTest. The target `tests` builds all
# of them; a plain build leaves them out.
function(lockstep_test target)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  add_executable(${target} EXCLUDE_FROM_ALL ${ARG_UNPARSED_ARGUMENTS})
  add_dependencies(tests ${target})
  target_link_libraries(${target} PRIVATE ${ARG_LINKS} lockstep_options GTest::gmock GTest::gtest_main)
  lockstep_unoptimised(${target})
  target_compile_definitions(${target} PRIVATE LOCKSTEP_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LOCKSTEP_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  add_test(NAME ${target} COMMAND ${target} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  set_tests_properties(${target} PROPERTIES PROCESSORS 2)
  lockstep_test_timeout(900 ${target})
endfunction()

# lockstep_unoptimised(TARGET): a test's own code, which runs once, in a release: it compiles in three fifths of the time.
# What it tests is optimised.
function(lockstep_unoptimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
endfunction()

# lockstep_test_waits(TARGET…): these programs of this folder wait most of the time, and run beside one another, before the
# others.
function(lockstep_test_waits)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 COST 1000)
  lockstep_test_timed(${ARGN})
endfunction()

# lockstep_test_timed(TARGET…): these programs of this folder start processes and say what must have happened within seconds;
# a test of theirs that fails is run once more, alone (tests/tools/second_run.py).
function(lockstep_test_timed)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS timed)
endfunction()

# lockstep_gpu_tests(TARGET [FILTER]): what `./run test cuda` runs of a test program, all of it or the tests that match the
# filter: an entry TARGET_on_gpu in CTest with the label gpu, of the configuration gpu, so that other runs leave it out. They
# take turns with the GPU.
function(lockstep_gpu_tests target)
  set(filter *)
  if(ARGC GREATER 1)
    set(filter ${ARGV1})
  endif()
  add_test(NAME ${target}_on_gpu COMMAND ${target} --gtest_filter=${filter} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
           CONFIGURATIONS gpu)
  set_tests_properties(${target}_on_gpu PROPERTIES LABELS gpu RESOURCE_LOCK gpu ENVIRONMENT LOCKSTEP_TEST_GPU=1)
  lockstep_test_timeout(600 ${target}_on_gpu)
endfunction()

# lockstep_test_timeout(SECONDS TEST…): how long the tests may take; four times as long with a sanitizer.
function(lockstep_test_timeout seconds)
  if(LOCKSTEP_SANITIZED)
    math(EXPR seconds "4 * ${seconds}")
  endif()
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${seconds})
endfunction()

# lockstep_small(TARGET): compiled for its size, in a release.
function(lockstep_small target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Oz>)
endfunction()

# lockstep_precompiled(TARGET [torch|plain|small|torch_test|plain_test]): the target shares the precompiled header of those that
# link libtorch, or of those that do not, or of the tests among them.
function(lockstep_precompiled target)
  set(kind torch)
  if(ARGC GREATER 1)
    set(kind ${ARGV1})
  endif()
  target_precompile_headers(${target} REUSE_FROM lockstep_precompiled_${kind})
  if(kind STREQUAL small)
    lockstep_small(${target})
  endif()
endfunction()
