// cpu-avx2: the common body in vectors of eight floats.
#include "kernels/cpu/simd_avx2.h"

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vector_product.inl"

namespace hdetach {

const Kernel kCpuAvx2 = {"cpu-avx2",
                         Device::kCpu,
                         avx2_unavailable,
                         any_shape,
                         forward_workspace<VectorProduct>,
                         backward_workspace<VectorProduct>,
                         lstm_forward<VectorProduct>,
                         lstm_backward<VectorProduct>};

}  // namespace hdetach
