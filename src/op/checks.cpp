#include "op/checks.h"

#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

namespace hdetach {
namespace {

#ifdef HDETACH_WITH_CUDA
constexpr bool kWithCuda = true;
#else
constexpr bool kWithCuda = false;
#endif

constexpr const char* kFix = "pass a tensor of that shape.";

void check_shape(const char* name, const at::Tensor& tensor, at::IntArrayRef want,
                 const char* layout) {
  TORCH_CHECK(tensor.defined(), "[lstm] ", name, " is undefined; it must be ", layout, ".");
  TORCH_CHECK(tensor.sizes() == want, "[lstm] ", name, " has shape ", tensor.sizes(),
              " but must be ", layout, " = ", want, "; ", kFix);
}

void check_like(const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  TORCH_CHECK(tensor.scalar_type() == x.scalar_type(), "[lstm] ", name, " is ",
              tensor.scalar_type(), " but x is ", x.scalar_type(),
              "; convert one of them with .to().");
  TORCH_CHECK(tensor.device() == x.device(), "[lstm] ", name, " is on ", tensor.device(),
              " but x is on ", x.device(), "; move one of them with .to().");
}

at::Tensor check_bias(const char* name, const OptionalTensor& bias, const at::Tensor& x,
                      int64_t gates) {
  if (!bias.has_value() || !bias->defined()) return {};
  check_shape(name, *bias, {gates}, "[4H]");
  check_like(name, *bias, x);
  return bias->contiguous();
}

template <typename T>
void check_scale_values(const char* name, const at::Tensor& scale) {
  const T* value = scale.data_ptr<T>();
  for (int64_t i = 0; i < scale.numel(); ++i) {
    // Written so that NaN fails.
    if (value[i] >= T(0) && value[i] <= T(1)) continue;
    if (scale.dim() == 1) {
      TORCH_CHECK(false, "[lstm] ", name, "[", i, "] is ", value[i], "; scales must be in [0,1].");
    }
    TORCH_CHECK(false, "[lstm] ", name, "[", i / scale.size(1), ",", i % scale.size(1), "] is ",
                value[i], "; scales must be in [0,1].");
  }
}

at::Tensor check_scale(const char* name, const OptionalTensor& given, const at::Tensor& x) {
  if (!given.has_value() || !given->defined()) return {};
  const int64_t steps = x.size(0), batch = x.size(1);
  const at::Tensor& scale = *given;
  TORCH_CHECK(at::isFloatingType(scale.scalar_type()), "[lstm] ", name, " is ", scale.scalar_type(),
              "; scales must be floating point.");
  TORCH_CHECK(scale.device() == x.device(), "[lstm] ", name, " is on ", scale.device(),
              " but x is on ", x.device(), "; move one of them with .to().");
  TORCH_CHECK(scale.dim() == 1 || scale.dim() == 2, "[lstm] ", name, " has shape ", scale.sizes(),
              "; it must be [T] (one scale a step) or [T,B] (one a step and row).");
  TORCH_CHECK(scale.size(0) == steps, "[lstm] ", name, " has ", scale.size(0),
              " entries but x has T=", steps, " steps.");
  TORCH_CHECK(scale.dim() == 1 || scale.size(1) == batch, "[lstm] ", name, " has ", scale.size(1),
              " columns but x has B=", batch, " rows.");
  const at::Tensor out = scale.detach().to(x.scalar_type()).contiguous();
  if (!out.device().is_cpu()) return out;  // to look at the values would be to wait for the device
  if (x.scalar_type() == at::kDouble) {
    check_scale_values<double>(name, out);
  } else {
    check_scale_values<float>(name, out);
  }
  return out;
}

at::Tensor check_lengths(const OptionalTensor& given, const at::Tensor& x) {
  if (!given.has_value() || !given->defined()) return {};
  const int64_t steps = x.size(0), batch = x.size(1);
  TORCH_CHECK(given->scalar_type() == at::kLong || given->scalar_type() == at::kInt,
              "[lstm] lengths is ", given->scalar_type(), "; it must be int64.");
  check_shape("lengths", *given, {batch}, "[B]");
  TORCH_CHECK(given->device().is_cpu() || given->device() == x.device(), "[lstm] lengths is on ",
              given->device(), "; it must be on the CPU or, as x is, on ", x.device(), ".");
  const at::Tensor out = given->to(at::kLong).contiguous();
  if (!out.device().is_cpu()) return out;
  const int64_t* value = out.data_ptr<int64_t>();
  for (int64_t b = 0; b < batch; ++b) {
    TORCH_CHECK(value[b] >= 1 && value[b] <= steps, "[lstm] lengths[", b, "] is ", value[b],
                "; it must be in 1..T with T=", steps, ".");
  }
  return out.to(x.device());
}

}  // namespace

LstmInputs check_lstm(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                      const at::Tensor& w_ih, const at::Tensor& w_hh, const OptionalTensor& b_ih,
                      const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                      const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  TORCH_CHECK(x.defined(), "[lstm] x is undefined; it must be [T,B,I].");
  TORCH_CHECK(x.dim() == 3, "[lstm] x has shape ", x.sizes(), "; it must be [T,B,I].");
  TORCH_CHECK(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble, "[lstm] x is ",
              x.scalar_type(), "; it must be float32 or float64.");
  TORCH_CHECK(x.device().is_cpu() || (x.device().is_cuda() && kWithCuda), "[lstm] x is on ",
              x.device(), "; this build has kernels for the CPU", kWithCuda ? " and CUDA" : " only",
              ".");
  TORCH_CHECK(x.size(0) > 0, "[lstm] x has T=0 steps (shape ", x.sizes(),
              "); a sequence needs at least one.");
  TORCH_CHECK(x.size(1) > 0, "[lstm] x has B=0 rows (shape ", x.sizes(),
              "); a batch needs at least one.");
  TORCH_CHECK(x.size(2) > 0, "[lstm] x has I=0 inputs (shape ", x.sizes(),
              "); a step needs at least one.");
  TORCH_CHECK(h0.defined() && h0.dim() == 2, "[lstm] h0 ",
              h0.defined() ? c10::str("has shape ", h0.sizes()) : std::string("is undefined"),
              "; it must be [B,H].");
  const int64_t batch = x.size(1), input = x.size(2), hidden = h0.size(1);
  TORCH_CHECK(hidden > 0, "[lstm] h0 has H=0 units (shape ", h0.sizes(),
              "); an LSTM needs at least one.");
  check_shape("h0", h0, {batch, hidden}, "[B,H]");
  check_shape("c0", c0, {batch, hidden}, "[B,H]");
  check_shape("w_ih", w_ih, {4 * hidden, input}, "[4H,I]");
  check_shape("w_hh", w_hh, {4 * hidden, hidden}, "[4H,H]");
  check_like("h0", h0, x);
  check_like("c0", c0, x);
  check_like("w_ih", w_ih, x);
  check_like("w_hh", w_hh, x);

  LstmInputs in;
  in.x = x.contiguous();
  in.h0 = h0.contiguous();
  in.c0 = c0.contiguous();
  in.w_ih = w_ih.contiguous();
  in.w_hh = w_hh.contiguous();
  in.b_ih = check_bias("b_ih", b_ih, x, 4 * hidden);
  in.b_hh = check_bias("b_hh", b_hh, x, 4 * hidden);
  in.h_scale = check_scale("h_scale", h_scale, x);
  in.c_scale = check_scale("c_scale", c_scale, x);
  in.lengths = check_lengths(lengths, x);
  return in;
}

}  // namespace hdetach
