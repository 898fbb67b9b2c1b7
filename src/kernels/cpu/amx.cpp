// cpu-amx: the sweeps of the common body with products in AMX tiles.
#include "kernels/cpu/simd_avx512.h"

#include "kernels/cpu/amx_product.inl"
#include "kernels/cpu/kernels.h"

namespace hdetach {

#ifdef HDETACH_AMX_EMULATED
extern const Kernel kCpuAmxEmulated;
const Kernel kCpuAmxEmulated = {"cpu-amx-emulated",
                                Device::kCpu,
                                [] { return static_cast<const char*>(nullptr); },
#else
const Kernel kCpuAmx = {"cpu-amx",
                        Device::kCpu,
                        amx_unavailable,
#endif
                                any_shape,
                                forward_workspace<AmxProduct>,
                                backward_workspace<AmxProduct>,
                                lstm_forward<AmxProduct>,
                                lstm_backward<AmxProduct>};

}  // namespace hdetach
