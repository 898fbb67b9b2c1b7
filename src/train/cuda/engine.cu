// Training on the GPU. An update of all replicas is a fixed list of launches whose arguments never
// change: it is captured once as a CUDA graph and replayed. What changes from update to update
// (counters, the decision) lives in device memory; what the host changes (who runs, the detach
// probability, the order of a pass) it writes there before a stretch of updates.
#include <algorithm>

#include "kernels/cuda/kernels.h"
#include "train/cuda/choose_kernel.h"
#include "train/cuda/device_set.h"
#include "train/cuda/graph.h"
#include "train/cuda/parameters.h"
#include "train/cuda/update.h"

namespace hdetach::train {
namespace {

class CudaEngine : public Engine {
 public:
  CudaEngine(const EngineShape& shape, std::vector<EngineRun> runs)
      : shape_(shape),
        runs_(std::move(runs)),
        count_(static_cast<int64_t>(runs_.size())),
        layout_(shape.model, count_),
        replicas_(count_),
        uploaded_(count_) {
    if (shape.model.classes > kMostClasses) {
      throw std::runtime_error("the CUDA trainer takes at most 16 classes");
    }
    make_data();
    make_arrays();
    make_layers();
    make_pieces();
    // Once with all replicas idle, so that the driver loads every kernel before the capture.
    write_replicas();
    add_update();
    stream_.wait();
    graph_.capture(stream_.get(), [&] { add_update(); });
  }

  void load(int64_t run, const HostArrays& from, const RunCounters& counters) override {
    copy(run, weights_, from.weights, true);
    copy(run, first_moments_, from.first_moments, true);
    copy(run, second_moments_, from.second_moments, true);
    stream_.wait();
    replicas_[run].update = counters.update;
    replicas_[run].adam_steps = counters.adam_steps;
    replicas_[run].drawn = counters.drawn;
  }

  RunCounters store(int64_t run, const HostArrays& to) override {
    copy(run, weights_, to.weights, false);
    copy(run, first_moments_, to.first_moments, false);
    copy(run, second_moments_, to.second_moments, false);
    stream_.wait();
    const Replica& replica = replicas_[run];
    return {replica.update, replica.adam_steps, replica.drawn};
  }

  std::vector<std::vector<Update>> advance(int64_t updates,
                                           const std::vector<RunOrder>& orders) override {
    updates = std::min(updates, kMostUpdates);
    for (int64_t r = 0; r < count_; ++r) {
      replicas_[r].active = orders[r].running;
      replicas_[r].detach = orders[r].detach;
      replicas_[r].records = 0;
      if (orders[r].running) upload_passes(r, updates);
    }
    write_replicas();
    for (int64_t i = 0; i < updates; ++i) graph_.launch(stream_.get());
    std::vector<Record> records(count_ * kMostUpdates);
    stream_.copy(records.data(), records_.get(), records.size());
    stream_.copy(replicas_.data(), device_replicas_.get(), replicas_.size());
    stream_.wait();
    std::vector<std::vector<Update>> out(count_);
    for (int64_t r = 0; r < count_; ++r) {
      for (int32_t i = 0; i < replicas_[r].records; ++i) {
        const Record& record = records[r * kMostUpdates + i];
        out[r].push_back({record.loss, record.norm, record.applied != 0, record.clipped != 0});
      }
    }
    return out;
  }

  std::string kernel() const override { return layers_[0].kernel->name; }

 private:
  struct Layer {
    const Kernel* kernel;
    LstmShape shape;
    DeviceArray<float> h, c, gates;
  };

  void make_data() {
    for (int64_t r = 0; r < count_; ++r) {
      const EngineRun& run = runs_[r];
      Replica& replica = replicas_[r];
      replica = {};
      replica.set = sets_.view(run.train, stream_);
      replica.size = run.train->size();
      replica.minibatch_seed = run.minibatch_seed;
      replica.detach_seed = run.detach_seed;
      replica.lr = run.lr;
      replica.clip = run.clip;
      replica.damp = run.damp;
      replica.separate = run.separate;
      replica.stop_on_divergence = run.stop_on_divergence;
      if (run.sampling == tasks::Sampling::kShuffledPasses) {
        // As many passes as one call of advance() may touch.
        replica.passes = (kMostUpdates * shape_.batch + replica.size - 1) / replica.size + 1;
        orders_.emplace_back(replica.passes * replica.size);
        replica.order = orders_.back().get();
        uploaded_[r].assign(replica.passes, -1);
      }
    }
    device_replicas_ = DeviceArray<Replica>(count_);
  }

