// Calls of the operators as Python and TorchScript make them, and what they say when they refuse.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

#include "module_run.h"

namespace hdetach::module_run {

template <typename Signature>
auto find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

inline Tensor leaf(at::IntArrayRef shape, double frequency) {
  return wave(shape, frequency, at::kFloat).requires_grad_();
}

template <typename Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

}  // namespace hdetach::module_run
