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

WeightLease WeightLease::Another(LeaseUse use, OnRevoked on_revoked) const {
  return record_->list->Add(record_->version, use, record_->holder, std::move(on_revoked));
}

void WeightLease::End() {
  if (record_ == nullptr) return;
  if (valid()) record_->list->Remove(*record_);
  record_->on_revoked = nullptr;
  record_ = nullptr;
}

WeightLease LeaseList::Add(std::shared_ptr<const ModelVersion> version, LeaseUse use,
                           std::string holder, OnRevoked on_revoked) {
  auto record = std::make_shared<LeaseRecord>();
  record->version = std::move(version);
  record->use = use;
  record->holder = std::move(holder);
  record->since = clock_.Now();
  record->on_revoked = std::move(on_revoked);
  record->list = shared_from_this();
  record->place = active_.insert(active_.end(), record.get());
  return WeightLease(std::move(record));
}

void LeaseList::Remove(LeaseRecord& record) {
  active_.erase(record.place);
  record.version = nullptr;
}

void LeaseList::Revoke(WeightVersion version) {
  std::vector<std::shared_ptr<LeaseRecord>> revoked;
  for (auto next = active_.begin(); next != active_.end();) {
    LeaseRecord& record = **next++;
    if (record.version->version != version) continue;
    Remove(record);
    revoked.push_back(record.shared_from_this());
  }
  // Last: a holder that is told may end other leases, also of `revoked`.
  for (const auto& record : revoked) {
    if (record->on_revoked) std::exchange(record->on_revoked, nullptr)();
  }
}

}  // namespace planewise
