// cpu-avx512: the common body in vectors of sixteen floats.
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vector_product.inl"

namespace hdetach {

const Kernel kCpuAvx512 = {"cpu-avx512",
                           Device::kCpu,
                           avx512_unavailable,
                           any_shape,
                           forward_workspace<VectorProduct>,
                           backward_workspace<VectorProduct>,
                           lstm_forward<VectorProduct>,
                           lstm_backward<VectorProduct>};

}  // namespace hdetach
