# Imported targets for libtorch, without its own CMake package: that fails where there is no CUDA toolkit.
# LOCKSTEP_TORCH_DIR: the folder that holds torch's include/ and lib/ (default: the wheel in .venv).
if(NOT LOCKSTEP_TORCH_DIR)
  file(GLOB _torch_folders ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(APPEND _torch_folders $ENV{LOCKSTEP_TORCH_DIR})
endif()
find_path(LOCKSTEP_TORCH_DIR include/ATen/core/Tensor.h HINTS ${_torch_folders} NO_DEFAULT_PATH
          DOC "folder with libtorch's include/ and lib/" REQUIRED)

function(lockstep_import_torch name library)
  add_library(torch::${name} SHARED IMPORTED)
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
