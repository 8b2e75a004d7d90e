#include "core/checkpoint/manifest_codec.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "core/base/status_macros.h"
#include "core/checkpoint/byte_codec.h"
#include "core/checkpoint/damage.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/record_file.h"

namespace planewise {
namespace {

// Fewest bytes of an item of each list, which bound what a count can ask for.
constexpr size_t kStringBytesMin = 4;
constexpr size_t kSegmentBytesMin = 4 + 8 + 8 + 8;
constexpr size_t kPlaneBytesMin = 4 + 8 + 1 + 1;
constexpr size_t kLayerBytesMin = 4;
constexpr size_t kLocalBytesMin = 4 + 4 + 4;
constexpr size_t kDimensionBytes = 8;

// Enumerators are stored by name, so that reordering one cannot change what a
// file means. These are all that a file may name.
constexpr PlaneKind kPlaneKinds[] = {PlaneKind::kRow, PlaneKind::kColumn,
                                     PlaneKind::kHighPrecision};
constexpr PlanePolicy kPolicies[] = {PlanePolicy::kAuto, PlanePolicy::kBoth, PlanePolicy::kRowOnly};
constexpr LayerKind kLayerKinds[] = {LayerKind::kLinear};
constexpr Format kFormats[] = {Format::kNone,     Format::kMxfp8,      Format::kNvfp4,
                               Format::kFp8Block, Format::kFp8Current, Format::kFp8Delayed};
constexpr BackwardOverride kOverrides[] = {
    BackwardOverride::kNone, BackwardOverride::kHighPrecision, BackwardOverride::kDequantized};
constexpr Fp8Format kFp8Formats[] = {Fp8Format::kE4M3, Fp8Format::kHybrid};
constexpr BlockGeometry kGeometries[] = {BlockGeometry::k1D, BlockGeometry::k2D};
constexpr AmaxAlgorithm kAmaxAlgorithms[] = {AmaxAlgorithm::kMax, AmaxAlgorithm::kMostRecent};
constexpr DType kNominals[] = {DType::kF32, DType::kBF16, DType::kF16};

// Which arrays a plane has follows from what its weight says, so a manifest does
// not say it. A plane that its weight cannot have is written without state.
bool Stores(const StoredWeight& weight, PlaneKind kind, PlanePart part) {
  StoredWeight any_shape = weight;
  any_shape.shape = {};
  const absl::StatusOr<PlaneLayout> layout = any_shape.LayoutOf(kind);
  return layout.ok() ? layout->Stores(part) : part != PlanePart::kState;
}

class Encoder {
 public:
  void Put(const Manifest& manifest) {
    out_.String(manifest.model);
    out_.U64(manifest.version.value());
    Put(manifest.recipe);
    out_.String(Name(manifest.policy));
    out_.U8(manifest.backward_enabled);
    out_.U8(manifest.trainable);
    out_.String(manifest.source_path);
    PutList(manifest.request_ids);
    PutList(manifest.segments);
    PutList(manifest.layers);
    PutList(manifest.local);
  }
  std::string Take() { return out_.Take(); }

 private:
  template <typename T>
  void PutList(const std::vector<T>& items) {
    out_.U32(static_cast<uint32_t>(items.size()));
    for (const T& item : items) Put(item);
  }
  template <typename T>
  void PutOptional(const std::optional<T>& item) {
    out_.U8(item.has_value());
    if (item) Put(*item);
  }

