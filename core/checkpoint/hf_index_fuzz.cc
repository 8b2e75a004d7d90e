// Hostile bytes as model.safetensors.index.json. Invariants, for any bytes:
//  1. A refusal is INVALID_CHECKPOINT and names the file.
//  2. No file name of an accepted index leads out of its directory.
//  3. The tensors come by name, each once.

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "core/checkpoint/hf_index.h"
#include "tests/testing/fuzz_check.h"

namespace planewise {
namespace {

void CheckIndex(absl::string_view text) {
  const absl::StatusOr<HfWeightMap> index = ParseHfIndex("some.index.json", text);
  if (!index.ok()) {
    FuzzCheck(ReasonOf(index.status()) == Reason::kInvalidCheckpoint &&
                  absl::StrContains(index.status().message(), "some.index.json"),
              "1: a refusal is INVALID_CHECKPOINT and names the file");
    return;
  }
  for (size_t i = 0; i < index->size(); ++i) {
    const auto& [tensor, file] = (*index)[i];
    FuzzCheck(absl::EndsWith(file, ".safetensors") && !absl::StrContains(file, '/') &&
                  !absl::StartsWith(file, "."),
              "2: a plain name in the same directory");
    FuzzCheck(i == 0 || (*index)[i - 1].first < tensor, "3: by name, each once");
  }
}

}  // namespace
}  // namespace planewise

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planewise::CheckIndex({reinterpret_cast<const char*>(data), size});
  return 0;
}
