#ifndef PLANEWISE_CORE_LAYER_LINEAR_MODE_H_
#define PLANEWISE_CORE_LAYER_LINEAR_MODE_H_
// What a session wants of a forward, and what of X is kept for it.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/numeric/dtype.h"
#include "core/recipe/recipe.h"

namespace planewise {

struct LinearMode {
  Recipe recipe;  // with the effective backward_override
  bool backward_enabled = true;
  bool save_for_backward = false;
  bool weight_gradient = false;      // dW will be asked of the backward
  bool save_original_input = false;  // as requested; the override may force it
};

// X in the form that backward multiplies: the matrix itself, or its row or
// column plane.
enum class SavedInput : uint8_t { kNothing, kOriginal, kRowPlane, kColumnPlane };

struct SaveDecision {
  SavedInput what = SavedInput::kNothing;
  std::string why;  // empty if save_original_input holds as requested

  bool save_original_input() const { return what == SavedInput::kOriginal; }
};

// Pure. X is kept only where both a backward and dW are wanted.
SaveDecision DecideSavedInput(const LinearMode& mode);

// Bytes of what is kept of X [tokens, in].
absl::StatusOr<int64_t> SavedInputBytes(SavedInput what, int64_t tokens, int64_t in,
                                        DType activation);

}  // namespace planewise

#endif  // PLANEWISE_CORE_LAYER_LINEAR_MODE_H_