  void Put(const std::string& text) { out_.String(text); }
  void Put(int64_t number) { out_.U64(static_cast<uint64_t>(number)); }
  void Put(const Recipe& recipe) {
    out_.String(Name(recipe.format));
    out_.String(Name(recipe.backward_override));
    out_.String(Name(recipe.fp8_format));
    out_.String(Name(recipe.weight_geometry));
    switch (recipe.format) {
      case Format::kNone:
      case Format::kMxfp8:
        break;
      case Format::kNvfp4:
        out_.U8(recipe.hadamard);
        out_.U8(recipe.stochastic_rounding);
        break;
      case Format::kFp8Block:
      case Format::kFp8Current:
        out_.U8(recipe.power_of_two_scales);
        out_.U32(std::bit_cast<uint32_t>(recipe.amax_epsilon));
        break;
      case Format::kFp8Delayed:
        out_.U32(static_cast<uint32_t>(recipe.margin));
        Put(recipe.amax_history_length);
        out_.String(Name(recipe.amax_algorithm));
        break;
    }
  }
  void Put(const StoredSegment& segment) {
    out_.String(segment.file);
    Put(segment.file_bytes);
    Put(segment.header_bytes);
    out_.U64(segment.header_checksum);
  }
  void Put(const StoredLayer& layer) {
    out_.String(layer.name);
    out_.String(Name(layer.kind));
    Put(layer.weight);
    PutOptional(layer.bias);
    Put(layer.decision);
    out_.String(layer.provenance);
  }
  void Put(const StoredWeight& weight) {
    out_.String(weight.name);
    Put(weight.shape.out);
    Put(weight.shape.in);
    out_.String(Name(weight.nominal));
    out_.String(Name(weight.format));
    out_.String(Name(weight.geometry));
    if (weight.format == Format::kFp8Delayed) Put(weight.amax_history_length);
    out_.U64(weight.epoch.value());
    PutList(weight.planes);
  }
  void Put(const StoredPlane& plane) {
    out_.String(Name(plane.kind));
    out_.U64(plane.epoch.value());
    if (plane.payload) Put(*plane.payload);
    PutOptional(plane.scales);
    PutOptional(plane.exponents);
    if (plane.state) Put(*plane.state);
  }
  void Put(const StoredPart& part) {
    Put(part.segment);
    Put(part.offset);
    Put(part.length);
    out_.U64(part.checksum);
  }
  void Put(const ExponentRange& exponents) {
    out_.U8(static_cast<uint8_t>(exponents.min));
    out_.U8(static_cast<uint8_t>(exponents.max));
  }
  void Put(const PlaneDecision& decision) {
    out_.String(Name(decision.policy));
    out_.U8(decision.row);
    out_.U8(decision.column);
    out_.String(decision.why);
    Put(decision.saved_bytes);
    PutList(decision.forbids);
  }
  void Put(const LocalTensor& local) {
    out_.String(local.name);
    PutList(local.shape);
    out_.String(local.why);
  }

  ByteWriter out_;
};

// Mirrors Encoder. After a failure every value is a default one.
class Decoder {
 public:
  explicit Decoder(absl::string_view body) : in_(body) {}

  bool whole() const { return in_.ok() && in_.left() == 0; }
  size_t position() const { return in_.position(); }

  void Get(Manifest& manifest) {
    Get(manifest.model);
    Get(manifest.version);
    Get(manifest.recipe);
    GetName(kPolicies, manifest.policy);
    Get(manifest.backward_enabled);
    Get(manifest.trainable);
    Get(manifest.source_path);
    GetList(kStringBytesMin, manifest.request_ids);
    GetList(kSegmentBytesMin, manifest.segments);
    GetList(kLayerBytesMin, manifest.layers);
    GetList(kLocalBytesMin, manifest.local);
  }

 private:
  template <typename T>
  void GetList(size_t item_bytes_min, std::vector<T>& items) {
    const uint32_t count = in_.Count(item_bytes_min);
    for (uint32_t i = 0; i < count && in_.ok(); ++i) Get(items.emplace_back());
  }
  template <typename T>
  void GetOptional(std::optional<T>& item) {
    bool present = false;
    Get(present);
    if (present) Get(item.emplace());
  }
  template <typename T, size_t N>
  void GetName(const T (&values)[N], T& value) {
    const std::string name = in_.String();
    for (const T candidate : values) {
      if (Name(candidate) == name) {
        value = candidate;
        return;
      }
    }
    in_.Fail();
  }

