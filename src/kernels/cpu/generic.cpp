// cpu-generic: the common body in vectors of four floats, for machines without AVX2.
#include "kernels/cpu/simd_generic.h"

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/vector_product.inl"

namespace hdetach {

const Kernel kCpuGeneric = {"cpu-generic",
                            Device::kCpu,
                            [] { return static_cast<const char*>(nullptr); },
                            any_shape,
                            forward_workspace<VectorProduct>,
                            backward_workspace<VectorProduct>,
                            lstm_forward<VectorProduct>,
                            lstm_backward<VectorProduct>};

}  // namespace hdetach
