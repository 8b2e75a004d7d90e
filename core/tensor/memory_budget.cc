#include "core/tensor/memory_budget.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// Of the limit, at most one part in so many lies idle in kept blocks.
constexpr int64_t kKeptShare = 4;

}  // namespace

absl::string_view Name(MemoryUse use) {
  switch (use) {
    case MemoryUse::kWeights: return "weights";
    case MemoryUse::kSavedOperands: return "saved_operands";
    case MemoryUse::kTransport: return "transport";
    case MemoryUse::kTransient: return "transient";
  }
  return "invalid";
}

Reservation::Reservation(std::shared_ptr<MemoryBudget> budget, MemoryUse use, int64_t size_bytes)
    : budget_(std::move(budget)), use_(use), size_bytes_(size_bytes) {}

Reservation::Reservation(Reservation&& other) noexcept
    : budget_(std::move(other.budget_)),
      use_(other.use_),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    Release();
    budget_ = std::move(other.budget_);
    use_ = other.use_;
    size_bytes_ = std::exchange(other.size_bytes_, 0);
  }
  return *this;
}

Reservation::~Reservation() { Release(); }

void Reservation::Release() {
  if (budget_ != nullptr) budget_->Release(use_, size_bytes_);
  budget_.reset();
  size_bytes_ = 0;
}

void Reservation::ChargeTo(MemoryUse use) {
  if (budget_ != nullptr) budget_->Move(use_, use, size_bytes_);
  use_ = use;
}

MemoryBudget::MemoryBudget(int64_t limit_bytes, std::shared_ptr<MemoryBudget> parent)
    : limit_bytes_(limit_bytes),
      parent_(std::move(parent)),
      blocks_(parent_ != nullptr ? parent_->blocks_
                                 : std::make_shared<BlockCache>(limit_bytes / kKeptShare)) {}

std::shared_ptr<MemoryBudget> MemoryBudget::Create(int64_t limit_bytes) {
  return std::shared_ptr<MemoryBudget>(new MemoryBudget(limit_bytes, nullptr));
}

absl::StatusOr<Reservation> MemoryBudget::Reserve(MemoryUse use, int64_t size_bytes,
                                                  absl::string_view what) {
  MutexLock lock(mutex_);
  const int64_t available = closed_ ? 0 : limit_bytes_ - UsedLocked();
  if (size_bytes > available) {
    return Error(Reason::kMemoryShortfall,
                 absl::StrCat(what, ": needs ", size_bytes, " bytes for ", Name(use), ", ",
                              available, " of ", limit_bytes_, " are free (short of ",
                              size_bytes - available, ")"))
        .With("requiredBytes", size_bytes)
        .With("availableBytes", available)
        .With("limitBytes", limit_bytes_)
        .With("bytesShort", size_bytes - available);
  }
  int64_t& used = used_[static_cast<size_t>(use)];
  int64_t& peak = peak_[static_cast<size_t>(use)];
  used += size_bytes;
  peak = std::max(peak, used);
  if (parent_ != nullptr) {
    parent_->Move(MemoryUse::kTransient, use, size_bytes);
  } else {
    blocks_->TrimTo(limit_bytes_ - UsedLocked());
  }
  return Reservation(shared_from_this(), use, size_bytes);
}

absl::StatusOr<Admission> MemoryBudget::Admit(int64_t size_bytes, absl::string_view what) {
  PW_ASSIGN_OR_RETURN(Reservation reservation, Reserve(MemoryUse::kTransient, size_bytes, what));
  auto admitted =
      std::shared_ptr<MemoryBudget>(new MemoryBudget(size_bytes, std::move(reservation.budget_)));
  return Admission(std::move(admitted));
}

void MemoryBudget::CloseAdmission() {
  MutexLock lock(mutex_);
  closed_ = true;
  parent_->Release(MemoryUse::kTransient, limit_bytes_ - UsedLocked());
}

Admission::~Admission() {
  if (budget_ != nullptr) budget_->CloseAdmission();
}

int64_t MemoryBudget::used_bytes() const {
  MutexLock lock(mutex_);
  return UsedLocked();
}

int64_t MemoryBudget::used_bytes(MemoryUse use) const {
  MutexLock lock(mutex_);
  return used_[static_cast<size_t>(use)];
}

int64_t MemoryBudget::peak_bytes(MemoryUse use) const {
  MutexLock lock(mutex_);
  return peak_[static_cast<size_t>(use)];
}

void MemoryBudget::ResetPeak(MemoryUse use) {
  MutexLock lock(mutex_);
  peak_[static_cast<size_t>(use)] = used_[static_cast<size_t>(use)];
}

void MemoryBudget::Release(MemoryUse use, int64_t size_bytes) {
  MutexLock lock(mutex_);
  used_[static_cast<size_t>(use)] -= size_bytes;
  if (parent_ == nullptr) return;
  if (closed_) {
    parent_->Release(use, size_bytes);
  } else {
    parent_->Move(use, MemoryUse::kTransient, size_bytes);
  }
}

void MemoryBudget::Move(MemoryUse from, MemoryUse to, int64_t size_bytes) {
  MutexLock lock(mutex_);
  used_[static_cast<size_t>(from)] -= size_bytes;
  int64_t& used = used_[static_cast<size_t>(to)];
  used += size_bytes;
  peak_[static_cast<size_t>(to)] = std::max(peak_[static_cast<size_t>(to)], used);
  if (parent_ != nullptr) parent_->Move(from, to, size_bytes);
}

int64_t MemoryBudget::UsedLocked() const {
  return std::accumulate(used_.begin(), used_.end(), int64_t{0});
}

}  // namespace planewise
