#include "planner/switch_snapshot.h"

#include <xxhash.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace planewise {
namespace {

// Lengths go before texts, so that no two snapshots spell the same bytes.
class Spelling {
 public:
  void Add(absl::string_view text) { absl::StrAppend(&all_, text.size(), ":", text, ","); }
  void Add(int64_t number) { absl::StrAppend(&all_, number, ","); }

  std::string Hash() const {
    return absl::StrCat(absl::Hex(XXH3_64bits(all_.data(), all_.size()), absl::kZeroPad16));
  }

 private:
  std::string all_;
};

}  // namespace

SwitchWeight SwitchWeightOf(const HostedLayer& layer) {
  const PrimaryWeight& stored = *layer.weight;
  SwitchWeight weight;
  weight.name = stored.name;
  weight.shape = stored.shape;
  weight.nominal = stored.nominal;
  weight.format = stored.format;
  weight.geometry = stored.geometry;
  weight.amax_history_length = stored.amax_history_length;
  weight.row = stored.Fresh(PlaneKind::kRow) != nullptr;
  weight.column = stored.Fresh(PlaneKind::kColumn) != nullptr;
  weight.high_precision = stored.Fresh(PlaneKind::kHighPrecision) != nullptr;
  weight.dequantized = absl::StartsWith(layer.provenance, kDequantizedProvenance);
  return weight;
}

std::string SwitchFingerprint(const SwitchSnapshot& snapshot, const Recipe& target) {
  Spelling spelling;
  spelling.Add(snapshot.model);
  spelling.Add(static_cast<int64_t>(snapshot.version.value()));
  spelling.Add(static_cast<int64_t>(snapshot.recipe.Fingerprint()));
  spelling.Add(static_cast<int64_t>(target.Fingerprint()));
  spelling.Add(Name(snapshot.policy));
  spelling.Add(snapshot.backward_enabled);
  spelling.Add(snapshot.device.name);
  spelling.Add(static_cast<int64_t>(snapshot.device.formats.size()));
  for (const Format format : snapshot.device.formats) spelling.Add(Name(format));
  for (const SwitchWeight& weight : snapshot.weights) {
    spelling.Add(weight.name);
    spelling.Add(weight.shape.out);
    spelling.Add(weight.shape.in);
    spelling.Add(Name(weight.nominal));
    spelling.Add(Name(weight.format));
    spelling.Add(Name(weight.geometry));
    for (const bool fact : {weight.row, weight.column, weight.high_precision, weight.dequantized}) {
      spelling.Add(fact);
    }
  }
  return spelling.Hash();
}

}  // namespace planewise
