// The engine and the optimiser of tensors of a build without CUDA.
#include <stdexcept>

#include "train/engine.h"
#include "train/tensor_optimiser.h"

namespace hdetach::train {

std::string cuda_problem() { return "this program was built without CUDA"; }

std::unique_ptr<Engine> make_cuda_engine(const EngineShape&, std::vector<EngineRun>) {
  throw std::runtime_error(cuda_problem());
}

std::unique_ptr<Evaluator> make_cuda_evaluator(const ModelShape&) {
  throw std::runtime_error(cuda_problem());
}

void launch_tensor_measure(const TensorTable&, const float*, float, BlockSums*, void*) {
  throw std::runtime_error(cuda_problem());
}

void launch_tensor_adam(const TensorTable&, float, const AdamStep&, void*) {
  throw std::runtime_error(cuda_problem());
}

}  // namespace hdetach::train
