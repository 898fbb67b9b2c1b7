// The resident kernels for up to 128 units. The numbers: k tiles of 16 units, warps of a block,
// blocks.
#include "kernels/cuda/resident_size.cuh"

namespace hdetach::cuda {

ResidentSize resident_128() { return resident_size<8, 4, 4>(); }

}  // namespace hdetach::cuda
