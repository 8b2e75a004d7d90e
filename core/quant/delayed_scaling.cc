#include "core/quant/delayed_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/numeric/default_float_environment.h"

namespace planewise {

void InitializeDelayedState(absl::Span<float> state) {
  std::fill(state.begin(), state.end(), 0.0f);
  state[0] = 1.0f;
}

void RecordAmax(absl::Span<float> state, float amax) {
  if (amax > state[1]) state[1] = amax;  // Never true of NaN.
}

void UpdateDelayedState(const DelayedScalingRule& rule, absl::Span<float> state) {
  const DefaultFloatEnvironment environment;
  float& scale = state[0];
  const absl::Span<float> history = state.subspan(1);
  if (history[0] == 0.0f) return;

  const float amax =
      rule.most_recent ? history[0] : *std::max_element(history.begin(), history.end());
  std::rotate(history.begin(), history.begin() + 1, history.end());
  history[0] = 0.0f;

  if (!std::isfinite(amax)) return;
  float next = std::ldexp(rule.element_max, -rule.margin) / amax;
  if (std::isinf(next)) next = std::numeric_limits<float>::max();
  // What codes are multiplied by must be a number: of a zero code infinity makes NaN.
  if (std::isfinite(1.0f / next)) scale = next;
}

std::vector<float> ResizedDelayedState(absl::Span<const float> state, int64_t history_length) {
  const size_t words = static_cast<size_t>(DelayedStateWords(history_length));
  constexpr size_t kScaleAndLive = 2;
  std::vector<float> resized(words, 0.0f);
  std::copy_n(state.begin(), kScaleAndLive, resized.begin());
  const size_t kept = std::min(state.size(), words) - kScaleAndLive;
  std::copy_n(state.end() - kept, kept, resized.end() - static_cast<std::ptrdiff_t>(kept));
  return resized;
}

}  // namespace planewise
