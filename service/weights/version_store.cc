#include "service/weights/version_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace planewise {

VersionStore::VersionStore(const Clock& clock, std::shared_ptr<const ModelVersion> first)
    : clock_(clock), newest_(std::move(first)), leases_(std::make_shared<LeaseList>(clock)) {}

void VersionStore::Publish(std::shared_ptr<const ModelVersion> next) {
  newest_ = std::move(next);
}

// nullptr if it is not live.
std::shared_ptr<const ModelVersion> VersionStore::Find(WeightVersion version) const {
  if (version == WeightVersion() || version == newest_->version) return newest_;
  for (const LeaseRecord* record : leases_->active()) {
    if (record->version->version == version) return record->version;
  }
  return nullptr;
}

absl::StatusOr<WeightLease> VersionStore::Lease(LeaseRequest request) {
  std::shared_ptr<const ModelVersion> version = Find(request.version);
  if (version == nullptr) {
    std::vector<uint64_t> live;
    for (const HeldVersion& held : Held()) live.push_back(held.version.value());
    if (live.empty() || live.back() != newest_->version.value()) {
      live.push_back(newest_->version.value());
    }
    return Error(Reason::kNotFound,
                 absl::StrCat("model \"", request.model, "\": version ", request.version.value(),
                              " is not in memory; live: ", absl::StrJoin(live, ", ")))
        .With("model", request.model)
        .With("version", static_cast<int64_t>(request.version.value()));
  }
  LeaseRecord record;
  record.version = std::move(version);
  record.use = request.use;
  record.holder = std::move(request.holder);
  record.on_revoked = std::move(request.on_revoked);
  return leases_->Add(std::move(record));
}

std::vector<HeldVersion> VersionStore::Held() const {
  std::map<WeightVersion, HeldVersion> by_version;
  const absl::Time now = clock_.Now();
  for (const LeaseRecord* record : leases_->active()) {
    HeldVersion& held = by_version[record->version->version];
    held.version = record->version->version;
    held.leases.push_back({record->holder, now - record->since});
  }
  std::vector<HeldVersion> held;
  for (auto& [version, entry] : by_version) held.push_back(std::move(entry));
  return held;
}

std::map<std::string, int64_t, std::less<>> VersionStore::ColumnOperands() const {
  std::map<std::string, int64_t, std::less<>> counts;
  for (const LeaseRecord* record : leases_->active()) {
    if (record->use == LeaseUse::kColumnOperand) ++counts[record->layer];
  }
  return counts;
}

}  // namespace planewise
