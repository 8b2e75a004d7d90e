#include "planner/inventory_match.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"

namespace planewise {
namespace {

// More would not fit into the trailers of a gRPC reply.
constexpr size_t kListedDifferencesMax = 20;

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// Buffers that are recomputed from the config; transformers ignores them too.
bool IsBuffer(absl::string_view name) {
  return name == "embeddings.position_ids" ||
         absl::EndsWith(name, ".self_attn.rotary_emb.inv_freq");
}

class Matcher {
 public:
  Matcher(const TensorInventory& inventory, absl::Span<const SourceTensor> source)
      : result_{inventory, {}}, prefix_(inventory.base_prefix) {
    const auto has_prefix = [this](const auto& tensor) {
      return absl::StartsWith(tensor.name, prefix_);
    };
    const auto& tensors = inventory.tensors;
    prefix_wanted_ = std::any_of(tensors.begin(), tensors.end(), has_prefix);
    prefix_present_ = std::any_of(source.begin(), source.end(), has_prefix);
    for (size_t i = 0; i < tensors.size(); ++i) index_of_.emplace(tensors[i].name, i);
  }

  void Take(const SourceTensor& source) {
    const std::string name = NameInInventory(source.name);
    const auto found = index_of_.find(name);
    if (found == index_of_.end()) {
      if (IsBuffer(name)) {
        result_.ignored.push_back(source.name);
      } else {
        Differ(Reason::kInvalidCheckpoint, source.name,
               absl::StrCat("unexpected ", ShapeText(source.shape), ": ",
                            result_.inventory.architecture, " has no such tensor"));
      }
      return;
    }
    InventoryTensor& tensor = result_.inventory.tensors[found->second];
    if (!tensor.source_name.empty()) {
      Differ(Reason::kInvalidCheckpoint, source.name,
             absl::StrCat("is there twice, also as \"", tensor.source_name, "\""));
      return;
    }
    tensor.source_name = source.name;
    tensor.dtype = source.dtype;
    CheckTensor(source, tensor.shape);
  }

  absl::StatusOr<InventoryMatch> Finish() && {
    for (const InventoryTensor& tensor : result_.inventory.tensors) {
      if (!tensor.source_name.empty() || !tensor.tied_to.empty()) continue;
      Differ(Reason::kInvalidCheckpoint, tensor.name,
             absl::StrCat("missing; expected ", ShapeText(tensor.shape)));
    }
    if (difference_count_ == 0) return std::move(result_);
    const Violation& first = differences_.front();
    std::string message = absl::StrCat("checkpoint does not match ",
                                       result_.inventory.architecture, ": tensor \"",
                                       first.subject, "\": ", first.description);
    if (difference_count_ > 1) {
      absl::StrAppend(&message, " (and ", difference_count_ - 1, " more differences)");
    }
    Error error(first.reason, message);
    error.With("tensor", first.subject).With("differenceCount", difference_count_);
    for (Violation& difference : differences_) error.WithViolation(std::move(difference));
    return error;
  }

 private:
  // Either the checkpoint or the architecture may have the base prefix.
  std::string NameInInventory(absl::string_view source_name) const {
    if (prefix_present_ && !prefix_wanted_) {
      return std::string(absl::StripPrefix(source_name, prefix_));
    }
    if (!prefix_present_ && prefix_wanted_ && !index_of_.contains(source_name)) {
      return absl::StrCat(prefix_, source_name);
    }
    return std::string(source_name);
  }

  void CheckTensor(const SourceTensor& source, const std::vector<int64_t>& expected) {
    if (!IsHighPrecision(source.dtype)) {
      Differ(Reason::kDtypeUnsupported, source.name,
             absl::StrCat("dtype ", Name(source.dtype), "; required F32, F16 or BF16"));
    }
    if (source.shape == expected) return;
    std::string text =
        absl::StrCat("shape ", ShapeText(source.shape), ", expected ", ShapeText(expected));
    const bool transposed = expected.size() == 2 && source.shape.size() == 2 &&
                            source.shape[0] == expected[1] && source.shape[1] == expected[0];
    if (transposed) absl::StrAppend(&text, ": looks transposed; weights are [out, in]");
    Differ(Reason::kShapeMismatch, source.name, text);
  }

  void Differ(Reason reason, const std::string& tensor, std::string description) {
    ++difference_count_;
    if (differences_.size() < kListedDifferencesMax) {
      differences_.push_back({reason, tensor, std::move(description)});
    }
  }

  InventoryMatch result_;
  const std::string prefix_;
  bool prefix_wanted_ = false;
  bool prefix_present_ = false;
  absl::flat_hash_map<std::string, size_t> index_of_;
  std::vector<Violation> differences_;
  int64_t difference_count_ = 0;
};

}  // namespace

absl::StatusOr<InventoryMatch> MatchInventory(const TensorInventory& inventory,
                                              absl::Span<const SourceTensor> source) {
  Matcher matcher(inventory, source);
  for (const SourceTensor& tensor : source) matcher.Take(tensor);
  return std::move(matcher).Finish();
}

}  // namespace planewise
