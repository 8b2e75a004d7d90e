#include "service/weights/weight_lease.h"

#include <utility>

namespace planewise {

WeightLease& WeightLease::operator=(WeightLease&& other) noexcept {
  if (this != &other) {
    End();
    record_ = std::move(other.record_);
  }
  return *this;
}

void WeightLease::End() {
  if (record_ == nullptr) return;
  record_->version = nullptr;
  record_->on_revoked = nullptr;
  if (record_->unlist) std::exchange(record_->unlist, nullptr)();
  record_ = nullptr;
}

}  // namespace planewise
