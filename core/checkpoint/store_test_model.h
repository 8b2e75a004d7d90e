#ifndef PLANEWISE_CORE_CHECKPOINT_STORE_TEST_MODEL_H_
#define PLANEWISE_CORE_CHECKPOINT_STORE_TEST_MODEL_H_
// Small models for tests of the store.

#include <cstdint>
#include <string>

#include "core/base/strong_int.h"
#include "core/layer/model_version.h"
#include "core/tensor/memory_budget.h"

namespace planewise {

// Four layers: both planes with a bias, row only, high precision, and one
// without elements. Every byte follows from `seed`.
ModelVersion MakeTestModel(const std::string& name, WeightVersion version, uint64_t seed,
                           MemoryBudget& budget);

// Model, version and a checksum of everything but where it is stored: equal
// strings, equal versions.
std::string ContentOf(const ModelVersion& version);

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_STORE_TEST_MODEL_H_
