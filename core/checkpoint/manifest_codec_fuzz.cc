// Hostile bytes as the body of a manifest whose checksum is right: what a writer
// with a fault could leave. Invariants, for any bytes:
//  1. A refusal is DATA_LOSS and names the file.
//  2. A manifest has exactly one encoding: what is accepted is encoded to the
//     very same bytes.

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/manifest_codec.h"
#include "core/checkpoint/record_file.h"
#include "tests/testing/fuzz_check.h"

namespace planewise {
namespace {

void CheckBody(absl::string_view body) {
  const std::string file = EncodeRecord(kManifestMagic, body);
  const absl::StatusOr<Manifest> manifest = DecodeManifest("some.manifest", file);
  if (!manifest.ok()) {
    FuzzCheck(absl::IsDataLoss(manifest.status()) &&
                  absl::StrContains(manifest.status().message(), "some.manifest"),
              "1: a refusal is DATA_LOSS and names the file");
    return;
  }
  FuzzCheck(EncodeManifest(*manifest) == file, "2: exactly one encoding");
}

}  // namespace
}  // namespace planewise

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planewise::CheckBody({reinterpret_cast<const char*>(data), size});
  return 0;
}
