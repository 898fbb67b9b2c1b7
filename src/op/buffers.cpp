#include "op/buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

#include "hdetach/backend.h"

namespace hdetach {
namespace {

constexpr size_t kPage = size_t{2} << 20;  // a huge page, and the least size worth keeping

class BufferPool {
 public:
  void* take(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = free_.lower_bound(bytes);
    void* block;
    if (found != free_.end() && found->first <= bytes + bytes / 4) {
      block = found->second;
      bytes = found->first;
      use_.kept -= static_cast<int64_t>(bytes);
      free_.erase(found);
    } else {
      const int refused = posix_memalign(&block, kPage, bytes);
      TORCH_CHECK(refused == 0, "[lstm] out of memory: ", bytes, " bytes were refused.");
      madvise(block, bytes, MADV_HUGEPAGE);  // advice only: a refusal costs speed
      size_of_[block] = bytes;
    }
    use_.in_use += static_cast<int64_t>(bytes);
    most_in_use_ = std::max(most_in_use_, use_.in_use);
    while (use_.in_use + use_.kept > most_in_use_) release_largest();
    return block;
  }

  void give_back(void* block) {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t bytes = size_of_[block];
    use_.in_use -= static_cast<int64_t>(bytes);
    use_.kept += static_cast<int64_t>(bytes);
    free_.emplace(bytes, block);
  }

  void release() {
    std::lock_guard<std::mutex> lock(mutex_);
    while (!free_.empty()) release_largest();
    most_in_use_ = use_.in_use;
  }

  BufferUse use() {
    std::lock_guard<std::mutex> lock(mutex_);
    return use_;
  }

 private:
  void release_largest() {
    const auto largest = std::prev(free_.end());
    use_.kept -= static_cast<int64_t>(largest->first);
    size_of_.erase(largest->second);
    std::free(largest->second);
    free_.erase(largest);
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> free_;  // by size
  std::map<void*, size_t> size_of_;    // every block, in use or free
  BufferUse use_;
  int64_t most_in_use_ = 0;
};

BufferPool& pool() {
  // Never destroyed: tensors of other static objects may outlive this file's.
  static BufferPool* const instance = new BufferPool;
  return *instance;
}

}  // namespace

at::Tensor recycled(at::IntArrayRef sizes, at::ScalarType type) {
  const auto options = at::TensorOptions().dtype(type);
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(type);
  if (bytes < kPage) return at::empty(sizes, options);
  void* block = pool().take(bytes);
  return at::from_blob(
      block, sizes, [](void* p) { pool().give_back(p); }, options);
}

void release_buffers() { pool().release(); }

BufferUse buffer_use() { return pool().use(); }

}  // namespace hdetach
