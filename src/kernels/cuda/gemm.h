// The products of an LSTM that do not depend on the order of the steps, over all steps at once:
// inputs times w_ih before the forward sweep, gate gradients times everything after the backward
// sweep. dgates and projected are [replicas, T, B, H, 4]: the four gates of a unit side by side.
//
// Plain float32 in, plain float32 error out: tensor cores with operands split in two tf32.
// Deterministic; each output's bits depend on neither what else is asked for nor the replicas.
#pragma once

#include <cstddef>

#include "kernels/kernel.h"

namespace hdetach::cuda {

// projected = x w_ih^T + b_ih + b_hh
void project_inputs(const LstmArgs& args, float* projected);

// Fills whichever of args.dx, dw_ih, dw_hh, db_ih and db_hh is not null, from dgates and args.x, h,
// h0.
void gate_gradients_to_inputs_and_weights(const BackwardArgs& args, const float* dgates,
                                          void* workspace);
size_t weight_gradient_workspace(const LstmShape& shape);  // bytes of that workspace

}  // namespace hdetach::cuda
