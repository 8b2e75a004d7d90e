#ifndef PLANEWISE_SERVICE_WEIGHTS_WEIGHT_PARTS_READER_H_
#define PLANEWISE_SERVICE_WEIGHTS_WEIGHT_PARTS_READER_H_
// ModelCatalog::ReadWeights: hands out stored planes where they lie, or one
// dequantized weight after another.

#include <memory>

#include "absl/status/statusor.h"
#include "service/weights/catalog_requests.h"
#include "service/weights/catalog_state.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// A reader of the version that `lease` holds. NOT_FOUND and INVALID_ARGUMENT as
// ModelCatalog::ReadWeights.
absl::StatusOr<std::unique_ptr<WeightReader>> MakeWeightReader(
    const std::shared_ptr<CatalogState>& state, WeightLease lease, const ReadWeightsSpec& spec);

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_WEIGHTS_WEIGHT_PARTS_READER_H_
