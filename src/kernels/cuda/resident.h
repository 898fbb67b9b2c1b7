// The two sweeps of cuda-resident, each one launch. The limits and the choice of the layout are in
// resident.cu.
#pragma once

#include "kernels/kernel.h"

namespace hdetach::cuda {

// Inputs are projected (gemm.h), or few enough for the sweep to multiply them itself.
struct ForwardSweep {
  ForwardArgs args;
  const float* projected;  // [replicas, T, B, H, 4], may be args.gates; null: not projected
};

struct BackwardSweep {
  BackwardArgs args;
  float* dgates;  // [replicas, T, B, H, 4]
};

// A width that was compiled.
struct ResidentSize {
  int hidden;  // at most
  int inputs;  // at most so many need not be projected
  void (*forward)(const ForwardSweep&);
  void (*backward)(const BackwardSweep&);
};
ResidentSize resident_32();
ResidentSize resident_64();
ResidentSize resident_112();  // this and the next: tuned for H=100 and 128
ResidentSize resident_128();
ResidentSize resident_160();
ResidentSize resident_192();
ResidentSize resident_256();

}  // namespace hdetach::cuda
