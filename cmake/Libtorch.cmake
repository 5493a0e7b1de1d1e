# Imported targets for libtorch, without its own CMake package: that fails where there is no CUDA toolkit.
# LOCKSTEP_TORCH_DIR: the folder that holds torch's include/ and lib/. Where it is not given, by -D or in the environment:
# the one that Lockstep was built with, the wheel in .venv, the torch package of the Python that is found first, and what
# CMAKE_PREFIX_PATH has.
if(NOT LOCKSTEP_TORCH_DIR)
  file(GLOB _torch_folders ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(PREPEND _torch_folders $ENV{LOCKSTEP_TORCH_DIR} ${LOCKSTEP_BUILT_WITH})
  find_program(LOCKSTEP_PYTHON NAMES python3 python)
  mark_as_advanced(LOCKSTEP_PYTHON)
  if(LOCKSTEP_PYTHON)
    execute_process(COMMAND ${LOCKSTEP_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                    OUTPUT_VARIABLE _torch_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND _torch_folders ${_torch_of_python})
  endif()
endif()
find_path(LOCKSTEP_TORCH_DIR include/ATen/core/Tensor.h HINTS ${_torch_folders} ${CMAKE_PREFIX_PATH} NO_DEFAULT_PATH
          DOC "folder with libtorch's include/ and lib/")
if(NOT LOCKSTEP_TORCH_DIR)
  message(FATAL_ERROR "libtorch was not found: install PyTorch for the Python that is found first, or set LOCKSTEP_TORCH_DIR to the folder that holds its include/ and lib/")
endif()
find_file(LOCKSTEP_TORCH_VERSION_H NAMES torch/headeronly/version.h torch/csrc/api/include/torch/version.h
          PATHS ${LOCKSTEP_TORCH_DIR}/include NO_DEFAULT_PATH REQUIRED NO_CACHE)
file(STRINGS ${LOCKSTEP_TORCH_VERSION_H} _version REGEX "^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" _version "${_version}")
list(JOIN _version . LOCKSTEP_TORCH_VERSION)
if(LOCKSTEP_BUILT_WITH_VERSION AND NOT LOCKSTEP_TORCH_VERSION VERSION_EQUAL LOCKSTEP_BUILT_WITH_VERSION)
  message(FATAL_ERROR "Lockstep was built with libtorch ${LOCKSTEP_BUILT_WITH_VERSION}, and ${LOCKSTEP_TORCH_DIR} has ${LOCKSTEP_TORCH_VERSION}; set LOCKSTEP_TORCH_DIR to the folder of ${LOCKSTEP_BUILT_WITH_VERSION}")
endif()

# Another part of the same build may have found Lockstep before.
if(TARGET torch::cpu)
  return()
endif()

function(lockstep_import_torch name library)
  add_library(torch::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(torch::${name} PROPERTIES IMPORTED_LOCATION ${LOCKSTEP_TORCH_DIR}/lib/${library})
  target_include_directories(torch::${name} SYSTEM INTERFACE ${LOCKSTEP_TORCH_DIR}/include
                             ${LOCKSTEP_TORCH_DIR}/include/torch/csrc/api/include)
endfunction()
lockstep_import_torch(c10 libc10.so)
lockstep_import_torch(cpu libtorch_cpu.so)
target_link_libraries(torch::cpu INTERFACE torch::c10)
# c10d's classes are declared only with these, and libtorch_cpu was built with them.
target_compile_definitions(torch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
# The CUDA runtime libraries that libtorch_cpu loads stand beside it in the wheels; its own RPATH finds them at run time.
get_filename_component(_site ${LOCKSTEP_TORCH_DIR} DIRECTORY)
target_link_options(torch::cpu INTERFACE -Wl,-rpath-link,${_site}/nvidia/cu13/lib)
