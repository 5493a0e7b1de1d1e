# An active conda environment comes before the system's folders on PATH and in CMake's searches. Its C++ runtime may be
# older than the compiler's, and then programs that are linked here don't start, or start with the wrong library.

# Sets `out` to one line that names what is taken from conda's folder; empty if nothing is. Variables that hold the
# paths are named; the environment's CONDA_PREFIX is the folder.
function(lockstep_conda_line out)
  set(${out} "" PARENT_SCOPE)
  if("$ENV{CONDA_PREFIX}" STREQUAL "")
    return()
  endif()
  cmake_path(SET conda NORMALIZE "$ENV{CONDA_PREFIX}")
  set(found "")
  foreach(name ${ARGN})
    foreach(path ${${name}})
      cmake_path(IS_PREFIX conda "${path}" NORMALIZE inside)
      if(inside)
        list(APPEND found "${name} ${path}")
        break()
      endif()
    endforeach()
  endforeach()
  if(found)
    list(JOIN found ", " found)
    set(${out} "lockstep: taken from conda, whose C++ runtime may be too old: ${found}; `conda deactivate` and configure anew, or \
-DCMAKE_IGNORE_PREFIX_PATH=${conda} -DCMAKE_CXX_COMPILER=/usr/bin/clang++ (in a new build folder)" PARENT_SCOPE)
  endif()
endfunction()
