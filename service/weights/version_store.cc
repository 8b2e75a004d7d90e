#include "service/weights/version_store.h"

#include <list>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"

namespace planewise {

// The leases of one model. Shared, so that a lease may end after its model.
struct VersionStore::Leases {
  std::list<std::weak_ptr<LeaseRecord>> active;  // oldest first
};

VersionStore::VersionStore(const Clock& clock, std::shared_ptr<const ModelVersion> first)
    : clock_(clock), newest_(std::move(first)), leases_(std::make_shared<Leases>()) {}

void VersionStore::Publish(std::shared_ptr<const ModelVersion> next) {
  newest_ = std::move(next);
}

absl::StatusOr<WeightLease> VersionStore::Lease(LeaseRequest request) {
  std::shared_ptr<const ModelVersion> version;
  if (request.version == WeightVersion() || request.version == newest_->version) {
    version = newest_;
  } else {
    for (const auto& active : leases_->active) {
      const std::shared_ptr<LeaseRecord> record = active.lock();
      if (record->version->version == request.version) version = record->version;
    }
  }
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
  auto record = std::make_shared<LeaseRecord>();
  record->version = std::move(version);
  record->use = request.use;
  record->holder = std::move(request.holder);
  record->since = clock_.Now();
  record->on_revoked = std::move(request.on_revoked);
  const auto place = leases_->active.insert(leases_->active.end(), record);
  record->unlist = [leases = leases_, place] { leases->active.erase(place); };
  return WeightLease(std::move(record));
}

void VersionStore::Revoke(WeightVersion version) {
  std::vector<std::shared_ptr<LeaseRecord>> revoked;
  for (const auto& active : leases_->active) {
    std::shared_ptr<LeaseRecord> record = active.lock();
    if (record->version->version == version) revoked.push_back(std::move(record));
  }
  for (const auto& record : revoked) {
    std::exchange(record->unlist, nullptr)();
    record->version = nullptr;
  }
  // Last: a holder that is told may end other leases, listed here or not.
  for (const auto& record : revoked) {
    if (record->on_revoked) std::exchange(record->on_revoked, nullptr)();
  }
}

std::vector<HeldVersion> VersionStore::Held() const {
  std::map<WeightVersion, HeldVersion> by_version;
  const absl::Time now = clock_.Now();
  for (const auto& active : leases_->active) {
    const std::shared_ptr<LeaseRecord> record = active.lock();
    HeldVersion& held = by_version[record->version->version];
    held.version = record->version->version;
    held.leases.push_back({record->holder, now - record->since});
  }
  std::vector<HeldVersion> held;
  for (auto& [version, entry] : by_version) held.push_back(std::move(entry));
  return held;
}

int VersionStore::lease_count() const { return static_cast<int>(leases_->active.size()); }

int64_t VersionStore::column_operand_count() const {
  int64_t count = 0;
  for (const auto& active : leases_->active) {
    if (active.lock()->use == LeaseUse::kColumnOperand) ++count;
  }
  return count;
}

}  // namespace planewise