  void Get(std::string& text) { text = in_.String(); }
  void Get(bool& flag) {
    const uint8_t value = in_.U8();
    if (value > 1) in_.Fail();
    flag = value == 1;
  }
  void Get(int64_t& number) {
    const uint64_t value = in_.U64();
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) in_.Fail();
    number = static_cast<int64_t>(value);
  }
  void Get(uint64_t& number) { number = in_.U64(); }
  void Get(WeightVersion& version) { version = WeightVersion(in_.U64()); }
  void Get(Recipe& recipe) {
    GetName(kFormats, recipe.format);
    GetName(kOverrides, recipe.backward_override);
    GetName(kFp8Formats, recipe.fp8_format);
    GetName(kGeometries, recipe.weight_geometry);
    switch (recipe.format) {
      case Format::kNone:
      case Format::kMxfp8:
        break;
      case Format::kNvfp4:
        Get(recipe.hadamard);
        Get(recipe.stochastic_rounding);
        break;
      case Format::kFp8Block:
      case Format::kFp8Current:
        Get(recipe.power_of_two_scales);
        recipe.amax_epsilon = std::bit_cast<float>(in_.U32());
        break;
      case Format::kFp8Delayed:
        recipe.margin = static_cast<int>(in_.U32());
        Get(recipe.amax_history_length);
        GetName(kAmaxAlgorithms, recipe.amax_algorithm);
        break;
    }
  }
  void Get(StoredSegment& segment) {
    Get(segment.file);
    Get(segment.file_bytes);
    Get(segment.header_bytes);
    Get(segment.header_checksum);
  }
  void Get(StoredLayer& layer) {
    Get(layer.name);
    GetName(kLayerKinds, layer.kind);
    Get(layer.weight);
    GetOptional(layer.bias);
    Get(layer.decision);
    Get(layer.provenance);
  }
  void Get(StoredWeight& weight) {
    Get(weight.name);
    Get(weight.shape.out);
    Get(weight.shape.in);
    GetName(kNominals, weight.nominal);
    GetName(kFormats, weight.format);
    GetName(kGeometries, weight.geometry);
    if (weight.format == Format::kFp8Delayed) Get(weight.amax_history_length);
    Get(weight.epoch);
    const uint32_t count = in_.Count(kPlaneBytesMin);
    for (uint32_t i = 0; i < count && in_.ok(); ++i) Get(weight, weight.planes.emplace_back());
  }
  void Get(const StoredWeight& weight, StoredPlane& plane) {
    GetName(kPlaneKinds, plane.kind);
    Get(plane.epoch);
    if (Stores(weight, plane.kind, PlanePart::kPayload)) Get(plane.payload.emplace());
    GetOptional(plane.scales);
    GetOptional(plane.exponents);
    if (Stores(weight, plane.kind, PlanePart::kState)) Get(plane.state.emplace());
  }
  void Get(StoredPart& part) {
    Get(part.segment);
    Get(part.offset);
    Get(part.length);
    Get(part.checksum);
  }
  void Get(ExponentRange& exponents) {
    exponents.min = in_.U8();
    exponents.max = in_.U8();
  }
  void Get(PlaneDecision& decision) {
    GetName(kPolicies, decision.policy);
    Get(decision.row);
    Get(decision.column);
    Get(decision.why);
    Get(decision.saved_bytes);
    GetList(kStringBytesMin, decision.forbids);
  }
  void Get(LocalTensor& local) {
    Get(local.name);
    GetList(kDimensionBytes, local.shape);
    Get(local.why);
  }

  ByteReader in_;
};

}  // namespace

std::string EncodeManifest(const Manifest& manifest) {
  Encoder encoder;
  encoder.Put(manifest);
  return EncodeRecord(kManifestMagic, encoder.Take());
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view path, absl::string_view bytes) {
  PW_ASSIGN_OR_RETURN(const absl::string_view body, DecodeRecord(path, kManifestMagic, bytes));
  Manifest manifest;
  Decoder decoder(body);
  decoder.Get(manifest);
  if (!decoder.whole()) {
    return Damage(Reason::kCorruptFile, path,
                  kRecordBodyOffset + static_cast<int64_t>(decoder.position()),
                  "no build writes such a body");
  }
  const absl::Status sound = manifest.CheckInvariants();
  if (!sound.ok()) {
    return Damage(Reason::kCorruptFile, path, kRecordBodyOffset, sound.message());
  }
  return manifest;
}

}  // namespace planewise
