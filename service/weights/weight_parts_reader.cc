#include "service/weights/weight_parts_reader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/quant/quantizer.h"
#include "service/weights/nominal_cast.h"
#include "xxhash.h"

namespace planewise {
namespace {

// One array to be read.
struct PartRequest {
  std::shared_ptr<const PrimaryWeight> weight;
  PlaneKind plane = PlaneKind::kRow;
  PlanePart part = PlanePart::kPayload;
  bool bias = false;  // stored as [1, out], but a vector to everybody else
};

// nullptr if it is not stored and fresh.
std::shared_ptr<const Plane> PlaneOf(const PrimaryWeight& weight, PlaneKind kind) {
  if (weight.Fresh(kind) == nullptr) return nullptr;
  switch (kind) {
    case PlaneKind::kRow: return weight.row;
    case PlaneKind::kColumn: return weight.column;
    case PlaneKind::kHighPrecision: return weight.high_precision;
  }
  return nullptr;
}

// Where a dequantized weight comes from.
PlaneKind SourcePlane(const PrimaryWeight& weight) {
  return weight.format == Format::kNone ? PlaneKind::kHighPrecision : PlaneKind::kRow;
}

// Does the row plane's array serve this plane too?
bool Shares(const PlaneLayout& layout, PlanePart part) {
  return (part == PlanePart::kPayload && layout.shares_row_payload) ||
         (part == PlanePart::kScales && layout.shares_row_scales);
}

// Two packed elements are a byte to readers.
DType ReadableType(const PlaneLayout& layout, PlanePart part) {
  switch (part) {
    case PlanePart::kPayload:
      return layout.payload_dtype == DType::kF4E2M1 ? DType::kU8 : layout.payload_dtype;
    case PlanePart::kScales: return layout.scale_dtype;
    case PlanePart::kState: break;
  }
  return DType::kF32;
}

std::vector<int64_t> ReadableShape(const PlaneLayout& layout, PlanePart part) {
  switch (part) {
    case PlanePart::kPayload: {
      const bool packed = layout.payload_dtype == DType::kF4E2M1;
      return {layout.payload_rows, packed ? layout.payload_row_bytes() : layout.payload_columns};
    }
    case PlanePart::kScales: return {layout.scale_rows, layout.scale_columns};
    case PlanePart::kState: break;
  }
  return {layout.state_elements()};
}

class WeightPartsReader final : public WeightReader {
 public:
  WeightPartsReader(std::shared_ptr<CatalogState> state, WeightLease lease,
                    std::vector<PartRequest> requests, std::optional<DType> dequantize_to)
      : state_(std::move(state)),
        lease_(std::move(lease)),
        version_(lease_.version()->version),
        requests_(std::move(requests)),
        dequantize_to_(dequantize_to) {}

  void Next(DoneCallback<std::optional<WeightPart>> done) override {
    using Answer = std::optional<WeightPart>;
    if (next_ == requests_.size()) {
      return state_->Answer<Answer>(std::move(done), Answer());
    }
    if (!lease_.valid()) {
      return state_->Answer<Answer>(
          std::move(done),
          Error(Reason::kLeaseRevoked,
                absl::StrCat("version ", version_.value(),
                             " was given up for newer ones; read the newest")));
    }
    auto result = std::make_shared<absl::StatusOr<WeightPart>>(absl::CancelledError());
    const PartRequest& request = requests_[next_++];
    // Checksums and dequantizing take time in proportion to the bytes.
    state_->resources.runner->Run(
        Lane::kStorage,
        [state = state_, request, version = version_, to = dequantize_to_,
         result] { *result = Make(*state, request, version, to); },
        [result, done = std::move(done)]() mutable {
          if (!result->ok()) return std::move(done)(result->status());
          std::move(done)(Answer(*std::move(*result)));
        });
  }

 private:
  static absl::StatusOr<WeightPart> Make(const CatalogState& state, const PartRequest& request,
                                         WeightVersion version, std::optional<DType> to) {
    WeightPart part;
    part.weight = request.weight->name;
    part.version = version;
    part.plane = request.plane;
    part.part = request.part;
    if (to.has_value()) {
      PW_RETURN_IF_ERROR(Dequantize(state, *request.weight, *to, part));
    } else {
      DescribeStored(request, part);
    }
    if (request.bias) part.shape = {request.weight->shape.elements()};
    part.checksum = XXH3_64bits(part.bytes.data(), part.bytes.size());
    return part;
  }

  static void DescribeStored(const PartRequest& request, WeightPart& part) {
    std::shared_ptr<const Plane> plane = PlaneOf(*request.weight, request.plane);
    if (Shares(plane->layout, request.part)) plane = request.weight->row;
    part.dtype = ReadableType(plane->layout, request.part);
    part.shape = ReadableShape(plane->layout, request.part);
    part.bytes = plane->buffer(request.part).bytes();
    part.owner = std::move(plane);
  }

