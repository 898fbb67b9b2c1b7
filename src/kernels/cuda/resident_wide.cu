// The resident kernels for wide layers. The numbers: k tiles of 16 units, warps of a block, blocks.
#include "kernels/cuda/resident_size.cuh"

namespace hdetach::cuda {

ResidentSize resident_160() { return resident_size<10, 5, 4>(); }
ResidentSize resident_192() { return resident_size<12, 6, 4>(); }
ResidentSize resident_256() { return resident_size<16, 4, 8>(); }

}  // namespace hdetach::cuda
