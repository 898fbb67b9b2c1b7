#include "op/checks.h"

#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

#include "op/sizes.h"

namespace hdetach {
namespace {

#ifdef HDETACH_WITH_CUDA
constexpr bool kWithCuda = true;
#else
constexpr bool kWithCuda = false;
#endif

constexpr const char* kFix = "pass a tensor of that shape.";

void check_shape(const char* name, const at::Tensor& tensor, Sizes want, const char* layout) {
  TORCH_CHECK(tensor.defined(), "[lstm] ", name, " is undefined; it must be ", layout, ".");
  TORCH_CHECK(sizes_of(tensor) == want, "[lstm] ", name, " has shape ", sizes_of(tensor),
              " but must be ", layout, " = ", want, "; ", kFix);
}

void check_like(const char* name, const at::Tensor& tensor, const at::Tensor& x) {
  TORCH_CHECK(tensor.scalar_type() == x.scalar_type(), "[lstm] ", name, " is ",
              tensor.scalar_type(), " but x is ", x.scalar_type(),
              "; convert one of them with .to().");
  TORCH_CHECK(tensor.device() == x.device(), "[lstm] ", name, " is on ", tensor.device(),
              " but x is on ", x.device(), "; move one of them with .to().");
}

void check_scale(const char* name, const at::Tensor& scale, const at::Tensor& x) {
  if (!scale.defined()) return;
  TORCH_CHECK(at::isFloatingType(scale.scalar_type()), "[lstm] ", name, " is ", scale.scalar_type(),
              "; scales must be floating point.");
  TORCH_CHECK(scale.device() == x.device(), "[lstm] ", name, " is on ", scale.device(),
              " but x is on ", x.device(), "; move one of them with .to().");
  TORCH_CHECK(scale.dim() == 1 || scale.dim() == 2, "[lstm] ", name, " has shape ", sizes_of(scale),
              "; it must be [T] (one scale a step) or [T,B] (one a step and row).");
  TORCH_CHECK(size_of(scale, 0) == size_of(x, 0), "[lstm] ", name, " has ", size_of(scale, 0),
              " entries but x has T=", size_of(x, 0), " steps.");
  TORCH_CHECK(scale.dim() == 1 || size_of(scale, 1) == size_of(x, 1), "[lstm] ", name, " has ",
              size_of(scale, 1), " columns but x has B=", size_of(x, 1), " rows.");
}

void check_lengths(const at::Tensor& lengths, const at::Tensor& x) {
  if (!lengths.defined()) return;
  TORCH_CHECK(lengths.scalar_type() == at::kLong || lengths.scalar_type() == at::kInt,
              "[lstm] lengths is ", lengths.scalar_type(), "; it must be int64.");
  check_shape("lengths", lengths, {size_of(x, 1)}, "[B]");
  TORCH_CHECK(lengths.device().is_cpu() || lengths.device() == x.device(), "[lstm] lengths is on ",
              lengths.device(), "; it must be on the CPU or, as x is, on ", x.device(), ".");
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

// To look at values on a device would be to wait for it; a tensor that a functorch transform wraps
// has no storage of its own.
bool readable(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && !is_traced(tensor) && tensor.has_storage();
}

at::Tensor scale_of_call(const char* name, const at::Tensor& scale, const at::Tensor& x) {
  if (!scale.defined()) return {};
  const at::Tensor out = scale.detach().to(x.scalar_type());
  if (!readable(out)) return out;
  if (x.scalar_type() == at::kDouble) {
    check_scale_values<double>(name, out);
  } else {
    check_scale_values<float>(name, out);
  }
  return out;
}

at::Tensor lengths_of_call(const at::Tensor& lengths, const at::Tensor& x) {
  if (!lengths.defined()) return {};
  const at::Tensor out = lengths.to(at::kLong);
  if (readable(out) && !is_traced(x)) {
    const int64_t steps = x.size(0), batch = x.size(1);
    const int64_t* value = out.data_ptr<int64_t>();
    for (int64_t b = 0; b < batch; ++b) {
      TORCH_CHECK(value[b] >= 1 && value[b] <= steps, "[lstm] lengths[", b, "] is ", value[b],
                  "; it must be in 1..T with T=", steps, ".");
    }
  }
  return out.to(x.device());
}

void check_arguments(const LstmInputs& in) {
  const at::Tensor &x = in.x, &h0 = in.h0;
  TORCH_CHECK(x.defined(), "[lstm] x is undefined; it must be [T,B,I].");
  TORCH_CHECK(x.dim() == 3, "[lstm] x has shape ", sizes_of(x), "; it must be [T,B,I].");
  TORCH_CHECK(x.scalar_type() == at::kFloat || x.scalar_type() == at::kDouble, "[lstm] x is ",
              x.scalar_type(), "; it must be float32 or float64.");
  const c10::Device device = x.device();
  TORCH_CHECK(device.is_cpu() || (device.is_cuda() && kWithCuda) || device.is_meta(),
              "[lstm] x is on ", device, "; this build has kernels for the CPU",
              kWithCuda ? " and CUDA" : " only", ".");
  TORCH_CHECK(size_of(x, 0) > 0, "[lstm] x has T=0 steps (shape ", sizes_of(x),
              "); a sequence needs at least one.");
  TORCH_CHECK(size_of(x, 1) > 0, "[lstm] x has B=0 rows (shape ", sizes_of(x),
              "); a batch needs at least one.");
  TORCH_CHECK(size_of(x, 2) > 0, "[lstm] x has I=0 inputs (shape ", sizes_of(x),
              "); a step needs at least one.");
  TORCH_CHECK(h0.defined() && h0.dim() == 2, "[lstm] h0 ",
              h0.defined() ? c10::str("has shape ", sizes_of(h0)) : std::string("is undefined"),
              "; it must be [B,H].");
  const Size batch = size_of(x, 1), input = size_of(x, 2), hidden = size_of(h0, 1);
  const Size gates = hidden * 4;
  TORCH_CHECK(hidden > 0, "[lstm] h0 has H=0 units (shape ", sizes_of(h0),
              "); an LSTM needs at least one.");
  check_shape("h0", h0, {batch, hidden}, "[B,H]");
  check_shape("c0", in.c0, {batch, hidden}, "[B,H]");
  check_shape("w_ih", in.w_ih, {gates, input}, "[4H,I]");
  check_shape("w_hh", in.w_hh, {gates, hidden}, "[4H,H]");
  check_like("h0", h0, x);
  check_like("c0", in.c0, x);
  check_like("w_ih", in.w_ih, x);
  check_like("w_hh", in.w_hh, x);
  const auto check_bias = [&](const char* name, const at::Tensor& bias) {
    if (!bias.defined()) return;
    check_shape(name, bias, {gates}, "[4H]");
    check_like(name, bias, x);
  };
  check_bias("b_ih", in.b_ih);
  check_bias("b_hh", in.b_hh);
  check_scale("h_scale", in.h_scale, x);
  check_scale("c_scale", in.c_scale, x);
  check_lengths(in.lengths, x);
}

}  // namespace

LstmInputs check_shapes(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                        const at::Tensor& w_ih, const at::Tensor& w_hh, const OptionalTensor& b_ih,
                        const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                        const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  const auto given = [](const OptionalTensor& t) { return t.has_value() ? *t : at::Tensor(); };
  LstmInputs in{x,
                h0,
                c0,
                w_ih,
                w_hh,
                given(b_ih),
                given(b_hh),
                given(h_scale),
                given(c_scale),
                given(lengths)};
  check_arguments(in);
  for (at::Tensor* t : {&in.x, &in.h0, &in.c0, &in.w_ih, &in.w_hh, &in.b_ih, &in.b_hh, &in.h_scale,
                        &in.c_scale, &in.lengths}) {
    if (t->defined() && !t->is_contiguous()) *t = t->contiguous();
  }
  return in;
}

LstmInputs check_lstm(const at::Tensor& x, const at::Tensor& h0, const at::Tensor& c0,
                      const at::Tensor& w_ih, const at::Tensor& w_hh, const OptionalTensor& b_ih,
                      const OptionalTensor& b_hh, const OptionalTensor& h_scale,
                      const OptionalTensor& c_scale, const OptionalTensor& lengths) {
  LstmInputs in = check_shapes(x, h0, c0, w_ih, w_hh, b_ih, b_hh, h_scale, c_scale, lengths);
  in.h_scale = scale_of_call("h_scale", in.h_scale, x);
  in.c_scale = scale_of_call("c_scale", in.c_scale, x);
  in.lengths = lengths_of_call(in.lengths, x);
  return in;
}

}  // namespace hdetach
