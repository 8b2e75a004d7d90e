#include "core/layer/linear_mode.h"

#include <utility>

#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "core/quant/quantizer.h"

namespace planewise {

SaveDecision DecideSavedInput(const LinearMode& mode) {
  SaveDecision decision;
  std::string why;
  if (!mode.save_for_backward || !mode.weight_gradient) {
    why = "no weight gradient is wanted: nothing of X is kept";
  } else if (!mode.recipe.quantized()) {
    decision.what = SavedInput::kOriginal;
    why = "recipe none does not quantize X: the original is what backward reads";
  } else if (mode.recipe.backward_override == BackwardOverride::kHighPrecision) {
    decision.what = SavedInput::kOriginal;
    why = "backward_override=high_precision multiplies dY by the original X: forced on";
  } else if (mode.recipe.backward_override == BackwardOverride::kDequantized) {
    decision.what = SavedInput::kRowPlane;
    why = "backward_override=dequantized multiplies dY by the X that forward quantized: forced off";
  } else {
    decision.what =
        mode.save_original_input ? SavedInput::kOriginal : SavedInput::kColumnPlane;
  }
  if (decision.save_original_input() != mode.save_original_input) decision.why = std::move(why);
  return decision;
}

absl::StatusOr<int64_t> SavedInputBytes(SavedInput what, int64_t tokens, int64_t in,
                                        DType activation) {
  if (what == SavedInput::kNothing) return 0;
  if (what == SavedInput::kOriginal) {
    PW_ASSIGN_OR_RETURN(const int64_t elements, CheckedMultiply(tokens, in));
    return SizeBytes(activation, elements);
  }
  const PlaneKind kind = what == SavedInput::kRowPlane ? PlaneKind::kRow : PlaneKind::kColumn;
  PW_ASSIGN_OR_RETURN(const PlaneLayout layout,
                      Mxfp8LayoutFor(kind, {tokens, in}, DType::kF8E4M3));
  return layout.total_bytes();
}

}  // namespace planewise
