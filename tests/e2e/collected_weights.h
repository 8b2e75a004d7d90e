#ifndef PLANEWISE_TESTS_E2E_COLLECTED_WEIGHTS_H_
#define PLANEWISE_TESTS_E2E_COLLECTED_WEIGHTS_H_
// Every byte that a ReadWeights brought, to be compared with another's.

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "clients/cpp/weight_download.h"

namespace planewise {

class CollectedWeights final : public WeightSink {
 public:
  // By "weight/plane/part".
  std::map<std::string, std::string> parts;

  absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader& header) override {
    std::string& bytes = parts[absl::StrCat(header.weight(), "/", v1::Plane_Name(header.plane()),
                                            "/", v1::PlanePart_Name(header.part()))];
    bytes.resize(header.size_bytes());
    return absl::MakeSpan(bytes);
  }
  absl::Status End(const v1::ReadTensorHeader&) override { return absl::OkStatus(); }
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_E2E_COLLECTED_WEIGHTS_H_