  void make_arrays() {
    const int64_t cells = count_ * shape_.steps * shape_.batch;
    const ModelShape& model = shape_.model;
    rows_ = shape_.target_steps * shape_.batch;
    head_parts_ = head_parts(rows_, model.hidden);
    part_size_ = model.classes * model.hidden + model.classes;
    weights_ = DeviceArray<float>(layout_.weights);
    first_moments_ = DeviceArray<float>(layout_.weights);
    second_moments_ = DeviceArray<float>(layout_.weights);
    gradients_ = DeviceArray<float>(layout_.gradients);
    x_ = DeviceArray<float>(cells * model.inputs);
    targets_ = DeviceArray<uint8_t>(count_ * rows_);
    scales_ = DeviceArray<float>(count_ * model.layers * shape_.steps);
    dh_ = DeviceArray<float>(cells * model.hidden);
    parts_ = DeviceArray<float>(count_ * head_parts_ * part_size_);
    losses_ = DeviceArray<double>(count_ * head_parts_);
    decisions_ = DeviceArray<Decision>(count_);
    finished_ = DeviceArray<unsigned>(count_);
    records_ = DeviceArray<Record>(count_ * kMostUpdates);
    for (const auto* array :
         {&weights_, &first_moments_, &second_moments_, &gradients_, &x_, &scales_, &parts_}) {
      array->clear(stream_.get());
    }
    dh_.clear(stream_.get());  // the steps without a target stay zero for good
    targets_.clear(stream_.get());
    losses_.clear(stream_.get());
    finished_.clear(stream_.get());
    decisions_.clear(stream_.get());
  }

  void make_layers() {
    const ModelShape& model = shape_.model;
    const size_t size = count_ * shape_.steps * shape_.batch * model.hidden;
    size_t workspace = 0;
    for (int64_t l = 0; l < model.layers; ++l) {
      Layer layer;
      layer.shape = {shape_.steps, shape_.batch, l == 0 ? model.inputs : model.hidden, model.hidden,
                     count_};
      layer.kernel = &choose_cuda_kernel(layer.shape);
      layer.h = DeviceArray<float>(size);
      layer.c = DeviceArray<float>(size);
      layer.gates = DeviceArray<float>(4 * size);
      workspace = std::max({workspace, layer.kernel->forward_workspace(layer.shape, 1),
                            layer.kernel->backward_workspace(layer.shape, 1)});
      layers_.push_back(std::move(layer));
    }
    for (int i = 0; i < 2; ++i) {
      if (i < model.layers - 1) dx_[i] = DeviceArray<float>(size);
    }
    workspace_ = DeviceArray<uint8_t>(workspace);
  }

  void make_pieces() {
    std::vector<Piece> pieces;
    const size_t all = layout_.tensors.size();
    for (size_t i = 0; i < all; ++i) {
      const ParameterTensor& tensor = layout_.tensors[i];
      const bool head = i + 2 >= all;
      const int64_t part = i + 1 == all ? layout_.head_weight().numel : 0;
      const int64_t most = head ? kHeadPiece : kPiece;
      for (int64_t first = 0; first < tensor.numel; first += most) {
        pieces.push_back({tensor.weight, tensor.gradient, tensor.numel, first,
                          std::min(most, tensor.numel - first), head ? part : -1});
      }
    }
    pieces_ = DeviceArray<Piece>(pieces.size());
    stream_.copy(pieces_.get(), pieces.data(), pieces.size());
    squares_ = DeviceArray<double>(count_ * pieces.size());
    stream_.wait();
  }

  void write_replicas() {
    stream_.copy(device_replicas_.get(), replicas_.data(), replicas_.size());
  }

  // The orders of the passes that the coming updates touch.
  void upload_passes(int64_t r, int64_t updates) {
    const Replica& replica = replicas_[r];
    if (replica.order == nullptr) return;
    const int64_t size = static_cast<int64_t>(replica.size), batch = shape_.batch;
    const int64_t last = ((replica.update + updates) * batch - 1) / size;
    for (int64_t pass = replica.update * batch / size; pass <= last; ++pass) {
      int64_t& held = uploaded_[r][pass % replica.passes];
      if (held == pass) continue;
      const std::vector<int64_t> order = tasks::pass_order(size, replica.minibatch_seed, pass);
      const std::vector<int32_t> narrow(order.begin(), order.end());
      stream_.copy(const_cast<int32_t*>(replica.order) + (pass % replica.passes) * size,
                   narrow.data(), narrow.size());
      stream_.wait();  // before `narrow` goes
      held = pass;
    }
  }

  void copy(int64_t run, const DeviceArray<float>& array, const std::vector<float*>& host,
            bool to_device) {
    for (size_t i = 0; i < layout_.tensors.size(); ++i) {
      const ParameterTensor& tensor = layout_.tensors[i];
      float* const at = array.get() + tensor.weight + run * tensor.numel;
      to_device ? stream_.copy(at, host[i], tensor.numel) : stream_.copy(host[i], at, tensor.numel);
    }
  }

