#include "core/base/reason.h"

namespace planewise {
namespace {

constexpr ReasonFacts kFacts[] = {
#define PW_REASON_FACTS(id, name, code, retry, meaning) \
  {Reason::id, name, absl::StatusCode::code, Retry::retry, meaning},
    PW_REASONS(PW_REASON_FACTS)
#undef PW_REASON_FACTS
};

}  // namespace

absl::Span<const ReasonFacts> AllReasons() { return kFacts; }

const ReasonFacts& FactsOf(Reason reason) { return kFacts[static_cast<size_t>(reason)]; }

std::optional<Reason> ReasonFromName(absl::string_view name) {
  for (const ReasonFacts& facts : kFacts) {
    if (facts.name == name) return facts.reason;
  }
  return std::nullopt;
}

}  // namespace planewise