  static absl::Status Dequantize(const CatalogState& state, const PrimaryWeight& weight, DType to,
                                 WeightPart& part) {
    const Plane& source = *PlaneOf(weight, SourcePlane(weight));
    PW_ASSIGN_OR_RETURN(const int64_t size_bytes, SizeBytes(to, weight.shape.elements()));
    PW_ASSIGN_OR_RETURN(HostBuffer buffer,
                        HostBuffer::AllocateUninitialized(
                            *state.resources.budget, MemoryUse::kTransport, size_bytes,
                            absl::StrCat("dequantized weight \"", weight.name, "\"")));
    const MutableMatrixView matrix{buffer.data(), to, weight.shape.out, weight.shape.in};
    if (weight.format == Format::kNone) {
      CastToNominal({source.payload.data(), weight.nominal, weight.shape.out, weight.shape.in},
                    matrix);
    } else {
      PW_RETURN_IF_ERROR(
          state.resources.quantizer->Dequantize(SpanOf(source), matrix, AllRows(matrix)));
    }
    part.dtype = to;
    part.shape = {weight.shape.out, weight.shape.in};
    auto owner = std::make_shared<const HostBuffer>(std::move(buffer));
    part.bytes = owner->bytes();
    part.owner = std::move(owner);
    return absl::OkStatus();
  }

  const std::shared_ptr<CatalogState> state_;
  const WeightLease lease_;
  const WeightVersion version_;
  const std::vector<PartRequest> requests_;
  const std::optional<DType> dequantize_to_;
  size_t next_ = 0;
};

// A weight or a bias of the version.
struct FoundWeight {
  std::shared_ptr<const PrimaryWeight> weight;
  bool bias = false;
};

absl::StatusOr<FoundWeight> FindWeight(const ModelVersion& version, const std::string& name) {
  for (const HostedLayer& layer : version.layers) {
    if (layer.weight->name == name) return FoundWeight{layer.weight, false};
    if (layer.bias != nullptr && layer.bias->name == name) return FoundWeight{layer.bias, true};
  }
  return Error(Reason::kNotFound,
               absl::StrCat("model \"", version.model, "\" version ", version.version.value(),
                            ": it has no weight \"", name, "\"; describe it to see them"))
      .With("model", version.model)
      .With("weight", name);
}

// The arrays of a weight that are asked for.
absl::Status AddRequests(const FoundWeight& found, const ReadWeightsSpec& spec,
                         std::vector<PartRequest>& requests) {
  const std::shared_ptr<const PrimaryWeight>& weight = found.weight;
  if (spec.dequantize_to.has_value()) {
    requests.push_back({weight, SourcePlane(*weight), PlanePart::kPayload, found.bias});
    return absl::OkStatus();
  }
  const std::shared_ptr<const Plane> plane = PlaneOf(*weight, *spec.plane);
  if (plane == nullptr) {
    return Error(Reason::kNotFound, absl::StrCat("weight \"", weight->name, "\": its ",
                                                 Name(*spec.plane), " plane is not stored"))
        .With("weight", weight->name);
  }
  for (const PlanePart part : kPlaneParts) {
    if (plane->layout.Stores(part) || Shares(plane->layout, part)) {
      requests.push_back({weight, *spec.plane, part, found.bias});
    }
  }
  return absl::OkStatus();
}

// The arrays of every weight and bias; with `plane`, of those that store it.
absl::StatusOr<std::vector<PartRequest>> RequestsForAll(const ModelVersion& version,
                                                        const ReadWeightsSpec& spec) {
  std::vector<PartRequest> requests;
  for (const HostedLayer& layer : version.layers) {
    for (const FoundWeight& found :
         {FoundWeight{layer.weight, false}, FoundWeight{layer.bias, true}}) {
      if (found.weight == nullptr) continue;
      if (spec.plane.has_value() && PlaneOf(*found.weight, *spec.plane) == nullptr) continue;
      PW_RETURN_IF_ERROR(AddRequests(found, spec, requests));
    }
  }
  if (requests.empty() && spec.plane.has_value()) {
    return Error(Reason::kNotFound,
                 absl::StrCat("model \"", version.model, "\" version ", version.version.value(),
                              ": no weight has its ", Name(*spec.plane),
                              " plane stored; describe it to see which are"))
        .With("model", version.model);
  }
  return requests;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightReader>> MakeWeightReader(
    const std::shared_ptr<CatalogState>& state, WeightLease lease, const ReadWeightsSpec& spec) {
  if (spec.plane.has_value() == spec.dequantize_to.has_value()) {
    return Error(Reason::kInvalidRequest,
                 absl::StrCat("fields plane and dequantize_to: ",
                              spec.plane.has_value() ? "both" : "none", " set; set one of them"));
  }
  if (spec.dequantize_to.has_value() && !IsHighPrecision(*spec.dequantize_to)) {
    return Error(Reason::kDtypeUnsupported,
                 absl::StrCat("field dequantize_to: ", Name(*spec.dequantize_to),
                              "; required F32, BF16 or F16"));
  }
  const std::shared_ptr<const ModelVersion> version = lease.version();
  std::vector<PartRequest> requests;
  for (const std::string& name : spec.weights) {
    PW_ASSIGN_OR_RETURN(const FoundWeight found, FindWeight(*version, name));
    PW_RETURN_IF_ERROR(AddRequests(found, spec, requests));
  }
  if (spec.weights.empty()) {
    PW_ASSIGN_OR_RETURN(requests, RequestsForAll(*version, spec));
  }
  return std::make_unique<WeightPartsReader>(state, std::move(lease), std::move(requests),
                                             spec.dequantize_to);
}

}  // namespace planewise