  void fill(LstmArgs& args, int64_t l) const {
    const auto weight = [&](int64_t i) { return weights_.get() + layout_.layer(l, i).weight; };
    args.shape = layers_[l].shape;
    args.weights = {weight(0), weight(1), weight(2), weight(3)};
    args.x = l == 0 ? x_.get() : layers_[l - 1].h.get();
    args.stream = stream_.get();
  }

  void add_forward(int64_t l) const {
    ForwardArgs args{};
    fill(args, l);
    args.h = layers_[l].h.get();
    args.c = layers_[l].c.get();
    args.gates = layers_[l].gates.get();
    args.workspace = workspace_.get();
    layers_[l].kernel->forward(args);
  }

  void add_backward(int64_t l) const {
    const auto gradient = [&](int64_t i) {
      return gradients_.get() + layout_.layer(l, i).gradient;
    };
    const int64_t top = shape_.model.layers - 1;
    BackwardArgs args{};
    fill(args, l);
    args.h = layers_[l].h.get();
    args.c = layers_[l].c.get();
    args.gates = layers_[l].gates.get();
    const ScaleView scale{scales_.get() + l * shape_.steps, 1, 0,
                          shape_.model.layers * shape_.steps};
    (shape_.steers_cell ? args.c_scale : args.h_scale) = scale;
    args.dh = l == top ? dh_.get() : dx_[l % 2].get();
    args.dx = l == 0 ? nullptr : dx_[(l - 1) % 2].get();  // dh of the layer below
    args.dw_ih = gradient(0);
    args.dw_hh = gradient(1);
    args.db_ih = gradient(2);
    args.workspace = workspace_.get();
    layers_[l].kernel->backward(args);
  }

  void add_update() {
    const ModelShape& model = shape_.model;
    launch_prepare(
        {device_replicas_.get(), decisions_.get(), count_, shape_.steps, shape_.batch, model.inputs,
         shape_.target_steps, model.layers, x_.get(), targets_.get(), scales_.get()},
        stream_.get());
    for (int64_t l = 0; l < model.layers; ++l) add_forward(l);
    const int64_t skipped = (shape_.steps - shape_.target_steps) * shape_.batch * model.hidden;
    launch_head(
        {device_replicas_.get(), count_, rows_, model.hidden, model.classes,
         layers_.back().h.get() + skipped, dh_.get() + skipped,
         shape_.steps * shape_.batch * model.hidden, weights_.get() + layout_.head_weight().weight,
         weights_.get() + layout_.head_bias().weight, targets_.get(), parts_.get(), losses_.get()},
        stream_.get());
    for (int64_t l = model.layers; l-- > 0;) add_backward(l);
    const int64_t pieces = static_cast<int64_t>(pieces_.size());
    launch_measure(
        {device_replicas_.get(), count_, pieces_.get(), pieces, gradients_.get(), parts_.get(),
         losses_.get(), head_parts_, part_size_, rows_, shape_.steps, model.layers, squares_.get(),
         finished_.get(), decisions_.get(), records_.get(), kMostUpdates},
        stream_.get());
    launch_adam({decisions_.get(), count_, pieces_.get(), pieces, gradients_.get(), weights_.get(),
                 first_moments_.get(), second_moments_.get()},
                stream_.get());
    cuda::check(cudaGetLastError(), "the launch of an update");
  }

  EngineShape shape_;
  std::vector<EngineRun> runs_;
  int64_t count_;  // R
  ParameterLayout layout_;
  Stream stream_;
  DeviceSets sets_;
  std::vector<Replica> replicas_;               // the host's copy, right between two stretches
  std::vector<std::vector<int64_t>> uploaded_;  // passes whose order is on the device
  std::vector<DeviceArray<int32_t>> orders_;
  DeviceArray<Replica> device_replicas_;
  int64_t rows_ = 0, head_parts_ = 0, part_size_ = 0;
  DeviceArray<float> weights_, first_moments_, second_moments_, gradients_;
  DeviceArray<float> x_, scales_, dh_, dx_[2], parts_;
  DeviceArray<uint8_t> targets_, workspace_;
  DeviceArray<double> losses_, squares_;
  DeviceArray<Piece> pieces_;
  DeviceArray<unsigned> finished_;
  DeviceArray<Decision> decisions_;
  DeviceArray<Record> records_;
  std::vector<Layer> layers_;
  Graph graph_;
};

}  // namespace

std::string cuda_problem() {
  const char* const reason = cuda_unavailable();
  return reason == nullptr ? "" : std::string("no CUDA device can be used: ") + reason;
}

std::unique_ptr<Engine> make_cuda_engine(const EngineShape& shape, std::vector<EngineRun> runs) {
  if (const std::string problem = cuda_problem(); !problem.empty()) {
    throw std::runtime_error(problem);
  }
  return std::make_unique<CudaEngine>(shape, std::move(runs));
}

}  // namespace hdetach::train
