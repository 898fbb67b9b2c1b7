// Bad input: every refusal names the op, the argument and its value.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <functional>

#include "tests/cases.h"

namespace hdetach::test {
namespace {

constexpr int64_t kSteps = 4, kBatch = 3, kInput = 2, kHidden = 5;

// One valid call, to be spoiled one argument at a time.
Problem valid() {
  Problem p = make_problem({"valid", kSteps, kBatch, kInput, kHidden});
  p.h_scale = at::ones({kSteps});
  p.c_scale = at::ones({kSteps, kBatch});
  p.lengths = at::full({kBatch}, kSteps, at::kLong);
  return p;
}

// The message of the error that `action` throws, without torch's backtrace; empty if none.
template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

struct Refusal {
  std::string title;                    // for the trace
  std::function<void(Problem&)> spoil;  // makes one argument wrong
  std::vector<std::string> says;        // what the message must hold
};

void expect_refused(const std::vector<Refusal>& list) {
  for (const Refusal& refusal : list) {
    Problem p = valid();
    ASSERT_EQ(message_of([&] { call(p, p.args); }), "") << "the base must be valid";
    refusal.spoil(p);
    // Training and inference enter the op by different doors; the reference is called directly.
    const auto expect_says = [&](const std::string& door, const std::string& message) {
      EXPECT_EQ(message.rfind("[lstm] ", 0), 0u)
          << refusal.title << ", " << door << ": " << message;
      for (const std::string& part : refusal.says) {
        EXPECT_NE(message.find(part), std::string::npos)
            << refusal.title << ", " << door << ": '" << part << "' is not in: " << message;
      }
    };
    expect_says("lstm", message_of([&] { call(p, p.args); }));
    expect_says("reference", message_of([&] { call(p, p.args, lstm_reference); }));
    const c10::InferenceMode inference;
    expect_says("inference", message_of([&] { call(p, p.args); }));
  }
}

Refusal shape(int arg, std::vector<int64_t> sizes, std::vector<std::string> says) {
  says.insert(says.begin(), std::string(kArgNames[arg]) + " has ");
  return {std::string(kArgNames[arg]) + " shape",
          [=](Problem& p) { p.args[arg] = at::ones(sizes); }, std::move(says)};
}

TEST(Errors, NameTheWrongRank) {
  expect_refused({
      shape(0, {kSteps, kInput}, {"[4, 2]", "[T,B,I]"}),
      shape(0, {1, kSteps, kBatch, kInput}, {"[1, 4, 3, 2]", "[T,B,I]"}),
      shape(1, {1, kBatch, kHidden}, {"[1, 3, 5]", "[B,H]"}),
      shape(2, {1, kBatch, kHidden}, {"[1, 3, 5]", "[B,H]"}),
      shape(3, {4 * kHidden}, {"[20]", "[4H,I]"}),
      shape(4, {4 * kHidden}, {"[20]", "[4H,H]"}),
      shape(5, {4 * kHidden, 1}, {"[20, 1]", "[4H]"}),
      shape(6, {}, {"[]", "[4H]"}),
  });
}

TEST(Errors, NameTheWrongSize) {
  expect_refused({
      shape(1, {kBatch + 1, kHidden}, {"[4, 5]", "[B,H] = [3, 5]"}),
      shape(2, {kBatch, kHidden + 1}, {"[3, 6]", "[B,H] = [3, 5]"}),
      shape(3, {4 * kHidden, kInput + 1}, {"[20, 3]", "[4H,I] = [20, 2]"}),
      shape(3, {3 * kHidden, kInput}, {"[15, 2]", "[4H,I] = [20, 2]"}),
      shape(4, {4 * kHidden, kHidden + 1}, {"[20, 6]", "[4H,H] = [20, 5]"}),
      shape(5, {kHidden}, {"[5]", "[4H] = [20]"}),
      shape(6, {4 * kHidden + 1}, {"[21]", "[4H] = [20]"}),
  });
}

TEST(Errors, NameWhatIsEmpty) {
  expect_refused({
      shape(0, {0, kBatch, kInput}, {"T=0", "[0, 3, 2]"}),
      shape(0, {kSteps, 0, kInput}, {"B=0", "[4, 0, 2]"}),
      shape(0, {kSteps, kBatch, 0}, {"I=0", "[4, 3, 0]"}),
      shape(1, {kBatch, 0}, {"H=0", "[3, 0]"}),
  });
}

TEST(Errors, NameTheWrongType) {
  std::vector<Refusal> list;
  for (int i = 0; i < kArgs; ++i) {
    const std::string name = kArgNames[i];
    const auto as = [i](at::ScalarType type) {
      return [=](Problem& p) { p.args[i] = p.args[i].to(type); };
    };
    list.push_back({name + " half", as(at::kHalf), {name + " is Half"}});
    list.push_back({name + " int64", as(at::kLong), {name + " is Long"}});
    if (i > 0) list.push_back({name + " double", as(at::kDouble), {name + " is Double", "Float"}});
  }
  // Mixed types name the first argument that differs from x.
  list.push_back({"x double",
                  [](Problem& p) { p.args[0] = p.args[0].to(at::kDouble); },
                  {"h0 is Float", "x is Double"}});
  list.push_back({"all half",
                  [](Problem& p) {
                    for (Tensor& t : p.args) t = t.to(at::kHalf);
                  },
                  {"x is Half", "float32 or float64"}});
  expect_refused(list);
}

TEST(Errors, NameTheWrongDevice) {
  std::vector<Refusal> list;
  const auto to_meta = [](Tensor& t) { t = at::empty(t.sizes(), t.options().device(at::kMeta)); };
  for (int i = 0; i < kArgs; ++i) {
    const std::string name = kArgNames[i];
    list.push_back({name, [=](Problem& p) { to_meta(p.args[i]); }, {name + " is on meta"}});
  }
  list.push_back({"h_scale", [=](Problem& p) { to_meta(p.h_scale); }, {"h_scale is on meta"}});
  list.push_back({"c_scale", [=](Problem& p) { to_meta(p.c_scale); }, {"c_scale is on meta"}});
  list.push_back({"lengths", [=](Problem& p) { to_meta(p.lengths); }, {"lengths is on meta"}});
  expect_refused(list);
}

TEST(Errors, NameWhatIsUndefined) {
  std::vector<Refusal> list;
  for (int i = 0; i < 5; ++i) {
    const std::string name = kArgNames[i];
    list.push_back({name, [=](Problem& p) { p.args[i] = Tensor(); }, {name + " is undefined"}});
  }
  expect_refused(list);
}

TEST(Errors, NameTheWrongScale) {
  std::vector<Refusal> list;
  for (const bool hidden : {true, false}) {
    const std::string name = hidden ? "h_scale" : "c_scale";
    const auto with = [=](const std::string& title, const Tensor& value,
                          std::vector<std::string> says) -> Refusal {
      says.insert(says.begin(), name);
      return {name + " " + title, [=](Problem& p) { (hidden ? p.h_scale : p.c_scale) = value; },
              says};
    };
    const auto steps_but = [](double value) {
      const Tensor t = at::ones({kSteps});
      t[2] = value;
      return t;
    };
    const Tensor rows = at::ones({kSteps, kBatch});
    rows[3][1] = 2.0;
    list.push_back(with("short", at::ones({kSteps - 1}), {"3 entries", "T=4"}));
    list.push_back(with("columns", at::ones({kSteps, 2}), {"2 columns", "B=3"}));
    list.push_back(with("rows", at::ones({kBatch, kSteps}), {"3 entries", "T=4"}));
    list.push_back(with("scalar", at::ones({}), {"[]", "[T]", "[T,B]"}));
    list.push_back(with("rank 3", at::ones({kSteps, kBatch, 1}), {"[4, 3, 1]", "[T,B]"}));
    list.push_back(with("bool", at::ones({kSteps}, at::kBool), {"Bool", "floating point"}));
    list.push_back(with("int", at::ones({kSteps}, at::kLong), {"Long", "floating point"}));
    list.push_back(with("above", steps_but(1.5), {"[2] is 1.5", "[0,1]"}));
    list.push_back(with("below", steps_but(-0.25), {"[2] is -0.25", "[0,1]"}));
    list.push_back(with("nan", steps_but(NAN), {"[2] is nan", "[0,1]"}));
    list.push_back(with("infinite", steps_but(INFINITY), {"[2] is inf", "[0,1]"}));
    list.push_back(with("one of many", rows, {"[3,1] is 2", "[0,1]"}));
  }
  expect_refused(list);
}

TEST(Errors, NameTheWrongLength) {
  const auto with = [](const std::string& title, const Tensor& value,
                       std::vector<std::string> says) -> Refusal {
    says.insert(says.begin(), "lengths");
    return {"lengths " + title, [=](Problem& p) { p.lengths = value; }, says};
  };
  const auto second = [](int64_t value) {
    const Tensor t = at::full({kBatch}, kSteps, at::kLong);
    t[1] = value;
    return t;
  };
  expect_refused({
      with("zero", second(0), {"[1] is 0", "1..T", "T=4"}),
      with("negative", second(-3), {"[1] is -3", "1..T"}),
      with("too long", second(kSteps + 1), {"[1] is 5", "1..T", "T=4"}),
      with("too many", at::ones({kBatch + 1}, at::kLong), {"[4]", "[B] = [3]"}),
      with("rank", at::ones({kBatch, 1}, at::kLong), {"[3, 1]", "[B] = [3]"}),
      with("float", at::ones({kBatch}), {"Float", "int64"}),
  });
}

TEST(Errors, OfTheCellNameItsArguments) {
  const Problem p = valid();
  const Tensors& a = p.args;
  const auto cell = [&](const Tensor& x, const OptionalTensor& h_scale,
                        const OptionalTensor& c_scale) {
    return message_of([&] { lstm_cell(x, a[1], a[2], a[3], a[4], a[5], a[6], h_scale, c_scale); });
  };
  EXPECT_EQ(cell(a[0][0], {}, {}), "");
  EXPECT_EQ(cell(a[0], {}, {}), "[lstm_cell] x has shape [4, 3, 2]; it must be [B,I].");
  EXPECT_NE(cell(a[0][0], at::ones({1, kBatch}), {}).find("[lstm_cell] h_scale has shape [1, 3]"),
            std::string::npos);
  EXPECT_NE(cell(a[0][0], {}, at::ones({1, kBatch})).find("[lstm_cell] c_scale has shape [1, 3]"),
            std::string::npos);
  EXPECT_NE(cell(a[0][0], {}, at::ones({kBatch + 1})).find("c_scale has 4 columns"),
            std::string::npos);
  EXPECT_NE(cell(a[0][0], at::full({}, 7.0), {}).find("h_scale[0] is 7"), std::string::npos);
  EXPECT_EQ(cell(Tensor(), {}, {}), "[lstm_cell] x is undefined; it must be [B,I].");
}

TEST(Errors, ListTheKernels) {
  const ForcedKernel forced("cpu-abacus");
  const Problem p = valid();
  for (const std::string& message :
       {message_of([&] { call(p, p.args); }), message_of([&] { call(p, make_leaves(p)); }),
        message_of([] { active_kernel(); })}) {
    EXPECT_NE(message.find("HDETACH_KERNEL is 'cpu-abacus'"), std::string::npos) << message;
    for (const KernelInfo& kernel : kernels()) {
      EXPECT_NE(message.find(kernel.name), std::string::npos) << message;
    }
  }
}

TEST(Errors, SayWhyAKernelCannotRun) {
  for (const KernelInfo& kernel : kernels()) {
    if (kernel.device == "cuda") continue;  // active_kernel() is that of the CPU
    const ForcedKernel forced(kernel.name);
    const std::string message = message_of([] { active_kernel(); });
    EXPECT_EQ(message.empty(), kernel.available) << message;
    EXPECT_NE(message.find(kernel.reason), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace hdetach::test
