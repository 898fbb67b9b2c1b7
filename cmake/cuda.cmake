# CUDA is found, not required. A LibTorch with CUDA gives the op and the trainer their GPU kernels
# (HDETACH_WITH_CUDA); where there is only nvcc, the kernels are compiled as a check and not linked.
set(HDETACH_WITH_CUDA OFF)
if(TORCH_CUDA_LIBRARIES)
  set(HDETACH_WITH_CUDA ON)
endif()
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # clusters and distributed shared memory start there
  endif()
  if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # LibTorch's: one runtime in the process
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit REQUIRED)
elseif(HDETACH_WITH_CUDA)
  message(FATAL_ERROR "This LibTorch has CUDA but nvcc was not found; put it on the PATH or name it "
                      "by -DCMAKE_CUDA_COMPILER=...")
else()
  message(STATUS "nvcc not found: the CUDA kernels are not compiled")
endif()
