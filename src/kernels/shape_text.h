// A shape in messages. Apart from kernel.h, so that files compiled for an instruction set include
// no STL.
#pragma once

#include <string>

#include "kernels/kernel.h"

namespace hdetach {

inline std::string to_text(const LstmShape& shape) {
  return "T=" + std::to_string(shape.steps) + ", B=" + std::to_string(shape.batch) +
         ", I=" + std::to_string(shape.input) + ", H=" + std::to_string(shape.hidden);
}

}  // namespace hdetach
