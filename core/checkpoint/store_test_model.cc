#include "core/checkpoint/store_test_model.h"

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/file_system.h"
#include "core/checkpoint/live_parts.h"
#include "core/checkpoint/manifest_codec.h"
#include "core/checkpoint/streaming_checksum.h"
#include "core/quant/quantizer.h"
#include "core/tensor/plane_layout.h"

namespace planewise {
namespace {

// Finite BF16 values of widely different size.
std::vector<uint16_t> RandomBf16(int64_t count, std::mt19937_64& random) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) value = static_cast<uint16_t>(random()) & 0xBFFF;
  return values;
}

std::shared_ptr<PrimaryWeight> NewWeight(const std::string& name, MatrixShape shape, Format format,
                                         WeightVersion version) {
  auto weight = std::make_shared<PrimaryWeight>();
  weight->name = name;
  weight->shape = shape;
  weight->format = format;
  weight->epoch = version;
  return weight;
}

std::shared_ptr<const PrimaryWeight> QuantizedWeight(const std::string& name, MatrixShape shape,
                                                     bool column, WeightVersion version,
                                                     MemoryBudget& budget,
                                                     std::mt19937_64& random) {
  const std::vector<uint16_t> values = RandomBf16(shape.elements(), random);
  QuantizedPlanes planes =
      QuantizeToPlanes(ScalarQuantizer(), budget, MemoryUse::kWeights,
                       {values.data(), DType::kBF16, shape.out, shape.in},
                       {.format = Format::kMxfp8}, {/*row=*/true, column}, version, name)
          .value();
  std::shared_ptr<PrimaryWeight> weight = NewWeight(name, shape, Format::kMxfp8, version);
  weight->row = std::move(planes.row);
  weight->column = std::move(planes.column);
  return weight;
}

std::shared_ptr<const PrimaryWeight> HighPrecisionWeight(const std::string& name,
                                                         MatrixShape shape, WeightVersion version,
                                                         MemoryBudget& budget,
                                                         std::mt19937_64& random) {
  auto plane = std::make_shared<Plane>();
  plane->layout = PlaneLayoutFor(Format::kNone, BlockGeometry::k1D, PlaneKind::kHighPrecision,
                                 shape, DType::kBF16)
                      .value();
  plane->epoch = version;
  plane->payload = HostBuffer::Allocate(budget, MemoryUse::kWeights, plane->layout.payload_bytes,
                                        name)
                       .value();
  for (std::byte& byte : plane->payload.mutable_bytes()) byte = static_cast<std::byte>(random());
  std::shared_ptr<PrimaryWeight> weight = NewWeight(name, shape, Format::kNone, version);
  weight->high_precision = std::move(plane);
  return weight;
}

}  // namespace

ModelVersion MakeTestModel(const std::string& name, WeightVersion version, uint64_t seed,
                           MemoryBudget& budget) {
  std::mt19937_64 random(seed);
  ModelVersion model;
  model.model = name;
  model.version = version;
  model.recipe = DefaultRecipe(Format::kMxfp8);
  model.trainable = true;
  model.source_path = "/models/source";
  model.local = {{"embeddings.word.weight", {30522, 384}, "embedding: stays with the trainer"}};
  HostedLayer both;
  both.name = "layers.0.q";
  both.weight = QuantizedWeight("layers.0.q.weight", {96, 64}, true, version, budget, random);
  both.bias = HighPrecisionWeight("layers.0.q.bias", {1, 96}, version, budget, random);
  both.decision = {PlanePolicy::kAuto, true, true, "backward_override=none", 0, {}};
  both.provenance = "quantized from F32 via BF16";
  HostedLayer row_only;
  row_only.name = "layers.0.up";
  row_only.weight =
      QuantizedWeight("layers.0.up.weight", {160, 96}, false, version, budget, random);
  row_only.decision = {PlanePolicy::kRowOnly, true, false, "asked for", 17408,
                       {"backward_override=none: needs master weights"}};
  HostedLayer plain;
  plain.name = "pooler";
  plain.weight = HighPrecisionWeight("pooler.weight", {5, 7}, version, budget, random);
  HostedLayer empty;
  empty.name = "empty";
  empty.weight = QuantizedWeight("empty.weight", {0, 64}, false, version, budget, random);
  model.layers = {both, row_only, plain, empty};
  return model;
}

std::string ContentOf(const ModelVersion& version) {
  StoredParts parts;
  for (const LivePart& part : LivePartsOf(version)) {
    StoredPart& stored = parts.by_name[part.name()];
    stored.length = static_cast<int64_t>(part.bytes().size());
    stored.checksum = ChecksumOf(part.bytes());
  }
  const std::string described = EncodeManifest(DescribeVersion(version, {}, parts));
  return absl::StrFormat("%s, version %d, %016x", version.model, version.version.value(),
                         ChecksumOf(BytesOf(described)));
}

}  // namespace planewise
