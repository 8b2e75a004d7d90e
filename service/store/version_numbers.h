#ifndef PLANEWISE_SERVICE_STORE_VERSION_NUMBERS_H_
#define PLANEWISE_SERVICE_STORE_VERSION_NUMBERS_H_
// Version numbers that were never given to anybody: from the store, which
// remembers them across crashes, or without one, counted from 1.

#include "absl/status/statusor.h"
#include "core/base/strong_int.h"
#include "core/checkpoint/model_store.h"

namespace planewise {

// One thread: the storage lane. Blocks on the disk.
class VersionNumbers {
 public:
  // `store` may be nullptr; it outlives this.
  explicit VersionNumbers(ModelStore* store) : store_(store) {}

  // As ModelStore::ReserveVersions.
  absl::StatusOr<WeightVersion> Next() {
    if (store_ != nullptr) return store_->ReserveVersions(1);
    last_ = last_.Next();
    return last_;
  }

 private:
  ModelStore* const store_;
  WeightVersion last_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_STORE_VERSION_NUMBERS_H_
