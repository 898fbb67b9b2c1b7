// The resident kernels for narrow layers. The numbers: k tiles of 16 units, warps of
// a block, blocks.
#include "kernels/cuda/resident_size.cuh"

namespace hdetach::cuda {

ResidentSize resident_32() { return resident_size<2, 2, 2>(); }
ResidentSize resident_64() { return resident_size<4, 4, 2>(); }

}  // namespace hdetach::cuda
