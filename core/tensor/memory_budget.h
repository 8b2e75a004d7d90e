#ifndef PLANEWISE_CORE_TENSOR_MEMORY_BUDGET_H_
#define PLANEWISE_CORE_TENSOR_MEMORY_BUDGET_H_
// Counts every byte that is allocated for tensors and refuses what exceeds the
// limit. The counts are what `describe` shows as actual.
//
// Not here: memory itself (host_buffer.h).

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/tensor/block_cache.h"

namespace planewise {

enum class MemoryUse : uint8_t {
  kWeights,        // planes, biases
  kSavedOperands,  // what forward keeps for backward
  kTransport,      // session windows and results
  kTransient,      // load, quantize, GEMM workspace
};
inline constexpr int kMemoryUseCount = 4;

absl::string_view Name(MemoryUse use);

class Admission;
class MemoryBudget;

// RAII share of a budget. Movable; gives its bytes back when destroyed.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  ~Reservation();

  int64_t size_bytes() const { return size_bytes_; }

  // Counts the same bytes under another use from now on. Cannot fail: the
  // total does not change.
  void ChargeTo(MemoryUse use);

 private:
  friend class MemoryBudget;
  Reservation(std::shared_ptr<MemoryBudget> budget, MemoryUse use, int64_t size_bytes);
  void Release();

  std::shared_ptr<MemoryBudget> budget_;
  MemoryUse use_ = MemoryUse::kTransient;
  int64_t size_bytes_ = 0;
};

// Thread-safe. Outlives its reservations through shared ownership.
class MemoryBudget : public std::enable_shared_from_this<MemoryBudget> {
 public:
  static std::shared_ptr<MemoryBudget> Create(int64_t limit_bytes);

  // RESOURCE_EXHAUSTED / MEMORY_SHORTFALL with required, available and limit
  // in the message and metadata; nothing is reserved then. `what` names the
  // object, for example `model "a"`.
  absl::StatusOr<Reservation> Reserve(MemoryUse use, int64_t size_bytes, absl::string_view what);

  // Sets `size_bytes` aside for work whose need is known beforehand, so that
  // nobody else can take them while it runs. Fails as Reserve.
  absl::StatusOr<Admission> Admit(int64_t size_bytes, absl::string_view what);

  // Where memory of this budget comes from and goes. What it keeps, and nobody
  // uses, is counted nowhere, and shrinks as the budget fills up: both together
  // stay within the limit.
  const std::shared_ptr<BlockCache>& blocks() const { return blocks_; }

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const;
  int64_t used_bytes(MemoryUse use) const;
  // Highest used_bytes(use) since the last ResetPeak(use).
  int64_t peak_bytes(MemoryUse use) const;
  void ResetPeak(MemoryUse use);

 private:
  friend class Admission;
  friend class Reservation;
  MemoryBudget(int64_t limit_bytes, std::shared_ptr<MemoryBudget> parent);
  void Release(MemoryUse use, int64_t size_bytes);
  void Move(MemoryUse from, MemoryUse to, int64_t size_bytes);
  void CloseAdmission();
  int64_t UsedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t limit_bytes_;
  // Of an admission: where its bytes are counted too, what is not yet reserved
  // as kTransient. Locked after this one's mutex.
  const std::shared_ptr<MemoryBudget> parent_;
  const std::shared_ptr<BlockCache> blocks_;  // an admission's is its parent's
  mutable Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<int64_t, kMemoryUseCount> used_ ABSL_GUARDED_BY(mutex_) = {};
  std::array<int64_t, kMemoryUseCount> peak_ ABSL_GUARDED_BY(mutex_) = {};
};

// Bytes set aside by MemoryBudget::Admit. Movable. What was reserved from
// budget() outlives it; when it ends, the rest goes back.
class Admission {
 public:
  Admission(Admission&&) = default;
  Admission& operator=(Admission&&) = delete;
  ~Admission();

  // Gives out no more than was admitted, and counts that alone: its peaks are
  // those of the admitted work.
  MemoryBudget& budget() { return *budget_; }

 private:
  friend class MemoryBudget;
  explicit Admission(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  std::shared_ptr<MemoryBudget> budget_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_TENSOR_MEMORY_BUDGET_H_
