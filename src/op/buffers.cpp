#include "op/buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "hdetach/backend.h"

namespace hdetach {
namespace {

constexpr size_t kPage = size_t{2} << 20;  // a huge page, and the least size worth keeping

class BufferPool {
 public:
  void* take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    void* block = take_kept(bytes);
    if (block == nullptr) {
      const int refused = posix_memalign(&block, kPage, bytes);
      TORCH_CHECK(refused == 0, "[lstm] out of memory: ", bytes, " bytes were refused.");
      madvise(block, bytes, MADV_HUGEPAGE);  // advice only: a refusal costs speed
      size_of_[block] = bytes;
    }
    use_.in_use += static_cast<int64_t>(size_of_[block]);
    most_in_use_ = std::max(most_in_use_, use_.in_use);
    // The eighth lets the workspaces of both passes stay.
    while (use_.kept > 0 && use_.in_use + use_.kept > most_in_use_ + most_in_use_ / 8) {
      release_oldest();
    }
    return block;
  }

  void give_back(void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto bytes = static_cast<int64_t>(size_of_[block]);
    use_.in_use -= bytes;
    use_.kept += bytes;
    kept_.push_back(block);
  }

  void release() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!kept_.empty()) release_oldest();
    most_in_use_ = use_.in_use;
  }

  BufferUse use() {
    std::lock_guard<std::mutex> lock(mutex_);
    return use_;
  }

 private:
  // The smallest kept block that holds `bytes` and wastes little, else null.
  void* take_kept(size_t bytes) {
    auto best = kept_.end();
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      const size_t size = size_of_[*it];
      if (size < bytes || size > bytes + bytes / 4) continue;
      if (best == kept_.end() || size < size_of_[*best]) best = it;
    }
    if (best == kept_.end()) return nullptr;
    void* block = *best;
    kept_.erase(best);
    use_.kept -= static_cast<int64_t>(size_of_[block]);
    return block;
  }

  void release_oldest() {
    void* block = kept_.front();
    kept_.erase(kept_.begin());
    use_.kept -= static_cast<int64_t>(size_of_[block]);
    size_of_.erase(block);
    std::free(block);
  }

  std::mutex mutex_;
  std::vector<void*> kept_;          // in the order they were given back
  std::map<void*, size_t> size_of_;  // every block, in use or kept
  BufferUse use_;
  int64_t most_in_use_ = 0;
};

BufferPool& pool() {
  // Never destroyed: tensors of other static objects may outlive this file's.
  static BufferPool* const instance = new BufferPool;
  return *instance;
}

}  // namespace

at::Tensor recycled(at::IntArrayRef sizes, const at::TensorOptions& options) {
  const size_t bytes =
      static_cast<size_t>(c10::multiply_integers(sizes)) * options.dtype().itemsize();
  if (bytes < kPage || !options.device().is_cpu()) return at::empty(sizes, options);
  return at::from_blob(
      pool().take(bytes), sizes, [](void* block) { pool().give_back(block); }, options);
}

void release_buffers() { pool().release(); }

BufferUse buffer_use() { return pool().use(); }

}  // namespace hdetach
