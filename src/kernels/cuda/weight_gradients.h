// The part of gemm.h's gate_gradients_to_inputs_and_weights that sums over steps and rows.
#pragma once

#include "kernels/kernel.h"

namespace hdetach::cuda {

// Fills whichever of args.dw_ih, dw_hh, db_ih and db_hh is not null.
// dgates: [replicas, T, B, H, 4].
void weight_gradients(const BackwardArgs& args, const float* dgates, void* workspace);

}  // namespace hdetach::cuda
