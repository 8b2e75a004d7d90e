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

WeightLease WeightLease::ForOperand(std::string layer, bool reads_column,
                                    OnRevoked on_revoked) const {
  LeaseRecord record;
  record.version = record_->version;
  record.use = reads_column ? LeaseUse::kColumnOperand : LeaseUse::kOperand;
  record.layer = std::move(layer);
  record.holder = record_->holder;
  record.on_revoked = std::move(on_revoked);
  return record_->list->Add(std::move(record));
}

void WeightLease::End() {
  if (record_ == nullptr) return;
  if (valid()) record_->list->Remove(*record_);
  record_->on_revoked = nullptr;
  record_ = nullptr;
}

WeightLease LeaseList::Add(LeaseRecord record) {
  auto shared = std::make_shared<LeaseRecord>(std::move(record));
  shared->since = clock_.Now();
  shared->list = shared_from_this();
  shared->place = active_.insert(active_.end(), shared.get());
  return WeightLease(std::move(shared));
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
